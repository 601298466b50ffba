/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OffsetFetch: the positions of one group (up to version 7) or of several. It is answered in every state of a
 * group; what was never committed is -1, and no error. A group that is named twice is answered twice, as in Kafka, until
 * the answer is full. On the session's loop, or when it is long on a worker.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/api/services.h"

/* ---- one group; the answer has the shape of version 8, which versions before it are cut from ---- */

static bool fill_partition(struct request *r, const struct committed_offset *o, int32_t partition,
                           struct offset_fetch_response_groups_topics_partitions *p)
{
    if (o != NULL && o->metadata_bytes > 0 && !request_answer_room(r, (size_t)o->metadata_bytes))
        return false;
    *p = (struct offset_fetch_response_groups_topics_partitions){
        .partition_index = partition,
        .committed_offset = o != NULL ? o->offset : -1,
        .committed_leader_epoch = o != NULL && r->api_version >= 5 ? o->leader_epoch : -1,
        .metadata = o != NULL && o->metadata_bytes > 0
                        ? arena_kstr(&r->arena, kstr_bytes(o->metadata, (size_t)o->metadata_bytes))
                        : kstr_of(""),
    };
    return true;
}

/* What was committed in a topic that has gone is no position in the one that has its name now. */
static const struct committed_offset *find_position(const struct group_entry *e, const char *name,
                                                    const struct cluster_topic *t, int32_t partition)
{
    const struct committed_offset *o = e != NULL && name != NULL ? committed_find(&e->offsets, name, partition) : NULL;

    return o != NULL && (t != NULL ? committed_is_of(o, &t->id) : uuid_is_zero(&o->topic_id)) ? o : NULL;
}

/* False, as in all that fills: the answer is full. */
static bool fill_asked(struct request *r, const struct group_entry *e, const struct cluster_image *img,
                       const struct offset_fetch_request_groups *q, struct offset_fetch_response_groups *out)
{
    if (!request_answer_room(r, (size_t)q->n_topics * sizeof *out->topics))
        return false;
    out->topics = arena_array(&r->arena, (size_t)q->n_topics, sizeof *out->topics);
    for (int32_t i = 0; i < q->n_topics; i++) {
        const struct offset_fetch_request_groups_topics *t = &q->topics[i];
        enum kerr err = KERR_NONE;
        const struct cluster_topic *found = group_topic(img, r->api_version >= 10, t->name, &t->topic_id, &err);
        const char *name = found != NULL ? found->name : group_text(&r->arena, t->name);
        struct offset_fetch_response_groups_topics_partitions *p = NULL;
        if (!request_answer_room(r, (size_t)t->n_partition_indexes * sizeof *p))
            return false;
        p = arena_array(&r->arena, (size_t)t->n_partition_indexes, sizeof *p);
        for (int32_t k = 0; k < t->n_partition_indexes; k++) {
            if (!fill_partition(r, find_position(e, name, found, t->partition_indexes[k]), t->partition_indexes[k],
                                &p[k]))
                return false;
            if (err == KERR_UNKNOWN_TOPIC_ID)
                p[k].error_code = (int16_t)err;
        }
        out->topics[out->n_topics++] =
            (struct offset_fetch_response_groups_topics){ t->name, t->topic_id, p, t->n_partition_indexes };
    }
    return true;
}

static int by_topic_and_partition(const void *a, const void *b)
{
    const struct committed_offset *x = *(const struct committed_offset *const *)a,
                                  *y = *(const struct committed_offset *const *)b;
    int order = strcmp(x->topic, y->topic);

    return order != 0 ? order : (x->partition > y->partition) - (x->partition < y->partition);
}

static struct offset_fetch_response_groups_topics *
next_topic(struct request *r, struct offset_fetch_response_groups *out, const char *topic,
           const struct cluster_topic *found, size_t room)
{
    struct offset_fetch_response_groups_topics *t = &out->topics[out->n_topics++];

    t->name = kstr_of(arena_strdup(&r->arena, topic));
    t->topic_id = found != NULL ? found->id : (struct uuid){ { 0 } };
    t->partitions = arena_array(&r->arena, room, sizeof *t->partitions);
    return t;
}

