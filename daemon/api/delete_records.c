/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeleteRecords: moves the start of partitions up, durably. The request is judged and answered on the
 * session's loop; the log's part may wait for the disk and runs as one job on a worker.
 */
#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "daemon/replica/partition.h"
#include "lib/base/log.h"

struct delete_records {
    struct request *r;
    struct job job;
    struct delete_records_response rsp;
};

/* Only compacted: the latest value of each key is to stay. */
static bool keeps_latest(struct partition *pt)
{
    lock_take(&pt->mu);
    bool ret = !pt->config->plog.delete_policy;
    lock_release(&pt->mu);
    return ret;
}

static enum kerr delete_before(struct partition *pt, int64_t offset, int64_t *ret_low)
{
    struct partition_view v;
    partition_view(pt, &v);
    if (v.err != KERR_NONE)
        return v.err;
    if (pt->internal)
        return KERR_INVALID_TOPIC_EXCEPTION;
    if (keeps_latest(pt))
        return KERR_POLICY_VIOLATION;
    if (offset == -1)
        offset = v.hw;
    if (offset < 0 || offset > v.hw)
        return KERR_OFFSET_OUT_OF_RANGE;
    if (offset > v.start_offset) {
        int rc = plog_delete_before(pt->log, offset);
        if (rc < 0)
            return kerr_of_errno(-rc);
        partition_view(pt, &v);
        log_info("%s: records were deleted by request; the log starts at offset %lld now", plog_name(pt->log),
                 (long long)v.start_offset);
    }
    *ret_low = v.start_offset;
    return KERR_NONE;
}

static void delete_partition(struct request *r, struct kstr topic,
                             const struct delete_records_request_partitions *q,
                             struct delete_records_response_partitions *rsp)
{
    *rsp = (struct delete_records_response_partitions){ .partition_index = q->partition_index,
                                                        .low_watermark = -1 };
    struct partition *pt = partitions_get(r->services->partitions, topic, q->partition_index);
    rsp->error_code = pt == NULL ? partitions_missing(r->services->partitions, topic, q->partition_index)
                                 : (int16_t)delete_before(pt, q->offset, &rsp->low_watermark);
    partition_unref(pt);
}

/* On a worker. The request stays as it is until the job is done, so its arena is the job's meanwhile. */
static void delete_run(struct job *j)
{
    struct delete_records *d = container_of(j, struct delete_records, job);
    const struct delete_records_request *q = d->r->body;
    d->rsp.n_topics = q->n_topics;
    d->rsp.topics = arena_array(&d->r->arena, (size_t)q->n_topics, sizeof *d->rsp.topics);
    for (int32_t i = 0; i < q->n_topics; i++) {
        struct delete_records_response_topics *out = &d->rsp.topics[i];
        out->name = q->topics[i].name;
        out->n_partitions = q->topics[i].n_partitions;
        out->partitions = arena_array(&d->r->arena, (size_t)out->n_partitions, sizeof *out->partitions);
        for (int32_t k = 0; k < out->n_partitions; k++)
            delete_partition(d->r, out->name, &q->topics[i].partitions[k], &out->partitions[k]);
    }
}

static void delete_done(struct job *j)
{
    struct delete_records *d = container_of(j, struct delete_records, job);
    request_reply(d->r, &d->rsp);
}

void handle_delete_records(struct request *r)
{
    struct delete_records *d = arena_alloc(&r->arena, sizeof *d);
    d->r = r;
    wire_defaults(&wire_delete_records_response, &d->rsp);
    d->job = (struct job){ .run = delete_run, .done = delete_done, .loop = r->loop };
    workers_submit(r->services->workers, &d->job);
}
