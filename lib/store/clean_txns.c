/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which data was aborted: a marker comes after the data it judges, so the dirty part's headers are walked
 * before its keys are collected. Aborted data supersedes nothing, and goes. Below the dirty part none is
 * left.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/clean_int.h"

#define MARKER_ABORT 0

static struct clean_txn *find_open(struct clean_txns *t, int64_t producer)
{
    for (int i = 0; i < t->n_open; i++) {
        if (t->open[i].producer == producer)
            return &t->open[i];
    }
    return NULL;
}

static struct clean_txn *add(struct clean_txn **v, int *n, int *cap)
{
    if (*n == *cap) {
        *cap = *cap == 0 ? 16 : *cap * 2;
        *v = xreallocarray(*v, (size_t)*cap, sizeof **v);
    }
    return &(*v)[(*n)++];
}

/* Type of a control batch's marker, -1 when there is none to be read. */
static int marker_type(struct slice batch)
{
    struct record_iter it;
    struct record r;
    int type = -1;

    record_iter_init(&it);
    if (record_iter_start(&it, batch, batch.n) == 0 && record_iter_next(&it, &r) == 1 && r.key.n >= 4)
        type = get_be16(r.key.p + 2);
    record_iter_done(&it);
    return type;
}

static void note_end(struct clean_txns *t, struct clean_txn *open, int type, int64_t marker)
{
    if (type == MARKER_ABORT)
        *add(&t->aborted, &t->n, &t->cap) = (struct clean_txn){ open->producer, open->first, marker };
    *open = t->open[--t->n_open];
}

static int note_batch(void *arg, struct logscan *scan, const struct scan_item *it)
{
    struct clean_txns *t = arg;
    struct slice bytes;

    if (it->what != SCAN_BATCH || !batch_is_transactional(&it->h))
        return 0;
    struct clean_txn *open = find_open(t, it->h.producer_id);
    if (!batch_is_control(&it->h)) {
        if (open == NULL)
            *add(&t->open, &t->n_open, &t->cap_open) =
                (struct clean_txn){ it->h.producer_id, it->h.base_offset, INT64_MAX };
        return 0;
    }
    if (open == NULL)
        return 0;
    int rc = logscan_bytes(scan, it, &bytes);
    if (rc == 0)
        note_end(t, open, marker_type(bytes), it->h.base_offset);
    return rc;
}

static int compare(const void *a, const void *b)
{
    const struct clean_txn *x = a, *y = b;

    if (x->producer != y->producer)
        return x->producer < y->producer ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

int clean_txns_scan(struct clean_txns *t, const struct clean_range *r)
{
    int rc = 0;

    for (int i = r->dirty; rc == 0 && i < r->n; i++)
        rc = segment_walk(r->segs[i], r->segs[i]->sum.size, r->ends[i], false, note_batch, t);
    if (t->n > 0)
        qsort(t->aborted, (size_t)t->n, sizeof *t->aborted, compare);
    return rc;
}

bool clean_txns_aborted(const struct clean_txns *t, const struct batch_header *h)
{
    const struct clean_txn wanted = { h->producer_id, h->base_offset, 0 };
    int low = 0, high = t->n; /* how many are not above the wanted one */

    if (!batch_is_transactional(h) || batch_is_control(h))
        return false;
    while (low < high) {
        int mid = low + (high - low) / 2;
        if (compare(&t->aborted[mid], &wanted) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0)
        return false;
    const struct clean_txn *txn = &t->aborted[low - 1];
    return txn->producer == h->producer_id && h->base_offset <= txn->last;
}

void clean_txns_done(struct clean_txns *t)
{
    free(t->aborted);
    free(t->open);
    *t = (struct clean_txns){ 0 };
}
