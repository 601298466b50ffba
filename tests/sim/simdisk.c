/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of calls of a simulated disk: descriptors, counts, faults, the end of everything at a chosen call. See simdisk.h.
 * Each call goes through call_begin() (lock; is there still a disk?), call_judge() (counted; what is to go wrong with it) and
 * call_end() (unlock; the hooks).
 */
#include "tests/sim/simdisk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "tests/sim/simdisk_int.h"

#define US 1000LL
#define MS 1000000LL

static const struct {
    int64_t least, most;
} usual_ns[SIMDISK_OPS] = {
    [SIMDISK_OPEN] = { 2 * US, 20 * US },     [SIMDISK_LOOK] = { 1 * US, 5 * US },
    [SIMDISK_READ] = { 2 * US, 200 * US },    [SIMDISK_CLOSE] = { 1 * US, 5 * US },
    [SIMDISK_CREATE] = { 10 * US, 100 * US }, [SIMDISK_WRITE] = { 3 * US, 60 * US },
    [SIMDISK_SYNC] = { 300 * US, 8 * MS },    [SIMDISK_TRUNCATE] = { 5 * US, 50 * US },
    [SIMDISK_RENAME] = { 5 * US, 50 * US },   [SIMDISK_UNLINK] = { 5 * US, 100 * US },
    [SIMDISK_ALLOCATE] = { 5 * US, 50 * US },
};

struct call {
    struct simdisk *d;
    enum simdisk_op op;
    bool counted;
    bool stops;   /* everything ends with it */
    bool partly;  /* a write or read: a drawn part; another call that stops: it takes effect */
    int64_t ns;
    bool rewrote;     /* hooks.rewrote is told path, at */
    bool renamed;     /* hooks.renamed is told path, to, unsynced */
    bool shrunk;      /* hooks.shrunk is told path */
    bool unsynced;
    int64_t at;
    char path[2 * PATH_MAX], to[2 * PATH_MAX];
};

/* ---- the frame of each call ---- */

static int call_begin(const struct store_io *io, struct call *c)
{
    memset(c, 0, offsetof(struct call, path));
    c->d = io->ctx;
    pthread_mutex_lock(&c->d->mu);
    return c->d->stopped ? -EIO : 0;
}

static void tell_judges(const struct call *c, const struct simdisk_hooks *hooks)
{
    if (c->rewrote && hooks->rewrote != NULL)
        hooks->rewrote(hooks->arg, c->path, c->at);
    if (c->renamed && hooks->renamed != NULL)
        hooks->renamed(hooks->arg, c->path, c->to, c->unsynced);
    if (c->shrunk && hooks->shrunk != NULL)
        hooks->shrunk(hooks->arg, c->path, c->op == SIMDISK_UNLINK);
}

static int64_t call_end(struct call *c, int64_t rc)
{
    struct simdisk *d = c->d;
    struct simdisk_hooks hooks = d->cfg.hooks;

    pthread_mutex_unlock(&d->mu);
    tell_judges(c, &hooks);
    if (c->stops && hooks.stopped != NULL)
        hooks.stopped(hooks.arg);
    else if (c->counted && hooks.took != NULL)
        hooks.took(hooks.arg, c->op, c->ns);
    return c->stops ? -EIO : rc;
}

static bool changes(enum simdisk_op op)
{
    return op >= SIMDISK_CREATE;
}

static int64_t draw_time(struct simdisk *d, enum simdisk_op op)
{
    int64_t ns = rnd_range(&d->on_time, usual_ns[op].least, usual_ns[op].most);

    ns = ns * d->slowness / 1000;
    return ns + (rnd_ppm(&d->on_time, d->chances.stall) ? d->chances.stall_ns : 0);
}

static bool is_under(const char *path, const char *prefix)
{
    return prefix == NULL || strncmp(path, prefix, strlen(prefix)) == 0;
}

