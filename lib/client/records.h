/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of what a fetch brought, one after the other, as a reader of committed records is to see them:
 * none before the offset asked for, no control records, none of aborted transactions. Holds the frame, so
 * that nothing is copied. One thread at a time.
 */
#ifndef KLOG_CLIENT_RECORDS_H
#define KLOG_CLIENT_RECORDS_H

#include "lib/client/fetch.h"
#include "lib/record/iter.h"

struct records {
    /* Where reading goes on: the offset after whatever was walked over, records or not. Committing it once
     * all records before are dealt with leaves no lag behind for what nobody is to see. */
    int64_t next;
    int32_t epoch; /* leader epoch of what stands before it; -1 unknown */
    /* private */
    int64_t from;
    struct rcbuf *frame;
    struct slice rest; /* batches not begun */
    bool in_batch;
    struct record_iter iter;
    struct client_aborted *aborted; /* sorted by first offset */
    int32_t n_aborted, next_aborted;
    int64_t *aborting; /* producers whose records do not count at the moment; room for n_aborted */
    int32_t n_aborting;
};

/* Empty: reading begins at `from`, behind a record of that leader epoch (-1: not known). */
void records_init(struct records *r, int64_t from, int32_t epoch);
void records_done(struct records *r);
/* What a fetch from r->next brought. Everything before must have been walked over. */
void records_take(struct records *r, const struct client_fetched *f);
/* 1 and *ret, which points into the frame or the iterator until the next call; 0 when another fetch is
 * needed; -EBADMSG at a damaged batch, -EFBIG at one that is too large unpacked: r->next stands before it. */
int records_next(struct records *r, struct record *ret);

#endif