/* From version 10 on topics are named by id, so nothing can be told of a topic that has none. */
static bool can_be_told(const struct request *r, const struct cluster_image *img, const struct committed_offset *o)
{
    const struct cluster_topic *t = cluster_image_topic(img, kstr_of(o->topic));

    return t != NULL ? committed_is_of(o, &t->id) : uuid_is_zero(&o->topic_id) && r->api_version < 10;
}

static bool fill_all(struct request *r, const struct group_entry *e, const struct cluster_image *img,
                     struct offset_fetch_response_groups *out)
{
    size_t n = e != NULL ? HASH_COUNT(e->offsets.table) : 0, i = 0;
    size_t one_bytes = sizeof(struct committed_offset *) + sizeof *out->topics + sizeof *out->topics->partitions;

    if (!request_answer_room(r, n * one_bytes))
        return false;
    const struct committed_offset **list = arena_array(&r->arena, n + 1, sizeof *list);

    for (const struct committed_offset *o = n > 0 ? e->offsets.table : NULL; o != NULL; o = o->hh.next)
        if (can_be_told(r, img, o))
            list[i++] = o;
    n = i;
    qsort(list, n, sizeof *list, by_topic_and_partition);
    out->topics = arena_array(&r->arena, n, sizeof *out->topics);
    for (i = 0; i < n;) {
        size_t end = i;
        while (end < n && strcmp(list[end]->topic, list[i]->topic) == 0)
            end++;
        struct offset_fetch_response_groups_topics *t =
            next_topic(r, out, list[i]->topic, cluster_image_topic(img, kstr_of(list[i]->topic)), end - i);
        for (; i < end; i++)
            if (!fill_partition(r, list[i], list[i]->partition, &t->partitions[t->n_partitions++]))
                return false;
    }
    return true;
}

/* Before version 2 there is no place for a group's error but its partitions. */
static void fail_partitions(struct offset_fetch_response_groups *out, enum kerr err)
{
    for (int32_t i = 0; i < out->n_topics; i++)
        for (int32_t k = 0; k < out->topics[i].n_partitions; k++)
            out->topics[i].partitions[k].error_code = (int16_t)err;
}

static void fetch_group(struct request *r, const struct offset_fetch_request_groups *q,
                        struct offset_fetch_response_groups *out)
{
    struct group_lease l = { NULL, NULL };

    *out = (struct offset_fetch_response_groups){ .group_id = q->group_id };
    enum kerr err = coordinator_enter(r->services->coordinator, q->group_id, false, &l);
    out->error_code = (int16_t)err;
    if (err != KERR_NONE && r->api_version >= 2)
        return;
    struct cluster_image *img = cluster_image_get(r->services->cluster);
    bool fits = q->n_topics >= 0 ? fill_asked(r, l.e, img, q, out) : fill_all(r, l.e, img, out);
    cluster_image_put(img);
    if (err == KERR_NONE)
        coordinator_leave(&l);
    if (err == KERR_NONE && !fits)
        err = KERR_INVALID_REQUEST; /* GROUP_ANSWER_TOO_LARGE, if there were a place to say so */
    out->error_code = (int16_t)err;
    if (!fits && r->api_version >= 2)
        out->n_topics = 0;
    if (err != KERR_NONE)
        fail_partitions(out, err);
}

/* ---- versions 1-7 ---- */

static struct offset_fetch_request_groups one_group(struct request *r, const struct offset_fetch_request *q)
{
    struct offset_fetch_request_groups g = { .group_id = q->group_id, .n_topics = q->n_topics };

    g.topics = arena_array(&r->arena, (size_t)MAX(q->n_topics, 0), sizeof *g.topics);
    for (int32_t i = 0; i < q->n_topics; i++)
        g.topics[i] =
            (struct offset_fetch_request_groups_topics){ .name = q->topics[i].name,
                                                         .partition_indexes = q->topics[i].partition_indexes,
                                                         .n_partition_indexes = q->topics[i].n_partition_indexes };
    return g;
}

