/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real disk, one function a system call; and what the store does with several of them, on whatever table.
 *
 * Every function answers -errno and retries EINTR. Large writes go out in pieces of WRITE_MAX_BYTES. io_replace_file
 * is rule S6: whoever reads the name finds the old content or the new one, whole, also after a power cut. Any
 * thread; keeps nothing.
 */
#include "lib/store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

#define WRITE_MAX_BYTES (512 * 1024)
#define FILE_MODE       0644

/* ---- descriptors kept for the store ---- */
enum { KEPT_MAX = 64 };

static struct {
    pthread_mutex_t mu;
    int fds[KEPT_MAX];   /* guarded by mu */
    int n, want;         /* guarded by mu */
    atomic_bool missing; /* n < want */
} kept = { .mu = PTHREAD_MUTEX_INITIALIZER };

static void kept_fill(void)
{
    pthread_mutex_lock(&kept.mu);
    while (kept.n < kept.want) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            break;
        kept.fds[kept.n++] = fd;
    }
    atomic_store(&kept.missing, kept.n < kept.want);
    pthread_mutex_unlock(&kept.mu);
}

/* Gives one up. False: there is none. */
static bool kept_spend(void)
{
    pthread_mutex_lock(&kept.mu);
    bool any = kept.n > 0;
    if (any)
        close(kept.fds[--kept.n]);
    atomic_store(&kept.missing, kept.n < kept.want);
    pthread_mutex_unlock(&kept.mu);
    return any;
}

void io_keep_descriptors(int n)
{
    KCHECK(n >= 0 && n <= KEPT_MAX);
    pthread_mutex_lock(&kept.mu);
    kept.want = n;
    pthread_mutex_unlock(&kept.mu);
    kept_fill();
}