/* 0, or what the plan has for this call. */
static int planned(struct simdisk *d, struct call *c, const char *path)
{
    int rc = 0;

    for (int k = 0; k < d->n_plan; k++) {
        const struct simdisk_fault *f = &d->plan[k];
        if (!(f->ops & (1u << c->op)) || !is_under(path, f->under))
            continue;
        int64_t n = d->plan_seen[k]++;
        if (rc < 0 || n < f->at || n >= f->at + f->n)
            continue;
        d->plan_hit = true;
        c->partly = f->part;
        rc = -f->eno;
    }
    return rc;
}

/* The kernel writes some of it: of one file, or of a few, or of the names. */
static void write_some_back(struct simdisk *d)
{
    struct rnd *r = &d->on_back;
    bool fails = rnd_ppm(r, d->chances.lost);
    uint64_t of_four = 1 + rnd_below(r, 4);
    struct inode *i;
    struct descriptor *f;

    if (rnd_one_in(r, 3)) {
        for (uint64_t n = rnd_below(r, 8); n > 0 && !TAILQ_EMPTY(&d->changes); n--)
            names_make_durable(d, TAILQ_FIRST(&d->changes));
        return;
    }
    TAILQ_FOREACH(i, &d->inodes, link) {
        if (i->is_dir || !file_is_dirty(i) || rnd_below(r, 4) >= of_four)
            continue;
        file_write_back(i, r, fails);
        for (f = d->open; fails && f != NULL; f = f->hh.next)
            if (f->inode == i)
                f->sync_fails = true;
    }
}

/* What becomes of this call: 0, or -errno; c->stops and c->partly beside it. */
static int call_judge(struct call *c, enum simdisk_op op, const char *path)
{
    struct simdisk *d = c->d;

    c->op = op;
    c->counted = true;
    c->ns = draw_time(d, op);
    d->n_calls[op]++;
    if (changes(op)) {
        if (rnd_ppm(&d->on_back, d->chances.write_back))
            write_some_back(d);
        if ((int64_t)d->n_changes++ == d->stop_at) {
            d->stopped = c->stops = true;
            c->partly = rnd_one_in(&d->on_stop, 2);
            return op == SIMDISK_WRITE || c->partly ? 0 : -EIO;
        }
    }
    int rc = planned(d, c, path);
    if (rc < 0)
        return rc;
    if (rnd_ppm(&d->on_fault, d->chances.fail[op]))
        return -EIO;
    if ((op == SIMDISK_READ || op == SIMDISK_WRITE) && rnd_ppm(&d->on_part, d->chances.part))
        c->partly = true;
    return 0;
}

/* Some of the n bytes, and one at least. */
static size_t part_of_read(struct call *c, size_t n)
{
    return c->partly && n > 0 ? 1 + (size_t)rnd_below(&c->d->on_part, n) : n;
}

/* Up to the border of a sector, as the page cache takes bytes; nothing when everything ends. */
static size_t part_of_write(struct call *c, size_t n, int64_t at)
{
    if (!c->partly && !c->stops)
        return n;
    int64_t end = at + 1 + (int64_t)rnd_below(c->stops ? &c->d->on_stop : &c->d->on_part, n + SIMDISK_SECTOR);
    if (end >= at + (int64_t)n)
        return n;
    end = end / SIMDISK_SECTOR * SIMDISK_SECTOR;
    return end > at ? (size_t)(end - at) : c->stops ? 0 : MIN(n, SIMDISK_SECTOR - (size_t)at % SIMDISK_SECTOR);
}

static int64_t wall_ns(struct simdisk *d)
{
    const struct simdisk_hooks *h = &d->cfg.hooks;
    return h->wall_ns == NULL ? (int64_t)d->seq : h->wall_ns(h->arg);
}

static void touch(struct simdisk *d, struct inode *i)
{
    i->mtime_ns = i->ctime_ns = wall_ns(d);
}

/* ---- descriptors ---- */

static struct descriptor *descriptor_of(struct simdisk *d, int fd)
{
    struct descriptor *f;

    HASH_FIND_INT(d->open, &fd, f);
    KCHECK(f != NULL); /* it was closed, or is another life's */
    return f;
}

static bool no_descriptor_left(const struct simdisk *d)
{
    return d->cfg.fd_limit > 0 && d->n_open + d->n_sockets >= d->cfg.fd_limit;
}

