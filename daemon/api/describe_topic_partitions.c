/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DescribeTopicPartitions (KIP-966): partitions of topics by name, a page at a time. The cursor says where a page begins
 * and the answer's where the next one does; topics may come and go between two pages. Eligible leaders beyond the
 * in-sync replicas (ELR) are not kept here, so that their lists are empty. On the session's loop, or on a worker.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/services.h"

enum {
    PAGE_PARTITIONS_MAX = 2000, /* as Kafka's max.request.partition.size.limit */
    ON_LOOP_MAX = 500,          /* topics and partitions of an answer that a reactor makes itself */
    ITEM_BYTES = 256,           /* what one of them takes while the answer is made, about */
    LIST_BYTES = 16,            /* an empty list in the arena */
};

struct page {
    struct request *r;
    struct cluster_image *img;
    struct describe_topic_partitions_response *rsp;
    int32_t left; /* partitions that still fit */
};

/* ---- which topics ---- */

static int compare_names(const void *a, const void *b)
{
    const struct kstr *x = a, *y = b;
    int c = memcmp(x->p, y->p, (size_t)MIN(x->n, y->n));
    return c != 0 ? c : (x->n > y->n) - (x->n < y->n);
}

static bool is_before_cursor(const struct describe_topic_partitions_request *q, struct kstr name)
{
    return q->has_cursor && compare_names(&name, &q->cursor.topic_name) < 0;
}

/* Sorted; once each; none before the cursor. */
static struct kstr *names_asked(struct request *r, const struct cluster_image *img, int32_t *ret_n)
{
    const struct describe_topic_partitions_request *q = r->body;
    int32_t n = q->n_topics > 0 ? q->n_topics : (int32_t)img->n_topics, kept = 0;
    struct kstr *names = arena_array(&r->arena, (size_t)n + 1, sizeof *names);

    for (int32_t i = 0; i < n; i++) {
        struct kstr name = q->n_topics > 0 ? q->topics[i].name : kstr_of(img->topics[i]->name);
        if (!is_before_cursor(q, name))
            names[kept++] = name;
    }
    if (kept > 0)
        qsort(names, (size_t)kept, sizeof *names, compare_names);
    *ret_n = 0;
    for (int32_t i = 0; i < kept; i++) {
        if (i == 0 || !kstr_eq(names[i], names[i - 1]))
            names[(*ret_n)++] = names[i];
    }
    return names;
}

static bool cursor_is_good(const struct describe_topic_partitions_request *q)
{
    bool named = q->n_topics == 0;

    for (int32_t i = 0; i < q->n_topics && !named; i++)
        named = !q->has_cursor || kstr_eq(q->topics[i].name, q->cursor.topic_name);
    return !q->has_cursor || (named && q->cursor.partition_index >= 0);
}

/* ---- the answer ---- */

static void copy_list(struct arena *a, const int32_t *from, int32_t n, int32_t **ret, int32_t *ret_n)
{
    *ret = arena_array(a, (size_t)n + 1, sizeof **ret);
    for (int32_t i = 0; i < n; i++)
        (*ret)[(*ret_n)++] = from[i];
}

static void fill_partition(struct page *pg, int32_t id, const struct cluster_partition *st,
                           struct describe_topic_partitions_response_partitions *p)
{
    struct arena *a = &pg->r->arena;

    p->partition_index = id;
    p->leader_epoch = st->leader_epoch;
    p->leader_id = cluster_image_leader(pg->img, st) != NULL ? st->leader : -1;
    copy_list(a, st->replicas, st->n_replicas, &p->replica_nodes, &p->n_replica_nodes);
    copy_list(a, st->isr, st->n_isr, &p->isr_nodes, &p->n_isr_nodes);
    p->offline_replicas = arena_array(a, (size_t)st->n_replicas + 1, sizeof *p->offline_replicas);
    for (int32_t i = 0; i < st->n_replicas; i++)
        if (cluster_image_broker(pg->img, st->replicas[i]) == NULL)
            p->offline_replicas[p->n_offline_replicas++] = st->replicas[i];
}

static size_t partition_bytes(const struct cluster_partition *st)
{
    return sizeof(struct describe_topic_partitions_response_partitions) + 3 * LIST_BYTES +
           sizeof(int32_t) * (size_t)(2 * st->n_replicas + st->n_isr);
}

static void end_page(struct page *pg, struct kstr topic, int32_t partition)
{
    pg->rsp->has_next_cursor = true;
    pg->rsp->next_cursor.topic_name = arena_kstr(&pg->r->arena, topic);
    pg->rsp->next_cursor.partition_index = partition;
}

