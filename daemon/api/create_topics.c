/* SPDX-License-Identifier: Apache-2.0 */
/* CreateTopics: each topic of the request is a change of its own; the answer waits for their logs to be open.
 */
#include <string.h>

#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/config_describe.h"
#include "daemon/broker.h"

static bool is_given_twice(const struct create_topics_request *q, int32_t i)
{
    for (int32_t j = 0; j < q->n_topics; j++)
        if (j != i && kstr_eq(q->topics[i].name, q->topics[j].name))
            return true;
    return false;
}

/* The partitions of the request come in any order; they must be 0 .. n-1, each once. */
static bool assign(struct cluster_change *ch, const struct create_topics_request_topics *t)
{
    for (int32_t id = 0; id < t->n_assignments; id++) {
        const struct create_topics_request_assignments *found = NULL;
        for (int32_t j = 0; j < t->n_assignments && found == NULL; j++)
            if (t->assignments[(id + j) % t->n_assignments].partition_index == id)
                found = &t->assignments[(id + j) % t->n_assignments];
        if (found == NULL)
            return false;
        cluster_change_assign(ch, found->broker_ids, found->n_broker_ids);
    }
    return true;
}

static void create_one(struct admin *a, int32_t i)
{
    const struct create_topics_request *q = a->r->body;
    const struct create_topics_request_topics *t = &q->topics[i];

    if (is_given_twice(q, i)) {
        admin_fail(a, i, KERR_INVALID_REQUEST, "the request names this topic twice");
        return;
    }
    if (t->n_assignments > CLUSTER_PARTITIONS_MAX) {
        admin_fail(a, i, KERR_INVALID_PARTITIONS, "too many partitions");
        return;
    }
    struct cluster_change *ch = cluster_change_new(t->name);
    ch->n_partitions = t->num_partitions;
    ch->replication_factor = t->replication_factor;
    ch->validate_only = q->validate_only;
    for (int32_t j = 0; j < t->n_configs; j++)
        cluster_change_add_op(ch, CONFIG_OP_SET, t->configs[j].name, t->configs[j].value);
    if (!assign(ch, t)) {
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
    struct cluster_image *img = cluster_image_get(a->r->broker->cluster);
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

    wire_defaults(&wire_create_topics_response, rsp);
    rsp->n_topics = q->n_topics;
    rsp->topics = arena_array(&r->arena, (size_t)q->n_topics + 1, sizeof *rsp->topics);
    struct admin *a = admin_begin(r, &ops, rsp, q->n_topics);
    for (int32_t i = 0; i < q->n_topics; i++)
        create_one(a, i);
    admin_wait(a, q->timeout_ms);
}