/* Numbers are never used again, so that a closed one is noticed. */
static int descriptor_new(struct simdisk *d, struct inode *i, int flags, const char *path)
{
    size_t n = strlen(path) + 1;
    struct descriptor *f = xcalloc(1, sizeof *f + n);

    f->fd = d->next_fd++;
    f->inode = inode_ref(i);
    f->flags = flags;
    memcpy(f->path, path, n);
    HASH_ADD_INT(d->open, fd, f);
    d->n_open++;
    return f->fd;
}

static void descriptor_free(struct simdisk *d, struct descriptor *f)
{
    HASH_DELETE(hh, d->open, f);
    d->n_open--;
    if (f->inode->locked_by == f)
        f->inode->locked_by = NULL;
    inode_unref(d, f->inode);
    free(f);
}

struct place { /* a name, and where it is looked for */
    struct inode *dir;
    struct inode *found; /* NULL: there is none */
    char name[NAME_MAX + 1];
    char path[2 * PATH_MAX]; /* absolute, as far as the names given say */
};

static int find_place(struct simdisk *d, int dirfd, const char *path, struct place *ret)
{
    const struct descriptor *f = path[0] == '/' || dirfd == AT_FDCWD ? NULL : descriptor_of(d, dirfd);
    struct inode *from = f == NULL ? d->root : f->inode;

    snprintf(ret->path, sizeof ret->path, "%s/%s", f == NULL ? "" : f->path, path + (path[0] == '/'));
    int rc = names_walk(from, path, false, &ret->dir, ret->name);
    if (rc < 0)
        return rc;
    ret->found = strcmp(ret->name, ".") == 0 ? ret->dir : names_get(ret->dir->now, ret->name);
    return 0;
}

static void set_name(struct simdisk *d, struct place *p, struct inode *to)
{
    struct change_part part = { .dir = p->dir, .to = to, .name = p->name };

    names_change(d, 1, &part);
    touch(d, p->dir);
}

/* ---- calls that take names ---- */

static enum simdisk_op op_of_open(const struct place *p, int flags)
{
    if (p->found == NULL)
        return SIMDISK_CREATE;
    return flags & O_TRUNC ? SIMDISK_TRUNCATE : SIMDISK_OPEN;
}

static int open_found(struct call *c, struct place *p, int flags)
{
    struct simdisk *d = c->d;
    int rc = call_judge(c, op_of_open(p, flags), p->path);

    if (rc < 0)
        return rc;
    if (no_descriptor_left(d))
        return -EMFILE;
    if (p->found == NULL) {
        struct inode *made = inode_new(d, false);
        if (made == NULL)
            return -ENOSPC;
        touch(d, made);
        set_name(d, p, made);
        inode_unref(d, made);
        p->found = made;
    } else if (flags & O_TRUNC) {
        file_truncate(d, p->found, 0);
        touch(d, p->found);
    }
    return c->stops ? -EIO : descriptor_new(d, p->found, flags, p->path);
}

static int open_place(struct call *c, int dirfd, const char *path, int flags, struct place *p)
{
    int rc = find_place(c->d, dirfd, path, p);

    if (rc < 0)
        return rc;
    if (p->found == NULL && !(flags & O_CREAT))
        return -ENOENT;
    if (p->found != NULL && (flags & O_CREAT) && (flags & O_EXCL))
        return -EEXIST;
    if (p->found != NULL && p->found->is_dir && (flags & O_ACCMODE) != O_RDONLY)
        return -EISDIR;
    if (p->found != NULL && !p->found->is_dir && (flags & O_DIRECTORY))
        return -ENOTDIR;
    return open_found(c, p, flags);
}

static int sd_openat(const struct store_io *io, int dirfd, const char *path, int flags, mode_t mode)
{
    struct call c;
    struct place p;
    int rc = call_begin(io, &c);

    (void)mode;
    if (rc == 0)
        rc = open_place(&c, dirfd, path, flags, &p);
    return (int)call_end(&c, rc);
}

