/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who leads the partitions that this broker has a replica of, and who is in sync: brings what the pure machines decide
 * (daemon/replica: election.h, replica_tick) to the registers, and the outcome back. Meta loop. A broker whose registers
 * nobody else writes to has none of this.
 *
 *   - A partition is looked at when its register was read, when brokers came or went, and when a time that the election named
 *     has passed; those that this broker has a replica of also at each tick.
 *   - One change of a partition's register is under way at a time: its seat. Each is conditional on the register's version
 *     and on the writer's own broker epoch (R2). What became of it is read from the register in any case: that a change was
 *     written, that it was not, and that nobody knows (R3) are all the same from there on.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/meta/cluster_int.h"
#include "daemon/replica/election.h"
#include "daemon/replica/partition.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"

enum {
    TICK_MIN_MS = 20,
    TICK_MAX_MS = 500,
    WIDEN_MS = 5000, /* between two looks whether the topic of positions may have more replicas */
    AGAIN_MS = 50, /* after a change that failed: others are at it, or what is known of them is old */
};

struct seat {
    struct cluster *cluster;
    char *key; /* "TOPIC-N" */
    char *topic;
    int32_t id;
    int64_t version;       /* of the state that has been seen since */
    int64_t leaderless_ms; /* 0: it was led when it was last seen */
    struct timer timer;    /* look again */
    /* under way */
    bool writing;
    bool leads_anew; /* it begins an epoch */
    struct partition *proposer; /* a reference: what is written is its proposal. NULL: a change of leader */
    bool settles;               /* the end of a reassignment */
    struct state_change change;
    struct register_ops_list ops;
    struct register_request request; /* of these */
    UT_hash_handle hh;
};

/* ---- seats ---- */

static void on_seat_timer(struct timer *t);

static struct seat *seat_find(struct cluster *c, const char *topic, int32_t id)
{
    CLEANUP(freep) char *key = xasprintf("%s-%d", topic, id);
    struct seat *s;

    HASH_FIND_STR(c->lead.seats, key, s);
    return s;
}

static struct seat *seat_get(struct cluster *c, const char *topic, int32_t id)
{
    struct seat *s = seat_find(c, topic, id);

    if (s != NULL)
        return s;
    s = xcalloc(1, sizeof *s);
    s->cluster = c;
    s->key = xasprintf("%s-%d", topic, id);
    s->topic = xstrdup(topic);
    s->id = id;
    s->timer.cb = on_seat_timer;
    HASH_ADD_KEYPTR(hh, c->lead.seats, s->key, strlen(s->key), s);
    return s;
}

static void seat_free(struct seat *s)
{
    if (s == NULL || s->writing)
        return;
    timer_clear(s->cluster->deps.loop, &s->timer);
    HASH_DEL(s->cluster->lead.seats, s);
    ops_done(&s->ops);
    free(s->topic);
    free(s->key);
    free(s);
}

/* ---- brokers that live ---- */

/* Under the policies that flush before they acknowledge a restart loses nothing, so that the base does not matter. */
const struct live_broker *lead_live(struct cluster *c, const struct cluster_topic *t)
{
    return t->config->flush_policy == FLUSH_ASYNC ? c->lead.live : c->lead.live_proven;
}

static void live_follow(struct cluster *c)
{
    const struct cluster_image *img = c->image;

    c->lead.live = xreallocarray(c->lead.live, img->n_brokers + 1, sizeof *c->lead.live);
    c->lead.live_proven = xreallocarray(c->lead.live_proven, img->n_brokers + 1, sizeof *c->lead.live);
    c->lead.n_live = img->n_brokers;
    for (size_t i = 0; i < img->n_brokers; i++) {
        const struct cluster_broker *b = &img->brokers[i];
        c->lead.live[i] = (struct live_broker){ .id = b->id, .be = b->epoch, .base = b->base };
        c->lead.live_proven[i] = (struct live_broker){ .id = b->id, .be = b->epoch };
    }
}

