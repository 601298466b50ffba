/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file of a simulated disk: what is seen, and what is on the disk. See simdisk_int.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "tests/sim/simdisk_int.h"

#define FILE_BYTES 256 /* what a name and an inode take */

const uint8_t simdisk_zeros[SIMDISK_PAGE];

/* ---- pages ---- */

static void old_free(struct page *g)
{
    if (g->old != simdisk_zeros)
        free(g->old);
    g->old = NULL;
}

static size_t pages_of(int64_t size)
{
    return (size_t)((size + SIMDISK_PAGE - 1) / SIMDISK_PAGE);
}

static const uint8_t *seen(const struct page *g)
{
    return g->cache == NULL ? simdisk_zeros : g->cache;
}

static const uint8_t *on_disk(const struct page *g)
{
    return g->old == NULL ? seen(g) : g->old;
}

/* From now on the sectors differ from what the disk has. What was lost will be written with the rest of its page. */
static void page_dirty(struct page *g, uint8_t sectors)
{
    if (g->old == NULL) {
        if (g->cache == NULL)
            g->old = (uint8_t *)(uintptr_t)simdisk_zeros;
        else
            memcpy(g->old = xmalloc(SIMDISK_PAGE), g->cache, SIMDISK_PAGE);
    }
    g->dirty |= sectors | g->lost;
    g->lost = 0;
    g->spoilt &= (uint8_t)~sectors;
}

static void page_settle(struct page *g)
{
    if (g->dirty == 0 && g->lost == 0)
        old_free(g);
}

static uint8_t sectors_between(size_t from, size_t to)
{
    uint8_t bits = 0;

    for (size_t s = from / SIMDISK_SECTOR; s * SIMDISK_SECTOR < to; s++)
        bits |= (uint8_t)(1u << s);
    return bits;
}

static void pages_grow(struct inode *i, size_t n)
{
    if (n <= i->n_pages)
        return;
    i->pages = xreallocarray(i->pages, n, sizeof *i->pages);
    memset(i->pages + i->n_pages, 0, (n - i->n_pages) * sizeof *i->pages);
    i->n_pages = n;
}

static void page_make_cache(struct page *g)
{
    if (g->cache == NULL)
        g->cache = xcalloc(1, SIMDISK_PAGE);
}

/* ---- files ---- */

int64_t file_space(const struct inode *i)
{
    int64_t n = FILE_BYTES;

    for (size_t k = 0; k < i->n_pages; k++)
        n += i->pages[k].room ? SIMDISK_PAGE : 0;
    return n;
}

static bool has_room(const struct simdisk *d, int64_t n)
{
    return d->cfg.capacity == 0 || d->used + n <= d->cfg.capacity;
}

struct inode *inode_new(struct simdisk *d, bool is_dir)
{
    if (!has_room(d, FILE_BYTES))
        return NULL;
    struct inode *i = xcalloc(1, sizeof *i);
    i->refs = 1;
    i->ino = ++d->next_ino;
    i->is_dir = is_dir;
    TAILQ_INIT(&i->writes);
    TAILQ_INSERT_TAIL(&d->inodes, i, link);
    d->used += FILE_BYTES;
    return i;
}

struct inode *inode_ref(struct inode *i)
{
    i->refs++;
    return i;
}

static void writes_forget(struct inode *i)
{
    struct write_done *w;

    while ((w = TAILQ_FIRST(&i->writes)) != NULL) {
        TAILQ_REMOVE(&i->writes, w, link);
        free(w);
    }
}

void inode_unref(struct simdisk *d, struct inode *i)
{
    if (i == NULL || --i->refs > 0)
        return;
    d->used -= file_space(i);
    for (size_t k = 0; k < i->n_pages; k++) {
        old_free(&i->pages[k]);
        free(i->pages[k].cache);
    }
    free(i->pages);
    writes_forget(i);
    names_clear(d, &i->now);
    names_clear(d, &i->durable);
    TAILQ_REMOVE(&d->inodes, i, link);
    free(i);
}

static void note_write(struct simdisk *d, struct inode *i, bool truncates, int64_t at, const void *p, size_t n)
{
    struct write_done *w = xmalloc(sizeof *w + n);

    *w = (struct write_done){ .seq = ++d->seq, .truncates = truncates, .at = at, .n = n };
    if (n > 0)
        memcpy(w->bytes, p, n);
    TAILQ_INSERT_TAIL(&i->writes, w, link);
}

