/* SPDX-License-Identifier: Apache-2.0 */
/* DeleteTopics, by name or (6+) by id. The answer comes when the topics are gone; their files may go a little
 * later. */
#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/services.h"

static void delete_by_name(struct admin *a, int32_t i, struct kstr name)
{
    admin_change(a, i, cluster_change_new(name), cluster_delete_topic);
}

static void delete_by_id(struct admin *a, int32_t i, const struct uuid *id)
{
    struct cluster_image *img = cluster_image_get(a->r->services->cluster);
    const struct cluster_topic *t = cluster_image_topic_by_id(img, id);

    if (t == NULL) {
        admin_fail(a, i, KERR_UNKNOWN_TOPIC_ID, NULL);
    } else {
        struct delete_topics_response *rsp = a->rsp;
        struct cluster_change *ch = cluster_change_new(kstr_of(t->name));
        rsp->responses[i].name = arena_kstr(&a->r->arena, kstr_of(t->name));
        ch->topic_id = *id; /* not another one that took the name meanwhile */
        admin_change(a, i, ch, cluster_delete_topic);
    }
    cluster_image_put(img);
}

/* What each topic of the request is called by, to find those it names twice. */
static struct kstr topic_key(const struct request *r, int32_t i)
{
    const struct delete_topics_request *q = r->body;

    if (r->api_version < 6)
        return q->topic_names[i];
    const struct delete_topics_request_topics *t = &q->topics[i];
    return kstr_is_null(t->name) ? kstr_bytes((const char *)t->topic_id.b, sizeof t->topic_id.b) : t->name;
}

static const bool *find_duplicates(struct request *r, int32_t n)
{
    struct kstr *keys = arena_array(&r->arena, (size_t)n + 1, sizeof *keys);

    for (int32_t i = 0; i < n; i++)
        keys[i] = topic_key(r, i);
    return admin_duplicates(&r->arena, keys, n);
}

static void delete_one(struct admin *a, int32_t i)
{
    const struct delete_topics_request *q = a->r->body;
    struct delete_topics_response *rsp = a->rsp;
    const struct delete_topics_request_topics *t = &q->topics[i];

    rsp->responses[i].name = t->name;
    rsp->responses[i].topic_id = t->topic_id;
    bool by_id = !uuid_is_zero(&t->topic_id);
    if (by_id == !kstr_is_null(t->name))
        admin_fail(a, i, KERR_INVALID_REQUEST, "give either the name of a topic or its id");
    else if (by_id)
        delete_by_id(a, i, &t->topic_id);
    else
        delete_by_name(a, i, t->name);
}

static void result(struct admin *a, int32_t i, enum kerr err, const char *text,
                   const struct cluster_change *ch)
{
    struct delete_topics_response *rsp = a->rsp;
    (void)ch;

    rsp->responses[i].error_code = (int16_t)err;
    rsp->responses[i].error_message = admin_text(a, err, text);
}

static void reply(struct admin *a)
{
    request_reply(a->r, a->rsp);
}

void handle_delete_topics(struct request *r)
{
    static const struct admin_ops ops = { result, reply };
    const struct delete_topics_request *q = r->body;
    bool names_only = r->api_version < 6;
    int32_t n = names_only ? q->n_topic_names : q->n_topics;
    struct delete_topics_response *rsp = arena_alloc(&r->arena, sizeof *rsp);

    if (admin_refuses(r, n))
        return;
    wire_defaults(&wire_delete_topics_response, rsp);
    rsp->n_responses = n;
    rsp->responses = arena_array(&r->arena, (size_t)n + 1, sizeof *rsp->responses);
    const bool *duplicate = find_duplicates(r, n);
    struct admin *a = admin_begin(r, &ops, rsp, n);
    for (int32_t i = 0; i < n; i++) {
        rsp->responses[i].name = names_only ? q->topic_names[i] : q->topics[i].name;
        if (duplicate[i]) {
            admin_fail(a, i, KERR_INVALID_REQUEST, "the request names this topic twice");
        } else if (names_only) {
            delete_by_name(a, i, q->topic_names[i]);
        } else {
            delete_one(a, i);
        }
    }
    admin_wait(a, q->timeout_ms);
}
