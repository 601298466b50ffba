/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OffsetDelete: single positions of a group, but not in topics that its members subscribe to. What was never
 * committed is deleted just as well.
 */
#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/api/services.h"
#include "lib/base/check.h"

struct offset_delete { /* in the waiter's arena */
    struct group_waiter *w;
    struct offset_delete_response rsp;
    int32_t n_left; /* topics under way, and one for the handler; under the shard's lock */
};
struct topic_delete {
    struct offset_delete *all;
    struct offset_delete_response_topics *topic;
};

static void one_less(struct offset_delete *d)
{
    if (--d->n_left == 0)
        group_waiter_answer(d->w);
}

static void set_codes(struct offset_delete_response_topics *t, enum kerr err)
{
    for (int32_t i = 0; i < t->n_partitions; i++)
        if (t->partitions[i].error_code == KERR_NONE)
            t->partitions[i].error_code = (int16_t)err;
}

static void on_deleted(void *arg, struct group_entry *e, enum kerr err, int64_t base_offset)
{
    struct topic_delete *td = arg;

    (void)e;
    (void)base_offset;
    set_codes(td->topic, err);
    one_less(td->all);
}

static void delete_topic(struct offset_delete *d, struct group_entry *e,
                         struct offset_delete_response_topics *t)
{
    struct topic_delete *td = arena_alloc(&d->w->arena, sizeof *td);
    int32_t *partitions = arena_array(&d->w->arena, (size_t)t->n_partitions, sizeof *partitions), n = 0;

    for (int32_t i = 0; i < t->n_partitions; i++)
        if (t->partitions[i].error_code == KERR_NONE)
            partitions[n++] = t->partitions[i].partition_index;
    *td = (struct topic_delete){ d, t };
    d->n_left++;
    group_delete_offsets(e, group_text(&d->w->arena, t->name), NULL, partitions, n, on_deleted, td);
}

/* A group with members may lose only what none of them reads; and only of consumers is it known what they
 * read. */
static enum kerr delete_from(struct offset_delete *d, struct group_entry *e)
{
    struct group_topics subscribed = { .known = true };

    if (e == NULL)
        return KERR_GROUP_ID_NOT_FOUND;
    if (e->group->state != GROUP_EMPTY) {
        if (e->group->protocol_type == NULL || strcmp(e->group->protocol_type, "consumer") != 0)
            return KERR_NON_EMPTY_GROUP;
        group_topics_init(&subscribed, e->group);
    }
    for (int32_t i = 0; i < d->rsp.n_topics; i++) {
        struct offset_delete_response_topics *t = &d->rsp.topics[i];
        if (group_topics_has(&subscribed, group_text(&d->w->arena, t->name)))
            set_codes(t, KERR_GROUP_SUBSCRIBED_TO_TOPIC);
        else
            delete_topic(d, e, t);
    }
    group_topics_done(&subscribed);
    return KERR_NONE;
}

static void fill_topic(struct offset_delete *d, const struct cluster_image *img,
                       const struct offset_delete_request_topics *q,
                       struct offset_delete_response_topics *out)
{
    out->name = arena_kstr(&d->w->arena, q->name);
    out->n_partitions = q->n_partitions;
    out->partitions = arena_array(&d->w->arena, (size_t)q->n_partitions, sizeof *out->partitions);
    for (int32_t i = 0; i < q->n_partitions; i++) {
        int32_t partition = q->partitions[i].partition_index;
        out->partitions[i].partition_index = partition;
        if (!cluster_image_has_partition(img, q->name, partition))
            out->partitions[i].error_code = KERR_UNKNOWN_TOPIC_OR_PARTITION;
    }
}

static struct offset_delete *fill(struct request *r, const struct offset_delete_request *q)
{
    struct group_waiter *w = group_waiter_new(r);
    struct offset_delete *d = arena_alloc(&w->arena, sizeof *d);
    struct cluster_image *img = cluster_image_get(r->services->cluster);

    d->w = w;
    d->n_left = 1;
    wire_defaults(&wire_offset_delete_response, &d->rsp);
    d->rsp.n_topics = q->n_topics;
    d->rsp.topics = arena_array(&w->arena, (size_t)q->n_topics, sizeof *d->rsp.topics);
    for (int32_t i = 0; i < q->n_topics; i++)
        fill_topic(d, img, &q->topics[i], &d->rsp.topics[i]);
    cluster_image_put(img);
    w->response = &d->rsp;
    return d;
}

void handle_offset_delete(struct request *r)
{
    const struct offset_delete_request *q = r->body;
    struct offset_delete *d = fill(r, q);
    struct group_lease l;

    enum kerr err = group_enter_named(r->services->coordinator, q->group_id, false, &l);
    if (err != KERR_NONE) {
        d->rsp.error_code = (int16_t)err;
        d->rsp.n_topics = 0;
        group_waiter_answer(d->w);
        return;
    }
    err = delete_from(d, l.e);
    if (err != KERR_NONE) {
        d->rsp.error_code = (int16_t)err;
        d->rsp.n_topics = 0;
    }
    one_less(d);
    coordinator_leave(&l);
}