int64_t file_read(const struct inode *i, void *p, size_t n, int64_t at)
{
    uint8_t *to = p;

    if (at >= i->size)
        return 0;
    n = (size_t)MIN((int64_t)n, i->size - at);
    for (size_t done = 0; done < n;) {
        size_t k = (size_t)(at + (int64_t)done) / SIMDISK_PAGE, from = (size_t)(at + (int64_t)done) % SIMDISK_PAGE;
        size_t m = MIN(n - done, SIMDISK_PAGE - from);
        const struct page *g = k < i->n_pages ? &i->pages[k] : NULL;
        if (g != NULL && (g->spoilt & sectors_between(from, from + m)))
            return -EIO;
        memcpy(to + done, (g == NULL ? simdisk_zeros : seen(g)) + from, m);
        done += m;
    }
    return (int64_t)n;
}

int64_t file_write(struct simdisk *d, struct inode *i, const void *p, size_t n, int64_t at)
{
    const uint8_t *bytes = p;
    size_t done = 0;

    pages_grow(i, pages_of(at + (int64_t)n));
    while (done < n) {
        size_t k = (size_t)(at + (int64_t)done) / SIMDISK_PAGE, from = (size_t)(at + (int64_t)done) % SIMDISK_PAGE;
        size_t m = MIN(n - done, SIMDISK_PAGE - from);
        struct page *g = &i->pages[k];
        if (!g->room && !has_room(d, SIMDISK_PAGE))
            break;
        d->used += g->room ? 0 : SIMDISK_PAGE;
        g->room = true;
        page_dirty(g, sectors_between(from, from + m));
        page_make_cache(g);
        memcpy(g->cache + from, bytes + done, m);
        done += m;
    }
    if (done == 0)
        return n == 0 ? 0 : -ENOSPC;
    i->size = MAX(i->size, at + (int64_t)done);
    note_write(d, i, false, at, p, done);
    return (int64_t)done;
}

static void page_cut_off(struct simdisk *d, struct page *g)
{
    if (g->room)
        d->used -= SIMDISK_PAGE;
    g->room = false;
    if (g->cache != NULL)
        page_dirty(g, ALL_SECTORS);
    free(g->cache);
    g->cache = NULL;
    g->spoilt = 0;
}

void file_truncate(struct simdisk *d, struct inode *i, int64_t size)
{
    size_t whole = pages_of(size), tail = (size_t)size % SIMDISK_PAGE;

    for (size_t k = whole; k < i->n_pages; k++)
        page_cut_off(d, &i->pages[k]);
    if (tail > 0 && whole <= i->n_pages && i->pages[whole - 1].cache != NULL && size < i->size) {
        struct page *g = &i->pages[whole - 1];
        page_dirty(g, sectors_between(tail, SIMDISK_PAGE));
        memset(g->cache + tail, 0, SIMDISK_PAGE - tail);
    }
    i->size = size;
    i->min_size = MIN(i->min_size, size);
    note_write(d, i, true, size, NULL, 0);
}

int file_allocate(struct simdisk *d, struct inode *i, bool keep_size, int64_t at, int64_t n)
{
    size_t from = (size_t)at / SIMDISK_PAGE, to = pages_of(at + n);
    int64_t missing = 0;

    pages_grow(i, to);
    for (size_t k = from; k < to; k++)
        missing += i->pages[k].room ? 0 : SIMDISK_PAGE;
    if (!has_room(d, missing))
        return -ENOSPC;
    for (size_t k = from; k < to; k++)
        i->pages[k].room = true;
    d->used += missing;
    if (!keep_size && at + n > i->size) {
        i->size = at + n;
        note_write(d, i, true, i->size, NULL, 0);
    }
    return 0;
}

int64_t file_seek_data(const struct inode *i, int64_t at)
{
    if (at >= i->size)
        return -ENXIO;
    for (size_t k = (size_t)at / SIMDISK_PAGE; k < MIN(i->n_pages, pages_of(i->size)); k++)
        if (i->pages[k].cache != NULL)
            return MIN(MAX(at, (int64_t)k * SIMDISK_PAGE), i->size - 1);
    return -ENXIO;
}

/* ---- becoming durable ---- */

bool file_is_dirty(const struct inode *i)
{
    return !TAILQ_EMPTY(&i->writes);
}

static void page_is_durable(struct page *g)
{
    g->dirty = 0;
    page_settle(g);
}

void file_sync(struct inode *i)
{
    for (size_t k = 0; k < i->n_pages; k++)
        page_is_durable(&i->pages[k]);
    i->durable_size = i->min_size = i->size;
    writes_forget(i);
}

