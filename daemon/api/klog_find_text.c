/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KlogFindText (klog's own): from a position in the plain view of a partition to the batch that holds it, or from an
 * offset to its position. The text index may have to be filled first, which reads the log: on a worker.
 */
#include <errno.h>

#include "daemon/api/api.h"
#include "daemon/broker.h"
#include "daemon/replica/partition.h"

enum { BY_POSITION = 0, BY_OFFSET = 1 };

struct find_text {
    struct request *r;
    struct partition *pt;
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

static void find_run(struct job *j)
{
    struct find_text *f = container_of(j, struct find_text, job);
    const struct klog_find_text_request *q = f->r->body;
    struct partition_view v;
    partition_view(f->pt, &v);
    enum kerr err = v.err;
    if (err == KERR_NONE)
        err = q->by == BY_POSITION ? find_position(f->pt, q->value, &f->rsp)
              : q->by == BY_OFFSET ? find_offset(f->pt, &v, q->value, &f->rsp)
                                   : KERR_INVALID_REQUEST;
    f->rsp.error_code = (int16_t)err;
}

static void find_done(struct job *j)
{
    struct find_text *f = container_of(j, struct find_text, job);
    partition_unref(f->pt);
    request_reply(f->r, &f->rsp);
}

void handle_klog_find_text(struct request *r)
{
    const struct klog_find_text_request *q = r->body;
    struct find_text *f = arena_alloc(&r->arena, sizeof *f);
    f->r = r;
    wire_defaults(&wire_klog_find_text_response, &f->rsp);
    f->rsp.base_offset = f->rsp.text_position = -1;
    f->pt = partitions_get(r->broker->partitions, q->topic, q->partition);
    if (f->pt == NULL) {
        f->rsp.error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
        request_reply(r, &f->rsp);
        return;
    }
    f->job = (struct job){ .run = find_run, .done = find_done, .loop = r->loop };
    workers_submit(r->broker->workers, &f->job);
}
