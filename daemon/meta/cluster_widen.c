/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topic of the groups' positions is made by whoever first asks for a group, with as many replicas as there are brokers then.
 * When more brokers have come it gets those that offsets.topic.replication.factor wants: one broker looks after that, the one
 * with the lowest id, and what it asks for is an ordinary reassignment. Replicas are only added. Meta loop.
 */
#include <string.h>

#include "daemon/meta/cluster_int.h"
#include "lib/base/log.h"

static bool has(const int32_t *ids, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static void widened(struct cluster_change *ch, enum kerr err, const char *text)
{
    if (err != KERR_NONE)
        log_warn("%s-%d cannot get further replicas: %s", ch->topic, ch->partition, text != NULL ? text : kerr_text(err));
}

/* The others in turn, so that the partitions spread. */
static void widen(struct cluster *c, const struct cluster_partition *p, int32_t id, int32_t n_wanted)
{
    const struct cluster_image *img = c->image;
    int32_t ids[REPLICA_MAX], n = p->n_replicas;

    memcpy(ids, p->replicas, (size_t)n * sizeof ids[0]);
    for (size_t i = 0; i < img->n_brokers && n < n_wanted; i++) {
        int32_t broker = img->brokers[(i + (size_t)id) % img->n_brokers].id;
        if (!has(ids, n, broker))
            ids[n++] = broker;
    }
    struct cluster_change *ch = cluster_change_new(kstr_of(OFFSETS_TOPIC));
    ch->loop = c->deps.loop;
    ch->cb = widened;
    ch->partition = id;
    cluster_change_assign(ch, ids, n);
    cluster_reassign_partition(c, ch);
}

void cluster_widen_offsets(struct cluster *c)
{
    const struct cluster_image *img = c->image;
    const struct cluster_topic *t = cluster_image_topic(img, kstr_of(OFFSETS_TOPIC));
    int32_t n_wanted = MIN(c->deps.config->offsets_topic_replication_factor, MIN((int32_t)img->n_brokers, REPLICA_MAX));

    if (t == NULL || img->controller_id != c->deps.id || c->lead.draining)
        return;
    for (int32_t id = 0; id < t->n_partitions; id++) {
        const struct cluster_partition *p = cluster_topic_partition(t, id);
        if (p->n_replicas < n_wanted && p->n_adding == 0 && p->n_removing == 0)
            widen(c, p, id, n_wanted);
    }
}