/* ---- writing ---- */

static bool is_damaged(struct partition *pt)
{
    lock_take(&pt->mu);
    bool damaged = pt->replica.role == REPLICA_DAMAGED;
    lock_release(&pt->mu);
    return damaged;
}

static bool ails(struct partition *pt)
{
    lock_take(&pt->mu);
    bool it_does = pt->replica.ails || pt->replica.full;
    lock_release(&pt->mu);
    return it_does;
}

static bool is_full(struct partition *pt)
{
    lock_take(&pt->mu);
    bool full = pt->replica.full;
    lock_release(&pt->mu);
    return full;
}

/* What the change of its own replica was about, where that is for people to see to. */
static void say_why(const struct seat *s, struct partition *pt)
{
    const struct partition_state *to = &s->change.to;

    if (is_damaged(pt))
        log_warn("%s: the replica here is damaged, and its register says so now: nobody counts on it", s->key);
    else if (is_full(pt) && s->leads_anew && to->leader != s->cluster->deps.id && state_isr_index(to, s->cluster->deps.id) >= 0)
        log_warn("%s: the log directory here is full: broker %d leads now", s->key, to->leader);
    else if (is_full(pt) && s->leads_anew)
        log_warn("%s: the log directory here is full: this replica is not in sync until there is room", s->key);
}

static void seat_written(void *arg, int rc)
{
    struct seat *s = arg;
    struct cluster *c = s->cluster;
    struct partition *pt = take(&s->proposer);
    int64_t version = s->ops.ops[s->ops.n - 1].new_version;

    s->writing = s->settles = false;
    if (pt != NULL && rc == 0)
        say_why(s, pt);
    if (pt != NULL && rc == 0)
        partition_proposal_confirmed(pt, &s->change, version);
    else if (pt != NULL)
        partition_proposal_failed(pt, rc == -EREMOTEIO);
    else if (rc == 0 && s->change.to.leader >= 0 && s->leads_anew)
        log_info("%s: broker %d leads, epoch=%d", s->key, s->change.to.leader, s->change.to.leader_epoch);
    partition_unref(pt);
    if (rc < 0 && rc != -ESTALE && rc != -EREMOTEIO && rc != -ENOENT)
        log_warn("%s: cannot write its register: %s", s->key, strerror(-rc));
    ops_done(&s->ops);
    cluster_note_idle(c, -1);
    if (c->stopping)
        return;
    timer_set_in(c->deps.loop, &s->timer, rc == 0 ? TICK_MAX_MS : AGAIN_MS);
    slot_mark_partition(slot_get(c, s->topic), s->id);
}

/* In the place of an earlier one of the same broker. */
static void claim_put(struct partition_register *r, const struct election_claim *claim)
{
    int32_t i = 0;

    while (i < r->n_claims && r->claims[i].id != claim->id)
        i++;
    if (i == REPLICA_MAX)
        return;
    r->claims[i] = *claim;
    r->n_claims = MAX(r->n_claims, i + 1);
}

/* p: the state that the change goes on from; claim: goes along, NULL none. False: it goes on from another one. */
static bool seat_write_with(struct seat *s, const struct cluster_partition *p, struct partition *proposer,
                            const struct election_claim *claim)
{
    struct cluster *c = s->cluster;
    struct partition_register r;
    char writer[64];

    if (p->version != s->change.to.version)
        return false;
    cluster_partition_register(p, &r);
    s->leads_anew = s->change.to.leader_epoch > r.st.leader_epoch;
    if (s->leads_anew)
        r.n_claims = 0;
    if (claim != NULL)
        claim_put(&r, claim);
    r.st = s->change.to;
    if (s->settles)
        r.n_adding = r.n_removing = 0;
    cluster_writer(c, writer);
    for (int32_t i = 0; i < s->change.n_checks; i++)
        ops_add(&s->ops, REGISTER_CHECK, xasprintf("/klog/broker_epoch/%d", s->change.check[i].id), NULL,
                s->change.check[i].be);
    ops_add(&s->ops, REGISTER_SET, xasprintf("/brokers/topics/%s/partitions/%d/state", s->topic, s->id),
            partition_register_encode(&r, writer), p->version);
    s->writing = true;
    s->proposer = proposer == NULL ? NULL : partition_ref(proposer);
    cluster_note_idle(c, +1);
    s->request = (struct register_request){ .ops = s->ops.ops, .n = s->ops.n, .cb = seat_written, .arg = s };
    register_batch_add(&c->lead.batch, &s->request);
    return true;
}

