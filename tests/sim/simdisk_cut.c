/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a simulated disk when a life ends; and looking at it from outside. See simdisk.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/check.h"
#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "lib/store/io.h"
#include "tests/sim/simdisk_int.h"

/* ---- ends of a life ---- */

static void begin_life(struct simdisk *d)
{
    struct descriptor *f, *next;

    HASH_ITER(hh, d->open, f, next) {
        HASH_DELETE(hh, d->open, f);
        if (f->inode->locked_by == f)
            f->inode->locked_by = NULL;
        inode_unref(d, f->inode);
        free(f);
    }
    d->n_open = d->n_sockets = 0;
    d->stopped = false;
    d->stop_at = -1;
}

void simdisk_kill(struct simdisk *d)
{
    pthread_mutex_lock(&d->mu);
    begin_life(d);
    pthread_mutex_unlock(&d->mu);
}

/* What the names on the disk lead to. */
static void reach(struct inode *dir)
{
    dir->reached = true;
    for (struct entry *e = dir->durable; e != NULL; e = e->hh.next) {
        if (e->inode->is_dir)
            reach(e->inode);
        e->inode->reached = true;
    }
}

static void cut_inode(struct simdisk *d, struct inode *i, enum simdisk_cut how, uint64_t until)
{
    if (i->reached && !i->is_dir)
        file_cut(d, i, how, &d->on_cut, until);
    else if (i->reached)
        names_copy(d, &i->now, i->durable);
    else {
        names_clear(d, &i->now);
        names_clear(d, &i->durable);
    }
}

static void cut(struct simdisk *d, enum simdisk_cut how)
{
    uint64_t until = rnd_below(&d->on_cut, d->seq + 1), oldest = d->seq;
    struct inode *i, *next;

    /* A place among what is not durable yet. */
    if (!TAILQ_EMPTY(&d->changes))
        oldest = MIN(oldest, TAILQ_FIRST(&d->changes)->seq);
    TAILQ_FOREACH(i, &d->inodes, link)
        if (!TAILQ_EMPTY(&i->writes))
            oldest = MIN(oldest, TAILQ_FIRST(&i->writes)->seq);
    until = oldest + until % (d->seq - oldest + 1);

    begin_life(d);
    names_cut(d, how, &d->on_cut, until);
    TAILQ_FOREACH(i, &d->inodes, link) {
        i->reached = false;
        inode_ref(i);
    }
    reach(d->root);
    TAILQ_FOREACH(i, &d->inodes, link)
        cut_inode(d, i, how, until);
    EACH_SAFE(i, &d->inodes, link, next)
        inode_unref(d, i);
}

void simdisk_power_cut(struct simdisk *d, enum simdisk_cut how)
{
    pthread_mutex_lock(&d->mu);
    cut(d, how);
    pthread_mutex_unlock(&d->mu);
}

enum simdisk_cut simdisk_power_cut_any(struct simdisk *d)
{
    pthread_mutex_lock(&d->mu);
    enum simdisk_cut how = (enum simdisk_cut)rnd_below(&d->on_cut, SIMDISK_CUTS);
    cut(d, how);
    pthread_mutex_unlock(&d->mu);
    return how;
}

/* ---- looking ---- */

static struct inode *file_at(struct simdisk *d, const char *path, bool durable)
{
    int error;
    struct inode *i = names_find(d->root, path, durable, &error);
    return i == NULL || i->is_dir ? NULL : i;
}

int64_t simdisk_size(struct simdisk *d, const char *path, bool durable)
{
    pthread_mutex_lock(&d->mu);
    const struct inode *i = file_at(d, path, durable);
    int64_t ret = i == NULL ? -1 : durable ? i->durable_size : i->size;
    pthread_mutex_unlock(&d->mu);
    return ret;
}

static int64_t peek(const struct inode *i, bool durable, void *p, size_t n, int64_t at)
{
    if (!durable)
        return file_read(i, p, n, at);
    n = (size_t)MAX(MIN((int64_t)n, i->durable_size - at), 0);
    file_peek_durable(i, p, n, at);
    return (int64_t)n;
}

int64_t simdisk_peek(struct simdisk *d, const char *path, bool durable, void *p, size_t n, int64_t at)
{
    pthread_mutex_lock(&d->mu);
    const struct inode *i = file_at(d, path, durable);
    int64_t ret = i == NULL ? -1 : peek(i, durable, p, n, at);
    pthread_mutex_unlock(&d->mu);
    return MAX(ret, -1);
}

