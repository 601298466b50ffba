/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pass: the dirty keys go into the map as far as it holds them, then everything from the front of the log
 * up to there is filtered, group by group, oldest first. That order matters: a tombstone goes only after the
 * older records of its key have gone for good.
 *
 * No lock is held but for single exchanges; segments are held by reference, and an exchange looks whether
 * they are still what the log has.
 */
#include "lib/store/clean.h"

#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/clean_int.h"
#include "lib/store/plog_check.h"

#define PLAIN_BYTES_MAX (1LL << 30)

int clean_progress(struct clean_pass *p, int64_t bytes)
{
    return p->o->go_on == NULL || p->o->go_on(p->o->arg, bytes) ? 0 : -ECANCELED;
}

/* ---- the map ---- */

/* -ENOBUFS: the map is full, and p->end stands at the first record that did not go in. */
static int map_batch(struct clean_pass *p, struct record_iter *it, struct slice bytes)
{
    struct record r;
    int rc = record_iter_start(it, bytes, PLAIN_BYTES_MAX);

    if (rc < 0 || batch_is_control(&it->h) || clean_txns_aborted(&p->txns, &it->h))
        return 0;
    while (record_iter_next(it, &r) == 1) {
        if (r.offset < p->range.first_dirty || kstr_is_null(r.key) || clean_map_put(p->map, r.key, r.offset))
            continue;
        p->end = r.offset;
        return -ENOBUFS;
    }
    return 0;
}

struct mapping {
    struct clean_pass *p;
    struct record_iter *iter;
};

static int map_item(void *arg, struct logscan *scan, const struct scan_item *it)
{
    const struct mapping *m = arg;
    struct slice bytes;

    if (it->what != SCAN_BATCH)
        return -EBADMSG;
    if (batch_last_offset(&it->h) < m->p->range.first_dirty)
        return 0;
    int rc = logscan_bytes(scan, it, &bytes);
    if (rc == 0)
        rc = map_batch(m->p, m->iter, bytes);
    return rc < 0 ? rc : clean_progress(m->p, it->n);
}

static int map_segment(struct clean_pass *p, int i, struct record_iter *iter)
{
    struct mapping m = { .p = p, .iter = iter };
    return segment_walk(p->range.segs[i], p->range.segs[i]->sum.size, p->range.ends[i], true, map_item, &m);
}

/* No more than the dirty bytes can have keys for, unless they are compressed: a record takes 8 bytes at
 * least, and an entry of the map, with the room it needs around it, 30. */
static size_t map_bytes(const struct clean_pass *p)
{
    int64_t dirty = CLEAN_MAP_BYTES_MIN;

    for (int i = p->range.dirty; i < p->range.n; i++)
        dirty += p->range.segs[i]->sum.size;
    return MIN(p->o->map_bytes, (size_t)dirty * 4);
}

static int build_map(struct clean_pass *p)
{
    struct record_iter iter;
    int rc = 0;

    p->map = clean_map_new(datadir_world(p->l->dd)->random, map_bytes(p));
    p->end = p->range.end;
    record_iter_init(&iter);
    for (int i = p->range.dirty; rc == 0 && i < p->range.n; i++)
        rc = map_segment(p, i, &iter);
    record_iter_done(&iter);
    p->ret->map_full = rc == -ENOBUFS;
    KCHECK(rc < 0 || p->end == p->range.end);
    KCHECK(!p->ret->map_full || p->end > p->range.first_dirty);
    return rc == -ENOBUFS ? 0 : rc;
}

/* ---- producers ---- */

