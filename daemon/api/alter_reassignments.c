/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AlterPartitionReassignments: other replicas for partitions, or, with a null list, back to those they had. Answered when it
 * has begun; the leaders bring it to its end (daemon/meta/cluster_lead.c).
 */
#include "daemon/api/admin.h"
#include "daemon/api/api.h"

/* Where the answer of each item goes. */
struct alteration {
    struct alter_partition_reassignments_response rsp;
    struct alter_partition_reassignments_response_partitions **of; /* by item */
};

static void result(struct admin *a, int32_t i, enum kerr err, const char *text, const struct cluster_change *ch)
{
    struct alteration *al = a->rsp;
    (void)ch;

    al->of[i]->error_code = (int16_t)err;
    al->of[i]->error_message = admin_text(a, err, text);
}

static void reply(struct admin *a)
{
    struct alteration *al = a->rsp;

    request_reply(a->r, &al->rsp);
}

static void begin_one(struct admin *a, int32_t i, struct kstr topic,
                      const struct alter_partition_reassignments_request_partitions *p, bool any_number)
{
    struct cluster_change *ch = cluster_change_new(topic);

    ch->partition = p->partition_index;
    ch->same_replication_factor = !any_number;
    if (p->n_replicas >= 0)
        cluster_change_assign(ch, p->replicas, p->n_replicas);
    admin_change(a, i, ch, cluster_reassign_partition);
}

static int32_t count(const struct alter_partition_reassignments_request *q)
{
    int64_t n = 0;

    for (int32_t i = 0; i < q->n_topics; i++)
        n += q->topics[i].n_partitions;
    return (int32_t)MIN(n, (int64_t)INT32_MAX);
}

static struct alteration *prepare(struct request *r, int32_t n)
{
    const struct alter_partition_reassignments_request *q = r->body;
    struct alteration *al = arena_alloc(&r->arena, sizeof *al);
    int32_t item = 0;

    wire_defaults(&wire_alter_partition_reassignments_response, &al->rsp);
    al->rsp.error_message = KSTR_NULL;
    al->rsp.allow_replication_factor_change = q->allow_replication_factor_change;
    al->rsp.n_responses = q->n_topics;
    al->rsp.responses = arena_array(&r->arena, (size_t)q->n_topics + 1, sizeof *al->rsp.responses);
    al->of = arena_array(&r->arena, (size_t)n + 1, sizeof(*al->of));
    for (int32_t i = 0; i < q->n_topics; i++) {
        struct alter_partition_reassignments_response_responses *out = &al->rsp.responses[i];
        out->name = q->topics[i].name;
        out->n_partitions = q->topics[i].n_partitions;
        out->partitions = arena_array(&r->arena, (size_t)out->n_partitions + 1, sizeof *out->partitions);
        for (int32_t k = 0; k < out->n_partitions; k++) {
            out->partitions[k].partition_index = q->topics[i].partitions[k].partition_index;
            al->of[item++] = &out->partitions[k];
        }
    }
    return al;
}

void handle_alter_partition_reassignments(struct request *r)
{
    static const struct admin_ops ops = { result, reply };
    const struct alter_partition_reassignments_request *q = r->body;
    int32_t n = count(q), item = 0;

    if (admin_refuses(r, n))
        return;
    struct admin *a = admin_begin(r, &ops, prepare(r, n), n);
    for (int32_t i = 0; i < q->n_topics; i++)
        for (int32_t k = 0; k < q->topics[i].n_partitions; k++)
            begin_one(a, item++, q->topics[i].name, &q->topics[i].partitions[k], q->allow_replication_factor_change);
    admin_wait(a, q->timeout_ms);
}