static int make_directory(struct call *c, int dirfd, const char *path)
{
    struct simdisk *d = c->d;
    struct place p;
    int rc = find_place(d, dirfd, path, &p);

    if (rc == 0 && p.found != NULL)
        rc = -EEXIST;
    if (rc == 0)
        rc = call_judge(c, SIMDISK_CREATE, p.path);
    if (rc < 0)
        return rc;
    struct inode *made = inode_new(d, true);
    if (made == NULL)
        return -ENOSPC;
    touch(d, made);
    set_name(d, &p, made);
    inode_unref(d, made);
    return 0;
}

static int sd_mkdirat(const struct store_io *io, int dirfd, const char *path, mode_t mode)
{
    struct call c;
    int rc = call_begin(io, &c);

    (void)mode;
    if (rc == 0)
        rc = make_directory(&c, dirfd, path);
    return (int)call_end(&c, rc);
}

/* May `p` take the place of what stands at `to`? */
static int may_replace(const struct place *p, const struct place *to)
{
    if (p->found == NULL)
        return -ENOENT;
    if (to->found == NULL)
        return 0;
    if (to->found->is_dir != p->found->is_dir)
        return to->found->is_dir ? -EISDIR : -ENOTDIR;
    return to->found->is_dir && to->found->now != NULL ? -ENOTEMPTY : 0;
}

static int rename_place(struct call *c, int olddirfd, const char *oldpath, int newdirfd, const char *newpath)
{
    struct simdisk *d = c->d;
    struct place from, to;
    int rc = find_place(d, olddirfd, oldpath, &from);

    if (rc == 0)
        rc = find_place(d, newdirfd, newpath, &to);
    if (rc == 0)
        rc = may_replace(&from, &to);
    if (rc == 0)
        rc = call_judge(c, SIMDISK_RENAME, from.path);
    if (rc < 0 || from.found == to.found)
        return rc;
    struct change_part parts[] = {
        { .dir = to.dir, .to = from.found, .name = to.name },
        { .dir = from.dir, .to = NULL, .name = from.name },
    };
    c->renamed = true;
    c->unsynced = !from.found->is_dir && file_is_dirty(from.found);
    snprintf(c->path, sizeof c->path, "%s", from.path);
    snprintf(c->to, sizeof c->to, "%s", to.path);
    names_change(d, 2, parts);
    from.found->ctime_ns = wall_ns(d);
    return 0;
}

static int sd_renameat(const struct store_io *io, int olddirfd, const char *oldpath, int newdirfd, const char *newpath)
{
    struct call c;
    int rc = call_begin(io, &c);

    if (rc == 0)
        rc = rename_place(&c, olddirfd, oldpath, newdirfd, newpath);
    return (int)call_end(&c, rc);
}

static int unlink_place(struct call *c, int dirfd, const char *path, bool is_dir)
{
    struct place p;
    int rc = find_place(c->d, dirfd, path, &p);

    if (rc == 0 && p.found == NULL)
        rc = -ENOENT;
    if (rc == 0 && p.found->is_dir != is_dir)
        rc = is_dir ? -ENOTDIR : -EISDIR;
    if (rc == 0 && is_dir && p.found->now != NULL)
        rc = -ENOTEMPTY;
    if (rc == 0)
        rc = call_judge(c, SIMDISK_UNLINK, p.path);
    if (rc == 0) {
        c->shrunk = true;
        snprintf(c->path, sizeof c->path, "%s", p.path);
        set_name(c->d, &p, NULL);
    }
    return rc;
}

static int sd_unlinkat(const struct store_io *io, int dirfd, const char *path, int flags)
{
    struct call c;
    int rc = call_begin(io, &c);

    if (rc == 0)
        rc = unlink_place(&c, dirfd, path, flags & AT_REMOVEDIR);
    return (int)call_end(&c, rc);
}

static void stat_of(const struct inode *i, struct io_stat *ret)
{
    *ret = (struct io_stat){
        .kind = i->is_dir ? IO_DIRECTORY : IO_FILE,
        .size = i->size,
        .mtime_ns = i->mtime_ns,
        .ctime_ns = i->ctime_ns,
        .dev = 1,
        .ino = i->ino,
    };
}

