/* SPDX-License-Identifier: Apache-2.0 */
#include "faultyio.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/check.h"
#include "lib/base/fsutil.h"
#include "lib/base/mem.h"

#define NAMES_MAX 4096

struct inode {
    ino_t ino;
    bool used;
    struct bytebuf synced; /* bytes as of the last fsync */
};

struct name {
    char *path; /* relative to root */
    ino_t ino;
};

struct faulty {
    struct store_io io;
    char *root;
    int rootfd;
    enum fault_kind kind;
    int64_t at, repeat, calls, opens;
    int eno;
    bool stopped, hit;
    struct inode inodes[NAMES_MAX];
    int n_inodes;
    struct name durable[NAMES_MAX]; /* names as of the last fsync of their directory */
    int n_durable;
};

static struct faulty *self(const struct store_io *io)
{
    return io->ctx;
}

/* Counts a changing call. Only what `grows` meets a full disk. 0: go on; else the error to answer. *half: do
 * half of it, then everything stops. */
static int step(struct faulty *f, bool grows, bool *half)
{
    if (half != NULL)
        *half = false;
    if (f->stopped)
        return -EIO;
    int64_t n = f->calls++;
    if (f->kind == FAULT_ERROR && n >= f->at && n <= f->at + f->repeat && (grows || f->eno != ENOSPC)) {
        f->hit = true;
        return -f->eno;
    }
    if (f->kind == FAULT_STOP && n == f->at) {
        f->hit = true;
        f->stopped = true;
        if (half == NULL)
            return -EIO;
        *half = true;
    }
    return 0;
}

static struct inode *inode_of(struct faulty *f, ino_t ino)
{
    for (int i = 0; i < f->n_inodes; i++) {
        if (f->inodes[i].ino == ino)
            return &f->inodes[i];
    }
    KCHECK(f->n_inodes < NAMES_MAX);
    f->inodes[f->n_inodes].ino = ino;
    return &f->inodes[f->n_inodes++];
}

/* A new file of an old inode number has nothing synced. */
static void forget_inode(struct faulty *f, int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0)
        inode_of(f, st.st_ino)->synced.n = 0;
}

/* What takes a descriptor. */
static int count_open(struct faulty *f)
{
    int64_t n = f->opens++;

    if (f->kind != FAULT_OPEN || n < f->at || n > f->at + f->repeat)
        return 0;
    f->hit = true;
    return -f->eno;
}

static int f_openat(const struct store_io *io, int dirfd, const char *path, int flags, mode_t mode)
{
    struct faulty *f = self(io);
    int rc = count_open(f);
    if (rc < 0)
        return rc;
    bool creates = (flags & O_CREAT) && faccessat(dirfd, path, F_OK, 0) < 0;
    rc = creates || (flags & O_TRUNC) ? step(f, true, NULL) : f->stopped ? -EIO : 0;
    if (rc < 0)
        return rc;
    if ((flags & O_ACCMODE) == O_WRONLY)
        flags = (flags & ~O_ACCMODE) | O_RDWR; /* a sync reads the file */
    int fd = store_io_real.openat(io, dirfd, path, flags, mode);
    if (fd >= 0 && creates)
        forget_inode(f, fd);
    return fd;
}

static int f_mkdirat(const struct store_io *io, int dirfd, const char *path, mode_t mode)
{
    if (faccessat(dirfd, path, F_OK, 0) == 0)
        return -EEXIST;
    int rc = step(self(io), true, NULL);
    return rc < 0 ? rc : store_io_real.mkdirat(io, dirfd, path, mode);
}

static int64_t f_pread(const struct store_io *io, int fd, void *p, size_t n, off_t at)
{
    return self(io)->stopped ? -EIO : store_io_real.pread(io, fd, p, n, at);
}