/* ---- the real disk ---- */
static int open_once(int dirfd, const char *path, int flags, mode_t mode)
{
    int fd;
    do
        fd = openat(dirfd, path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

/* What is given up another thread may take first: then the next one. */
static int real_openat(const struct store_io *io, int dirfd, const char *path, int flags, mode_t mode)
{
    (void)io;
    int fd = open_once(dirfd, path, flags, mode);
    while (fd == -EMFILE && kept_spend())
        fd = open_once(dirfd, path, flags, mode);
    return fd;
}

static int real_close(const struct store_io *io, int fd)
{
    (void)io;
    int rc = close(fd) < 0 ? -errno : 0;
    if (unlikely(atomic_load_explicit(&kept.missing, memory_order_relaxed)))
        kept_fill();
    return rc;
}

static int real_mkdirat(const struct store_io *io, int dirfd, const char *path, mode_t mode)
{
    (void)io;
    return mkdirat(dirfd, path, mode) < 0 ? -errno : 0;
}

static int64_t real_pread(const struct store_io *io, int fd, void *p, size_t n, off_t at)
{
    (void)io;
    ssize_t done;
    do
        done = pread(fd, p, n, at);
    while (done < 0 && errno == EINTR);
    return done < 0 ? -errno : done;
}

static int64_t real_pwritev(const struct store_io *io, int fd, const struct iovec *iov, int n_iov, off_t at)
{
    (void)io;
    ssize_t done;
    do
        done = pwritev(fd, iov, n_iov, at);
    while (done < 0 && errno == EINTR);
    return done < 0 ? -errno : done;
}

/* A sync that was interrupted has not failed, so trying it again does not break rule S8. */
static int real_fdatasync(const struct store_io *io, int fd)
{
    (void)io;
    int rc;
    do
        rc = fdatasync(fd);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : 0;
}

static int real_fsync(const struct store_io *io, int fd)
{
    (void)io;
    int rc;
    do
        rc = fsync(fd);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : 0;
}

static int real_ftruncate(const struct store_io *io, int fd, off_t size)
{
    (void)io;
    int rc;
    do
        rc = ftruncate(fd, size);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : 0;
}

static int real_renameat(const struct store_io *io, int olddirfd, const char *oldpath, int newdirfd,
                         const char *newpath)
{
    (void)io;
    return renameat(olddirfd, oldpath, newdirfd, newpath) < 0 ? -errno : 0;
}

static int real_unlinkat(const struct store_io *io, int dirfd, const char *path, int flags)
{
    (void)io;
    return unlinkat(dirfd, path, flags) < 0 ? -errno : 0;
}

static int real_sync_file_range(const struct store_io *io, int fd, off_t at, off_t n, unsigned flags)
{
    (void)io;
    return sync_file_range(fd, at, n, flags) < 0 ? -errno : 0;
}

const struct store_io store_io_real = {
    .openat = real_openat,
    .close = real_close,
    .mkdirat = real_mkdirat,
    .pread = real_pread,
    .pwritev = real_pwritev,
    .fdatasync = real_fdatasync,
    .fsync = real_fsync,
    .ftruncate = real_ftruncate,
    .renameat = real_renameat,
    .unlinkat = real_unlinkat,
    .sync_file_range = real_sync_file_range,
};

DIR *io_opendir(const struct store_io *io, int dirfd, const char *path)
{
    int fd = io->openat(io, dirfd, path, O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int eno = fd < 0 ? -fd : errno;

    if (d == NULL && fd >= 0)
        io->close(io, fd);
    errno = eno;
    return d;
}

int64_t io_pread_full(const struct store_io *io, int fd, void *p, size_t n, off_t at)
{
    size_t got = 0;

    while (got < n) {
        int64_t done = io->pread(io, fd, (uint8_t *)p + got, n - got, at + (off_t)got);
        if (done < 0)
            return done;
        if (done == 0)
            break;
        got += (size_t)done;
    }
    return (int64_t)got;
}

int io_pwrite_all(const struct store_io *io, int fd, const void *p, size_t n, off_t at)
{
    const uint8_t *from = p;

    while (n > 0) {
        struct iovec iov = { .iov_base = (void *)(uintptr_t)from,
                             .iov_len = MIN(n, (size_t)WRITE_MAX_BYTES) };
        int64_t done = io->pwritev(io, fd, &iov, 1, at);
        if (done <= 0)
            return done < 0 ? (int)done : -EIO;
        KCHECK((size_t)done <= n);
        from += done;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

int io_sync_dir(const struct store_io *io, int dirfd, const char *path)
{
    int fd = io->openat(io, dirfd, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    int rc = io->fsync(io, fd);
    io->close(io, fd);
    return rc;
}

static int write_new_file(const struct store_io *io, int dirfd, const char *path, const void *p, size_t n)
{
    int fd = io->openat(io, dirfd, path, O_WRONLY | O_CREAT | O_TRUNC, FILE_MODE);
    if (fd < 0)
        return fd;
    int rc = io_pwrite_all(io, fd, p, n, 0);
    if (rc == 0)
        rc = io->fsync(io, fd);
    io->close(io, fd);
    return rc;
}

int io_replace_file(const struct store_io *io, int dirfd, const char *dir, const char *path, const void *p,
                    size_t n)
{
    char tmp[PATH_MAX];

    if ((size_t)snprintf(tmp, sizeof tmp, "%s.tmp", path) >= sizeof tmp)
        return -ENAMETOOLONG;
    int rc = write_new_file(io, dirfd, tmp, p, n);
    if (rc == 0)
        rc = io->renameat(io, dirfd, tmp, dirfd, path);
    if (rc < 0) {
        io->unlinkat(io, dirfd, tmp, 0);
        return rc;
    }
    return io_sync_dir(io, dirfd, dir);
}

int io_read_file(const struct store_io *io, int dirfd, const char *path, size_t max, struct bytebuf *ret)
{
    struct stat st;
    int fd = io->openat(io, dirfd, path, O_RDONLY, 0);

    if (fd < 0)
        return fd;
    int rc = fstat(fd, &st) < 0 ? -errno : (uint64_t)st.st_size > max ? -EFBIG : 0;
    if (rc == 0) {
        int64_t got = io_pread_full(io, fd, bytebuf_room(ret, (size_t)st.st_size + 1), (size_t)st.st_size, 0);
        rc = got < 0 ? (int)got : 0;
        ret->n += got > 0 ? (size_t)got : 0;
    }
    io->close(io, fd);
    return rc;
}
