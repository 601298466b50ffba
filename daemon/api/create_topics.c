/* SPDX-License-Identifier: Apache-2.0 */
/* CreateTopics: each topic of the request is a change of its own; the answer waits for their logs to be open.
 */
#include <string.h>

#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/config_describe.h"
#include "daemon/api/services.h"

/* The partitions of the request come in any order; they must be 0 .. n-1, each once. */
static bool assign(struct arena *a, struct cluster_change *ch, const struct create_topics_request_topics *t)
{
    int32_t n = t->n_assignments;
    const struct create_topics_request_assignments **by_id = arena_array(a, (size_t)n + 1, sizeof(*by_id));

    for (int32_t i = 0; i < n; i++) {
        int32_t id = t->assignments[i].partition_index;
        if (id < 0 || id >= n || by_id[id] != NULL)
            return false;
        by_id[id] = &t->assignments[i];
    }
    for (int32_t id = 0; id < n; id++)
        cluster_change_assign(ch, by_id[id]->broker_ids, by_id[id]->n_broker_ids);
    return true;
}

static int32_t partitions_asked(const struct create_topics_request_topics *t)
{
    return MAX(1, MAX(t->num_partitions, t->n_assignments));
}

/* *left: partitions that the request may still make. */
static void create_one(struct admin *a, int32_t i, bool duplicate, int32_t *left)
{
    const struct create_topics_request *q = a->r->body;
    const struct create_topics_request_topics *t = &q->topics[i];

    if (duplicate) {
        admin_fail(a, i, KERR_INVALID_REQUEST, "the request names this topic twice");
        return;
    }
    if (partitions_asked(t) > CLUSTER_PARTITIONS_MAX) {
        admin_fail(a, i, KERR_INVALID_PARTITIONS, "a topic has 1 to 10000 partitions");
        return;
    }
    if (partitions_asked(t) > *left) {
        admin_fail(a, i, KERR_POLICY_VIOLATION,
                   "one request may make 10000 partitions: ask for this topic in another");
        return;
    }
    *left -= partitions_asked(t);

    struct cluster_change *ch = cluster_change_new(t->name);
    ch->n_partitions = t->num_partitions;
    ch->replication_factor = t->replication_factor;
    ch->validate_only = q->validate_only;
    for (int32_t j = 0; j < t->n_configs; j++)
        cluster_change_add_op(ch, CONFIG_OP_SET, t->configs[j].name, t->configs[j].value);
    if (!assign(&a->r->arena, ch, t)) {
        cluster_change_free(ch);
        admin_fail(a, i, KERR_INVALID_REPLICA_ASSIGNMENT,
                   "the assignment must have the partitions 0 to n-1, each once");
        return;
    }
    admin_change(a, i, ch, cluster_create_topic);
}

/* ---- the answer ---- */

static void fill_configs(struct arena *a, const struct cluster_topic *t, const struct cluster_defaults *d,
                         struct create_topics_response_topics *out)
{
    out->configs = arena_array(a, topic_config_table.n, sizeof *out->configs);
    for (size_t i = 0; i < topic_config_table.n; i++) {
        struct describe_configs_response_configs c = { 0 };
        config_describe_topic(a, &topic_config_table.keys[i], t->config, d, false, false, &c);
        out->configs[out->n_configs++] = (struct create_topics_response_configs){
            .name = c.name,
            .value = c.value,
            .config_source = c.config_source,
        };
    }
}

static void result(struct admin *a, int32_t i, enum kerr err, const char *text,
                   const struct cluster_change *ch)
{
    const struct create_topics_request *q = a->r->body;
    struct create_topics_response *rsp = a->rsp;
    struct create_topics_response_topics *out = &rsp->topics[i];

    out->name = q->topics[i].name;
    out->error_code = (int16_t)err;
    out->error_message = admin_text(a, err, text);
    out->num_partitions = out->replication_factor = -1;
    if (err != KERR_NONE)
        return;
    out->num_partitions = ch->n_partitions;
    out->replication_factor = (int16_t)ch->replication_factor;
    if (q->validate_only)
        return;
    out->topic_id = ch->topic_id;
    struct cluster_image *img = cluster_image_get(a->r->services->cluster);
    const struct cluster_topic *t = cluster_image_topic_by_id(img, &ch->topic_id);
    if (t != NULL)
        fill_configs(&a->r->arena, t, img->defaults, out);
    cluster_image_put(img);
}

static void reply(struct admin *a)
{
    request_reply(a->r, a->rsp);
}

void handle_create_topics(struct request *r)
{
    static const struct admin_ops ops = { result, reply };
    const struct create_topics_request *q = r->body;
    struct create_topics_response *rsp = arena_alloc(&r->arena, sizeof *rsp);

    if (admin_refuses(r, q->n_topics))
        return;
    wire_defaults(&wire_create_topics_response, rsp);
    rsp->n_topics = q->n_topics;
    rsp->topics = arena_array(&r->arena, (size_t)q->n_topics + 1, sizeof *rsp->topics);
    struct kstr *names = arena_array(&r->arena, (size_t)q->n_topics + 1, sizeof *names);
    for (int32_t i = 0; i < q->n_topics; i++)
        names[i] = q->topics[i].name;
    const bool *duplicate = admin_duplicates(&r->arena, names, q->n_topics);

    int32_t left = CLUSTER_PARTITIONS_MAX;
    struct admin *a = admin_begin(r, &ops, rsp, q->n_topics);
    for (int32_t i = 0; i < q->n_topics; i++)
        create_one(a, i, duplicate[i], &left);
    admin_wait(a, q->timeout_ms);
}