static int64_t f_pwritev(const struct store_io *io, int fd, const struct iovec *iov, int n_iov, off_t at)
{
    bool half;
    int rc = step(self(io), true, &half);

    KCHECK(n_iov == 1);
    if (half) {
        struct iovec part = { iov->iov_base, iov->iov_len / 2 };
        store_io_real.pwritev(io, fd, &part, 1, at);
        return -EIO;
    }
    if (rc == -ENOSPC) { /* a full disk takes the first part */
        struct iovec part = { iov->iov_base, iov->iov_len / 3 };
        store_io_real.pwritev(io, fd, &part, 1, at);
    }
    return rc < 0 ? rc : store_io_real.pwritev(io, fd, iov, n_iov, at);
}

static int sync_file(struct faulty *f, int fd)
{
    struct stat st;
    KCHECK(fstat(fd, &st) == 0);
    struct bytebuf *b = &inode_of(f, st.st_ino)->synced;
    b->n = 0;
    int got = fs_pread_full(fd, bytebuf_room(b, (size_t)st.st_size + 1), (size_t)st.st_size, 0);
    KCHECK(got == (int)st.st_size);
    b->n = (size_t)got;
    return 0;
}

static void drop_names_under(struct faulty *f, const char *dir)
{
    size_t n = strlen(dir);
    int kept = 0;

    for (int i = 0; i < f->n_durable; i++) {
        struct name *d = &f->durable[i];
        const char *slash = strrchr(d->path, '/');
        bool here = n == 0 ? slash == NULL
                           : strncmp(d->path, dir, n) == 0 && d->path[n] == '/' && slash == d->path + n;
        if (here)
            free(d->path);
        else
            f->durable[kept++] = *d;
    }
    f->n_durable = kept;
}

/* dir: "" for the root. */
static int sync_names(struct faulty *f, const char *dir)
{
    int fd = openat(f->rootfd, dir[0] == '\0' ? "." : dir, O_RDONLY | O_DIRECTORY);
    DIR *d = fdopendir(fd);
    const struct dirent *de;

    KCHECK(d != NULL);
    drop_names_under(f, dir);
    while ((de = readdir(d)) != NULL) {
        if (de->d_name[0] == '.' && (de->d_name[1] == '\0' || strcmp(de->d_name, "..") == 0))
            continue;
        KCHECK(f->n_durable < NAMES_MAX);
        f->durable[f->n_durable].path =
            dir[0] == '\0' ? xstrdup(de->d_name) : xasprintf("%s/%s", dir, de->d_name);
        f->durable[f->n_durable++].ino = de->d_ino;
    }
    closedir(d);
    return 0;
}

