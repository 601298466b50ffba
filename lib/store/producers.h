/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a partition knows of idempotent producers: epoch and the last five batches of each (KIP-98), so that a
 * batch sent again is answered and not stored again, and a gap is refused. Rebuilt from the log; a snapshot
 * file spares reading all of it. Pure; the log's mu guards it.
 */
#ifndef KLOG_STORE_PRODUCERS_H
#define KLOG_STORE_PRODUCERS_H

#include "lib/base/buf.h"
#include "lib/base/kerr.h"
#include "lib/record/batch.h"

#define PRODUCER_WINDOW 5      /* batches; max.in.flight of clients is bounded by it */
#define PRODUCERS_MAX   100000 /* of one partition; beyond it the longest idle one is forgotten */

struct producer_batch {
    int32_t first_sequence, last_sequence;
    int64_t base_offset, last_offset;
    int64_t timestamp; /* log append time, -1 under CreateTime */
};

struct producers {
    struct producer *by_id; /* uthash; in order of last use, longest idle first */
    int32_t n;
    /* Batches below this offset are gone from the log, maybe without anybody having noted them: whose newest known batch is
     * there may have written others since, and goes on at any later sequence. */
    int64_t unsure_below;
};

void producers_clear(struct producers *ps);
void producers_swap(struct producers *a, struct producers *b);

enum producer_verdict { PRODUCER_APPEND, PRODUCER_DUPLICATE, PRODUCER_REFUSED };
/* Rules of the protocol: older epoch 47, gap 45, one of the last five batches again = duplicate (and *ret
 * says where it is), unknown producer: any sequence goes. err is set when refused. */
enum producer_verdict producers_check(struct producers *ps, const struct batch_header *h, enum kerr *err,
                                      struct producer_batch *ret);
/* Notes a batch that is in the log (base offset set). Batches without producer or sequence are ignored. */
void producers_add(struct producers *ps, const struct batch_header *h, int64_t now_ms);
/* Forgets who was last seen before `before_ms`. */
void producers_expire(struct producers *ps, int64_t before_ms);

/* What is known of one, for showing it; batches are oldest first. */
struct producer_state {
    int64_t id, last_seen_ms;
    int16_t epoch, n;
    const struct producer_batch *batches;
};
void producers_each(const struct producers *ps, void (*f)(void *arg, const struct producer_state *p),
                    void *arg);

/* Snapshot file NNN.producers: everything up to `offset`. */
void producers_encode(const struct producers *ps, int64_t offset, uint32_t identity, struct bytebuf *ret);
/* Adds what it holds to ps, which must be empty; false when it is no such file, ps is then empty. The identity is 0
 * in a file of version 1. */
bool producers_decode(struct slice s, struct producers *ps, int64_t *ret_offset, uint32_t *ret_identity);

#endif