void file_sync_fails(struct inode *i)
{
    for (size_t k = 0; k < i->n_pages; k++) {
        struct page *g = &i->pages[k];
        g->lost |= g->dirty;
        g->dirty = 0;
    }
    writes_forget(i);
}

/* Pages behind the place of a truncation are free then: what stood there is nowhere any more. */
static void settle_truncation(struct inode *i)
{
    if (i->min_size >= i->durable_size)
        return;
    for (size_t k = pages_of(i->min_size); k < i->n_pages; k++) {
        struct page *g = &i->pages[k];
        if (g->old == NULL)
            continue;
        old_free(g);
        g->old = (uint8_t *)(uintptr_t)simdisk_zeros;
    }
    i->durable_size = i->min_size;
}

static void page_keep(struct page *g, unsigned s)
{
    if (g->old == simdisk_zeros)
        g->old = xcalloc(1, SIMDISK_PAGE);
    memcpy(g->old + s * SIMDISK_SECTOR, seen(g) + s * SIMDISK_SECTOR, SIMDISK_SECTOR);
    g->dirty &= (uint8_t)~(1u << s);
}

void file_write_back(struct inode *i, struct rnd *r, bool fails)
{
    uint64_t of_four = 1 + rnd_below(r, 4); /* a quarter of the sectors, ... all */

    settle_truncation(i);
    for (size_t k = 0; k < i->n_pages; k++) {
        struct page *g = &i->pages[k];
        for (unsigned s = 0; s < SECTORS; s++) {
            uint8_t bit = (uint8_t)(1u << s);
            if (!(g->dirty & bit) || rnd_below(r, 4) >= of_four)
                continue;
            if (fails) {
                g->dirty &= (uint8_t)~bit;
                g->lost |= bit;
            } else {
                page_keep(g, s);
            }
        }
        page_settle(g);
    }
}

void file_drop_cache(struct inode *i)
{
    for (size_t k = 0; k < i->n_pages; k++) {
        struct page *g = &i->pages[k];
        if (g->lost == 0)
            continue;
        page_make_cache(g);
        for (unsigned s = 0; s < SECTORS; s++)
            if (g->lost & (1u << s))
                memcpy(g->cache + s * SIMDISK_SECTOR, g->old + s * SIMDISK_SECTOR, SIMDISK_SECTOR);
        g->lost = 0;
        page_settle(g);
    }
}

void file_poke(struct inode *i, const void *p, size_t n, int64_t at)
{
    const uint8_t *bytes = p;

    for (size_t k = 0; k < n; k++) {
        size_t place = (size_t)at + k;
        struct page *g = &i->pages[place / SIMDISK_PAGE];
        page_make_cache(g);
        g->cache[place % SIMDISK_PAGE] = bytes[k];
        if (g->old == simdisk_zeros)
            g->old = xcalloc(1, SIMDISK_PAGE);
        if (g->old != NULL)
            g->old[place % SIMDISK_PAGE] = bytes[k];
    }
}

void file_peek_durable(const struct inode *i, void *p, size_t n, int64_t at)
{
    uint8_t *to = p;

    for (size_t k = 0; k < n; k++) {
        size_t place = (size_t)at + k;
        to[k] = place / SIMDISK_PAGE < i->n_pages ? on_disk(&i->pages[place / SIMDISK_PAGE])[place % SIMDISK_PAGE] : 0;
    }
}

/* ---- the power cut ---- */

/* Makes what is on the disk all there is, in a file of that size. */
static void become_durable(struct simdisk *d, struct inode *i, int64_t size)
{
    size_t whole = pages_of(size), tail = (size_t)size % SIMDISK_PAGE;

    for (size_t k = 0; k < i->n_pages; k++) {
        struct page *g = &i->pages[k];
        if (g->old == simdisk_zeros) {
            free(g->cache);
            g->cache = NULL;
        } else if (g->old != NULL) {
            free(g->cache);
            g->cache = g->old;
        }
        g->old = NULL;
        g->dirty = g->lost = 0;
        if (k >= whole) {
            free(g->cache);
            g->cache = NULL;
        }
        bool room = g->cache != NULL;
        d->used += (room ? SIMDISK_PAGE : 0) - (g->room ? SIMDISK_PAGE : 0);
        g->room = room;
    }
    pages_grow(i, whole);
    if (tail > 0 && i->pages[whole - 1].cache != NULL)
        memset(i->pages[whole - 1].cache + tail, 0, SIMDISK_PAGE - tail);
    i->size = i->durable_size = i->min_size = size;
    writes_forget(i);
}

