/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of a simulated disk. Each has two maps of names: what is seen, and what is on the disk; between them stand the
 * changes, in order. Only fsync, or a write-back, carries a change over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "tests/sim/simdisk_int.h"

/* ---- maps ---- */

static struct entry *find(struct entry *map, const char *name)
{
    struct entry *e;

    HASH_FIND(hh, map, name, strlen(name), e);
    return e;
}

struct inode *names_get(struct entry *map, const char *name)
{
    struct entry *e = find(map, name);
    return e == NULL ? NULL : e->inode;
}

/* to NULL: the name goes. */
static void put(struct simdisk *d, struct entry **map, const char *name, struct inode *to)
{
    struct entry *e = find(*map, name);
    struct inode *before = e == NULL ? NULL : e->inode;
    size_t n = strlen(name);

    if (to != NULL && e == NULL) {
        e = xcalloc(1, sizeof *e + n + 1);
        memcpy(e->name, name, n);
        HASH_ADD(hh, *map, name, n, e);
    }
    if (to != NULL) {
        e->inode = inode_ref(to);
    } else if (e != NULL) {
        HASH_DELETE(hh, *map, e);
        free(e);
    }
    inode_unref(d, before);
}

void names_clear(struct simdisk *d, struct entry **map)
{
    struct entry *e, *next;

    HASH_ITER(hh, *map, e, next) {
        HASH_DELETE(hh, *map, e);
        inode_unref(d, e->inode);
        free(e);
    }
}

void names_copy(struct simdisk *d, struct entry **to, struct entry *from)
{
    names_clear(d, to);
    for (struct entry *e = from; e != NULL; e = e->hh.next)
        put(d, to, e->name, e->inode);
}

/* ---- paths ---- */

/* The next component; false: there is none. */
static bool next_name(const char **path, char *name, int *ret_error)
{
    while (**path == '/')
        (*path)++;
    size_t n = strcspn(*path, "/");
    if (n > NAME_MAX)
        *ret_error = -ENAMETOOLONG;
    if (n == 0 || n > NAME_MAX)
        return false;
    memcpy(name, *path, n);
    name[n] = '\0';
    *path += n;
    return true;
}

int names_walk(struct inode *from, const char *path, bool durable, struct inode **ret_dir, char *name)
{
    struct inode *at = from;
    char next[NAME_MAX + 1];
    int error = *path == '\0' ? -ENOENT : 0;

    strcpy(name, ".");
    while (error == 0 && next_name(&path, next, &error)) {
        if (strcmp(next, ".") == 0)
            continue;
        KCHECK(strcmp(next, "..") != 0);
        if (strcmp(name, ".") != 0) {
            at = names_get(durable ? at->durable : at->now, name);
            if (at == NULL)
                return -ENOENT;
        }
        if (!at->is_dir)
            return -ENOTDIR;
        memcpy(name, next, sizeof next);
    }
    *ret_dir = at;
    return error;
}

struct inode *names_find(struct inode *from, const char *path, bool durable, int *ret_error)
{
    struct inode *dir;
    char name[NAME_MAX + 1];

    *ret_error = names_walk(from, path, durable, &dir, name);
    if (*ret_error < 0)
        return NULL;
    if (strcmp(name, ".") == 0)
        return dir;
    struct inode *i = names_get(durable ? dir->durable : dir->now, name);
    if (i == NULL)
        *ret_error = -ENOENT;
    return i;
}

/* ---- changes ---- */

static void change_free(struct simdisk *d, struct change *c)
{
    TAILQ_REMOVE(&d->changes, c, link);
    for (int k = 0; k < c->n; k++) {
        inode_unref(d, c->part[k].dir);
        inode_unref(d, c->part[k].to);
        free(c->part[k].name);
    }
    free(c);
}

void names_change(struct simdisk *d, int n, const struct change_part *parts)
{
    struct change *c = xcalloc(1, sizeof *c);

    c->seq = ++d->seq;
    c->n = n;
    for (int k = 0; k < n; k++) {
        const struct change_part *p = &parts[k];
        c->part[k] = (struct change_part){ .dir = inode_ref(p->dir), .name = xstrdup(p->name) };
        c->part[k].to = p->to == NULL ? NULL : inode_ref(p->to);
    }
    TAILQ_INSERT_TAIL(&d->changes, c, link);
    for (int k = 0; k < n; k++)
        put(d, &parts[k].dir->now, c->part[k].name, c->part[k].to);
}

void names_make_durable(struct simdisk *d, struct change *c)
{
    for (int k = 0; k < c->n; k++)
        put(d, &c->part[k].dir->durable, c->part[k].name, c->part[k].to);
    change_free(d, c);
}

static bool touches(const struct change *c, const struct inode *dir)
{
    for (int k = 0; k < c->n; k++)
        if (c->part[k].dir == dir)
            return true;
    return false;
}

/* A rename that leads to another directory takes with it what happened to that one before. */
void names_sync(struct simdisk *d, const struct inode *dir)
{
    struct change *c, *next;

    TAILQ_FOREACH(c, &d->changes, link)
        if (dir != NULL && touches(c, dir) && c->n == 2 && c->part[0].dir != c->part[1].dir)
            dir = NULL;
    EACH_SAFE(c, &d->changes, link, next)
        if (dir == NULL || touches(c, dir))
            names_make_durable(d, c);
}

/* ---- the power cut ---- */

static bool same_name(const struct change *a, const struct change *b)
{
    for (int k = 0; k < a->n; k++)
        for (int m = 0; m < b->n; m++)
            if (a->part[k].dir == b->part[m].dir && strcmp(a->part[k].name, b->part[m].name) == 0)
                return true;
    return false;
}

/* It cannot have happened without one that did not. */
static bool is_held_back(struct simdisk *d, const struct change *c)
{
    const struct change *e;

    for (e = TAILQ_FIRST(&d->changes); e != c; e = TAILQ_NEXT(e, link)) /* those that happened are gone */
        if (same_name(e, c))
            return true;
    return false;
}

static void keep_some(struct simdisk *d, struct rnd *r)
{
    struct change *c, *next;
    uint64_t of_8 = 1 + rnd_below(r, 7);

    EACH_SAFE(c, &d->changes, link, next)
        if (rnd_below(r, 8) < of_8 && !is_held_back(d, c))
            names_make_durable(d, c);
}

static void keep_first(struct simdisk *d, struct rnd *r)
{
    struct change *c, *next;
    uint64_t n = 0;

    TAILQ_FOREACH(c, &d->changes, link)
        n++;
    n = rnd_below(r, n + 1);
    EACH_SAFE(c, &d->changes, link, next)
        if (n > 0) {
            n--;
            names_make_durable(d, c);
        }
}

void names_cut(struct simdisk *d, enum simdisk_cut how, struct rnd *r, uint64_t until)
{
    struct change *c, *next;

    if (how == SIMDISK_CUT_ALL)
        names_sync(d, NULL);
    else if (how == SIMDISK_CUT_IN_ORDER) {
        EACH_SAFE(c, &d->changes, link, next)
            if (c->seq <= until)
                names_make_durable(d, c);
    } else if (how != SIMDISK_CUT_NONE && rnd_one_in(r, 2))
        keep_first(d, r);
    else if (how != SIMDISK_CUT_NONE)
        keep_some(d, r);
    while ((c = TAILQ_FIRST(&d->changes)) != NULL)
        change_free(d, c);
}
