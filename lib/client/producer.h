/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An idempotent producer (KIP-98, KIP-360): batches records by partition, at most five requests in flight a
 * partition, retries without ever writing a record twice. On its client's loop.
 */
#ifndef KLOG_CLIENT_PRODUCER_H
#define KLOG_CLIENT_PRODUCER_H

#include "lib/client/client.h"
#include "lib/record/build.h"

struct producer_config {
    int16_t acks; /* -1, 0, 1; idempotence needs -1 */
    enum codec compression;
    int64_t linger_ms;  /* 0: at once */
    int32_t batch_size; /* bytes, before compression; a record larger than it goes in a batch of its own */
    int64_t delivery_timeout_ms; /* from producer_send to cb at the latest */
};

struct producer;
struct producer *producer_new(struct client *c, const struct producer_config *cfg);
void producer_free(struct producer *p); /* before its client; what is not over ends with -ECANCELED */

struct producer_record {
    int64_t timestamp;
    struct kstr key, value;
    const struct record_header *headers;
    int32_t n_headers;
};

/* One send = one or more records that go out in one batch where they fit in batch_size (else in several, in
 * order: after one that failed none of the rest is written). Sends of one round of the loop share batches.
 * Where the broker says that a batch is too large, or that a record in it is not valid, it is cut up and
 * tried again, so that only the send that is to blame fails. */
struct producer_send {
    const char *topic;
    struct uuid topic_id; /* zero: whatever topic has the name; else nothing of it gets into another (-ENOENT) */
    int32_t partition;
    const struct producer_record *records; /* copied before producer_send returns */
    int32_t n_records;
    bool flush; /* do not wait for linger */
    /* rc 0 and the offset of the first record; or -errno (kerr_errno of *err, -ETIMEDOUT, -ECANCELED by
     * producer_free). With acks 0, or when the broker only knows that it has the record already, offset is
     * -1. n_committed: records of this send, from the first, that are known to be in the log. text: the
     * broker's error message or "". With -ETIMEDOUT, err and text tell the last refusal that might have
     * passed. */
    void (*cb)(struct producer_send *s, int rc, enum kerr err, int64_t offset, int32_t n_committed,
               const char *text);
    void *user;
    /* private */
    struct producer_send_state *state;
};
void producer_send(struct producer *p, struct producer_send *s);
/* The delivery time-out of what is sent from now on began at this time (loop_now_ms() scale) already. */
void producer_count_from(struct producer *p, int64_t began_ms);
/* Somebody waits for it now: its batches do not linger any longer. Not after its cb. */
void producer_hurry(struct producer *p, struct producer_send *s);
/* If nothing of it was sent yet: withdraws it, cb is not called, returns true. Else false; cb will come. */
bool producer_withdraw(struct producer *p, struct producer_send *s);
size_t producer_pending_bytes(const struct producer *p);

#endif
