/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of logs on a simulated disk; see diskread.h. */
#include "tests/sim/diskread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/sim/simdisk_int.h"

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* NNN, 20 digits, and the suffix. */
static bool is_number(const char *name, const char *suffix, int64_t *ret)
{
    *ret = 0;
    for (int i = 0; i < 20; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        *ret = *ret * 10 + (name[i] - '0');
    }
    return strcmp(name + 20, suffix) == 0;
}

/* The numbers of the files NNN.suffix, ascending. */
static int64_t *numbers(struct simdisk *d, const char *dir, bool durable, const char *suffix, size_t *ret_n)
{
    int err;
    const struct inode *i = names_find(d->root, dir, durable, &err);
    int64_t *all = NULL, number;
    struct entry *e, *next;
    *ret_n = 0;
    if (i == NULL)
        return NULL;
    struct entry *names = durable ? i->durable : i->now;
    HASH_ITER (hh, names, e, next) {
        if (!is_number(e->name, suffix, &number))
            continue;
        all = xreallocarray(all, *ret_n + 1, sizeof *all);
        all[(*ret_n)++] = number;
    }
    if (*ret_n > 0)
        qsort(all, *ret_n, sizeof *all, by_number);
    return all;
}

/* An empty directory, which a deletion could not take away, is not where the log is. */
static bool has_log(struct simdisk *d, const char *dir, bool durable)
{
    size_t n;
    free(numbers(d, dir, durable, ".log", &n));
    return n > 0;
}

bool diskread_find(struct simdisk *d, int n_dirs, const char *topic, int partition, bool durable, char *ret, size_t ret_size)
{
    bool found = false;
    for (int pass = 0; pass < 2 && !found; pass++) {
        for (int i = 0; i < n_dirs && !found; i++) {
            int err;
            snprintf(ret, ret_size, "/data%d/%s-%d", i, topic, partition);
            const struct inode *dir = names_find(d->root, ret, durable, &err);
            found = dir != NULL && dir->is_dir && (pass == 1 || has_log(d, ret, durable));
        }
    }
    return found;
}

int64_t diskread_start(struct simdisk *d, const char *dir)
{
    size_t n;
    int64_t *all = numbers(d, dir, false, ".start", &n);
    int64_t start = n > 0 ? all[n - 1] : -1;
    free(all);
    return start;
}

static bool read_batch(struct simdisk *d, const char *path, int64_t offset, struct diskread_hint *hint, struct bytebuf *ret)
{
    uint8_t p[SIM_BATCH_HEAD];
    struct sim_batch_head h;
    while (simdisk_peek(d, path, true, p, sizeof p, hint->at) == sizeof p) {
        sim_batch_head(p, sizeof p, &h);
        if (h.base_offset < hint->offset || h.size < SIM_BATCH_HEAD || h.base_offset > offset)
            return false;
        hint->offset = h.base_offset;
        if (h.base_offset == offset) {
            ret->n = 0;
            bytebuf_extend(ret, (size_t)h.size);
            return simdisk_peek(d, path, true, ret->p, (size_t)h.size, hint->at) == h.size;
        }
        hint->at += h.size;
    }
    return false;
}

static bool read_from(struct simdisk *d, const char *dir, int64_t segment, int64_t offset, struct diskread_hint *hint,
                      struct bytebuf *ret)
{
    struct diskread_hint front = { .segment = segment, .offset = segment };
    char path[512];
    snprintf(path, sizeof path, "%s/%020" PRId64 ".log", dir, segment);
    bool is_near = hint->segment == segment && hint->offset <= offset;
    if (is_near && read_batch(d, path, offset, hint, ret))
        return true;
    *hint = front; /* another file, or it was written anew */
    return read_batch(d, path, offset, hint, ret);
}

int64_t diskread_segment(struct simdisk *d, const char *dir, int64_t offset)
{
    size_t n;
    int64_t *all = numbers(d, dir, true, ".log", &n), found = -1;
    for (size_t i = 0; i < n && all[i] <= offset; i++)
        found = all[i];
    free(all);
    return found;
}

bool diskread_batch(struct simdisk *d, const char *dir, int64_t offset, struct diskread_hint *hint, struct bytebuf *ret)
{
    size_t n;
    int64_t *all = numbers(d, dir, true, ".log", &n);
    bool found = false;
    /* A segment that was begun and taken back, for want of descriptors, may still be there. */
    for (int tries = 0; n > 0 && tries < 3 && !found; n--)
        if (all[n - 1] <= offset && ++tries > 0)
            found = read_from(d, dir, all[n - 1], offset, hint, ret);
    free(all);
    return found;
}

