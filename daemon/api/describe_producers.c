/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DescribeProducers: the idempotent producers that partitions led here remember. There may be a hundred thousand of a
 * partition, so a worker makes the answer.
 */
#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "daemon/replica/partition.h"
#include "lib/store/producers.h"

enum { ANSWER_BYTES = 1024 * 1024 }; /* some ten thousand producers: what the budget of all clients is asked for before */

struct listing {
    struct request *r;
    struct describe_producers_response_partitions *out;
    int32_t room; /* entries */
};

static void add_producer(void *arg, const struct producer_state *p)
{
    struct listing *l = arg;

    if (l->out->n_active_producers == l->room)
        return;
    l->out->active_producers[l->out->n_active_producers++] = (struct describe_producers_response_active_producers){
        .producer_id = p->id,
        .producer_epoch = p->epoch,
        .last_sequence = p->n > 0 ? p->batches[p->n - 1].last_sequence : -1,
        .last_timestamp = p->last_seen_ms,
        .coordinator_epoch = -1,
        .current_txn_start_offset = -1,
    };
}

static enum kerr describe_log(struct request *r, struct plog *log, struct describe_producers_response_partitions *out)
{
    struct listing l = { r, out, plog_n_producers(log) };
    size_t bytes = (size_t)l.room * sizeof *out->active_producers;

    if (!request_answer_room(r, bytes)) {
        out->error_message = kstr_of("the answer would be too large: ask for fewer partitions at once");
        return KERR_INVALID_REQUEST;
    }
    out->active_producers = arena_array(&r->arena, (size_t)l.room, sizeof *out->active_producers);
    plog_producers_each(log, add_producer, &l);
    return KERR_NONE;
}

static enum kerr describe(struct request *r, struct kstr topic, int32_t id,
                          struct describe_producers_response_partitions *out)
{
    const char *why = NULL;
    enum kerr err = topic_name_check(topic, &why);

    out->error_message = kstr_of(why);
    if (err != KERR_NONE)
        return err;
    struct partition *pt = partitions_get(r->services->partitions, topic, id);
    if (pt == NULL)
        return partitions_missing(r->services->partitions, topic, id);
    struct partition_view v;
    partition_view(pt, &v);
    err = v.err != KERR_NONE ? v.err : describe_log(r, pt->log, out);
    partition_unref(pt);
    return err;
}

static const void *answer(struct request *r, const char **ret_why)
{
    const struct describe_producers_request *q = r->body;
    struct describe_producers_response *rsp = arena_alloc(&r->arena, sizeof *rsp);

    (void)ret_why;
    wire_defaults(&wire_describe_producers_response, rsp);
    rsp->n_topics = q->n_topics;
    rsp->topics = arena_array(&r->arena, (size_t)q->n_topics, sizeof *rsp->topics);
    for (int32_t i = 0; i < q->n_topics; i++) {
        const struct describe_producers_request_topics *t = &q->topics[i];
        struct describe_producers_response_topics *out = &rsp->topics[i];
        out->name = t->name;
        out->n_partitions = t->n_partition_indexes;
        out->partitions = arena_array(&r->arena, (size_t)t->n_partition_indexes, sizeof *out->partitions);
        for (int32_t k = 0; k < t->n_partition_indexes; k++) {
            struct describe_producers_response_partitions *p = &out->partitions[k];
            *p = (struct describe_producers_response_partitions){ .partition_index = t->partition_indexes[k],
                                                                  .error_message = KSTR_NULL };
            p->error_code = (int16_t)describe(r, t->name, p->partition_index, p);
        }
    }
    return rsp;
}

void handle_describe_producers(struct request *r)
{
    request_answer_on_worker(r, ANSWER_BYTES, answer);
}
