/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ElectLeaders: the preferred replica leads again (0), or, where no replica in sync is left, one that is not (1), by which records
 * may be lost. Without a list all partitions are looked at, and those that need nothing are left out of the answer.
 */
#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/services.h"

enum { ELECTION_PREFERRED, ELECTION_UNCLEAN };

/* Partitions of one topic that the request names, or means. */
struct named {
    struct kstr topic;
    const int32_t *ids; /* NULL: the first n */
    int32_t n;
};

struct electing {
    struct elect_leaders_response rsp;
    struct elect_leaders_response_partition_result **of; /* by item */
    bool all;
};

static void result(struct admin *a, int32_t i, enum kerr err, const char *text, const struct cluster_change *ch)
{
    struct electing *e = a->rsp;
    (void)ch;

    e->of[i]->error_code = (int16_t)err;
    e->of[i]->error_message = admin_text(a, err, text);
}

static void leave_out_unneeded(struct elect_leaders_response *rsp)
{
    for (int32_t i = 0; i < rsp->n_replica_election_results; i++) {
        struct elect_leaders_response_replica_election_results *t = &rsp->replica_election_results[i];
        int32_t kept = 0;
        for (int32_t k = 0; k < t->n_partition_result; k++)
            if (t->partition_result[k].error_code != KERR_ELECTION_NOT_NEEDED)
                t->partition_result[kept++] = t->partition_result[k];
        t->n_partition_result = kept;
    }
}

static void reply(struct admin *a)
{
    struct electing *e = a->rsp;

    if (e->all)
        leave_out_unneeded(&e->rsp);
    request_reply(a->r, &e->rsp);
}

static struct named *named_all(struct request *r, const struct cluster_image *img, int32_t *ret_n)
{
    struct named *names = arena_array(&r->arena, img->n_topics + 1, sizeof *names);

    for (size_t i = 0; i < img->n_topics; i++)
        names[i] = (struct named){ arena_kstr(&r->arena, kstr_of(img->topics[i]->name)), NULL, img->topics[i]->n_partitions };
    *ret_n = (int32_t)img->n_topics;
    return names;
}

static struct named *named_by(struct request *r, int32_t *ret_n)
{
    const struct elect_leaders_request *q = r->body;
    struct named *names = arena_array(&r->arena, (size_t)q->n_topic_partitions + 1, sizeof *names);

    for (int32_t i = 0; i < q->n_topic_partitions; i++)
        names[i] = (struct named){ q->topic_partitions[i].topic, q->topic_partitions[i].partitions,
                                   q->topic_partitions[i].n_partitions };
    *ret_n = q->n_topic_partitions;
    return names;
}

static int32_t id_at(const struct named *t, int32_t k)
{
    return t->ids == NULL ? k : t->ids[k];
}

static struct electing *prepare(struct request *r, const struct named *names, int32_t n, int32_t n_items)
{
    struct electing *e = arena_alloc(&r->arena, sizeof *e);
    int32_t item = 0;

    wire_defaults(&wire_elect_leaders_response, &e->rsp);
    e->rsp.n_replica_election_results = n;
    e->rsp.replica_election_results = arena_array(&r->arena, (size_t)n + 1, sizeof *e->rsp.replica_election_results);
    e->of = arena_array(&r->arena, (size_t)n_items + 1, sizeof(*e->of));
    for (int32_t i = 0; i < n; i++) {
        struct elect_leaders_response_replica_election_results *out = &e->rsp.replica_election_results[i];
        out->topic = names[i].topic;
        out->n_partition_result = names[i].n;
        out->partition_result = arena_array(&r->arena, (size_t)names[i].n + 1, sizeof *out->partition_result);
        for (int32_t k = 0; k < names[i].n; k++) {
            out->partition_result[k].partition_id = id_at(&names[i], k);
            e->of[item++] = &out->partition_result[k];
        }
    }
    return e;
}

static void elect(struct admin *a, int32_t item, struct kstr topic, int32_t id, int8_t type)
{
    if (type != ELECTION_PREFERRED && type != ELECTION_UNCLEAN) {
        admin_fail(a, item, KERR_INVALID_REQUEST, "the election type is not known");
        return;
    }
    struct cluster_change *ch = cluster_change_new(topic);
    ch->partition = id;
    ch->unclean = type == ELECTION_UNCLEAN;
    admin_change(a, item, ch, cluster_elect_leader);
}

void handle_elect_leaders(struct request *r)
{
    static const struct admin_ops ops = { result, reply };
    const struct elect_leaders_request *q = r->body;
    struct cluster_image *img = cluster_image_get(r->services->cluster);
    bool all = q->n_topic_partitions < 0;
    int32_t n, item = 0;
    int64_t n_items = 0;
    struct named *names = all ? named_all(r, img, &n) : named_by(r, &n);

    cluster_image_put(img);
    for (int32_t i = 0; i < n; i++)
        n_items += names[i].n;
    if (admin_refuses(r, (int32_t)MIN(n_items, (int64_t)INT32_MAX)))
        return;
    struct electing *e = prepare(r, names, n, (int32_t)n_items);
    e->all = all;
    struct admin *a = admin_begin(r, &ops, e, (int32_t)n_items);
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < names[i].n; k++)
            elect(a, item++, names[i].topic, id_at(&names[i], k), q->election_type);
    admin_wait(a, q->timeout_ms);
}
