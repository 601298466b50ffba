/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other replicas or another leader for one partition, asked for by an administrator of any broker: checks, and the change of its
 * register. Meta loop; no I/O.
 *
 * A reassignment begins with the union of both sets, in one change: new ones are `adding`, those that will not stay `removing`,
 * and the leader epoch grows, as with each change of the set (R1). The leader ends it once all that are adding are in sync
 * (cluster_lead.c). Taking one back, or changing its aim, starts from the set that there was before it.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/meta/change.h"
#include "lib/base/mem.h"

struct ids {
    int32_t at[2 * REPLICA_MAX];
    int32_t n;
};

static bool has(const int32_t *ids, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static void add_once(struct ids *l, int32_t id)
{
    if (!has(l->at, l->n, id))
        l->at[l->n++] = id;
}

static const struct cluster_partition *partition_of(struct cluster *c, const struct change *ch)
{
    const struct cluster_topic *t = cluster_image_topic(c->image, kstr_of(ch->pub.topic));

    if (t == NULL || ch->pub.partition < 0 || ch->pub.partition >= t->n_partitions)
        return NULL;
    return cluster_topic_partition(t, ch->pub.partition);
}

static void add_check(struct change *ch, int32_t broker, int64_t epoch)
{
    ops_add(&ch->ops, REGISTER_CHECK, xasprintf("/klog/broker_epoch/%d", broker), NULL, epoch);
}

static void add_state(struct cluster *c, struct change *ch, const struct partition_register *r)
{
    char writer[64];

    cluster_writer(c, writer);
    ops_add(&ch->ops, REGISTER_SET, xasprintf("/brokers/topics/%s/partitions/%d/state", ch->pub.topic, ch->pub.partition),
            partition_register_encode(r, writer), r->st.version);
}

/* ---- replicas ---- */

/* The set that there was before a reassignment that is going on. */
static void settled(const struct partition_register *r, struct ids *ret)
{
    ret->n = 0;
    for (int32_t i = 0; i < r->st.n_replicas; i++)
        if (!has(r->adding, r->n_adding, r->st.replicas[i]))
            add_once(ret, r->st.replicas[i]);
}

static enum kerr check_target(struct cluster *c, struct change *ch, const struct ids *before, const int32_t *target,
                              int32_t n)
{
    if (n == 0 || n > REPLICA_MAX)
        return change_refuse(ch, KERR_INVALID_REPLICA_ASSIGNMENT, "a partition has 1 to %d replicas", REPLICA_MAX);
    if (ch->pub.same_replication_factor && n != before->n)
        return change_refuse(ch, KERR_INVALID_REPLICATION_FACTOR, "the partition has %d replicas, the assignment %d",
                             before->n, n);
    for (int32_t i = 0; i < n; i++) {
        if (has(target, i, target[i]))
            return change_refuse(ch, KERR_INVALID_REPLICA_ASSIGNMENT, "the assignment names broker %d twice", target[i]);
        if (!has(before->at, before->n, target[i]) && cluster_image_broker(c->image, target[i]) == NULL)
            return change_refuse(ch, KERR_INVALID_REPLICA_ASSIGNMENT, "the assignment names broker %d, which is not there",
                                 target[i]);
    }
    return KERR_NONE;
}

/* Keeps the in-sync set to the replicas that there are. */
static void trim_isr(struct partition_state *st)
{
    int32_t n = 0;

    for (int32_t i = 0; i < st->n_isr; i++) {
        if (!has(st->replicas, st->n_replicas, st->isr[i]))
            continue;
        st->isr[n] = st->isr[i];
        st->isr_be[n++] = st->isr_be[i];
    }
    st->n_isr = n;
}

static enum kerr set_replicas(struct change *ch, struct partition_register *r, const struct ids *before,
                              const int32_t *target, int32_t n_target)
{
    struct ids all = { .n = 0 };

    r->n_adding = r->n_removing = 0;
    for (int32_t i = 0; i < n_target; i++) {
        add_once(&all, target[i]);
        if (!has(before->at, before->n, target[i]))
            r->adding[r->n_adding++] = target[i];
    }
    for (int32_t i = 0; i < before->n; i++) {
        add_once(&all, before->at[i]);
        if (!has(target, n_target, before->at[i]))
            r->removing[r->n_removing++] = before->at[i];
    }
    if (all.n > REPLICA_MAX)
        return change_refuse(ch, KERR_INVALID_REPLICA_ASSIGNMENT, "old and new replicas are more than %d together",
                             REPLICA_MAX);
    r->st.n_replicas = all.n;
    memcpy(r->st.replicas, all.at, (size_t)all.n * sizeof all.at[0]);
    trim_isr(&r->st);
    return r->st.n_isr > 0 ? KERR_NONE
                           : change_refuse(ch, KERR_INVALID_REPLICA_ASSIGNMENT, "none of the replicas that stay is in sync");
}

/* R8, R11: those that are let go of at once must not be needed. */
static enum kerr check_isr(struct cluster *c, struct change *ch, const struct cluster_partition *p,
                           const struct partition_state *to)
{
    const struct cluster_topic *t = cluster_image_topic(c->image, kstr_of(ch->pub.topic));

    if (to->n_isr == p->n_isr ||
        (to->n_isr >= state_isr_floor(to, t->config->min_insync_replicas) &&
         state_successor(to, lead_live(c, t), c->lead.n_live, -1) != NULL))
        return KERR_NONE;
    return change_refuse(ch, KERR_INVALID_REPLICA_ASSIGNMENT,
                         "of the replicas that stay too few are in sync; try again when more are");
}

/* The epoch grows. A leader that is none of the replicas any more gives way to whoever is elected. */
static enum kerr next_epoch(struct change *ch, struct partition_state *st)
{
    if (st->leader_epoch >= INT32_MAX - 1)
        return change_refuse(ch, KERR_INVALID_REQUEST, "the partition has no further leader epoch");
    st->leader_epoch++;
    if (has(st->replicas, st->n_replicas, st->leader))
        return KERR_NONE;
    st->leader = -1;
    st->leader_be = 0;
    return KERR_NONE;
}

enum kerr change_prepare_reassign(struct cluster *c, struct change *ch)
{
    const struct cluster_partition *p = partition_of(c, ch);
    struct partition_register r;
    struct ids before;

    if (p == NULL)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    cluster_partition_register(p, &r);
    settled(&r, &before);
    const int32_t *target = ch->pub.assignment == NULL ? before.at : ch->pub.assignment[0];
    int32_t n = ch->pub.assignment == NULL ? before.n : change_list_length(target);
    if (ch->pub.assignment == NULL && r.n_adding == 0 && r.n_removing == 0)
        return KERR_NO_REASSIGNMENT_IN_PROGRESS;

    enum kerr err = check_target(c, ch, &before, target, n);
    if (err == KERR_NONE)
        err = set_replicas(ch, &r, &before, target, n);
    if (err == KERR_NONE)
        err = check_isr(c, ch, p, &r.st);
    if (err == KERR_NONE)
        err = next_epoch(ch, &r.st);
    if (err != KERR_NONE)
        return err;
    add_check(ch, c->deps.id, c->broker_epoch);
    add_state(c, ch, &r);
    return KERR_NONE;
}

/* ---- leaders ---- */

static enum kerr choose_preferred(struct cluster *c, struct change *ch, struct partition_register *r,
                                  const struct live_broker *live, const struct live_broker **ret)
{
    if (r->st.leader == r->st.replicas[0] && state_is_led(&r->st, live, c->lead.n_live))
        return KERR_ELECTION_NOT_NEEDED;
    if (!state_may_lead(&r->st, live, c->lead.n_live, r->st.replicas[0]))
        return change_refuse(ch, KERR_PREFERRED_LEADER_NOT_AVAILABLE, "broker %d is not there, or not in sync",
                             r->st.replicas[0]);
    *ret = live_find(live, c->lead.n_live, r->st.replicas[0]);
    return KERR_NONE;
}

/* The list of brokers may have this broker's last life. */
static int64_t epoch_of(const struct cluster *c, const struct live_broker *b)
{
    return b->id == c->deps.id ? c->broker_epoch : b->be;
}

/* Where nobody can be elected: a replica that there is, with what it has. */
static enum kerr choose_unclean(struct cluster *c, struct change *ch, struct partition_register *r,
                                const struct live_broker *live, const struct live_broker **ret)
{
    if (state_is_led(&r->st, live, c->lead.n_live) || state_successor(&r->st, live, c->lead.n_live, -1) != NULL)
        return KERR_ELECTION_NOT_NEEDED;
    *ret = state_least_loss(&r->st, live, c->lead.n_live);
    if (*ret == NULL)
        return change_refuse(ch, KERR_ELIGIBLE_LEADERS_NOT_AVAILABLE, "no broker that has a replica is there");
    r->st.n_isr = 1;
    r->st.isr[0] = (*ret)->id;
    r->st.isr_be[0] = epoch_of(c, *ret);
    r->st.recovery = r->st.leader_epoch + 1;
    return KERR_NONE;
}

enum kerr change_prepare_elect(struct cluster *c, struct change *ch)
{
    const struct cluster_partition *p = partition_of(c, ch);
    const struct cluster_topic *t = cluster_image_topic(c->image, kstr_of(ch->pub.topic));
    const struct live_broker *b = NULL;
    struct partition_register r;

    if (p == NULL)
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    cluster_partition_register(p, &r);
    const struct live_broker *live = lead_live(c, t);
    enum kerr err = (ch->pub.unclean ? choose_unclean : choose_preferred)(c, ch, &r, live, &b);
    if (err == KERR_NONE)
        err = next_epoch(ch, &r.st);
    if (err != KERR_NONE)
        return err;
    r.st.leader = b->id;
    r.st.leader_be = epoch_of(c, b);
    add_check(ch, c->deps.id, c->broker_epoch);
    if (b->id != c->deps.id)
        add_check(ch, b->id, b->be);
    add_state(c, ch, &r);
    return KERR_NONE;
}
