/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata: brokers, topics, leaders, from the cluster's image. A named topic that is not there and may be
 * created is created first; the answer then has it finished. On the session's loop.
 */
#include <limits.h>
#include <string.h>

#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "lib/base/mem.h"

enum {
    CREATE_TIMEOUT_MS = 30000,
    CREATE_MAX = 1000,      /* topics that one request may make; the others are unknown to it */
    ON_LOOP_MAX = 2000,     /* topics and partitions of an answer that a reactor makes itself */
    ITEM_BYTES = 256,       /* what one of them takes while the answer is made, about */
    SORT_FROM = 32,         /* topics named by id */
    LIST_BYTES = 16,        /* an empty list in the arena */
    HOST_BYTES_MAX = 1024,  /* of a broker's register */
};

struct metadata {
    struct metadata_response rsp;
    const enum kerr *errs; /* what creating each topic of the request came to; NULL: nobody tried */
    const char *host;      /* where this client reaches this broker */
    int32_t port;
};

static bool wants_all(const struct request *r)
{
    const struct metadata_request *q = r->body;

    return r->api_version == 0 ? q->n_topics <= 0 : q->n_topics < 0;
}

/* ---- partitions ---- */

static int32_t *list(struct arena *a, int32_t n)
{
    return arena_array(a, (size_t)n + 1, sizeof(int32_t));
}

static void fill_partition(struct request *r, const struct cluster_image *img, int32_t id,
                           const struct cluster_partition *st, struct metadata_response_partitions *p)
{
    p->partition_index = id;
    p->leader_epoch = st->leader_epoch;
    p->replica_nodes = list(&r->arena, st->n_replicas);
    p->isr_nodes = list(&r->arena, st->n_isr);
    p->offline_replicas = list(&r->arena, st->n_replicas);
    for (int32_t i = 0; i < st->n_replicas; i++) {
        p->replica_nodes[p->n_replica_nodes++] = st->replicas[i];
        if (cluster_image_broker(img, st->replicas[i]) == NULL)
            p->offline_replicas[p->n_offline_replicas++] = st->replicas[i];
    }
    for (int32_t i = 0; i < st->n_isr; i++)
        if (cluster_image_broker(img, st->isr[i]) != NULL)
            p->isr_nodes[p->n_isr_nodes++] = st->isr[i];

    bool led = cluster_image_leader(img, st) != NULL;
    p->leader_id = led ? st->leader : -1;
    p->error_code = led ? KERR_NONE : KERR_LEADER_NOT_AVAILABLE;
}

static void fill_topic(struct request *r, const struct cluster_image *img, const struct cluster_topic *t,
                       struct metadata_response_topics *out)
{
    const struct metadata_request *q = r->body;

    out->error_code = KERR_NONE;
    out->name = arena_kstr(&r->arena, kstr_of(t->name));
    out->topic_id = t->id;
    out->is_internal = t->internal;
    out->n_partitions = t->n_partitions;
    out->partitions = arena_array(&r->arena, (size_t)t->n_partitions + 1, sizeof *out->partitions);
    for (int32_t i = 0; i < t->n_partitions; i++)
        fill_partition(r, img, i, cluster_topic_partition(t, i), &out->partitions[i]);
    if (q->include_topic_authorized_operations)
        out->topic_authorized_operations = TOPIC_OPERATIONS;
}

/* ---- topics ---- */

static bool is_by_id(const struct metadata_request_topics *q)
{
    return q->name.n < 0 && !uuid_is_zero(&q->topic_id);
}

static const struct cluster_topic *find(const struct cluster_image *img,
                                        const struct metadata_request_topics *q)
{
    return is_by_id(q) ? cluster_image_topic_by_id(img, &q->topic_id) : cluster_image_topic(img, q->name);
}

static int compare_ids(const void *a, const void *b)
{
    const struct cluster_topic *x = *(struct cluster_topic *const *)a, *y = *(struct cluster_topic *const *)b;
    return memcmp(x->id.b, y->id.b, sizeof x->id.b);
}

static int compare_to_id(const void *key, const void *elem)
{
    const struct cluster_topic *t = *(struct cluster_topic *const *)elem;
    return memcmp(((const struct uuid *)key)->b, t->id.b, sizeof t->id.b);
}

/* The image's topics by id, for a request that names many by theirs; NULL when one by one is as good. */
static struct cluster_topic **sort_by_id(struct request *r, const struct cluster_image *img)
{
    const struct metadata_request *q = r->body;
    int32_t n = 0;

    for (int32_t i = 0; i < q->n_topics && n < SORT_FROM; i++)
        n += is_by_id(&q->topics[i]);
    if (n < SORT_FROM || img->n_topics == 0)
        return NULL;
    struct cluster_topic **sorted = arena_dup(&r->arena, img->topics, img->n_topics * sizeof(*sorted));
    qsort(sorted, img->n_topics, sizeof(*sorted), compare_ids);
    return sorted;
}

