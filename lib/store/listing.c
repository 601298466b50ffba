/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What files a partition's directory has: the base offsets of its segments, in order, and the producers' snapshots. Half-
 * written files (*.tmp) are removed as they are found; index files without a log are orphans, and go when the caller says
 * so. Names that are not the store's own are left alone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/store/plog_int.h"
#include "lib/store/start_mark.h"

#define DIGITS 20

struct found {
    int64_t *v;
    int n, cap;
};

static void found_add(struct found *f, int64_t v)
{
    if (f->n == f->cap) {
        f->cap = f->cap == 0 ? 16 : f->cap * 2;
        f->v = xreallocarray(f->v, (size_t)f->cap, sizeof *f->v);
    }
    f->v[f->n++] = v;
}

/* "00000000000000000123.log" -> 123 and ".log". */
static bool parse_name(const char *name, int64_t *ret, const char **ret_suffix)
{
    int64_t v = 0;

    for (int i = 0; i < DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        int64_t digit = name[i] - '0';
        if (v > (INT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *ret = v;
    *ret_suffix = name + DIGITS;
    return true;
}

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

struct reading {
    const struct store_io *io;
    int dirfd;
    const char *dir;
    struct found logs, snapshots, starts;
};

static int take_name(void *arg, const char *name, enum io_kind kind)
{
    struct reading *r = arg;
    int64_t v;
    const char *suffix;

    (void)kind;
    if (ends_with(name, ".tmp")) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", r->dir, name);
        r->io->unlinkat(r->io, r->dirfd, path, 0);
    } else if (!parse_name(name, &v, &suffix)) {
        return 0;
    } else if (strcmp(suffix, ".log") == 0) {
        found_add(&r->logs, v);
    } else if (strcmp(suffix, ".producers") == 0) {
        found_add(&r->snapshots, v);
    } else if (strcmp(suffix, START_SUFFIX) == 0) {
        found_add(&r->starts, v);
    }
    return 0;
}

static void found_sort(struct found *f)
{
    if (f->n > 0)
        qsort(f->v, (size_t)f->n, sizeof *f->v, compare);
}

int listing_read(const struct store_io *io, int dirfd, const char *dir, struct listing *ret)
{
    struct reading r = { .io = io, .dirfd = dirfd, .dir = dir };
    int rc = io->list(io, dirfd, dir, take_name, &r);

    if (rc < 0) {
        free(r.logs.v);
        free(r.snapshots.v);
        free(r.starts.v);
        return rc;
    }
    found_sort(&r.logs);
    found_sort(&r.snapshots);
    found_sort(&r.starts);
    *ret = (struct listing){
        .logs = r.logs.v,
        .n_logs = r.logs.n,
        .snapshots = r.snapshots.v,
        .n_snapshots = r.snapshots.n,
        .starts = r.starts.v,
        .n_starts = r.starts.n,
    };
    return 0;
}

/* A cache of a segment that is not there, or what Kafka had renamed to remove it later. */
static bool is_orphan(const struct listing *ls, const char *name)
{
    static const char *const caches[] = { ".index", ".timeindex", ".text" };
    const char *suffix;
    int64_t base;

    if (!parse_name(name, &base, &suffix))
        return false;
    if (ends_with(suffix, ".deleted"))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(caches); i++)
        if (strcmp(suffix, caches[i]) == 0)
            return ls->n_logs == 0 ||
                   bsearch(&base, ls->logs, (size_t)ls->n_logs, sizeof *ls->logs, compare) == NULL;
    return false;
}

struct orphans {
    const struct store_io *io;
    int dirfd;
    const char *dir;
    const struct listing *ls;
};

static int remove_if_orphan(void *arg, const char *name, enum io_kind kind)
{
    const struct orphans *o = arg;
    char path[PATH_MAX];

    (void)kind;
    if (!is_orphan(o->ls, name))
        return 0;
    snprintf(path, sizeof path, "%s/%s", o->dir, name);
    int rc = o->io->unlinkat(o->io, o->dirfd, path, 0);
    log_info("%s belongs to no segment: %s", path, rc == 0 ? "removed" : strerror(-rc));
    return 0;
}

void listing_remove_orphans(const struct store_io *io, int dirfd, const char *dir, const struct listing *ls)
{
    struct orphans o = { .io = io, .dirfd = dirfd, .dir = dir, .ls = ls };
    io->list(io, dirfd, dir, remove_if_orphan, &o);
}

void listing_done(struct listing *ls)
{
    free(ls->logs);
    free(ls->snapshots);
    free(ls->starts);
    *ls = (struct listing){ 0 };
}