static int sd_statat(const struct store_io *io, int dirfd, const char *path, int flags, struct io_stat *ret)
{
    struct call c;
    struct place p;
    int rc = call_begin(io, &c);

    (void)flags;
    if (rc == 0)
        rc = find_place(c.d, dirfd, path, &p);
    if (rc == 0)
        rc = call_judge(&c, SIMDISK_LOOK, p.path);
    if (rc == 0 && p.found == NULL)
        rc = -ENOENT;
    if (rc == 0)
        stat_of(p.found, ret);
    return (int)call_end(&c, rc);
}

struct listed {
    char *name;
    enum io_kind kind;
};

static struct listed *names_in(struct simdisk *d, const struct inode *dir, size_t *ret_n)
{
    size_t n = HASH_COUNT(dir->now), k = 0;
    struct listed *v = xcalloc(n + 1, sizeof *v);

    for (const struct entry *e = dir->now; e != NULL; e = e->hh.next)
        v[k++] = (struct listed){ xstrdup(e->name), e->inode->is_dir ? IO_DIRECTORY : IO_FILE };
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rnd_below(&d->on_list, i);
        struct listed swap = v[j];
        v[j] = v[i - 1];
        v[i - 1] = swap;
    }
    *ret_n = n;
    return v;
}

static int list_place(struct call *c, int dirfd, const char *path, struct listed **ret, size_t *ret_n)
{
    struct place p;
    int rc = find_place(c->d, dirfd, path, &p);

    if (rc == 0 && p.found == NULL)
        rc = -ENOENT;
    if (rc == 0 && !p.found->is_dir)
        rc = -ENOTDIR;
    if (rc == 0)
        rc = call_judge(c, SIMDISK_OPEN, p.path);
    if (rc == 0 && no_descriptor_left(c->d))
        rc = -EMFILE;
    if (rc == 0)
        *ret = names_in(c->d, p.found, ret_n);
    return rc;
}

static int sd_list(const struct store_io *io, int dirfd, const char *path, io_list_fn *cb, void *arg)
{
    struct listed *v = NULL;
    size_t n = 0;
    struct call c;
    int rc = call_begin(io, &c);

    if (rc == 0)
        rc = list_place(&c, dirfd, path, &v, &n);
    rc = (int)call_end(&c, rc);
    for (size_t i = 0; i < n; i++) {
        if (rc == 0)
            rc = cb(arg, v[i].name, v[i].kind);
        free(v[i].name);
    }
    free(v);
    return rc;
}

/* ---- calls that take a descriptor ---- */

static int begin_on(const struct store_io *io, struct call *c, enum simdisk_op op, int fd, struct descriptor **ret)
{
    int rc = call_begin(io, c);

    *ret = NULL;
    if (rc < 0)
        return rc;
    *ret = descriptor_of(c->d, fd);
    return call_judge(c, op, (*ret)->path);
}

/* Of a stopped disk nothing need be closed: the next life begins without. */
static int sd_close(const struct store_io *io, int fd)
{
    struct call c;
    struct descriptor *f;
    int rc = call_begin(io, &c);

    if (rc == 0) {
        f = descriptor_of(c.d, fd);
        rc = call_judge(&c, SIMDISK_CLOSE, f->path);
        descriptor_free(c.d, f);
    }
    return (int)call_end(&c, rc);
}

static int64_t sd_pread(const struct store_io *io, int fd, void *p, size_t n, off_t at)
{
    struct call c;
    struct descriptor *f;
    int64_t rc = begin_on(io, &c, SIMDISK_READ, fd, &f);

    if (rc == 0 && f->inode->is_dir)
        rc = -EISDIR;
    if (rc == 0)
        rc = file_read(f->inode, p, part_of_read(&c, n), at);
    return call_end(&c, rc);
}

static int64_t write_vector(struct call *c, struct inode *i, const struct iovec *iov, int n_iov, int64_t at, size_t most)
{
    int64_t done = 0;

    for (int k = 0; k < n_iov && most > 0; k++) {
        size_t n = MIN(iov[k].iov_len, most);
        int64_t rc = file_write(c->d, i, iov[k].iov_base, n, at + done);
        if (rc < 0)
            return done > 0 ? done : rc;
        done += rc;
        most -= (size_t)rc;
        if ((size_t)rc < n)
            break;
    }
    return done;
}

