/* SPDX-License-Identifier: Apache-2.0 */
/* CreatePartitions: `count` is the new total; an assignment, if any, is for the added ones. */
#include "daemon/api/admin.h"
#include "daemon/api/api.h"

static void grow_one(struct admin *a, int32_t i, bool duplicate)
{
    const struct create_partitions_request *q = a->r->body;
    const struct create_partitions_request_topics *t = &q->topics[i];

    if (duplicate) {
        admin_fail(a, i, KERR_INVALID_REQUEST, "the request names this topic twice");
        return;
    }
    if (t->n_assignments > CLUSTER_PARTITIONS_MAX) {
        admin_fail(a, i, KERR_INVALID_PARTITIONS, "too many partitions");
        return;
    }
    struct cluster_change *ch = cluster_change_new(t->name);
    ch->n_partitions = t->count;
    ch->validate_only = q->validate_only;
    for (int32_t j = 0; j < t->n_assignments; j++)
        cluster_change_assign(ch, t->assignments[j].broker_ids, t->assignments[j].n_broker_ids);
    admin_change(a, i, ch, cluster_grow_topic);
}

static void result(struct admin *a, int32_t i, enum kerr err, const char *text,
                   const struct cluster_change *ch)
{
    const struct create_partitions_request *q = a->r->body;
    struct create_partitions_response *rsp = a->rsp;
    (void)ch;

    rsp->results[i] = (struct create_partitions_response_results){
        .name = q->topics[i].name,
        .error_code = (int16_t)err,
        .error_message = admin_text(a, err, text),
    };
}

static void reply(struct admin *a)
{
    request_reply(a->r, a->rsp);
}

void handle_create_partitions(struct request *r)
{
    static const struct admin_ops ops = { result, reply };
    const struct create_partitions_request *q = r->body;
    struct create_partitions_response *rsp = arena_alloc(&r->arena, sizeof *rsp);

    if (admin_refuses(r, q->n_topics))
        return;
    wire_defaults(&wire_create_partitions_response, rsp);
    rsp->n_results = q->n_topics;
    rsp->results = arena_array(&r->arena, (size_t)q->n_topics + 1, sizeof *rsp->results);
    struct kstr *names = arena_array(&r->arena, (size_t)q->n_topics + 1, sizeof *names);
    for (int32_t i = 0; i < q->n_topics; i++)
        names[i] = q->topics[i].name;
    const bool *duplicate = admin_duplicates(&r->arena, names, q->n_topics);

    struct admin *a = admin_begin(r, &ops, rsp, q->n_topics);
    for (int32_t i = 0; i < q->n_topics; i++)
        grow_one(a, i, duplicate[i]);
    admin_wait(a, q->timeout_ms);
}
