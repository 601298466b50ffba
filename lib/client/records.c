/* SPDX-License-Identifier: Apache-2.0 */
/* Walks batches and leaves out what was aborted; see records.h. */
#include "lib/client/records.h"

#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

enum {
    PLAIN_MAX = 256 * 1024 * 1024, /* of one batch, unpacked */
    CONTROL_ABORT = 0,
};

void records_init(struct records *r, int64_t from, int32_t epoch)
{
    *r = (struct records){ .from = from, .next = from, .epoch = epoch };
    record_iter_init(&r->iter);
}

static void records_drop(struct records *r)
{
    rcbuf_unref(r->frame);
    free(r->aborted);
    free(r->aborting);
    r->frame = NULL;
    r->aborted = NULL;
    r->aborting = NULL;
    r->n_aborted = r->next_aborted = r->n_aborting = 0;
    r->rest = slice_of(NULL, 0);
    r->in_batch = false;
}

void records_done(struct records *r)
{
    records_drop(r);
    record_iter_done(&r->iter);
}

static int aborted_compare(const void *x, const void *y)
{
    const struct client_aborted *a = x, *b = y;
    return a->first_offset < b->first_offset ? -1 : a->first_offset > b->first_offset;
}

void records_take(struct records *r, const struct client_fetched *f)
{
    KCHECK(!r->in_batch && r->rest.n == 0);
    records_drop(r);
    r->frame = rcbuf_ref(f->frame);
    r->rest = f->batches;
    r->from = r->next;
    if (f->n_aborted == 0)
        return;
    r->n_aborted = f->n_aborted;
    r->aborted = xreallocarray(NULL, (size_t)f->n_aborted, sizeof *r->aborted);
    r->aborting = xreallocarray(NULL, (size_t)f->n_aborted, sizeof *r->aborting);
    memcpy(r->aborted, f->aborted, (size_t)f->n_aborted * sizeof *r->aborted);
    qsort(r->aborted, (size_t)r->n_aborted, sizeof *r->aborted, aborted_compare);
}

/* ---- transactions ---- */
static bool is_aborting(const struct records *r, int64_t producer_id)
{
    for (int32_t i = 0; i < r->n_aborting; i++) {
        if (r->aborting[i] == producer_id)
            return true;
    }
    return false;
}

/* Transactions that begin in or before this batch. */
static void note_aborted(struct records *r, const struct batch_header *h)
{
    while (r->next_aborted < r->n_aborted &&
           r->aborted[r->next_aborted].first_offset <= batch_last_offset(h)) {
        int64_t id = r->aborted[r->next_aborted++].producer_id;
        if (!is_aborting(r, id))
            r->aborting[r->n_aborting++] = id;
    }
}

/* The producer's next records are of another transaction. */
static void note_marker(struct records *r, const struct batch_header *h, struct slice batch)
{
    struct record marker;
    if (record_iter_start(&r->iter, batch, PLAIN_MAX) != 0 || record_iter_next(&r->iter, &marker) != 1 ||
        marker.key.n < 4 || get_be16((const uint8_t *)marker.key.p + 2) != CONTROL_ABORT)
        return;
    for (int32_t i = 0; i < r->n_aborting; i++) {
        if (r->aborting[i] == h->producer_id)
            r->aborting[i--] = r->aborting[--r->n_aborting];
    }
}

/* ---- walking ---- */
/* Takes the next batch off the rest; its records count when in_batch is set. 1, or 0 when there is none. */
static int next_batch(struct records *r)
{
    struct batch_header h;
    int rc = batch_check(r->rest, INT32_MAX, &h);
    if (rc == -EAGAIN)
        r->rest = slice_of(NULL, 0); /* a part of one, or nothing */
    if (rc != 0)
        return rc == -EAGAIN ? 0 : -EBADMSG;
    struct slice batch = slice_of(r->rest.p, (size_t)batch_size(&h));
    note_aborted(r, &h);
    if (batch_is_control(&h)) {
        note_marker(r, &h, batch);
    } else if (!batch_is_transactional(&h) || !is_aborting(r, h.producer_id)) {
        rc = record_iter_start(&r->iter, batch, PLAIN_MAX);
        if (rc != 0)
            return rc;
        r->in_batch = true;
    }
    r->rest = slice_of(batch.p + batch.n, r->rest.n - batch.n);
    if (!r->in_batch && batch_last_offset(&h) >= r->next) {
        r->next = batch_last_offset(&h) + 1;
        r->epoch = h.leader_epoch;
    }
    return 1;
}

int records_next(struct records *r, struct record *ret)
{
    int rc = 1;
    while (rc == 1) {
        if (!r->in_batch) {
            rc = next_batch(r);
            continue;
        }
        rc = record_iter_next(&r->iter, ret);
        if (rc == 1 && ret->offset >= r->from) {
            r->next = ret->offset + 1;
            r->epoch = r->iter.h.leader_epoch;
            return 1;
        }
        if (rc == 0) {
            r->in_batch = false;
            if (batch_last_offset(&r->iter.h) >= r->next) {
                r->next = batch_last_offset(&r->iter.h) + 1;
                r->epoch = r->iter.h.leader_epoch;
            }
            rc = 1;
        }
    }
    if (rc < 0)
        records_drop(r);
    return rc;
}
