/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See segfile.h. `mu` of the cache is a leaf: nothing is called under it but open and close.
 *
 * A file is in one of three places: pinned (or dirty), and then its descriptor stays; idle, in the list, and then it
 * may be closed at any time; closed. settle_locked() alone decides which when the last pin goes. A file that was
 * unlinked is closed as soon as nobody has it pinned, and one that is dirty never is before it was flushed (S8).
 * The count of open files may pass the limit only by files that are pinned or dirty; and these stop at `most`, from which on no file
 * is made: what a flush needs a descriptor for is left one, and it alone makes dirty files clean.
 */
#include "lib/store/segfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

#define OPEN_FILES_MAX 1000
#define FILE_MODE      0644

TAILQ_HEAD(segfile_list, segfile);

struct filecache {
    const struct store_io *io;
    int dirfd;
    struct lock mu;
    struct segfile_list idle; /* guarded by mu: open, unpinned, clean; least recently used first */
    int open_files;           /* guarded by mu */
    int limit;                /* guarded by mu */
    int most;                 /* guarded by mu */
    int files;                /* guarded by mu: segfiles alive */
};

struct segfile {
    atomic_int refs;
    struct filecache *cache;
    int fd;     /* guarded by cache.mu, stable while pinned; -1 closed */
    int pins;   /* guarded by cache.mu */
    bool dirty; /* guarded by cache.mu */
    bool gone;  /* guarded by cache.mu: unlinked */
    bool stale; /* guarded by cache.mu: close as soon as nobody has it pinned */
    bool idle;  /* guarded by cache.mu: in cache.idle */
    TAILQ_ENTRY(segfile) link;
    char path[];
};

struct filecache *filecache_new(const struct store_io *io, int dirfd, int limit)
{
    struct filecache *c = xcalloc(1, sizeof *c);

    KCHECK(limit > 0);
    c->io = io;
    c->dirfd = dirfd;
    c->limit = limit;
    c->most = INT_MAX;
    lock_init(&c->mu, LOCK_RANK_FILES, "files of a directory");
    TAILQ_INIT(&c->idle);
    return c;
}

void filecache_free(struct filecache *c)
{
    if (c == NULL)
        return;
    KCHECK(c->files == 0);
    KCHECK(c->open_files == 0);
    lock_done(&c->mu);
    free(c);
}

int filecache_default_limit(const struct machine *m)
{
    return (int)MAX(1, MIN(OPEN_FILES_MAX, m->fd_limit(m) / 3));
}

const struct store_io *filecache_io(const struct filecache *c)
{
    return c->io;
}

int filecache_dirfd(const struct filecache *c)
{
    return c->dirfd;
}

int filecache_open_files(struct filecache *c)
{
    lock_take(&c->mu);
    int n = c->open_files;
    lock_release(&c->mu);
    return n;
}

/* The functions named _locked run under cache.mu. */
static void close_locked(struct filecache *c, struct segfile *f)
{
    if (f->idle)
        TAILQ_REMOVE(&c->idle, f, link);
    f->idle = false;
    if (f->fd >= 0) {
        c->io->close(c->io, f->fd);
        c->open_files--;
    }
    f->fd = -1;
    f->stale = false;
}

/* S8: of a dirty file the error of a write-back would go with the descriptor. */
static void close_first_locked(struct filecache *c)
{
    struct segfile *f = TAILQ_FIRST(&c->idle);
    KINVARIANT("S8", !f->dirty);
    close_locked(c, f);
}

static void evict_locked(struct filecache *c, int room)
{
    while (c->open_files + room > c->limit && !TAILQ_EMPTY(&c->idle))
        close_first_locked(c);
}

/* Puts a file that nobody uses where it can be evicted from. */
static void settle_locked(struct filecache *c, struct segfile *f)
{
    if (f->pins > 0 || f->fd < 0 || f->dirty || f->idle)
        return;
    if (f->gone || f->stale) {
        close_locked(c, f);
        return;
    }
    TAILQ_INSERT_TAIL(&c->idle, f, link);
    f->idle = true;
    evict_locked(c, 0);
}

void filecache_set_limit(struct filecache *c, int limit, int most)
{
    KCHECK(limit > 0 && most >= limit);
    lock_take(&c->mu);
    c->limit = limit;
    c->most = most;
    evict_locked(c, 0);
    lock_release(&c->mu);
}

struct segfile *segfile_new(struct filecache *c, const char *path)
{
    size_t n = strlen(path) + 1;
    struct segfile *f = xcalloc(1, sizeof *f + n);

    atomic_init(&f->refs, 1);
    f->cache = c;
    f->fd = -1;
    memcpy(f->path, path, n);
    lock_take(&c->mu);
    c->files++;
    lock_release(&c->mu);
    return f;
}

struct segfile *segfile_ref(struct segfile *f)
{
    int before = atomic_fetch_add(&f->refs, 1);
    KCHECK(before > 0);
    return f;
}

void segfile_unref(struct segfile *f)
{
    if (f == NULL || atomic_fetch_sub(&f->refs, 1) > 1)
        return;
    KCHECK(f->pins == 0);
    lock_take(&f->cache->mu);
    close_locked(f->cache, f);
    f->cache->files--;
    lock_release(&f->cache->mu);
    free(f);
}

const char *segfile_path(const struct segfile *f)
{
    return f->path;
}

