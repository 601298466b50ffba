/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The producer from inside. On the client's loop.
 *
 *   producer.c        sends: their way into batches and their ends; the producer's id
 *   producer_batch.c  one batch: spans of sends, bytes, numbers, cutting it up again
 *   producer_flow.c   one partition: what is in flight, answers, recovery
 *
 * Rules (KIP-98, KIP-360):
 * - P1: the batches of a partition are sent in the order of their queue, at most FLIGHT_MAX unanswered; one until the broker
 *   has taken a batch of this producer id.
 * - P2: a batch keeps its bytes and its numbers through every retry as long as it may be in the log.
 * - P3: numbers change, or a new epoch begins, only while nothing of the partition is in flight and no batch
 *   that may be in the log waits for an answer. So what an old connection still carries is a duplicate or
 *   fenced, never a second copy.
 * - P4: after a failed part of a send nothing that follows it in the same send is written.
 */
#ifndef KLOG_CLIENT_PRODUCER_INT_H
#define KLOG_CLIENT_PRODUCER_INT_H

#include <sys/queue.h>
#include <uthash.h>

#include "lib/base/mem.h"
#include "lib/client/producer.h"

enum { FLIGHT_MAX = 5 };

struct producer_send_state {
    struct producer *p;
    struct producer_send *send; /* NULL: withdrawn, or its producer is gone */
    int32_t n_records;
    int n_spans;    /* not yet over */
    int64_t offset; /* of the first record; -1 not known */
    int32_t n_committed;
    bool failed;
    int rc;
    enum kerr err;
    char *text;
    TAILQ_ENTRY(producer_send_state) entry; /* in producer.done */
};

/* n records of a batch that belong to one send. */
struct span {
    struct producer_send_state *s;
    int32_t n;
    int32_t send_first; /* number of the first of them within the send */
};

struct pbatch {
    struct flow *flow;
    TAILQ_ENTRY(pbatch) entry;
    struct batch_builder build; /* until it is sealed */
    struct rcbuf *bytes;        /* sealed */
    int32_t count;
    size_t plain_bytes; /* counted in producer.pending_bytes */
    struct span *spans;
    int n_spans, cap_spans;
    int64_t born_ms;
    bool open;          /* takes more records */
    bool flush;         /* does not wait for linger */
    bool in_flight;     /* call is out */
    bool was_sent;      /* some attempt reached a socket */
    bool maybe_written; /* an attempt ended without an answer that tells */
    int32_t sequence;   /* -1: none yet */
    struct client_call call;
    struct produce_request body;
    struct produce_request_topic_data topic;
    struct produce_request_partition_data partition;
};

/* A partition as the producer sees it. */
struct flow {
    struct producer *p;
    char *topic;
    struct uuid topic_id; /* zero: goes by its name */
    int32_t partition;
    char *key; /* "partition/topic/id" */
    UT_hash_handle hh;
    TAILQ_HEAD(flow_queue, pbatch) queue; /* all that is not over, in order; the open one is last */
    int in_flight;
    int64_t producer_id; /* that the numbers below belong to */
    int16_t epoch;
    int32_t next_sequence;
    bool is_known;   /* the broker has a batch of this id */
    bool recovering; /* something failed: settle what is in flight before anything new is sent */
    bool needs_epoch;
    int32_t renumber_from; /* INT32_MAX: not needed */
    int attempts;
    int64_t retry_at_ms;
    enum kerr last_err; /* of the last refusal that would pass, and what the broker said of it */
    char *last_text;
    size_t limit_bytes; /* what the broker took; SIZE_MAX unknown */
    int64_t limit_until_ms;
    struct timer timer;
    bool dirty;
    TAILQ_ENTRY(flow) entry; /* in producer.dirty */
};

enum producer_id_state { ID_NONE, ID_ASKING, ID_KNOWN };

struct producer {
    struct client *c;
    struct producer_config cfg;
    size_t pending_bytes;
    int64_t began_ms; /* when the delivery time-out of new batches began, if before now */
    struct flow *flows;
    TAILQ_HEAD(, flow) dirty;
    TAILQ_HEAD(, producer_send_state) done;
    struct deferred turn;
    enum producer_id_state id_state;
    int64_t id;
    int16_t epoch;
    bool fresh_id; /* the next ask is for a new id, not for a new epoch */
    bool ends;
    struct client_call ask;
    struct init_producer_id_request ask_body;
};

static inline bool producer_is_idempotent(const struct producer *p)
{
    return p->cfg.acks == -1;
}

/* ---- producer.c ---- */
void producer_stir(struct producer *p);
bool producer_need_id(struct producer *p); /* true: it is known; false: it is being asked */
void producer_renew(struct producer *p, bool fresh_id);
void span_committed(struct span *sp, int64_t offset);
void span_failed(struct span *sp, int rc, enum kerr err, struct kstr text);
void span_dropped(struct span *sp);

/* ---- producer_batch.c ---- */
struct pbatch *batch_new(struct flow *f);
void batch_free(struct pbatch *b); /* spans must be settled */
void batch_add(struct pbatch *b, struct producer_send_state *s, int32_t send_first,
               const struct producer_record *r);
int batch_seal(struct pbatch *b); /* bytes with the flow's next numbers; -errno of the codec */
void batch_renumber(struct pbatch *b);
/* Replaces b in the queue by batches of at most `piece` records each, one a span if by_span; spans of failed
 * sends are left out. */
void batch_cut(struct pbatch *b, int32_t piece, bool by_span);
size_t batch_bytes(const struct pbatch *b);

/* ---- producer_flow.c ---- */
struct flow *flow_of(struct producer *p, const struct producer_send *s);
void flow_free(struct flow *f);
void flow_stir(struct flow *f);
void flow_pump(struct flow *f);
void flow_take_back(struct flow *f, struct pbatch *b); /* b's call, that was not sent */
void flow_cut(struct flow *f, struct pbatch *b, int32_t piece, bool by_span);
void batch_fail(struct pbatch *b, int rc, enum kerr err, struct kstr text);

#endif