/* A place between two sizes: often an end of them, or of a page. */
static int64_t some_size(struct rnd *r, int64_t least, int64_t most)
{
    int64_t any = rnd_range(r, least, most);

    switch (rnd_below(r, 4)) {
    case 0:
        return least;
    case 1:
        return most;
    case 2:
        return MAX(least, any / SIMDISK_PAGE * SIMDISK_PAGE);
    default:
        return any;
    }
}

/* Old or new by page or sector. While a truncation is not durable, pages behind its place are the old ones: their space
 * was not free yet. */
static void cut_mixed(struct simdisk *d, struct inode *i, bool by_page, struct rnd *r)
{
    bool pending = i->min_size < i->durable_size, cut_off = pending && rnd_one_in(r, 2);
    uint64_t new_of_8 = 1 + rnd_below(r, 7);
    int64_t size;

    if (cut_off)
        settle_truncation(i);
    size = pending && !cut_off ? i->durable_size : some_size(r, MIN(i->durable_size, i->size), i->size);
    size_t n = pending && !cut_off ? MIN(pages_of(i->min_size), i->n_pages) : i->n_pages;
    for (size_t k = 0; k < n; k++) {
        struct page *g = &i->pages[k];
        bool whole = rnd_below(r, 8) < new_of_8;
        for (unsigned s = 0; s < SECTORS; s++)
            if ((g->dirty & (1u << s)) && (by_page ? whole : rnd_below(r, 8) < new_of_8))
                page_keep(g, s);
    }
    become_durable(d, i, size);
}

static void replay(struct inode *i, const struct write_done *w, size_t n, int64_t *size)
{
    if (w->truncates) {
        for (int64_t at = w->at; at < MIN(*size, (int64_t)i->n_pages * SIMDISK_PAGE); at++) {
            struct page *g = &i->pages[at / SIMDISK_PAGE];
            if (g->old == simdisk_zeros || !(g->dirty & (1u << at % SIMDISK_PAGE / SIMDISK_SECTOR)))
                continue;
            g->old[at % SIMDISK_PAGE] = 0;
        }
        *size = w->at;
        return;
    }
    for (size_t k = 0; k < n; k++) {
        int64_t at = w->at + (int64_t)k;
        struct page *g = &i->pages[at / SIMDISK_PAGE];
        if (!(g->dirty & (1u << at % SIMDISK_PAGE / SIMDISK_SECTOR))) /* it was written back, later than this */
            continue;
        if (g->old == simdisk_zeros)
            g->old = xcalloc(1, SIMDISK_PAGE);
        g->old[at % SIMDISK_PAGE] = w->bytes[k];
    }
    *size = MAX(*size, w->at + (int64_t)n);
}

/* What of a write in the middle of which everything ended is there: whole sectors. */
static size_t torn(const struct write_done *w, struct rnd *r)
{
    int64_t end = w->at + (int64_t)rnd_below(r, w->n + SIMDISK_SECTOR);

    if (end >= w->at + (int64_t)w->n)
        return w->n;
    return (size_t)MAX(end / SIMDISK_SECTOR * SIMDISK_SECTOR - w->at, 0);
}

static void cut_in_order(struct simdisk *d, struct inode *i, struct rnd *r, uint64_t until)
{
    const struct write_done *w;
    int64_t size = i->durable_size;

    TAILQ_FOREACH(w, &i->writes, link) {
        if (w->seq > until)
            break;
        size_t n = w->seq == until ? torn(w, r) : w->n;
        if (n > 0 || w->truncates)
            replay(i, w, n, &size);
    }
    become_durable(d, i, size);
}

void file_cut(struct simdisk *d, struct inode *i, enum simdisk_cut how, struct rnd *r, uint64_t until)
{
    if (how == SIMDISK_CUT_FILES)
        how = rnd_one_in(r, 2) ? SIMDISK_CUT_NONE : SIMDISK_CUT_ALL;
    switch (how) {
    case SIMDISK_CUT_ALL: {
        int64_t size = i->size;
        for (size_t k = 0; k < i->n_pages; k++)
            page_is_durable(&i->pages[k]);
        become_durable(d, i, size);
        break;
    }
    case SIMDISK_CUT_IN_ORDER:
        cut_in_order(d, i, r, until);
        break;
    case SIMDISK_CUT_PAGES:
    case SIMDISK_CUT_SECTORS:
        cut_mixed(d, i, how == SIMDISK_CUT_PAGES, r);
        break;
    default:
        become_durable(d, i, i->durable_size);
        break;
    }
}