const struct store_io *segfile_io(const struct segfile *f)
{
    return f->cache->io;
}

/* False: there is none. */
static bool close_an_idle_one(struct filecache *c)
{
    lock_take(&c->mu);
    bool any = !TAILQ_EMPTY(&c->idle);
    if (any)
        close_first_locked(c);
    lock_release(&c->mu);
    return any;
}

/* Opening may sleep on the disk, so it happens outside the mutex; two may race, the second then keeps the
 * first's. */
static int open_and_pin(struct segfile *f, bool create)
{
    struct filecache *c = f->cache;
    int flags = create ? O_RDWR | O_CREAT : O_RDWR;
    int fd = c->io->openat(c->io, c->dirfd, f->path, flags, FILE_MODE);
    while ((fd == -EMFILE || fd == -ENFILE) && close_an_idle_one(c))
        fd = c->io->openat(c->io, c->dirfd, f->path, flags, FILE_MODE);

    if (fd < 0)
        return fd;
    lock_take(&c->mu);
    if (f->fd < 0 && !f->gone) {
        evict_locked(c, 1);
        f->fd = fd;
        c->open_files++;
        fd = -1;
    }
    bool usable = f->fd >= 0;
    if (usable) {
        if (f->idle)
            TAILQ_REMOVE(&c->idle, f, link);
        f->idle = false;
        f->pins++;
    }
    lock_release(&c->mu);
    if (fd >= 0)
        c->io->close(c->io, fd);
    return usable ? 0 : -ENOENT;
}

int segfile_pin(struct segfile *f, bool create)
{
    struct filecache *c = f->cache;

    lock_take(&c->mu);
    if (f->fd >= 0) {
        if (f->idle)
            TAILQ_REMOVE(&c->idle, f, link);
        f->idle = false;
        f->pins++;
        lock_release(&c->mu);
        return 0;
    }
    bool gone = f->gone;
    evict_locked(c, 1);
    bool too_many = create && c->open_files >= c->most;
    lock_release(&c->mu);
    return gone ? -ENOENT : too_many ? -EMFILE : open_and_pin(f, create);
}

void segfile_unpin(struct segfile *f)
{
    struct filecache *c = f->cache;

    lock_take(&c->mu);
    KCHECK(f->pins > 0);
    f->pins--;
    settle_locked(c, f);
    lock_release(&c->mu);
}

int segfile_fd(struct segfile *f)
{
    KCHECK(f->fd >= 0);
    return f->fd;
}

void segfile_set_dirty(struct segfile *f, bool dirty)
{
    struct filecache *c = f->cache;

    lock_take(&c->mu);
    KCHECK(!dirty || f->pins > 0);
    f->dirty = dirty;
    settle_locked(c, f);
    lock_release(&c->mu);
}

void segfile_forget(struct segfile *f)
{
    struct filecache *c = f->cache;

    lock_take(&c->mu);
    if (f->pins == 0)
        close_locked(c, f);
    else
        f->stale = true;
    lock_release(&c->mu);
}

void segfile_retire(struct segfile *f)
{
    struct filecache *c = f->cache;

    lock_take(&c->mu);
    f->gone = true;
    f->dirty = false;
    if (f->pins == 0)
        close_locked(c, f);
    lock_release(&c->mu);
}

void segfile_adopt(struct segfile *f, struct segfile *from)
{
    struct filecache *c = f->cache;

    lock_take(&c->mu);
    KCHECK(f->fd < 0 && f->pins == 0);
    KCHECK(from->fd >= 0 && from->pins == 1 && !from->idle);
    f->fd = from->fd;
    f->pins = 1;
    from->fd = -1;
    from->pins = 0;
    lock_release(&c->mu);
}

int segfile_unlink(struct segfile *f)
{
    struct filecache *c = f->cache;

    segfile_retire(f);
    int rc = c->io->unlinkat(c->io, c->dirfd, f->path, 0);
    return rc == -ENOENT ? 0 : rc;
}

int64_t segfile_read(struct segfile *f, void *p, size_t n, int64_t at)
{
    int64_t rc = segfile_pin(f, false);
    if (rc < 0)
        return rc;
    rc = io_pread_full(f->cache->io, f->fd, p, n, at);
    segfile_unpin(f);
    return rc;
}

int segfile_write(struct segfile *f, const void *p, size_t n, int64_t at)
{
    int rc = segfile_pin(f, true);
    if (rc < 0)
        return rc;
    rc = io_pwrite_all(f->cache->io, f->fd, p, n, at);
    segfile_unpin(f);
    return rc;
}

int segfile_truncate(struct segfile *f, int64_t size)
{
    int rc = segfile_pin(f, true);
    if (rc < 0)
        return rc;
    rc = f->cache->io->ftruncate(f->cache->io, f->fd, size);
    segfile_unpin(f);
    return rc;
}

int segfile_sync(struct segfile *f)
{
    int rc = segfile_pin(f, false);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    rc = f->cache->io->fdatasync(f->cache->io, f->fd);
    segfile_unpin(f);
    return rc;
}

int64_t segfile_size(struct segfile *f)
{
    struct io_stat st;
    int rc = segfile_pin(f, false);
    if (rc < 0)
        return rc;
    rc = f->cache->io->fstat(f->cache->io, f->fd, &st);
    segfile_unpin(f);
    return rc < 0 ? rc : st.size;
}
