/* SPDX-License-Identifier: Apache-2.0 */
/* ListPartitionReassignments: partitions whose replicas are being exchanged, of those that are named, or of all. */
#include <string.h>

#include "daemon/api/api.h"
#include "daemon/api/services.h"
#include "daemon/meta/cluster.h"

enum { ITEM_BYTES = 64 };

static bool is_moving(const struct cluster_partition *p)
{
    return p->n_adding > 0 || p->n_removing > 0;
}

static int32_t *copy(struct arena *a, const int32_t *ids, int32_t n, int32_t *ret_n)
{
    *ret_n = n;
    return n == 0 ? arena_array(a, 1, sizeof *ids) : arena_dup(a, ids, (size_t)n * sizeof *ids);
}

/* False: the answer would be too large. */
static bool add_partition(struct request *r, const struct cluster_topic *t, int32_t id,
                          struct list_partition_reassignments_response_topics *out)
{
    if (id < 0 || id >= t->n_partitions)
        return true;
    const struct cluster_partition *p = cluster_topic_partition(t, id);
    if (!is_moving(p))
        return true;
    size_t n_ids = (size_t)(p->n_replicas + p->n_adding + p->n_removing);
    if (!request_answer_room(r, sizeof *out->partitions + ITEM_BYTES + n_ids * sizeof(int32_t)))
        return false;
    struct list_partition_reassignments_response_partitions *o = &out->partitions[out->n_partitions++];
    o->partition_index = id;
    o->replicas = copy(&r->arena, p->replicas, p->n_replicas, &o->n_replicas);
    o->adding_replicas = copy(&r->arena, p->adding, p->n_adding, &o->n_adding_replicas);
    o->removing_replicas = copy(&r->arena, p->removing, p->n_removing, &o->n_removing_replicas);
    return true;
}

/* ids NULL: all of its partitions. A topic of which none is moving is left out. */
static bool add_topic(struct request *r, const struct cluster_topic *t, const int32_t *ids, int32_t n,
                      struct list_partition_reassignments_response *rsp)
{
    struct list_partition_reassignments_response_topics *out = &rsp->topics[rsp->n_topics];
    bool whole = request_answer_room(r, sizeof *out + strlen(t->name) + ITEM_BYTES);
    int32_t moving = 0;

    for (int32_t i = 0; i < n && moving == 0; i++) {
        int32_t id = ids == NULL ? i : ids[i];
        moving += id >= 0 && id < t->n_partitions && is_moving(cluster_topic_partition(t, id));
    }
    if (moving == 0)
        return whole;
    out->name = arena_kstr(&r->arena, kstr_of(t->name));
    out->partitions = arena_array(&r->arena, (size_t)n + 1, sizeof *out->partitions);
    for (int32_t i = 0; i < n && whole; i++)
        whole = add_partition(r, t, ids == NULL ? i : ids[i], out);
    rsp->n_topics += out->n_partitions > 0;
    return whole;
}

static bool add_all(struct request *r, const struct cluster_image *img, struct list_partition_reassignments_response *rsp)
{
    const struct list_partition_reassignments_request *q = r->body;
    bool all = q->n_topics < 0, whole = true;
    int32_t n = all ? (int32_t)img->n_topics : q->n_topics;

    rsp->topics = arena_array(&r->arena, (size_t)n + 1, sizeof *rsp->topics);
    for (int32_t i = 0; i < n && whole; i++) {
        const struct cluster_topic *t = all ? img->topics[i] : cluster_image_topic(img, q->topics[i].name);
        if (t != NULL && all)
            whole = add_topic(r, t, NULL, t->n_partitions, rsp);
        else if (t != NULL)
            whole = add_topic(r, t, q->topics[i].partition_indexes, q->topics[i].n_partition_indexes, rsp);
    }
    return whole;
}

void handle_list_partition_reassignments(struct request *r)
{
    struct cluster_image *img = cluster_image_get(r->services->cluster);
    struct list_partition_reassignments_response rsp;

    wire_defaults(&wire_list_partition_reassignments_response, &rsp);
    bool whole = add_all(r, img, &rsp);
    cluster_image_put(img);
    if (whole)
        request_reply(r, &rsp);
    else
        request_close(r, "the ListPartitionReassignments answer it asked for is too large: ask for fewer topics at once");
}