static bool seat_write(struct seat *s, const struct cluster_partition *p, struct partition *proposer)
{
    return seat_write_with(s, p, proposer, NULL);
}

/* ---- elections ---- */

static struct election_claim claim_of_me(struct cluster *c, struct partition *pt)
{
    struct election_claim claim = { .id = c->deps.id, .be = c->broker_epoch, .last_epoch = -1 };

    lock_take(&pt->mu);
    if (pt->log != NULL && pt->replica.role != REPLICA_DAMAGED) {
        claim.leo = pt->replica.leo;
        claim.last_epoch = plog_epoch_latest(pt->log);
    }
    lock_release(&pt->mu);
    return claim;
}

/* What this broker said of its log before may not be so any more. */
static void forget_claim_unless(struct partition_register *r, const struct election_claim *now)
{
    for (int32_t i = 0; i < r->n_claims; i++)
        if (r->claims[i].id == now->id && (r->claims[i].last_epoch != now->last_epoch || r->claims[i].leo != now->leo))
            r->claims[i].be = 0;
}

static void elect(struct seat *s, const struct cluster_topic *t, const struct cluster_partition *p, struct partition *pt)
{
    struct cluster *c = s->cluster;
    struct election_claim claim = claim_of_me(c, pt);
    struct partition_register r;
    struct election e;

    cluster_partition_register(p, &r);
    forget_claim_unless(&r, &claim);
    const struct election_input in = {
        .state = &r.st,
        .live = lead_live(c, t),
        .n_live = c->lead.n_live,
        .me = c->deps.id,
        .be = c->broker_epoch,
        .damaged = is_damaged(pt),
        .ails = ails(pt),
        .draining = c->lead.draining,
        .recovery = t->config->unclean_leader_election ? RECOVERY_PROACTIVE : RECOVERY_BALANCED,
        .leaderless_ms = loop_now_ms(c->deps.loop) - s->leaderless_ms,
        .claims = r.claims,
        .n_claims = (size_t)r.n_claims,
    };
    election_decide(&in, &e);
    switch (e.what) {
    case ELECTION_NOTHING:
        break;
    case ELECTION_CLAIM:
        state_change_begin(&s->change, &r.st, c->deps.id, c->broker_epoch);
        seat_write_with(s, p, NULL, &claim);
        break;
    case ELECTION_WAIT:
        timer_set_in(c->deps.loop, &s->timer, e.wait_ms);
        break;
    case ELECTION_TAKE_LOSS:
        log_error("%s: no replica provably has everything that was acknowledged; broker %d leads with what it has, up to offset "
                  "%lld: records may be lost",
                  s->key, c->deps.id, (long long)claim.leo);
        s->change = e.change;
        seat_write(s, p, NULL);
        break;
    case ELECTION_TAKE:
    case ELECTION_HAND_OVER:
        s->change = e.change;
        seat_write(s, p, NULL);
        break;
    }
}

/* ---- following ---- */

/* Its leader as it lives, when that is another broker that can be reached; NULL: nobody is followed. */
static const struct cluster_broker *leader_to_follow(struct cluster *c, const struct cluster_partition *p)
{
    const struct cluster_broker *b = p->leader == c->deps.id ? NULL : cluster_image_broker(c->image, p->leader);

    return b != NULL && b->epoch == p->leader_be ? b : NULL;
}