/* Does it do anything but go on where the file ends? */
static bool is_no_append(const struct inode *i, const struct iovec *iov, int n_iov, int64_t at, size_t most)
{
    uint8_t there[SIMDISK_SECTOR];

    if (at > i->size)
        return true;
    for (int k = 0; k < n_iov && at < i->size && most > 0; k++) {
        const uint8_t *p = iov[k].iov_base;
        for (size_t left = MIN(iov[k].iov_len, most); left > 0 && at < i->size;) {
            int64_t n = file_read(i, there, MIN(left, sizeof there), at);
            if (n <= 0)
                return false; /* it mends what cannot be read */
            if (memcmp(there, p, (size_t)n) != 0)
                return true;
            p += n, at += n, left -= (size_t)n, most -= (size_t)n;
        }
    }
    return false;
}

static int64_t sd_pwritev(const struct store_io *io, int fd, const struct iovec *iov, int n_iov, off_t at)
{
    struct call c;
    struct descriptor *f;
    size_t n = 0;
    int64_t rc = begin_on(io, &c, SIMDISK_WRITE, fd, &f);

    for (int k = 0; k < n_iov; k++)
        n += iov[k].iov_len;
    if (rc == 0 || (f != NULL && c.partly)) {
        KCHECK((f->flags & O_ACCMODE) != O_RDONLY);
        size_t most = part_of_write(&c, n, at);
        if (c.d->cfg.hooks.rewrote != NULL && is_no_append(f->inode, iov, n_iov, at, most)) {
            c.rewrote = true;
            c.at = at;
            snprintf(c.path, sizeof c.path, "%s", f->path);
        }
        int64_t done = write_vector(&c, f->inode, iov, n_iov, at, most);
        touch(c.d, f->inode);
        rc = rc < 0 ? rc : done;
    }
    return call_end(&c, rc);
}

/* A failed one is told once; what it was about is lost. */
static int sd_fsync(const struct store_io *io, int fd)
{
    struct call c;
    struct descriptor *f;
    int rc = begin_on(io, &c, SIMDISK_SYNC, fd, &f);

    if (rc == 0 && f->sync_fails) {
        f->sync_fails = false;
        rc = -EIO;
    } else if (rc < 0 && f != NULL && !c.stops && !f->inode->is_dir) {
        file_sync_fails(f->inode);
    } else if (rc == 0) {
        if (f->inode->is_dir || c.d->cfg.journal)
            names_sync(c.d, c.d->cfg.journal ? NULL : f->inode);
        if (!f->inode->is_dir)
            file_sync(f->inode);
    }
    return (int)call_end(&c, rc);
}

static int sd_syncfs(const struct store_io *io, int fd)
{
    struct call c;
    struct descriptor *f;
    struct inode *i;
    int rc = begin_on(io, &c, SIMDISK_SYNC, fd, &f);

    if (rc == 0) {
        names_sync(c.d, NULL);
        TAILQ_FOREACH(i, &c.d->inodes, link)
            if (!i->is_dir)
                file_sync(i);
    } else if (f != NULL && !c.stops) {
        TAILQ_FOREACH(i, &c.d->inodes, link)
            if (!i->is_dir)
                file_sync_fails(i);
    }
    return (int)call_end(&c, rc);
}

static int sd_ftruncate(const struct store_io *io, int fd, off_t size)
{
    struct call c;
    struct descriptor *f;
    int rc = begin_on(io, &c, SIMDISK_TRUNCATE, fd, &f);

    if (rc == 0) {
        c.shrunk = size < f->inode->size;
        snprintf(c.path, sizeof c.path, "%s", f->path);
        file_truncate(c.d, f->inode, size);
        touch(c.d, f->inode);
    }
    return (int)call_end(&c, rc);
}

