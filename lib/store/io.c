/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real disk, one function a system call; and what the store does with several of them, on whatever table.
 *
 * Every function answers -errno and retries EINTR. Large writes go out in pieces of WRITE_MAX_BYTES. io_replace_file
 * is rule S6: whoever reads the name finds the old content or the new one, whole, also after a power cut. Any
 * thread; keeps nothing.
 */
#include "lib/store/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
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

/* A descriptor has become free. */
static void kept_note_closed(void)
{
    if (unlikely(atomic_load_explicit(&kept.missing, memory_order_relaxed)))
        kept_fill();
}

static int real_close(const struct store_io *io, int fd)
{
    (void)io;
    int rc = close(fd) < 0 ? -errno : 0;
    kept_note_closed();
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

enum { PAGE_BYTES = 4096, OVERLAP_BYTES = 256 * 1024 };

/* Is the last whole page of these bytes cached? The first ones may be left of the piece before. A read that may not wait gets
 * what is there. Reading ahead would make the next piece look so, too. */
static bool is_cached(int fd, off_t at, size_t n)
{
    uint8_t byte;
    const struct iovec one = { &byte, 1 };
    off_t page = (at + (off_t)n) / PAGE_BYTES * PAGE_BYTES - PAGE_BYTES;
    return page >= at && preadv2(fd, &one, 1, page, RWF_NOWAIT) == 1;
}

static int64_t real_pread_once(const struct store_io *io, int fd, void *p, size_t n, off_t at)
{
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    bool cached = is_cached(fd, at, n);
    int64_t got = real_pread(io, fd, p, n, at);
    off_t from = MAX(at / PAGE_BYTES * PAGE_BYTES - OVERLAP_BYTES, 0); /* what is cached as one with this stayed before */
    if (got > 0 && !cached)
        posix_fadvise(fd, from, at - from + got, POSIX_FADV_DONTNEED);
    return got;
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

static int real_syncfs(const struct store_io *io, int fd)
{
    (void)io;
    int rc;
    do
        rc = syncfs(fd);
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

static enum io_kind kind_of(mode_t mode)
{
    return S_ISREG(mode) ? IO_FILE : S_ISDIR(mode) ? IO_DIRECTORY : IO_OTHER;
}

static int64_t in_ns(const struct timespec *t)
{
    return t->tv_sec * INT64_C(1000000000) + t->tv_nsec;
}

static void stat_from(const struct stat *st, struct io_stat *ret)
{
    *ret = (struct io_stat){
        .kind = kind_of(st->st_mode),
        .size = st->st_size,
        .mtime_ns = in_ns(&st->st_mtim),
        .ctime_ns = in_ns(&st->st_ctim),
        .dev = st->st_dev,
        .ino = st->st_ino,
    };
}

static int real_fstat(const struct store_io *io, int fd, struct io_stat *ret)
{
    struct stat st;

    (void)io;
    if (fstat(fd, &st) < 0)
        return -errno;
    stat_from(&st, ret);
    return 0;
}

static int real_statat(const struct store_io *io, int dirfd, const char *path, int flags, struct io_stat *ret)
{
    struct stat st;

    (void)io;
    if (fstatat(dirfd, path, &st, flags) < 0)
        return -errno;
    stat_from(&st, ret);
    return 0;
}

/* Not every file system says it in the directory. */
static enum io_kind kind_of_entry(int dirfd, const struct dirent *de)
{
    struct stat st;

    if (de->d_type != DT_UNKNOWN)
        return de->d_type == DT_REG ? IO_FILE : de->d_type == DT_DIR ? IO_DIRECTORY : IO_OTHER;
    return fstatat(dirfd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? IO_OTHER : kind_of(st.st_mode);
}

static int real_list(const struct store_io *io, int dirfd_, const char *path, io_list_fn *cb, void *arg)
{
    int fd = real_openat(io, dirfd_, path, O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *de;
    int rc = d != NULL ? 0 : fd < 0 ? fd : -errno;

    if (d == NULL && fd >= 0)
        real_close(io, fd);
    while (rc == 0 && (errno = 0, de = readdir(d)) != NULL)
        if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
            rc = cb(arg, de->d_name, kind_of_entry(fd, de));
    if (rc == 0)
        rc = -errno;
    if (d != NULL)
        closedir(d);
    kept_note_closed();
    return rc;
}

/* posix_fallocate: it writes where the file system knows no better way. */
static int real_fallocate(const struct store_io *io, int fd, bool keep_size, off_t at, off_t n)
{
    (void)io;
    if (!keep_size)
        return -posix_fallocate(fd, at, n);
    return fallocate(fd, FALLOC_FL_KEEP_SIZE, at, n) < 0 ? -errno : 0;
}

static int64_t real_seek_data(const struct store_io *io, int fd, off_t at)
{
    (void)io;
    off_t to = lseek(fd, at, SEEK_DATA);
    return to < 0 ? -errno : to;
}

static int real_set_mtime(const struct store_io *io, int fd, int64_t mtime_ns)
{
    struct timespec times[2] = {
        { .tv_nsec = UTIME_OMIT },
        { .tv_sec = mtime_ns / 1000000000, .tv_nsec = mtime_ns % 1000000000 },
    };

    (void)io;
    return futimens(fd, times) < 0 ? -errno : 0;
}

static int real_trylock(const struct store_io *io, int fd)
{
    (void)io;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

static int real_space(const struct store_io *io, int fd, int64_t *ret_total, int64_t *ret_free)
{
    struct statvfs st;

    (void)io;
    if (fstatvfs(fd, &st) < 0)
        return -errno;
    *ret_total = (int64_t)(st.f_blocks * st.f_frsize);
    *ret_free = (int64_t)(st.f_bavail * st.f_frsize);
    return 0;
}

const struct store_io store_io_real = {
    .openat = real_openat,
    .close = real_close,
    .mkdirat = real_mkdirat,
    .pread = real_pread,
    .pread_once = real_pread_once,
    .pwritev = real_pwritev,
    .fdatasync = real_fdatasync,
    .fsync = real_fsync,
    .syncfs = real_syncfs,
    .ftruncate = real_ftruncate,
    .renameat = real_renameat,
    .unlinkat = real_unlinkat,
    .sync_file_range = real_sync_file_range,
    .fstat = real_fstat,
    .statat = real_statat,
    .list = real_list,
    .fallocate = real_fallocate,
    .seek_data = real_seek_data,
    .set_mtime = real_set_mtime,
    .trylock = real_trylock,
    .space = real_space,
};

bool io_exists(const struct store_io *io, int dirfd, const char *path)
{
    struct io_stat st;
    return io->statat(io, dirfd, path, AT_SYMLINK_NOFOLLOW, &st) == 0;
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

static int write_new_file(const struct store_io *io, int dirfd, const char *path, const void *p, size_t n, bool sync)
{
    int fd = io->openat(io, dirfd, path, O_WRONLY | O_CREAT | O_TRUNC, FILE_MODE);
    if (fd < 0)
        return fd;
    int rc = io_pwrite_all(io, fd, p, n, 0);
    if (rc == 0 && sync)
        rc = io->fsync(io, fd);
    io->close(io, fd);
    return rc;
}

int io_write_unsynced(const struct store_io *io, int dirfd, const char *path, const void *p, size_t n)
{
    return write_new_file(io, dirfd, path, p, n, false);
}

int io_replace_file(const struct store_io *io, int dirfd, const char *dir, const char *path, const void *p,
                    size_t n)
{
    char tmp[PATH_MAX];

    if ((size_t)snprintf(tmp, sizeof tmp, "%s.tmp", path) >= sizeof tmp)
        return -ENAMETOOLONG;
    int rc = write_new_file(io, dirfd, tmp, p, n, true);
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
    struct io_stat st;
    int fd = io->openat(io, dirfd, path, O_RDONLY, 0);

    if (fd < 0)
        return fd;
    int rc = io->fstat(io, fd, &st);
    if (rc == 0 && (uint64_t)st.size > max)
        rc = -EFBIG;
    if (rc == 0) {
        int64_t got = io_pread_full(io, fd, bytebuf_room(ret, (size_t)st.size + 1), (size_t)st.size, 0);
        rc = got < 0 ? (int)got : 0;
        ret->n += got > 0 ? (size_t)got : 0;
    }
    io->close(io, fd);
    return rc;
}