static const char *listener_between(const struct cluster *c)
{
    const char *name = c->deps.config->inter_broker_listener_name;

    return name[0] != '\0' ? name : c->deps.endpoints[0].listener;
}

static void follow_leader(struct cluster *c, struct partition *pt, const struct cluster_partition *p)
{
    const struct cluster_broker *b = leader_to_follow(c, p);
    const struct cluster_endpoint *e = b == NULL ? NULL : cluster_broker_endpoint(b, listener_between(c));

    c->deps.follow(c->deps.arg, pt, e == NULL ? -1 : b->id, e == NULL ? NULL : e->host, e == NULL ? -1 : e->port);
}

/* ---- looking ---- */

static bool is_led(struct cluster *c, const struct cluster_partition *p)
{
    const struct live_broker *b = live_find(c->lead.live, c->lead.n_live, p->leader);

    return b != NULL && b->be == p->leader_be;
}

static bool leads_here(struct cluster *c, const struct cluster_partition *p)
{
    return p->leader == c->deps.id && p->leader_be == c->broker_epoch;
}

static void note_leaderless(struct seat *s, const struct cluster_partition *p, bool led)
{
    if (s->leaderless_ms == 0 || s->version != p->version)
        s->leaderless_ms = loop_now_ms(s->cluster->deps.loop);
    if (led)
        s->leaderless_ms = 0;
    s->version = p->version;
}

void lead_look(struct cluster *c, const struct cluster_topic *t, int32_t id)
{
    const struct cluster_partition *p = cluster_topic_partition(t, id);

    if (c->deps.alone || c->stopping || c->starting)
        return;
    struct partition *pt = partitions_get(c->deps.partitions, kstr_of(t->name), id);
    struct seat *s = seat_find(c, t->name, id);
    bool led = is_led(c, p), mine = leads_here(c, p);
    if (pt == NULL || (led && !(mine && c->lead.draining))) {
        seat_free(s);
        if (pt != NULL)
            follow_leader(c, pt, p);
        partition_unref(pt);
        return;
    }
    follow_leader(c, pt, p);
    s = seat_get(c, t->name, id);
    if (!s->writing && c->enlist.state == ENLIST_IN) {
        note_leaderless(s, p, led);
        elect(s, t, p, pt);
    }
    partition_unref(pt);
}

static void on_seat_timer(struct timer *tm)
{
    struct seat *s = container_of(tm, struct seat, timer);
    const struct cluster_topic *t = cluster_image_topic(s->cluster->image, kstr_of(s->topic));

    if (s->writing)
        return;
    if (t == NULL || s->id >= t->n_partitions)
        seat_free(s);
    else
        lead_look(s->cluster, t, s->id);
}

void lead_brokers_changed(struct cluster *c)
{
    live_follow(c);
    if (c->deps.alone || c->stopping || c->starting)
        return;
    for (size_t i = 0; i < c->image->n_topics; i++)
        for (int32_t id = 0; id < c->image->topics[i]->n_partitions; id++)
            lead_look(c, c->image->topics[i], id);
    lead_tick(c);
}

/* ---- what a leader sees to ---- */

static void settle(struct cluster *c, const struct cluster_topic *t, int32_t id, const struct cluster_partition *p);

static void propose(struct cluster *c, const struct cluster_topic *t, int32_t id, const struct cluster_partition *p)
{
    const struct replica_tick tick = {
        .now_ms = world_mono_ms(c->deps.world),
        .lag_max_ms = c->deps.config->replica_lag_time_max_ms,
        .live = lead_live(c, t),
        .n_live = c->lead.n_live,
    };
    struct seat *s = seat_find(c, t->name, id);
    struct partition *pt = partitions_get(c->deps.partitions, kstr_of(t->name), id);
    struct state_change change;

    if (pt == NULL)
        return;
    if ((s == NULL || !s->writing) && partition_tick(pt, &tick, &change) && change.to.version == p->version &&
        partition_proposal_sent(pt, &change)) {
        s = seat_get(c, t->name, id);
        s->change = change;
        if (!seat_write(s, p, pt))
            partition_proposal_failed(pt, false);
    }
    partition_unref(pt);
}