/* Only begins what may happen anyway. */
static int sd_sync_file_range(const struct store_io *io, int fd, off_t at, off_t n, unsigned flags)
{
    struct call c;
    struct descriptor *f;
    int rc = begin_on(io, &c, SIMDISK_LOOK, fd, &f);

    (void)at, (void)n, (void)flags;
    if (rc == 0 && rnd_one_in(&c.d->on_back, 2))
        file_write_back(f->inode, &c.d->on_back, false);
    return (int)call_end(&c, rc);
}

static int sd_fstat(const struct store_io *io, int fd, struct io_stat *ret)
{
    struct call c;
    struct descriptor *f;
    int rc = begin_on(io, &c, SIMDISK_LOOK, fd, &f);

    if (rc == 0)
        stat_of(f->inode, ret);
    return (int)call_end(&c, rc);
}

static int sd_fallocate(const struct store_io *io, int fd, bool keep_size, off_t at, off_t n)
{
    struct call c;
    struct descriptor *f;
    int rc = begin_on(io, &c, SIMDISK_ALLOCATE, fd, &f);

    if (rc == 0)
        rc = file_allocate(c.d, f->inode, keep_size, at, n);
    return (int)call_end(&c, rc);
}

static int64_t sd_seek_data(const struct store_io *io, int fd, off_t at)
{
    struct call c;
    struct descriptor *f;
    int64_t rc = begin_on(io, &c, SIMDISK_LOOK, fd, &f);

    if (rc == 0)
        rc = file_seek_data(f->inode, at);
    return call_end(&c, rc);
}

static int sd_set_mtime(const struct store_io *io, int fd, int64_t mtime_ns)
{
    struct call c;
    struct descriptor *f;
    int rc = begin_on(io, &c, SIMDISK_LOOK, fd, &f);

    if (rc == 0)
        f->inode->mtime_ns = mtime_ns;
    return (int)call_end(&c, rc);
}

static int sd_trylock(const struct store_io *io, int fd)
{
    struct call c;
    struct descriptor *f;
    int rc = begin_on(io, &c, SIMDISK_LOOK, fd, &f);

    if (rc == 0 && f->inode->locked_by != NULL && f->inode->locked_by != f)
        rc = -EBUSY;
    if (rc == 0)
        f->inode->locked_by = f;
    return (int)call_end(&c, rc);
}

static int sd_space(const struct store_io *io, int fd, int64_t *ret_total, int64_t *ret_free)
{
    struct call c;
    struct descriptor *f;
    int rc = begin_on(io, &c, SIMDISK_LOOK, fd, &f);

    if (rc == 0) {
        *ret_total = c.d->cfg.capacity > 0 ? c.d->cfg.capacity : INT64_C(1) << 50;
        *ret_free = MAX(*ret_total - c.d->used, 0);
    }
    return (int)call_end(&c, rc);
}

/* ---- making one, and what tests say to it ---- */

static void draw_streams(struct simdisk *d)
{
    struct rnd *const streams[] = { &d->on_list, &d->on_stop, &d->on_fault, &d->on_part, &d->on_back, &d->on_time, &d->on_cut };

    for (size_t k = 0; k < ARRAY_LEN(streams); k++)
        *streams[k] = rnd_of(d->cfg.seed, RND_DISK, d->cfg.which << 8 | k);
}

struct simdisk *simdisk_new(const struct simdisk_config *cfg)
{
    struct simdisk *d = xcalloc(1, sizeof *d);

    d->cfg = *cfg;
    pthread_mutex_init(&d->mu, NULL);
    TAILQ_INIT(&d->inodes);
    TAILQ_INIT(&d->changes);
    d->next_fd = SIMDISK_FD_MIN;
    d->stop_at = -1;
    d->slowness = 1000;
    draw_streams(d);
    d->root = inode_new(d, true);
    KCHECK(d->root != NULL);
    d->io = (struct store_io){
        .ctx = d,
        .openat = sd_openat,
        .close = sd_close,
        .mkdirat = sd_mkdirat,
        .pread = sd_pread,
        .pread_once = sd_pread,
        .pwritev = sd_pwritev,
        .fdatasync = sd_fsync,
        .fsync = sd_fsync,
        .syncfs = sd_syncfs,
        .ftruncate = sd_ftruncate,
        .renameat = sd_renameat,
        .unlinkat = sd_unlinkat,
        .sync_file_range = sd_sync_file_range,
        .fstat = sd_fstat,
        .statat = sd_statat,
        .list = sd_list,
        .fallocate = sd_fallocate,
        .seek_data = sd_seek_data,
        .set_mtime = sd_set_mtime,
        .trylock = sd_trylock,
        .space = sd_space,
    };
    return d;
}