static bool is_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

/* One file. *ret_next: the offset behind its last batch. */
static const char *read_segment(const uint8_t *p, size_t n, diskread_fn *batch, void *arg, int64_t *ret_next, bool *ret_stop)
{
    while (n > 0 && !is_zero(p, MIN(n, (size_t)SIM_BATCH_HEAD))) {
        struct sim_batch_head h;
        const char *wrong = sim_batch_head(p, n, &h);
        if (wrong != NULL)
            return wrong;
        if (h.base_offset < *ret_next)
            return "its offset is not behind the one before";
        *ret_next = h.base_offset + h.last_offset_delta + 1;
        if (!batch(arg, p, &h)) {
            *ret_stop = true;
            return NULL;
        }
        p += h.size;
        n -= (size_t)h.size;
    }
    return NULL;
}

const char *diskread_log(struct simdisk *d, const char *dir, bool durable, bool gaps, int64_t from, diskread_fn *batch,
                         void *arg, int64_t *ret_at)
{
    size_t n;
    int64_t *all = numbers(d, dir, durable, ".log", &n);
    const char *wrong = NULL;
    bool stop = false;
    for (size_t i = 0; i < n && wrong == NULL && !stop; i++) {
        char path[512];
        int64_t next = all[i];
        *ret_at = all[i];
        if (i + 1 < n && all[i + 1] <= from)
            continue;
        snprintf(path, sizeof path, "%s/%020" PRId64 ".log", dir, all[i]);
        int64_t size = simdisk_size(d, path, durable);
        uint8_t *p = xmalloc((size_t)MAX(size, 0) + 1);
        size = simdisk_peek(d, path, durable, p, (size_t)MAX(size, 0), 0);
        wrong = size < 0 ? "it cannot be read" : read_segment(p, (size_t)size, batch, arg, &next, &stop);
        free(p);
        if (wrong == NULL && !stop && i + 1 < n && (gaps ? next > all[i + 1] : next != all[i + 1]))
            wrong = "the next file does not begin where it ends";
    }
    free(all);
    return wrong;
}

/* ---- places ---- */
struct found { /* the batch before the one at hand, which may be the last */
    bool any;
    char path[512];
    int64_t at;
    struct sim_batch_head h;
};

static void tell_found(const struct found *b, bool is_last, diskread_place_fn *f, void *arg)
{
    if (b->any)
        f(arg, b->path, b->at, &b->h, is_last);
}

/* False: it ends with what is no batch. */
static bool places_in(const char *path, const uint8_t *p, int64_t n, struct found *before, diskread_place_fn *f, void *arg)
{
    struct sim_batch_head h;
    for (int64_t at = 0; at < n; at += h.size) {
        if (sim_batch_head(p + at, (size_t)(n - at), &h) != NULL)
            return false;
        tell_found(before, false, f, arg);
        *before = (struct found){ .any = true, .at = at, .h = h };
        snprintf(before->path, sizeof before->path, "%s", path);
    }
    return true;
}

void diskread_places(struct simdisk *d, const char *dir, diskread_place_fn *f, void *arg)
{
    struct found before = { 0 };
    size_t n;
    int64_t *all = numbers(d, dir, true, ".log", &n);
    bool sound = true;
    for (size_t i = 0; i < n && sound; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%020" PRId64 ".log", dir, all[i]);
        int64_t size = simdisk_size(d, path, true);
        uint8_t *p = xmalloc((size_t)MAX(size, 0) + 1);
        size = simdisk_peek(d, path, true, p, (size_t)MAX(size, 0), 0);
        sound = size >= 0 && places_in(path, p, size, &before, f, arg);
        free(p);
    }
    tell_found(&before, true, f, arg);
    free(all);
}

void diskread_files(struct simdisk *d, int n_dirs, void (*f)(void *arg, const char *path), void *arg)
{
    for (int i = 0; i < n_dirs; i++) {
        char path[600];
        int err;
        snprintf(path, sizeof path, "/data%d", i);
        const struct inode *top = names_find(d->root, path, false, &err);
        for (const struct entry *e = top == NULL ? NULL : top->now; e != NULL; e = e->hh.next)
            for (const struct entry *k = e->inode->is_dir ? e->inode->now : NULL; k != NULL; k = k->hh.next) {
                snprintf(path, sizeof path, "/data%d/%s/%s", i, e->name, k->name);
                f(arg, path);
            }
    }
}