static int f_fsync(const struct store_io *io, int fd)
{
    struct faulty *f = self(io);
    struct stat st, root;
    int rc = step(f, false, NULL);

    if (rc < 0)
        return rc;
    KCHECK(fstat(fd, &st) == 0 && fstat(f->rootfd, &root) == 0);
    if (!S_ISDIR(st.st_mode))
        return sync_file(f, fd);
    if (st.st_ino == root.st_ino)
        return sync_names(f, "");
    char link[64], path[PATH_MAX], real[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    KCHECK(n > 0 && realpath(f->root, real) != NULL);
    path[n] = '\0';
    KCHECK(strncmp(path, real, strlen(real)) == 0);
    return sync_names(f, path + strlen(real) + 1);
}

static int f_ftruncate(const struct store_io *io, int fd, off_t size)
{
    int rc = step(self(io), false, NULL);
    return rc < 0 ? rc : store_io_real.ftruncate(io, fd, size);
}

static int f_renameat(const struct store_io *io, int olddirfd, const char *oldpath, int newdirfd,
                      const char *newpath)
{
    int rc = step(self(io), false, NULL);
    return rc < 0 ? rc : store_io_real.renameat(io, olddirfd, oldpath, newdirfd, newpath);
}

static int f_unlinkat(const struct store_io *io, int dirfd, const char *path, int flags)
{
    if (faccessat(dirfd, path, F_OK, 0) < 0)
        return -ENOENT;
    int rc = step(self(io), false, NULL);
    return rc < 0 ? rc : store_io_real.unlinkat(io, dirfd, path, flags);
}

static int f_list(const struct store_io *io, int dirfd, const char *path, io_list_fn *cb, void *arg)
{
    struct faulty *f = self(io);
    int rc = count_open(f);
    return rc < 0 ? rc : f->stopped ? -EIO : store_io_real.list(io, dirfd, path, cb, arg);
}

static int f_fallocate(const struct store_io *io, int fd, bool keep_size, off_t at, off_t n)
{
    int rc = step(self(io), true, NULL);
    return rc < 0 ? rc : store_io_real.fallocate(io, fd, keep_size, at, n);
}

static int f_sync_file_range(const struct store_io *io, int fd, off_t at, off_t n, unsigned flags)
{
    (void)io, (void)fd, (void)at, (void)n, (void)flags;
    return 0;
}

/* What is there already counts as synced. */
static void adopt_files(struct faulty *f, const char *dir)
{
    int fd = openat(f->rootfd, dir[0] == '\0' ? "." : dir, O_RDONLY | O_DIRECTORY);
    DIR *d = fdopendir(fd);
    const struct dirent *de;

    KCHECK(d != NULL);
    sync_names(f, dir);
    while ((de = readdir(d)) != NULL) {
        if (de->d_name[0] == '.' && (de->d_name[1] == '\0' || strcmp(de->d_name, "..") == 0))
            continue;
        int file = openat(dirfd(d), de->d_name, O_RDONLY);
        struct stat st;
        KCHECK(file >= 0 && fstat(file, &st) == 0);
        if (S_ISDIR(st.st_mode))
            adopt_files(f, de->d_name);
        else
            sync_file(f, file);
        close(file);
    }
    closedir(d);
}

struct faulty *faulty_new(const char *root)
{
    struct faulty *f = xcalloc(1, sizeof *f);

    f->root = xstrdup(root);
    f->rootfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    KCHECK(f->rootfd >= 0);
    adopt_files(f, "");
    f->io = store_io_real;
    f->io.ctx = f;
    f->io.openat = f_openat;
    f->io.mkdirat = f_mkdirat;
    f->io.pread = f_pread;
    f->io.pwritev = f_pwritev;
    f->io.fdatasync = f_fsync;
    f->io.fsync = f_fsync;
    f->io.ftruncate = f_ftruncate;
    f->io.renameat = f_renameat;
    f->io.unlinkat = f_unlinkat;
    f->io.sync_file_range = f_sync_file_range;
    f->io.list = f_list;
    f->io.fallocate = f_fallocate;
    return f;
}

void faulty_free(struct faulty *f)
{
    if (f == NULL)
        return;
    for (int i = 0; i < f->n_inodes; i++)
        bytebuf_done(&f->inodes[i].synced);
    for (int i = 0; i < f->n_durable; i++)
        free(f->durable[i].path);
    close(f->rootfd);
    free(f->root);
    free(f);
}

const struct store_io *faulty_io(struct faulty *f)
{
    return &f->io;
}

void faulty_arm(struct faulty *f, enum fault_kind kind, int64_t at, int eno, int64_t repeat)
{
    f->kind = kind;
    f->at = (kind == FAULT_OPEN ? f->opens : f->calls) + at;
    f->eno = eno;
    f->repeat = repeat;
    f->hit = f->stopped = false;
}

int64_t faulty_calls(const struct faulty *f)
{
    return f->calls;
}

bool faulty_stopped(const struct faulty *f)
{
    return f->stopped;
}

bool faulty_hit(const struct faulty *f)
{
    return f->hit;
}

/* ---- the power cut ---- */

static uint32_t random_next(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* Any of the sectors behind `from`. */
static void lose_sectors(struct bytebuf *b, size_t from, uint32_t *seed)
{
    for (size_t at = from; at < b->n;) {
        size_t end = MIN(b->n, (at / 512 + 1) * 512);
        if (random_next(seed) % 4 == 0)
            memset(b->p + at, 0, end - at);
        at = end;
    }
}

/* What a file of which `synced` was synced and `now` written may hold. */
static void torn(const struct bytebuf *synced, struct bytebuf *now, uint32_t *seed)
{
    if (now->n <= synced->n || (synced->n > 0 && memcmp(now->p, synced->p, synced->n) != 0)) {
        if (now->n == synced->n && random_next(seed) % 2 == 0)
            return; /* rewritten in place, and it got there */
        now->n = 0; /* rewritten or cut in place: the old bytes */
        bytebuf_add(now, synced->p, synced->n);
        return;
    }
    size_t extra = now->n - synced->n;
    uint32_t what = random_next(seed) % 6;
    if (what == 0)
        now->n = synced->n;
    else if (what == 1)
        now->n = synced->n + random_next(seed) % (extra + 1);
    else if (what == 2)
        for (size_t i = (synced->n + 4095) / 4096 * 4096; i + 4096 <= now->n; i += 8192)
            memset(now->p + i, 0, 4096);
    else if (what == 3) /* what was added to the page that was synced in part is lost, the pages behind made it */
        memset(now->p + synced->n, 0, MIN(extra, 4096 - synced->n % 4096));
    else if (what == 4)
        lose_sectors(now, synced->n, seed);
}

static void read_now(struct faulty *f, const char *path, ino_t ino, struct bytebuf *ret)
{
    struct stat st;
    if (fstatat(f->rootfd, path, &st, 0) == 0 && st.st_ino == ino)
        fs_read_file(f->rootfd, path, 64 << 20, ret);
}

struct survivor {
    char *path;
    bool dir;
    struct bytebuf bytes;
};

static void collect(struct faulty *f, enum after_cut how, uint32_t *seed, struct survivor *v, int *n)
{
    for (int i = 0; i < f->n_durable; i++) {
        const struct name *d = &f->durable[i];
        struct stat st;
        struct survivor *s = &v[(*n)++];
        *s = (struct survivor){ .path = xstrdup(d->path) };
        s->dir =
            strchr(d->path, '/') == NULL && fstatat(f->rootfd, d->path, &st, 0) == 0 && S_ISDIR(st.st_mode);
        if (s->dir)
            continue;
        const struct bytebuf *synced = &inode_of(f, d->ino)->synced;
        if (how == CUT_TORN) {
            read_now(f, d->path, d->ino, &s->bytes);
            torn(synced, &s->bytes, seed);
        } else {
            bytebuf_add(&s->bytes, synced->p, synced->n);
        }
    }
}

static void empty_root(struct faulty *f)
{
    DIR *d = fdopendir(openat(f->rootfd, ".", O_RDONLY | O_DIRECTORY));
    const struct dirent *de;
    while ((de = readdir(d)) != NULL) {
        if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
            KCHECK(fs_remove_tree(f->rootfd, de->d_name) == 0);
    }
    closedir(d);
}

void faulty_power_cut(struct faulty *f, enum after_cut how, uint32_t seed)
{
    struct survivor *v = xcalloc((size_t)f->n_durable + 1, sizeof *v);
    int n = 0;

    collect(f, how, &seed, v, &n);
    empty_root(f);
    for (int i = 0; i < n; i++) {
        if (v[i].dir)
            KCHECK(mkdirat(f->rootfd, v[i].path, 0755) == 0);
    }
    for (int i = 0; i < n; i++) {
        int fd = v[i].dir ? -1 : openat(f->rootfd, v[i].path, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (fd >= 0) {
            KCHECK(fs_write_all(fd, v[i].bytes.p, v[i].bytes.n) == 0);
            close(fd);
        }
        free(v[i].path);
        bytebuf_done(&v[i].bytes);
    }
    free(v);
}