/* Who leads, and who may have to say that its replica is damaged (R11). */
static bool may_propose(const struct cluster *c, const struct cluster_partition *p)
{
    return p->n_replicas > 1 && cluster_has_id(p->replicas, p->n_replicas, c->deps.id);
}

void lead_see_to(struct cluster *c, const struct cluster_topic *t, int32_t id)
{
    const struct cluster_partition *p = cluster_topic_partition(t, id);

    if (c->deps.alone || c->stopping || c->starting || c->enlist.state != ENLIST_IN)
        return;
    if (may_propose(c, p))
        propose(c, t, id, p);
    if ((p->n_adding > 0 || p->n_removing > 0) && leads_here(c, p))
        settle(c, t, id, p);
}

void lead_tick(struct cluster *c)
{
    if (c->deps.alone)
        return;
    for (size_t i = 0; i < c->image->n_topics; i++) {
        const struct cluster_topic *t = c->image->topics[i];
        for (int32_t id = 0; id < t->n_partitions; id++) {
            lead_see_to(c, t, id);
            if (t->config->unclean_leader_election && !is_led(c, cluster_topic_partition(t, id)))
                lead_look(c, t, id); /* it may have been allowed just now */
        }
    }
}

/* ---- the end of a reassignment ---- */

/* Only those stay that are not to be removed; false: not all that are added are in sync yet. */
static bool settle_state(const struct partition_register *r, struct partition_state *to)
{
    int32_t n = 0;

    for (int32_t i = 0; i < r->n_adding; i++)
        if (!cluster_has_id(r->st.isr, r->st.n_isr, r->adding[i]))
            return false;
    for (int32_t i = 0; i < r->st.n_replicas; i++)
        if (!cluster_has_id(r->removing, r->n_removing, r->st.replicas[i]))
            to->replicas[n++] = r->st.replicas[i];
    to->n_replicas = n;
    n = 0;
    for (int32_t i = 0; i < r->st.n_isr; i++)
        if (cluster_has_id(to->replicas, to->n_replicas, r->st.isr[i])) {
            to->isr[n] = r->st.isr[i];
            to->isr_be[n++] = r->st.isr_be[i];
        }
    to->n_isr = n;
    return n > 0;
}

/* A leader that will not stay hands over first, and its successor ends it. */
static void settle(struct cluster *c, const struct cluster_topic *t, int32_t id, const struct cluster_partition *p)
{
    struct seat *s = seat_find(c, t->name, id);
    struct partition_register r;
    struct state_change change;
    struct partition_state to;
    /* The list of who lives may still have this broker's last life. */
    const struct live_broker me = { .id = c->deps.id, .be = c->broker_epoch }, *b = NULL;

    cluster_partition_register(p, &r);
    to = r.st;
    if ((s != NULL && s->writing) || !settle_state(&r, &to) ||
        to.n_isr < state_isr_floor(&to, t->config->min_insync_replicas)) /* R8 */
        return;
    bool stays = cluster_has_id(to.replicas, to.n_replicas, c->deps.id);
    for (int32_t i = 0; i < to.n_replicas && !stays && b == NULL; i++)
        if (state_may_lead(&r.st, lead_live(c, t), c->lead.n_live, to.replicas[i]))
            b = live_find(lead_live(c, t), c->lead.n_live, to.replicas[i]);
    if (stays)
        b = &me;
    if (b == NULL)
        return;
    state_change_begin(&change, stays ? &to : &r.st, c->deps.id, c->broker_epoch);
    if (!stays)
        state_change_check(&change, b->id, b->be);
    if (!state_change_leader(&change, b))
        return;
    s = seat_get(c, t->name, id);
    s->change = change;
    s->settles = stays;
    seat_write(s, p, NULL);
}

