/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All disk access of the store and of the broker, as a table of functions: the real one, and in tests one that fails,
 * writes short, or forgets what was not synced. Nothing else in lib/store and daemon/ makes a system call on a file
 * (tests/check-layers.sh). Members behave as the system call of their name, but answer -errno and retry EINTR. Any
 * thread; what syncs may block.
 */
#ifndef KLOG_STORE_IO_H
#define KLOG_STORE_IO_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "lib/base/buf.h"

enum io_kind { IO_FILE, IO_DIRECTORY, IO_OTHER };

struct io_stat {
    enum io_kind kind;
    int64_t size;
    int64_t mtime_ns, ctime_ns; /* wall clock */
    uint64_t dev, ino;          /* together: which file, whatever its name */
};

/* Not 0 ends the listing. */
typedef int io_list_fn(void *arg, const char *name, enum io_kind kind);

struct store_io {
    void *ctx; /* the table's own */
    int (*openat)(const struct store_io *io, int dirfd, const char *path, int flags, mode_t mode);
    int (*close)(const struct store_io *io, int fd);
    int (*mkdirat)(const struct store_io *io, int dirfd, const char *path, mode_t mode);
    int64_t (*pread)(const struct store_io *io, int fd, void *p, size_t n, off_t at);
    /* As pread, of bytes that nobody else is expected to read: what the page cache did not have before it does not keep. The
     * descriptor is used for nothing else. */
    int64_t (*pread_once)(const struct store_io *io, int fd, void *p, size_t n, off_t at);
    int64_t (*pwritev)(const struct store_io *io, int fd, const struct iovec *iov, int n_iov, off_t at);
    int (*fdatasync)(const struct store_io *io, int fd);
    int (*fsync)(const struct store_io *io, int fd);
    /* Everything of the file system that fd is in: what was written, and every name. */
    int (*syncfs)(const struct store_io *io, int fd);
    int (*ftruncate)(const struct store_io *io, int fd, off_t size);
    int (*renameat)(const struct store_io *io, int olddirfd, const char *oldpath, int newdirfd,
                    const char *newpath);
    int (*unlinkat)(const struct store_io *io, int dirfd, const char *path, int flags);
    int (*sync_file_range)(const struct store_io *io, int fd, off_t at, off_t n, unsigned flags);
    int (*fstat)(const struct store_io *io, int fd, struct io_stat *ret);
    /* flags: 0 or AT_SYMLINK_NOFOLLOW */
    int (*statat)(const struct store_io *io, int dirfd, const char *path, int flags, struct io_stat *ret);
    /* Calls cb for what the directory has, but "." and "..", in any order; cb may unlink what it is told. 0, -errno, or what
     * cb ended it with. */
    int (*list)(const struct store_io *io, int dirfd, const char *path, io_list_fn *cb, void *arg);
    /* Sees to it that n bytes from `at` on have room on the disk; the size stays when keep_size says so. */
    int (*fallocate)(const struct store_io *io, int fd, bool keep_size, off_t at, off_t n);
    /* The first byte at or behind `at` that is in no hole; -ENXIO: none. */
    int64_t (*seek_data)(const struct store_io *io, int fd, off_t at);
    int (*set_mtime)(const struct store_io *io, int fd, int64_t mtime_ns);
    /* A lock on the file that goes with the descriptor, however the process ends; -EBUSY: another has it. */
    int (*trylock)(const struct store_io *io, int fd);
    /* Of the file system that fd is in: bytes in all, and those that may still be written. */
    int (*space)(const struct store_io *io, int fd, int64_t *ret_total, int64_t *ret_free);
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

/* Is there anything of this name, be it a link that leads nowhere? False when that cannot be told. */
bool io_exists(const struct store_io *io, int dirfd, const char *path);
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
/* A new file of which nothing is on the disk yet. */
int io_write_unsynced(const struct store_io *io, int dirfd, const char *path, const void *p, size_t n);
/* The whole file, -EFBIG when it is larger than max. */
int io_read_file(const struct store_io *io, int dirfd, const char *path, size_t max, struct bytebuf *ret);

#endif