static const struct cluster_topic *find_in(const struct cluster_image *img, struct cluster_topic *const *by_id,
                                           const struct metadata_request_topics *q)
{
    if (by_id == NULL || !is_by_id(q))
        return find(img, q);
    struct cluster_topic *const *t = bsearch(&q->topic_id, by_id, img->n_topics, sizeof(*by_id), compare_to_id);
    return t == NULL ? NULL : *t;
}

static enum kerr error_of_missing(const struct metadata_request_topics *q)
{
    if (is_by_id(q))
        return KERR_UNKNOWN_TOPIC_ID;
    return topic_name_check(q->name, NULL) != KERR_NONE ? KERR_INVALID_TOPIC_EXCEPTION
                                                        : KERR_UNKNOWN_TOPIC_OR_PARTITION;
}

/* err: what creating it came to; NONE if nobody tried. */
static void fill_missing(const struct request *r, const struct metadata_request_topics *q, enum kerr err,
                         struct metadata_response_topics *out)
{
    out->error_code = (int16_t)(err != KERR_NONE ? err : error_of_missing(q));
    out->name = q->name.n < 0 && r->api_version < 12 ? kstr_of("") : q->name;
    out->topic_id = q->topic_id;
    out->is_internal = kstr_eqz(q->name, "__consumer_offsets");
}

static const bool *find_repeated(struct request *r, const struct metadata_request *q)
{
    struct kstr *keys = arena_array(&r->arena, (size_t)q->n_topics + 1, sizeof *keys);

    for (int32_t i = 0; i < q->n_topics; i++)
        keys[i] = is_by_id(&q->topics[i])
                      ? kstr_bytes((const char *)q->topics[i].topic_id.b, sizeof q->topics[i].topic_id.b)
                      : q->topics[i].name;
    return admin_repeated(&r->arena, keys, q->n_topics);
}

/* What a topic takes in an answer. */
static size_t topic_bytes(const struct cluster_topic *t)
{
    size_t n = sizeof(struct metadata_response_topics) + (t == NULL ? 0 : LIST_BYTES + strlen(t->name));

    for (int32_t i = 0; t != NULL && i < t->n_partitions; i++) {
        const struct cluster_partition *p = cluster_topic_partition(t, i);
        n += sizeof(struct metadata_response_partitions) + 3 * LIST_BYTES +
             sizeof(int32_t) * (size_t)(2 * p->n_replicas + p->n_isr);
    }
    return n;
}

/* False: the answer would be too large. What is asked for twice is answered once, as Kafka does. */
static bool fill_topics(struct request *r, const struct cluster_image *img, const enum kerr *errs,
                        struct metadata_response *rsp)
{
    const struct metadata_request *q = r->body;
    bool all = wants_all(r);
    int32_t n = all ? (int32_t)img->n_topics : q->n_topics;
    const bool *again = all ? NULL : find_repeated(r, q);
    struct cluster_topic *const *by_id = all ? NULL : sort_by_id(r, img);

    rsp->topics = arena_array(&r->arena, (size_t)n + 1, sizeof *rsp->topics);
    for (int32_t i = 0; i < n; i++) {
        const struct cluster_topic *t = all ? img->topics[i] : find_in(img, by_id, &q->topics[i]);
        if (again != NULL && again[i])
            continue;
        if (!request_answer_room(r, topic_bytes(t)))
            return false;
        struct metadata_response_topics *out = &rsp->topics[rsp->n_topics++];
        out->topic_authorized_operations = INT32_MIN;
        if (t != NULL)
            fill_topic(r, img, t, out);
        else
            fill_missing(r, &q->topics[i], errs == NULL ? KERR_NONE : errs[i], out);
    }
    return true;
}

/* ---- brokers ---- */

static size_t brokers_bytes(const struct cluster_image *img)
{
    size_t n = 0;

    for (size_t i = 0; i < img->n_brokers; i++)
        n += sizeof(struct metadata_response_brokers) + 2 * LIST_BYTES + HOST_BYTES_MAX +
             (img->brokers[i].rack == NULL ? 0 : strlen(img->brokers[i].rack));
    return n;
}

static bool fill_brokers(struct request *r, const struct cluster_image *img, struct metadata *m)
{
    struct metadata_response *rsp = &m->rsp;

    if (!request_answer_room(r, brokers_bytes(img)))
        return false;
    rsp->brokers = arena_array(&r->arena, img->n_brokers, sizeof *rsp->brokers);
    for (size_t i = 0; i < img->n_brokers; i++) {
        const struct cluster_broker *b = &img->brokers[i];
        const char *host = m->host;
        int32_t port = m->port;
        if (b->id != r->services->id && !answer_broker_address(r, b, &host, &port))
            continue;
        rsp->brokers[rsp->n_brokers++] = (struct metadata_response_brokers){
            .node_id = b->id,
            .host = kstr_of(b->id == r->services->id ? host : arena_strdup(&r->arena, host)),
            .port = port,
            .rack = arena_kstr(&r->arena, kstr_of(b->rack)),
        };
    }
    return true;
}