/* ---- preferred leaders ---- */

static bool has_all(struct partition *pt, int32_t broker)
{
    lock_take(&pt->mu);
    bool all = replica_has_all(&pt->replica, broker);
    lock_release(&pt->mu);
    return all;
}

static void give_back(struct cluster *c, const struct cluster_topic *t, int32_t id, const struct cluster_partition *p)
{
    struct seat *s = seat_find(c, t->name, id);
    struct partition *pt = partitions_get(c->deps.partitions, kstr_of(t->name), id);
    struct partition_register r;
    struct state_change change;

    cluster_partition_register(p, &r);
    const struct election_input in = { .state = &r.st,
                                       .live = lead_live(c, t),
                                       .n_live = c->lead.n_live,
                                       .me = c->deps.id,
                                       .be = c->broker_epoch };
    if (pt != NULL && (s == NULL || !s->writing) && has_all(pt, p->replicas[0]) && election_to_preferred(&in, &change)) {
        s = seat_get(c, t->name, id);
        s->change = change;
        seat_write(s, p, NULL);
    }
    partition_unref(pt);
}

/* Of the partitions that the broker should lead, how many are led by another, in percent. */
static int32_t imbalance_of(struct cluster *c, int32_t broker)
{
    int64_t n = 0, elsewhere = 0;

    for (size_t i = 0; i < c->image->n_topics; i++) {
        const struct cluster_topic *t = c->image->topics[i];
        for (int32_t id = 0; id < t->n_partitions; id++) {
            const struct cluster_partition *p = cluster_topic_partition(t, id);
            n += p->replicas[0] == broker;
            elsewhere += p->replicas[0] == broker && p->leader != broker;
        }
    }
    return n == 0 ? 0 : (int32_t)((elsewhere * 100 + n - 1) / n);
}

static void give_back_to(struct cluster *c, int32_t broker)
{
    for (size_t i = 0; i < c->image->n_topics; i++) {
        const struct cluster_topic *t = c->image->topics[i];
        for (int32_t id = 0; id < t->n_partitions; id++) {
            const struct cluster_partition *p = cluster_topic_partition(t, id);
            if (p->replicas[0] == broker && leads_here(c, p))
                give_back(c, t, id, p);
        }
    }
}

/* Leaders go back to the first of their replicas, once that one has everything, where it lacks too many. One that has registered
 * since the last look has not shown yet that it stays. */
static void balance(struct cluster *c)
{
    int32_t most = c->deps.config->leader_imbalance_per_broker_percentage;

    for (size_t i = 0; i < c->image->n_brokers; i++) {
        const struct cluster_broker *b = &c->image->brokers[i];
        const struct live_broker *before = live_find(c->lead.seen, c->lead.n_seen, b->id);
        if (b->id != c->deps.id && before != NULL && before->be == b->epoch && imbalance_of(c, b->id) > most)
            give_back_to(c, b->id);
    }
    c->lead.seen = xreallocarray(c->lead.seen, c->lead.n_live + 1, sizeof *c->lead.seen);
    if (c->lead.n_live > 0)
        memcpy(c->lead.seen, c->lead.live, c->lead.n_live * sizeof *c->lead.seen);
    c->lead.n_seen = c->lead.n_live;
}

/* ---- time ---- */

static int64_t tick_ms(const struct cluster *c)
{
    return MAX(TICK_MIN_MS, MIN(TICK_MAX_MS, c->deps.config->replica_lag_time_max_ms / 8));
}