static bool is_durable(struct simdisk *d, const char *path, int64_t at, int64_t n)
{
    const struct inode *i = file_at(d, path, false);

    if (i == NULL || file_at(d, path, true) != i || at + n > i->durable_size)
        return false;
    CLEANUP(freep) uint8_t *seen = xmalloc((size_t)n + 1);
    CLEANUP(freep) uint8_t *kept = xmalloc((size_t)n + 1);
    file_peek_durable(i, kept, (size_t)n, at);
    return file_read(i, seen, (size_t)n, at) == n && memcmp(seen, kept, (size_t)n) == 0;
}

bool simdisk_is_durable(struct simdisk *d, const char *path, int64_t at, int64_t n)
{
    pthread_mutex_lock(&d->mu);
    bool ret = is_durable(d, path, at, n);
    pthread_mutex_unlock(&d->mu);
    return ret;
}

static int export_file(const struct inode *i, int dirfd, const char *name)
{
    CLEANUP(freep) uint8_t *bytes = xmalloc((size_t)i->size + 1);
    int64_t n = file_read(i, bytes, (size_t)i->size, 0);

    return io_replace_file(&store_io_real, dirfd, ".", name, bytes, (size_t)MAX(n, 0));
}

static int export_dir(const struct inode *dir, const char *to)
{
    CLEANUP(closep) int fd = -1;
    int rc = 0;

    if (mkdir(to, 0755) < 0 && errno != EEXIST)
        return -errno;
    if ((fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return -errno;
    for (struct entry *e = dir->now; e != NULL && rc == 0; e = e->hh.next) {
        CLEANUP(freep) char *path = xasprintf("%s/%s", to, e->name);
        rc = e->inode->is_dir ? export_dir(e->inode, path) : export_file(e->inode, fd, e->name);
    }
    return rc;
}

int simdisk_export(struct simdisk *d, const char *to)
{
    pthread_mutex_lock(&d->mu);
    int rc = export_dir(d->root, to);
    pthread_mutex_unlock(&d->mu);
    return rc;
}

/* ---- rot ---- */

bool simdisk_poke(struct simdisk *d, const char *path, const void *p, size_t n, int64_t at)
{
    pthread_mutex_lock(&d->mu);
    struct inode *i = file_at(d, path, false);
    bool ok = i != NULL && at + (int64_t)n <= i->size && (at + (int64_t)n) <= (int64_t)i->n_pages * SIMDISK_PAGE;
    if (ok)
        file_poke(i, p, n, at);
    pthread_mutex_unlock(&d->mu);
    return ok;
}

bool simdisk_spoil(struct simdisk *d, const char *path, int64_t at)
{
    pthread_mutex_lock(&d->mu);
    struct inode *i = file_at(d, path, false);
    bool ok = i != NULL && at < i->size && at / SIMDISK_PAGE < (int64_t)i->n_pages;
    if (ok)
        i->pages[at / SIMDISK_PAGE].spoilt |= (uint8_t)(1u << at % SIMDISK_PAGE / SIMDISK_SECTOR);
    pthread_mutex_unlock(&d->mu);
    return ok;
}

static void rescue_page(struct inode *i, size_t k)
{
    static const uint8_t zeros[SIMDISK_SECTOR];
    struct page *g = &i->pages[k];
    for (unsigned s = 0; s < SECTORS; s++)
        if (g->spoilt & (1u << s))
            file_poke(i, zeros, sizeof zeros, (int64_t)(k * SIMDISK_PAGE + s * SIMDISK_SECTOR));
    g->spoilt = 0;
}

void simdisk_rescue(struct simdisk *d)
{
    struct inode *i;

    pthread_mutex_lock(&d->mu);
    TAILQ_FOREACH(i, &d->inodes, link)
        for (size_t k = 0; k < i->n_pages; k++)
            rescue_page(i, k);
    pthread_mutex_unlock(&d->mu);
}

void simdisk_drop_cache(struct simdisk *d)
{
    struct inode *i;

    pthread_mutex_lock(&d->mu);
    TAILQ_FOREACH(i, &d->inodes, link)
        file_drop_cache(i);
    pthread_mutex_unlock(&d->mu);
}