void simdisk_free(struct simdisk *d)
{
    if (d == NULL)
        return;
    simdisk_power_cut(d, SIMDISK_CUT_NONE);
    inode_unref(d, d->root);
    KCHECK(TAILQ_EMPTY(&d->inodes) && d->used == 0);
    pthread_mutex_destroy(&d->mu);
    free(d->plan);
    free(d->plan_seen);
    free(d);
}

const struct store_io *simdisk_io(struct simdisk *d)
{
    return &d->io;
}

void simdisk_set_hooks(struct simdisk *d, const struct simdisk_hooks *hooks)
{
    pthread_mutex_lock(&d->mu);
    d->cfg.hooks = *hooks;
    pthread_mutex_unlock(&d->mu);
}

void simdisk_stop_in(struct simdisk *d, int64_t n)
{
    pthread_mutex_lock(&d->mu);
    d->stop_at = n < 0 ? -1 : (int64_t)d->n_changes + n;
    pthread_mutex_unlock(&d->mu);
}

void simdisk_stop(struct simdisk *d)
{
    pthread_mutex_lock(&d->mu);
    d->stopped = true;
    pthread_mutex_unlock(&d->mu);
}

bool simdisk_stopped(const struct simdisk *d)
{
    return d->stopped;
}

void simdisk_plan(struct simdisk *d, const struct simdisk_fault *faults, int n)
{
    pthread_mutex_lock(&d->mu);
    free(d->plan);
    free(d->plan_seen);
    d->plan = xcalloc((size_t)n + 1, sizeof *d->plan);
    d->plan_seen = xcalloc((size_t)n + 1, sizeof *d->plan_seen);
    if (n > 0)
        memcpy(d->plan, faults, (size_t)n * sizeof *faults);
    d->n_plan = n;
    d->plan_hit = false;
    pthread_mutex_unlock(&d->mu);
}

bool simdisk_plan_was_hit(const struct simdisk *d)
{
    return d->plan_hit;
}

void simdisk_set_chances(struct simdisk *d, const struct simdisk_chances *c)
{
    pthread_mutex_lock(&d->mu);
    d->chances = *c;
    pthread_mutex_unlock(&d->mu);
}

void simdisk_set_capacity(struct simdisk *d, int64_t bytes)
{
    pthread_mutex_lock(&d->mu);
    d->cfg.capacity = bytes;
    pthread_mutex_unlock(&d->mu);
}

void simdisk_set_fd_limit(struct simdisk *d, int n)
{
    pthread_mutex_lock(&d->mu);
    d->cfg.fd_limit = n;
    pthread_mutex_unlock(&d->mu);
}

void simdisk_set_slowness(struct simdisk *d, int64_t thousandths)
{
    pthread_mutex_lock(&d->mu);
    d->slowness = thousandths;
    pthread_mutex_unlock(&d->mu);
}

bool simdisk_take_descriptor(struct simdisk *d)
{
    pthread_mutex_lock(&d->mu);
    bool any = !no_descriptor_left(d);
    d->n_sockets += any;
    pthread_mutex_unlock(&d->mu);
    return any;
}

void simdisk_give_descriptor(struct simdisk *d)
{
    pthread_mutex_lock(&d->mu);
    KCHECK(d->n_sockets > 0);
    d->n_sockets--;
    pthread_mutex_unlock(&d->mu);
}

uint64_t simdisk_calls(const struct simdisk *d, enum simdisk_op op)
{
    return d->n_calls[op];
}

uint64_t simdisk_changes(const struct simdisk *d)
{
    return d->n_changes;
}

int simdisk_descriptors(const struct simdisk *d)
{
    return d->n_open;
}

int64_t simdisk_used(const struct simdisk *d)
{
    return d->used;
}
