/* SPDX-License-Identifier: Apache-2.0 */
/* OffsetForLeaderEpoch (KIP-320): where an epoch ended, so that a reader notices a log that was cut. On the
 * session's loop; many at once on a worker. */
#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "daemon/replica/partition.h"

enum { ON_LOOP_MAX = 5000 }; /* partitions that a reactor looks up itself */

static enum kerr answer_partition(struct request *r, struct kstr topic,
                                  const struct offset_for_leader_epoch_request_partitions *q,
                                  struct offset_for_leader_epoch_response_partitions *rsp)
{
    struct partition *pt = partitions_get(r->services->partitions, topic, q->partition);
    if (pt == NULL)
        return partitions_missing(r->services->partitions, topic, q->partition);
    struct partition_view v;
    partition_view(pt, &v);
    enum kerr err = v.err != KERR_NONE ? v.err : partition_epoch_check(&v, q->current_leader_epoch);
    if (err == KERR_NONE)
        plog_epoch_end(pt->log, q->leader_epoch, &rsp->leader_epoch, &rsp->end_offset);
    partition_unref(pt);
    return err;
}

static void answer_topic(struct request *r, const struct offset_for_leader_epoch_request_topics *q,
                         struct offset_for_leader_epoch_response_topics *rsp)
{
    rsp->topic = q->topic;
    rsp->n_partitions = q->n_partitions;
    rsp->partitions = arena_array(&r->arena, (size_t)q->n_partitions, sizeof *rsp->partitions);
    for (int32_t i = 0; i < q->n_partitions; i++) {
        struct offset_for_leader_epoch_response_partitions *out = &rsp->partitions[i];
        *out = (struct offset_for_leader_epoch_response_partitions){
            .partition = q->partitions[i].partition,
            .leader_epoch = -1,
            .end_offset = -1,
        };
        out->error_code = (int16_t)answer_partition(r, q->topic, &q->partitions[i], out);
    }
}

static const void *answer(struct request *r, const char **ret_why)
{
    const struct offset_for_leader_epoch_request *q = r->body;
    struct offset_for_leader_epoch_response *rsp = arena_alloc(&r->arena, sizeof *rsp);
    (void)ret_why;
    wire_defaults(&wire_offset_for_leader_epoch_response, rsp);
    rsp->n_topics = q->n_topics;
    rsp->topics = arena_array(&r->arena, (size_t)q->n_topics, sizeof *rsp->topics);
    for (int32_t i = 0; i < q->n_topics; i++)
        answer_topic(r, &q->topics[i], &rsp->topics[i]);
    return rsp;
}

void handle_offset_for_leader_epoch(struct request *r)
{
    const struct offset_for_leader_epoch_request *q = r->body;
    int64_t n = 0;
    for (int32_t i = 0; i < q->n_topics; i++)
        n += q->topics[i].n_partitions;
    request_answer(r, n > ON_LOOP_MAX, 0, answer);
}