static void on_tick(struct timer *t)
{
    struct cluster *c = container_of(t, struct cluster, lead.tick);
    int64_t now_ms = loop_now_ms(c->deps.loop);

    if (c->stopping)
        return;
    lead_tick(c);
    if (now_ms >= c->lead.widen_ms && c->enlist.state == ENLIST_IN) {
        c->lead.widen_ms = now_ms + WIDEN_MS;
        cluster_widen_offsets(c);
    }
    if (c->deps.config->auto_leader_rebalance_enable && now_ms >= c->lead.balance_ms && !c->lead.draining &&
        c->enlist.state == ENLIST_IN) {
        c->lead.balance_ms = now_ms + c->deps.config->leader_imbalance_check_interval_seconds * INT64_C(1000);
        balance(c);
    }
    timer_set_in(c->deps.loop, t, tick_ms(c));
}

void lead_start(struct cluster *c)
{
    if (c->deps.alone)
        return;
    c->lead.tick.cb = on_tick;
    c->lead.balance_ms =
        loop_now_ms(c->deps.loop) + c->deps.config->leader_imbalance_check_interval_seconds * INT64_C(1000);
    timer_set_in(c->deps.loop, &c->lead.tick, tick_ms(c));
    lead_brokers_changed(c);
}

void lead_stop(struct cluster *c)
{
    struct seat *s, *next;

    timer_clear(c->deps.loop, &c->lead.tick);
    timer_clear(c->deps.loop, &c->lead.drain);
    HASH_ITER (hh, c->lead.seats, s, next)
        timer_clear(c->deps.loop, &s->timer);
}

void lead_free(struct cluster *c)
{
    struct seat *s, *next;

    HASH_ITER (hh, c->lead.seats, s, next) {
        HASH_DEL(c->lead.seats, s);
        ops_done(&s->ops);
        free(s->topic);
        free(s->key);
        free(s);
    }
    register_batch_done(&c->lead.batch);
    free(c->lead.live);
    free(c->lead.live_proven);
    free(c->lead.seen);
}

/* ---- controlled shutdown ---- */

/* Partitions that this broker leads and another one could. */
static int32_t n_to_hand_over(struct cluster *c)
{
    struct partition_register r;
    int32_t n = 0;

    for (size_t i = 0; i < c->image->n_topics; i++) {
        const struct cluster_topic *t = c->image->topics[i];
        for (int32_t id = 0; id < t->n_partitions; id++) {
            const struct cluster_partition *p = cluster_topic_partition(t, id);
            if (!leads_here(c, p))
                continue;
            cluster_partition_register(p, &r);
            n += state_successor(&r.st, lead_live(c, t), c->lead.n_live, c->deps.id) != NULL;
        }
    }
    return n;
}

static void drain_end(struct cluster *c)
{
    struct latch *waiter = take(&c->lead.drained);

    if (waiter != NULL)
        latch_open(waiter);
}

static void on_drain(struct timer *t)
{
    struct cluster *c = container_of(t, struct cluster, lead.drain);
    int32_t n = n_to_hand_over(c);

    if (n > 0 && loop_now_ms(c->deps.loop) < c->lead.drain_until_ms) {
        timer_set_in(c->deps.loop, t, TICK_MIN_MS);
        return;
    }
    if (n > 0)
        log_warn("%d partitions could not be handed over in time; others take them when this broker has gone", n);
    drain_end(c);
}

struct drain_call {
    struct cluster *cluster;
    struct latch done;
    int64_t within_ms;
};

static void drain_begin(void *arg)
{
    struct drain_call *call = arg;
    struct cluster *c = call->cluster;

    c->lead.draining = true;
    c->lead.drained = &call->done;
    c->lead.drain_until_ms = loop_now_ms(c->deps.loop) + call->within_ms;
    c->lead.drain.cb = on_drain;
    lead_brokers_changed(c);
    on_drain(&c->lead.drain);
}

void cluster_drain(struct cluster *c, int64_t within_ms)
{
    if (c == NULL || c->deps.alone || !c->started_all)
        return;
    struct drain_call call = { .cluster = c, .within_ms = within_ms };
    latch_init(&call.done, c->deps.world->exec);
    loop_call(c->deps.loop, drain_begin, &call);
    latch_wait(&call.done);
    latch_done(&call.done);
}