static void cut_partitions(struct request *r, const struct offset_fetch_response_groups_topics *t,
                           struct offset_fetch_response_topics *out)
{
    out->name = t->name;
    out->n_partitions = t->n_partitions;
    out->partitions = arena_array(&r->arena, (size_t)t->n_partitions, sizeof *out->partitions);
    for (int32_t i = 0; i < t->n_partitions; i++)
        out->partitions[i] = (struct offset_fetch_response_partitions){
            .partition_index = t->partitions[i].partition_index,
            .committed_offset = t->partitions[i].committed_offset,
            .committed_leader_epoch = t->partitions[i].committed_leader_epoch,
            .metadata = t->partitions[i].metadata,
            .error_code = t->partitions[i].error_code,
        };
}

static void fetch_one(struct request *r, const struct offset_fetch_request *q,
                      struct offset_fetch_response *rsp)
{
    struct offset_fetch_request_groups g = one_group(r, q);
    struct offset_fetch_response_groups out;

    fetch_group(r, &g, &out);
    rsp->error_code = r->api_version >= 2 ? out.error_code : KERR_NONE;
    rsp->n_topics = out.n_topics;
    rsp->topics = arena_array(&r->arena, (size_t)out.n_topics, sizeof *rsp->topics);
    for (int32_t i = 0; i < out.n_topics; i++)
        cut_partitions(r, &out.topics[i], &rsp->topics[i]);
}

static const void *answer(struct request *r, const char **ret_why)
{
    const struct offset_fetch_request *q = r->body;
    struct offset_fetch_response *rsp = arena_alloc(&r->arena, sizeof *rsp);

    wire_defaults(&wire_offset_fetch_response, rsp);
    if (r->api_version < 8) {
        fetch_one(r, q, rsp);
        return rsp;
    }
    size_t least = 0; /* when each is only named, and refused */
    for (int32_t i = 0; i < q->n_groups; i++)
        least += 16 + (size_t)q->groups[i].group_id.n;
    if (!request_answer_room(r, least)) {
        *ret_why = GROUP_ANSWER_TOO_LARGE;
        return NULL;
    }
    rsp->n_groups = q->n_groups;
    rsp->groups = arena_array(&r->arena, (size_t)q->n_groups, sizeof *rsp->groups);
    for (int32_t i = 0; i < q->n_groups; i++)
        fetch_group(r, &q->groups[i], &rsp->groups[i]);
    return rsp;
}

/* ---- is it long? ---- */

static int64_t positions_of(struct request *r, struct kstr group_id)
{
    struct group_lease l;

    if (coordinator_enter(r->services->coordinator, group_id, false, &l) != KERR_NONE)
        return 0;
    int64_t n = l.e != NULL ? HASH_COUNT(l.e->offsets.table) : 0;
    coordinator_leave(&l);
    return n;
}

static bool is_long(struct request *r)
{
    const struct offset_fetch_request *q = r->body;
    int64_t n = q->n_groups;

    if (r->api_version < 8) {
        for (int32_t i = 0; i < q->n_topics; i++)
            n += q->topics[i].n_partition_indexes;
        return n + (q->n_topics < 0 ? positions_of(r, q->group_id) : q->n_topics) > GROUP_ON_LOOP_NAMES;
    }
    for (int32_t i = 0; i < q->n_groups && n <= GROUP_ON_LOOP_NAMES; i++) {
        const struct offset_fetch_request_groups *g = &q->groups[i];
        for (int32_t k = 0; k < g->n_topics; k++)
            n += g->topics[k].n_partition_indexes;
        n += g->n_topics < 0 ? positions_of(r, g->group_id) : g->n_topics;
    }
    return n > GROUP_ON_LOOP_NAMES;
}

void handle_offset_fetch(struct request *r)
{
    request_answer(r, is_long(r), GROUP_ON_LOOP_BYTES, answer);
}