/* r->op: struct metadata. On the loop or on a worker. The image is given back before the answer is encoded, so that
 * nothing in the answer may point into it. */
static const void *answer(struct request *r, const char **ret_why)
{
    const struct metadata_request *q = r->body;
    struct cluster *c = r->services->cluster;
    struct cluster_image *img = cluster_image_get(c);
    struct metadata *m = r->op;
    struct metadata_response *rsp = &m->rsp;

    rsp->cluster_id = kstr_of(cluster_id(c));
    rsp->controller_id = img->controller_id;
    if (q->include_cluster_authorized_operations)
        rsp->cluster_authorized_operations = CLUSTER_OPERATIONS;
    bool whole = fill_brokers(r, img, m) && fill_topics(r, img, m->errs, rsp);
    cluster_image_put(img);
    if (whole)
        return rsp;
    *ret_why = "the Metadata answer it asked for is too large: ask for fewer topics at once";
    return NULL;
}

static int64_t size_of_answer(struct request *r)
{
    const struct metadata_request *q = r->body;
    struct cluster_image *img = cluster_image_get(r->services->cluster);
    bool all = wants_all(r);
    int64_t n = all ? (int64_t)img->n_topics : q->n_topics;

    for (size_t i = 0; all && i < img->n_topics; i++)
        n += img->topics[i]->n_partitions;
    for (int32_t i = 0; !all && i < q->n_topics && n <= ON_LOOP_MAX; i++) {
        const struct cluster_topic *t = find(img, &q->topics[i]);
        n += t == NULL ? 0 : t->n_partitions;
    }
    cluster_image_put(img);
    return n;
}

static void reply(struct request *r, const enum kerr *errs)
{
    struct metadata *m = arena_alloc(&r->arena, sizeof *m);

    wire_defaults(&wire_metadata_response, &m->rsp);
    m->errs = errs;
    request_listener(r, &m->host, &m->port);
    r->op = m;
    int64_t n = size_of_answer(r);
    request_answer(r, n > ON_LOOP_MAX, (size_t)n * ITEM_BYTES, answer);
}

/* ---- creation ---- */

static bool may_create(const struct request *r, const struct cluster_image *img)
{
    const struct metadata_request *q = r->body;

    return !wants_all(r) && img->defaults->config.auto_create_topics_enable &&
           (r->api_version < 4 || q->allow_auto_topic_creation);
}

/* A topic is not created when the request names it by id, when its name is not legal, and when the broker makes it itself. */
static bool is_creatable(const struct cluster_image *img, const struct metadata_request_topics *q)
{
    return !is_by_id(q) && topic_name_check(q->name, NULL) == KERR_NONE &&
           cluster_image_topic(img, q->name) == NULL && !kstr_eqz(q->name, "__consumer_offsets") &&
           !kstr_eqz(q->name, "__transaction_state");
}

static void created(struct admin *a, int32_t i, enum kerr err, const char *text,
                    const struct cluster_change *ch)
{
    enum kerr *errs = a->rsp;
    (void)text;
    (void)ch;

    if (err == KERR_REQUEST_TIMED_OUT)
        err = KERR_LEADER_NOT_AVAILABLE; /* it is under way: ask again */
    errs[i] = err == KERR_TOPIC_ALREADY_EXISTS ? KERR_NONE : err;
}

static void created_all(struct admin *a)
{
    reply(a->r, a->rsp);
}

static void create_missing(struct request *r, const struct cluster_image *img)
{
    static const struct admin_ops ops = { created, created_all };
    const struct metadata_request *q = r->body;
    struct admin *a =
        admin_begin(r, &ops, arena_array(&r->arena, (size_t)q->n_topics, sizeof(enum kerr)), q->n_topics);

    for (int32_t i = 0, left = CREATE_MAX; i < q->n_topics; i++) {
        if (left > 0 && is_creatable(img, &q->topics[i])) {
            left--;
            admin_change(a, i, cluster_change_new(q->topics[i].name), cluster_create_topic);
        } else {
            admin_fail(a, i, KERR_NONE, NULL);
        }
    }
    admin_wait(a, CREATE_TIMEOUT_MS);
}

void handle_metadata(struct request *r)
{
    const struct metadata_request *q = r->body;
    struct cluster_image *img = cluster_image_get(r->services->cluster);
    bool create = false;

    if (may_create(r, img))
        for (int32_t i = 0; i < q->n_topics && !create; i++)
            create = is_creatable(img, &q->topics[i]);
    if (create)
        create_missing(r, img);
    else
        reply(r, NULL);
    cluster_image_put(img);
}