/* Partitions [first, end) of t. */
static bool fill_topic(struct page *pg, const struct cluster_topic *t, int32_t first, int32_t end,
                       struct describe_topic_partitions_response_topics *out)
{
    struct arena *a = &pg->r->arena;

    out->name = arena_kstr(a, kstr_of(t->name));
    out->topic_id = t->id;
    out->is_internal = t->internal;
    out->partitions = arena_array(a, (size_t)(end - first) + 1, sizeof *out->partitions);
    for (int32_t i = first; i < end; i++) {
        const struct cluster_partition *p = cluster_topic_partition(t, i);
        if (!request_answer_room(pg->r, partition_bytes(p)))
            return false;
        fill_partition(pg, i, p, &out->partitions[out->n_partitions++]);
    }
    return true;
}

/* False: the answer would be too large. */
static bool add_topic(struct page *pg, struct kstr name)
{
    const struct describe_topic_partitions_request *q = pg->r->body;
    const struct cluster_topic *t = cluster_image_topic(pg->img, name);
    struct describe_topic_partitions_response_topics *out = &pg->rsp->topics[pg->rsp->n_topics++];

    out->topic_authorized_operations = TOPIC_OPERATIONS;
    if (t == NULL) {
        out->name = name;
        out->error_code = topic_name_check(name, NULL) == KERR_NONE ? KERR_UNKNOWN_TOPIC_OR_PARTITION
                                                                    : KERR_INVALID_TOPIC_EXCEPTION;
        out->is_internal = kstr_eqz(name, "__consumer_offsets");
        return true;
    }
    bool at_cursor = q->has_cursor && kstr_eq(name, q->cursor.topic_name);
    int32_t first = at_cursor ? MIN(q->cursor.partition_index, t->n_partitions) : 0;
    int32_t end = MIN(pg->left, t->n_partitions - first) + first;
    if (end < t->n_partitions)
        end_page(pg, name, end);
    pg->left -= end - first;
    return fill_topic(pg, t, first, end, out);
}

static bool fill_page(struct page *pg)
{
    int32_t n;
    const struct kstr *names = names_asked(pg->r, pg->img, &n);

    pg->rsp->topics = arena_array(&pg->r->arena, (size_t)n + 1, sizeof *pg->rsp->topics);
    for (int32_t i = 0; i < n && !pg->rsp->has_next_cursor; i++) {
        if (pg->left == 0)
            end_page(pg, names[i], 0);
        else if (!request_answer_room(pg->r, sizeof *pg->rsp->topics + LIST_BYTES + (size_t)names[i].n) ||
                 !add_topic(pg, names[i]))
            return false;
    }
    return true;
}

static void refuse_each(struct request *r, struct describe_topic_partitions_response *rsp)
{
    const struct describe_topic_partitions_request *q = r->body;

    rsp->n_topics = q->n_topics;
    rsp->topics = WIRE_NEW(&r->arena, describe_topic_partitions_response_topics, (size_t)q->n_topics + 1);
    for (int32_t i = 0; i < q->n_topics; i++) {
        rsp->topics[i].name = q->topics[i].name;
        rsp->topics[i].error_code = KERR_INVALID_REQUEST;
    }
}

static const void *answer(struct request *r, const char **ret_why)
{
    const struct describe_topic_partitions_request *q = r->body;
    struct describe_topic_partitions_response *rsp = arena_alloc(&r->arena, sizeof *rsp);

    wire_defaults(&wire_describe_topic_partitions_response, rsp);
    if (!cursor_is_good(q)) {
        refuse_each(r, rsp);
        return rsp;
    }
    struct page pg = {
        .r = r,
        .img = cluster_image_get(r->services->cluster),
        .rsp = rsp,
        .left = MAX(MIN(q->response_partition_limit, PAGE_PARTITIONS_MAX), 1),
    };
    bool whole = fill_page(&pg);
    cluster_image_put(pg.img);
    if (whole)
        return rsp;
    *ret_why = "the DescribeTopicPartitions answer it asked for is too large: ask for fewer topics at once";
    return NULL;
}

void handle_describe_topic_partitions(struct request *r)
{
    const struct describe_topic_partitions_request *q = r->body;
    struct cluster_image *img = cluster_image_get(r->services->cluster);
    int64_t n = q->n_topics > 0 ? q->n_topics : (int64_t)img->n_topics;

    cluster_image_put(img);
    n += MAX(MIN(q->response_partition_limit, PAGE_PARTITIONS_MAX), 1);
    request_answer(r, n > ON_LOOP_MAX, (size_t)n * ITEM_BYTES, answer);
}
