/* SPDX-License-Identifier: Apache-2.0 */
/* Copies together what the registers' image, the hosted partitions and the groups say. On the HTTP server's thread. */
#include "daemon/watch/survey.h"

#include <string.h>

#include "daemon/group/coordinator.h"
#include "lib/base/attr.h"
#include "lib/base/mem.h"

/* ---- what the image says ---- */
static void look_at_partition(struct survey *s, const struct watch_sources *src, struct survey_topic *t, int32_t i)
{
    const struct cluster_partition *p = cluster_topic_partition(t->topic, i);
    const struct cluster_broker *leader = cluster_image_leader(s->image, p);
    struct survey_partition *out = &t->partitions[i];
    out->leader = leader == NULL ? -1 : leader->id;
    out->n_replicas = p->n_replicas;
    out->n_isr = p->n_isr;
    out->min_isr = t->topic->config->min_insync_replicas;
    bool mine = out->leader == src->id;
    s->n_partitions++;
    s->n_led += mine;
    s->n_under_replicated += mine && p->n_isr < p->n_replicas;
    s->n_under_min_isr += mine && p->n_isr < out->min_isr;
    s->n_offline += out->leader < 0;
    t->n_under_replicated += out->leader >= 0 && p->n_isr < p->n_replicas;
    t->n_offline += out->leader < 0;
}

static void look_at_topics(struct survey *s, const struct watch_sources *src)
{
    s->topics = xcalloc(s->image->n_topics, sizeof *s->topics);
    for (size_t i = 0; i < s->image->n_topics; i++) {
        struct survey_topic *t = &s->topics[i];
        t->topic = s->image->topics[i];
        t->partitions = xcalloc((size_t)t->topic->n_partitions, sizeof *t->partitions);
        for (int32_t k = 0; k < t->topic->n_partitions; k++)
            look_at_partition(s, src, t, k);
    }
}

static struct survey_topic *find_topic(struct survey *s, const char *name)
{
    size_t low = 0, high = s->image->n_topics;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(name, s->topics[mid].topic->name);
        if (order == 0)
            return &s->topics[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

/* ---- what is here ---- */
static void look_at_hosted(void *arg, struct partition *pt)
{
    struct survey *s = arg;
    struct survey_topic *t = find_topic(s, pt->topic);
    if (t == NULL || !uuid_eq(&t->topic->id, &pt->topic_id) || pt->id >= t->topic->n_partitions)
        return; /* newer or older than the image */
    struct survey_partition *p = &t->partitions[pt->id];
    struct partition_view v;
    partition_view(pt, &v);
    p->hosted = true;
    p->leads = v.err == KERR_NONE;
    p->broken = v.err == KERR_KAFKA_STORAGE_ERROR;
    p->start_offset = v.start_offset;
    p->hw = v.hw;
    p->end_offset = v.leo;
    if (pt->log != NULL) {
        struct plog_ends ends;
        plog_ends(pt->log, &ends);
        p->size_bytes = ends.size_bytes;
    }
    traffic_add(&p->traffic, &pt->traffic);
    traffic_add(&t->traffic, &pt->traffic);
    t->size_bytes += p->size_bytes;
    t->n_hosted++;
    s->n_hosted++;
    s->n_broken += p->broken;
}

/* ---- groups ---- */
static void look_at_position(struct survey *s, struct survey_group *g, const struct committed_offset *o)
{
    if (s->n_positions == SURVEY_POSITIONS_MAX) {
        s->positions_left_out++;
        return;
    }
    struct survey_topic *t = find_topic(s, o->topic);
    if (t != NULL && !committed_is_of(o, &t->topic->id))
        return; /* of one that had this name before */
    struct survey_position *p = &g->positions[g->n_positions++];
    *p = (struct survey_position){ .topic = xstrdup(o->topic), .partition = o->partition, .offset = o->offset, .lag = -1 };
    if (t != NULL && o->partition >= 0 && o->partition < t->topic->n_partitions && t->partitions[o->partition].leads)
        p->lag = MAX(t->partitions[o->partition].hw - o->offset, (int64_t)0); /* committed after the survey saw the end */
    s->n_positions++;
}

static void look_at_group(void *arg, struct group_entry *e)
{
    struct survey *s = arg;
    if (s->n_groups == SURVEY_GROUPS_MAX) {
        s->groups_left_out++;
        return;
    }
    size_t n = HASH_COUNT(e->offsets.table);
    s->groups = xreallocarray(s->groups, s->n_groups + 1, sizeof *s->groups);
    struct survey_group *g = &s->groups[s->n_groups++];
    *g = (struct survey_group){
        .id = xstrdup(e->group->id),
        .state = group_state_name(e->group->state),
        .n_members = (int32_t)HASH_COUNT(e->group->members),
        .positions = xcalloc(MIN(n, SURVEY_POSITIONS_MAX - s->n_positions), sizeof *g->positions),
    };
    struct committed_offset *o, *next;
    HASH_ITER (hh, e->offsets.table, o, next)
        look_at_position(s, g, o);
}

static int compare_positions(const void *a, const void *b)
{
    const struct survey_position *x = a, *y = b;
    int by_topic = strcmp(x->topic, y->topic);
    return by_topic != 0 ? by_topic : (x->partition > y->partition) - (x->partition < y->partition);
}

static int compare_groups(const void *a, const void *b)
{
    const struct survey_group *x = a, *y = b;
    return strcmp(x->id, y->id);
}

/* ---- all of it ---- */
void survey_make(const struct watch_sources *src, struct survey *ret)
{
    *ret = (struct survey){ .image = cluster_image_get(src->cluster) };
    look_at_topics(ret, src);
    partitions_each(src->partitions, look_at_hosted, ret);
    coordinator_each(src->coordinator, look_at_group, ret);
    if (ret->n_groups > 0)
        qsort(ret->groups, ret->n_groups, sizeof *ret->groups, compare_groups);
    for (size_t i = 0; i < ret->n_groups; i++)
        if (ret->groups[i].n_positions > 0)
            qsort(ret->groups[i].positions, ret->groups[i].n_positions, sizeof *ret->groups[i].positions, compare_positions);
}

void survey_done(struct survey *s)
{
    for (size_t i = 0; i < s->n_groups; i++) {
        for (size_t k = 0; k < s->groups[i].n_positions; k++)
            free(s->groups[i].positions[k].topic);
        free(s->groups[i].positions);
        free(s->groups[i].id);
    }
    free(s->groups);
    for (size_t i = 0; i < s->image->n_topics; i++)
        free(s->topics[i].partitions);
    free(s->topics);
    cluster_image_put(s->image);
}