static void note_producer(void *arg, const struct producer_state *s)
{
    struct clean_pass *p = arg;

    if (s->n > 0)
        p->last_of_active[p->n_active++] = s->batches[s->n - 1].last_offset;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void note_producers(struct clean_pass *p)
{
    lock_take(&p->l->mu);
    p->last_of_active = xcalloc((size_t)p->l->producers.n + 1, sizeof *p->last_of_active);
    producers_each(&p->l->producers, note_producer, p);
    lock_release(&p->l->mu);
    qsort(p->last_of_active, (size_t)p->n_active, sizeof *p->last_of_active, compare);
}

/* ---- groups ---- */

/* Segments from `first` on that become one: together no larger than a segment may be, and with relative
 * offsets that fit 31 bits. */
static int group_size(const struct clean_pass *p, int first, int end)
{
    const struct clean_range *r = &p->range;
    int64_t bytes = r->segs[first]->sum.size;
    int n = 1;

    while (first + n < end) {
        bytes += r->segs[first + n]->sum.size;
        if (bytes > p->cfg.segment_bytes || r->ends[first + n] - 1 - r->segs[first]->base > INT32_MAX)
            break;
        n++;
    }
    return n;
}

static void count(struct clean_pass *p, int first, int n, const struct segment *fresh)
{
    struct clean_result *ret = p->ret;
    int64_t before = 0;

    for (int i = first; i < first + n; i++)
        before += p->range.segs[i]->sum.size;
    ret->bytes_before += before;
    ret->bytes_after += fresh == NULL ? before : fresh->sum.size;
    ret->segments_before += n;
    ret->segments_after++;
}

static int clean_groups(struct clean_pass *p)
{
    int end = 0, rc = 0;

    while (end < p->range.n && p->range.segs[end]->base < p->end)
        end++;
    for (int i = 0, n; rc == 0 && i < end; i += n) {
        struct segment *fresh = NULL;
        n = group_size(p, i, end);
        rc = clean_group(p, i, n, &fresh);
        if (rc < 0)
            break;
        count(p, i, n, fresh);
        if (fresh != NULL)
            rc = clean_swap(p, i, n, fresh);
    }
    return rc;
}

/* ---- the pass ---- */

/* -ECANCELED: the log was cut meanwhile. */
static int find_anchor(struct clean_pass *p)
{
    int64_t end = p->range.ends[p->range.n - 1];

    lock_take(&p->l->mu);
    struct segment *s = p->l->segs[plog_find_segment(p->l, end)];
    if (s->base == end)
        p->anchor = segment_ref(s);
    lock_release(&p->l->mu);
    return p->anchor == NULL ? -ECANCELED : 0;
}

static int load_all(struct clean_pass *p)
{
    int rc = find_anchor(p);

    if (rc == 0)
        rc = plog_load_segment(p->l, p->anchor);
    for (int i = 0; rc == 0 && i < p->range.n; i++)
        rc = plog_load_segment(p->l, p->range.segs[i]);
    return rc;
}

static int run(struct clean_pass *p)
{
    int rc = clean_settle(p->l);

    if (rc == 0)
        rc = load_all(p);
    if (rc == 0)
        rc = clean_txns_scan(&p->txns, &p->range);
    if (rc == 0)
        rc = build_map(p);
    if (rc == 0)
        rc = clean_raise_claims(p);
    if (rc < 0)
        return rc;
    note_producers(p);
    rc = clean_groups(p);
    int settled = clean_settle(p->l);
    return rc < 0 ? rc : settled;
}

static bool has_moved(struct clean_pass *p, const struct stamp *st)
{
    struct stamp now = plog_stamp(p->l);
    return now.generation != st->generation || now.start_offset != st->start_offset;
}

int plog_clean(struct plog *l, const struct clean_options *o, struct clean_result *ret)
{
    struct stamp st = plog_stamp(l);
    struct clean_pass p = { .l = l, .o = o, .ret = ret, .generation = st.generation };

    *ret = (struct clean_result){ .first_dirty = o->first_dirty, .next_horizon_ms = -1 };
    lock_take(&l->mu);
    p.cfg = l->cfg;
    lock_release(&l->mu);
    int rc = clean_range_take(l, o->first_dirty, o->limit, o->min_lag_ms, o->now_ms, &p.range);
    if (rc < 0)
        return rc;
    if (p.range.n > 0)
        rc = run(&p);
    else
        p.end = p.range.first_dirty;
    if (rc == 0)
        ret->first_dirty = p.end;
    else if (has_moved(&p, &st) && !datadir_failed(l->dd))
        rc = -ECANCELED;
    clean_range_done(&p.range);
    segment_unref(p.anchor);
    clean_txns_done(&p.txns);
    clean_map_free(p.map);
    free(p.last_of_active);
    plog_call_done(l);
    return rc;
}
