/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ListOffsets: the ends of a partition, on the session's loop; the first record at or after a time, and many
 * partitions at once, on a worker.
 */
#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "daemon/replica/partition.h"

enum {
    ON_LOOP_MAX = 5000,          /* partitions whose ends a reactor looks up itself */
    HANDLER_BYTES = 1024 * 1024, /* a batch unpacked, beside what the session counts */
};

enum { /* timestamps with a meaning of their own */
       TS_LATEST = -1,
       TS_EARLIEST = -2,
       TS_MAX_TIMESTAMP = -3,  /* v7 */
       TS_EARLIEST_LOCAL = -4, /* v8 */
       TS_LATEST_TIERED = -5,  /* v9 */
};

/* R16: until the watermark has reached this epoch's start the end is not known for sure. */
static enum kerr not_yet(int version)
{
    return version >= 5 ? KERR_OFFSET_NOT_AVAILABLE : KERR_LEADER_NOT_AVAILABLE;
}

static enum kerr find_by_time(struct partition *pt, const struct partition_view *v, int64_t ts, int64_t limit,
                              struct list_offsets_response_partitions *rsp)
{
    int64_t offset = -1, found_ts = -1;
    int rc = ts == TS_MAX_TIMESTAMP ? plog_max_timestamp(pt->log, limit, &offset, &found_ts)
                                    : plog_find_time(pt->log, ts, limit, &offset, &found_ts);
    if (rc < 0)
        return kerr_of_errno(-rc);
    if (offset < 0 && !v->hw_is_current)
        return KERR_OFFSET_NOT_AVAILABLE;
    rsp->offset = offset;
    rsp->timestamp = offset < 0 ? -1 : found_ts;
    rsp->leader_epoch = offset < 0 ? -1 : plog_epoch_at(pt->log, offset);
    return KERR_NONE;
}

static enum kerr find(struct request *r, struct partition *pt, const struct partition_view *v, int64_t ts,
                      struct list_offsets_response_partitions *rsp)
{
    const struct list_offsets_request *q = r->body;
    int64_t limit = q->isolation_level == 1 ? v->lso : v->hw;
    if ((ts == TS_MAX_TIMESTAMP && r->api_version < 7) || (ts == TS_EARLIEST_LOCAL && r->api_version < 8) ||
        (ts == TS_LATEST_TIERED && r->api_version < 9) || ts < TS_LATEST_TIERED)
        return KERR_UNSUPPORTED_VERSION;

    switch (ts) {
    case TS_LATEST:
        if (!v->hw_is_current)
            return not_yet(r->api_version);
        rsp->offset = limit;
        rsp->leader_epoch = v->leader_epoch;
        return KERR_NONE;
    case TS_EARLIEST:
    case TS_EARLIEST_LOCAL:
        rsp->offset = v->start_offset;
        rsp->leader_epoch = plog_epoch_at(pt->log, v->start_offset);
        return KERR_NONE;
    case TS_LATEST_TIERED: /* nothing is tiered: there is none */
        return KERR_NONE;
    default:
        return find_by_time(pt, v, ts, limit, rsp);
    }
}

static enum kerr answer_partition(struct request *r, struct kstr topic,
                                  const struct list_offsets_request_partitions *q,
                                  struct list_offsets_response_partitions *rsp)
{
    struct partition *pt = partitions_get(r->services->partitions, topic, q->partition_index);
    if (pt == NULL)
        return partitions_missing(r->services->partitions, topic, q->partition_index);
    struct partition_view v;
    partition_view(pt, &v);
    enum kerr err = v.err != KERR_NONE ? v.err : partition_epoch_check(&v, q->current_leader_epoch);
    if (err == KERR_NONE)
        err = find(r, pt, &v, q->timestamp, rsp);
    partition_unref(pt);
    return err;
}

/* Version 0 wants a list, the newest first. Kafka gave the starts of segments up to that time; klog gives one
 * place to read on from, which is nearer. */
static void as_list(const struct list_offsets_request_partitions *q, struct list_offsets_response_partitions *p)
{
    if (p->error_code != KERR_NONE || p->offset < 0 || q->max_num_offsets < 1)
        return;
    p->old_style_offsets = &p->offset;
    p->n_old_style_offsets = 1;
}

static void answer_topic(struct request *r, const struct list_offsets_request_topics *q,
                         struct list_offsets_response_topics *rsp)
{
    rsp->name = q->name;
    rsp->n_partitions = q->n_partitions;
    rsp->partitions = arena_array(&r->arena, (size_t)q->n_partitions, sizeof *rsp->partitions);
    for (int32_t i = 0; i < q->n_partitions; i++) {
        struct list_offsets_response_partitions *out = &rsp->partitions[i];
        *out = (struct list_offsets_response_partitions){
            .partition_index = q->partitions[i].partition_index,
            .timestamp = -1,
            .offset = -1,
            .leader_epoch = -1,
        };
        out->error_code = (int16_t)answer_partition(r, q->name, &q->partitions[i], out);
        if (r->api_version == 0)
            as_list(&q->partitions[i], out);
        if (r->api_version < 4)
            out->leader_epoch = -1;
    }
}

static const void *answer(struct request *r, const char **ret_why)
{
    const struct list_offsets_request *q = r->body;
    struct list_offsets_response *rsp = arena_alloc(&r->arena, sizeof *rsp);
    (void)ret_why;
    wire_defaults(&wire_list_offsets_response, rsp);
    rsp->n_topics = q->n_topics;
    rsp->topics = arena_array(&r->arena, (size_t)q->n_topics, sizeof *rsp->topics);
    for (int32_t i = 0; i < q->n_topics; i++)
        answer_topic(r, &q->topics[i], &rsp->topics[i]);
    return rsp;
}

/* A time is looked for in a batch, which has to be read and unpacked, and perhaps in an index that has to be made. */
static bool takes_long(const struct list_offsets_request *q)
{
    int64_t n = 0;
    for (int32_t i = 0; i < q->n_topics; i++) {
        n += q->topics[i].n_partitions;
        for (int32_t k = 0; k < q->topics[i].n_partitions && n <= ON_LOOP_MAX; k++)
            if (q->topics[i].partitions[k].timestamp >= 0 || q->topics[i].partitions[k].timestamp == TS_MAX_TIMESTAMP)
                return true;
    }
    return n > ON_LOOP_MAX;
}

void handle_list_offsets(struct request *r)
{
    const struct list_offsets_request *q = r->body;
    request_answer(r, takes_long(q), HANDLER_BYTES, answer);
}
