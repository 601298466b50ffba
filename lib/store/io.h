/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All disk access of the store, as a table of functions: the real one, and in tests one that fails, writes
 * short, or forgets what was not synced. Members behave as the system call of their name, but answer -errno
 * and retry EINTR. Any thread; what syncs may block.
 */
#ifndef KLOG_STORE_IO_H
#define KLOG_STORE_IO_H

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "lib/base/buf.h"

struct store_io {
    void *ctx; /* the table's own */
    int (*openat)(const struct store_io *io, int dirfd, const char *path, int flags, mode_t mode);
    int (*close)(const struct store_io *io, int fd);
    int (*mkdirat)(const struct store_io *io, int dirfd, const char *path, mode_t mode);
    int64_t (*pread)(const struct store_io *io, int fd, void *p, size_t n, off_t at);
    int64_t (*pwritev)(const struct store_io *io, int fd, const struct iovec *iov, int n_iov, off_t at);
    int (*fdatasync)(const struct store_io *io, int fd);
    int (*fsync)(const struct store_io *io, int fd);
    int (*ftruncate)(const struct store_io *io, int fd, off_t size);
    int (*renameat)(const struct store_io *io, int olddirfd, const char *oldpath, int newdirfd,
                    const char *newpath);
    int (*unlinkat)(const struct store_io *io, int dirfd, const char *path, int flags);
    int (*sync_file_range)(const struct store_io *io, int fd, off_t at, off_t n, unsigned flags);
};

extern const struct store_io store_io_real;

/* Keeps n descriptors for the store: when the process has no other left, what store_io_real opens takes one of them, and
 * they are filled up again as descriptors become free. Once, at the start. Any thread afterwards. */
void io_keep_descriptors(int n);
/* No descriptor, or no memory of the kernel for one: nothing was done to the file, and later it may go. */
static inline bool io_is_shortage(int64_t rc)
{
    return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM;
}

/* Opens a directory for readdir, through io's openat; NULL and errno. */
DIR *io_opendir(const struct store_io *io, int dirfd, const char *path);
/* Reads until n bytes or the end of the file: the count, or -errno. */
int64_t io_pread_full(const struct store_io *io, int fd, void *p, size_t n, off_t at);
/* Writes all of it, in calls of at most 512 KiB (larger ones are slower). 0 or -errno; part may then be
 * written. */
int io_pwrite_all(const struct store_io *io, int fd, const void *p, size_t n, off_t at);
/* Opens dirfd/path, fsyncs it (rule S5), closes it. "." is the directory itself. */
int io_sync_dir(const struct store_io *io, int dirfd, const char *path);
/* Rule S6: PATH.tmp, fsync, rename over PATH, fsync of the directory `dir`. On failure the old file is whole.
 */
int io_replace_file(const struct store_io *io, int dirfd, const char *dir, const char *path, const void *p,
                    size_t n);
/* The whole file, -EFBIG when it is larger than max. */
int io_read_file(const struct store_io *io, int dirfd, const char *path, size_t max, struct bytebuf *ret);

#endif
