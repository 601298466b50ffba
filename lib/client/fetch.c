/* SPDX-License-Identifier: Apache-2.0 */
/* One Fetch of one partition; see fetch.h. On the loop's thread. */
#include "lib/client/fetch.h"

#include <assert.h>

#include "lib/record/batch.h"

enum {
    FETCH_BY_NAME = 12, /* the last version that names topics */
    FETCH_NEWEST = 16,
    READ_COMMITTED = 1,
};

static const struct fetch_response_partitions *fetch_partition(const struct fetch_response *r)
{
    return r->n_responses == 1 && r->responses[0].n_partitions == 1 ? &r->responses[0].partitions[0] : NULL;
}

static enum kerr fetch_error(const struct fetch_response *r)
{
    const struct fetch_response_partitions *p = fetch_partition(r);
    if (r->error_code != KERR_NONE)
        return (enum kerr)r->error_code;
    return p != NULL ? (enum kerr)p->error_code : KERR_UNKNOWN_SERVER_ERROR;
}

static enum kerr fetch_judge(struct client_call *call, int16_t version, const void *response)
{
    const struct client_fetch *f = container_of(call, struct client_fetch, call);
    enum kerr err = fetch_error(response);
    (void)version;
    /* Damage on the broker's disk is there again at the next try. */
    return err == KERR_CORRUPT_MESSAGE || (err == KERR_FENCED_LEADER_EPOCH && f->fenced) ? KERR_NONE : err;
}

/* A broker may cut the last batch where max_bytes ends. */
static struct slice whole_batches(const struct wire_records *records)
{
    size_t n = records->n > 0 ? (size_t)records->n : 0, at = 0;
    while (n - at >= BATCH_OVERHEAD) {
        uint32_t length = get_be32(records->p + at + BATCH_LENGTH);
        if (length > n - at - BATCH_LOG_OVERHEAD)
            break;
        at += BATCH_LOG_OVERHEAD + length;
    }
    return slice_of(records->p, at);
}

static void fetch_on_end(struct client_call *call, int rc, enum kerr err, int16_t version,
                         const void *response)
{
    (void)err;
    (void)version;
    struct client_fetch *f = container_of(call, struct client_fetch, call);
    if (rc != 0) {
        f->cb(f, rc, NULL);
        return;
    }
    struct client_fetched ret = { .err = fetch_error(response), .frame = client_call_frame(call) };
    const struct fetch_response_partitions *p = fetch_partition(response);
    if (p != NULL) {
        ret.batches = whole_batches(&p->records);
        ret.diverged = p->diverging_epoch.end_offset >= 0;
        ret.diverging_epoch = p->diverging_epoch.epoch;
        ret.diverging_end = p->diverging_epoch.end_offset;
        ret.high_watermark = p->high_watermark;
        ret.last_stable_offset = p->last_stable_offset;
        ret.log_start_offset = p->log_start_offset;
        /* The same two fields, under a name that callers can keep. */
        static_assert(sizeof(struct client_aborted) == sizeof *p->aborted_transactions, "aborted");
        ret.aborted = (const struct client_aborted *)(const void *)p->aborted_transactions;
        ret.n_aborted = p->n_aborted_transactions > 0 ? p->n_aborted_transactions : 0;
    }
    f->cb(f, 0, &ret);
}

static void fetch_fill(struct client_fetch *f)
{
    wire_defaults(&wire_fetch_request, &f->request);
    f->request_partition = (struct fetch_request_partitions){
        .partition = f->partition,
        .current_leader_epoch = f->fenced ? f->leader_epoch : -1,
        .fetch_offset = f->offset,
        .last_fetched_epoch = f->has_last_epoch ? f->last_epoch : -1,
        .log_start_offset = -1,
        .partition_max_bytes = f->max_bytes,
    };
    f->request_topic = (struct fetch_request_topics){
        .topic = kstr_of(f->topic),
        .topic_id = f->topic_id,
        .partitions = &f->request_partition,
        .n_partitions = 1,
    };
    f->request.max_wait_ms = f->max_wait_ms;
    f->request.min_bytes = 1;
    f->request.max_bytes = f->max_bytes;
    f->request.isolation_level = READ_COMMITTED;
    f->request.topics = &f->request_topic;
    f->request.n_topics = 1;
}

void client_fetch(struct client *c, struct client_fetch *f)
{
    fetch_fill(f);
    f->call = (struct client_call){
        .target = TARGET_LEADER,
        .topic = f->topic,
        .topic_id = f->topic_id,
        .partition = f->partition,
        .request = &wire_fetch_request,
        .body = &f->request,
        .max_version = uuid_is_zero(&f->topic_id) ? FETCH_BY_NAME : FETCH_NEWEST,
        .deadline_ms = f->deadline_ms,
        .parks = true,
        .judge = fetch_judge,
        .cb = fetch_on_end,
    };
    client_call(c, &f->call);
}

void client_fetch_cancel(struct client *c, struct client_fetch *f)
{
    client_cancel(c, &f->call);
}
