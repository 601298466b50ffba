/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KlogFindText (klog's own): from a position in the plain view of a partition to the batch that holds it, or
 * from an offset to its position. The text index may have to be filled first, which reads the log: on a
 * worker.
 */
#include <errno.h>

#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "daemon/replica/partition.h"

enum { BY_POSITION = 0, BY_OFFSET = 1 };

struct find_text {
    struct request *r;
    struct job job;
    struct klog_find_text_response rsp;
};

static enum kerr find_position(struct partition *pt, int64_t position, struct klog_find_text_response *rsp)
{
    int rc = plog_offset_of_text(pt->log, position, &rsp->base_offset, &rsp->text_position);
    return rc == -ERANGE ? KERR_POSITION_OUT_OF_RANGE : rc < 0 ? kerr_of_errno(-rc) : KERR_NONE;
}

static enum kerr find_offset(struct partition *pt, const struct partition_view *v, int64_t offset,
                             struct klog_find_text_response *rsp)
{
    if (offset < v->start_offset || offset > v->lso)
        return KERR_OFFSET_OUT_OF_RANGE;
    int rc = plog_text_of_offset(pt->log, offset, &rsp->text_position);
    if (rc < 0)
        return rc == -ERANGE ? KERR_OFFSET_OUT_OF_RANGE : kerr_of_errno(-rc);
    rsp->base_offset = offset;
    return KERR_NONE;
}

static enum kerr find(const struct klog_find_text_request *q, struct partition *pt,
                      struct klog_find_text_response *rsp)
{
    struct partition_view v;
    partition_view(pt, &v);
    enum kerr err = v.err != KERR_NONE ? v.err : partition_epoch_check(&v, q->current_leader_epoch);
    if (err != KERR_NONE)
        return err;
    switch (q->by) {
    case BY_POSITION:
        return find_position(pt, q->value, rsp);
    case BY_OFFSET:
        return find_offset(pt, &v, q->value, rsp);
    default:
        return KERR_INVALID_REQUEST;
    }
}

/* On a worker. The partition is looked up only here: a job that waits in the queue must hold no reference,
 * since the removal of the partition may stand before it in the same queue and waits for all of them. */
static void find_run(struct job *j)
{
    struct find_text *f = container_of(j, struct find_text, job);
    const struct klog_find_text_request *q = f->r->body;
    enum kerr err;
    struct partition *pt =
        partitions_get_named(f->r->services->partitions, q->topic, &q->topic_id, q->partition, &err);
    f->rsp.error_code = (int16_t)(pt == NULL ? err : find(q, pt, &f->rsp));
    partition_unref(pt);
}

static void find_done(struct job *j)
{
    struct find_text *f = container_of(j, struct find_text, job);
    request_reply(f->r, &f->rsp);
}

void handle_klog_find_text(struct request *r)
{
    struct find_text *f = arena_alloc(&r->arena, sizeof *f);
    f->r = r;
    wire_defaults(&wire_klog_find_text_response, &f->rsp);
    f->rsp.base_offset = f->rsp.text_position = -1;
    f->job = (struct job){ .run = find_run, .done = find_done, .loop = r->loop };
    workers_submit(r->services->workers, &f->job);
}
