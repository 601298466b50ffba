/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles move only in replica_move(), by this picture:
 *
 *                      +--------------------------------+
 *                      v                                |
 *     OFFLINE <---> TRUNCATING <---> FETCHING           |   a register state of a higher epoch decides, and the
 *        ^             |                |               |   cuts of a follower between those two
 *        |             +-------+--------+               |
 *        |                     v                        |
 *        +----------------> LEADER ---------------------+
 *     any of them --> DAMAGED                               the disk failed, or the log was cut below hw
 *     DAMAGED --> TRUNCATING, OFFLINE                       repaired, and the register does not count on the old log
 *
 * A replica that ails has damage inside its log. Whoever follows with such a log is damaged at once; whoever leads goes on
 * until another may, so that what is good of the only log there is can still be read.
 *
 * The high watermark moves only in advance(), which is R5 written down. Each event ends in hold(), where everything
 * that must be true of a replica is asserted: that costs a few comparisons, and a wrong watermark costs records.
 */
#include "daemon/replica/replica.h"

#include <string.h>

#include "daemon/replica/bug.h"
#include "lib/base/check.h"

#define B(role) (1u << REPLICA_##role)

static const uint8_t role_next[REPLICA_ROLES] = {
    [REPLICA_OFFLINE] = B(OFFLINE) | B(TRUNCATING) | B(LEADER) | B(DAMAGED),
    [REPLICA_TRUNCATING] = B(OFFLINE) | B(TRUNCATING) | B(FETCHING) | B(LEADER) | B(DAMAGED),
    [REPLICA_FETCHING] = B(OFFLINE) | B(TRUNCATING) | B(LEADER) | B(DAMAGED),
    [REPLICA_LEADER] = B(OFFLINE) | B(TRUNCATING) | B(LEADER) | B(DAMAGED),
    [REPLICA_DAMAGED] = B(OFFLINE) | B(TRUNCATING) | B(DAMAGED),
};

static void replica_move(struct replica *r, enum replica_role to) /* the only writer of r->role */
{
    KCHECK(role_next[r->role] & (1u << to));
    r->role = to;
}

static uint32_t bit_of(const struct replica *r, int32_t broker_id) /* 0: it is none of the replicas */
{
    int32_t i = state_replica_index(&r->state, broker_id);
    return i < 0 ? 0 : 1u << i;
}

static uint32_t mask_of(const struct replica *r, const int32_t *ids, int32_t n)
{
    uint32_t mask = 0;
    for (int32_t i = 0; i < n; i++)
        mask |= bit_of(r, ids[i]);
    return mask;
}

static uint32_t max_isr(const struct replica *r) /* R4 */
{
    return KLOG_BUG("R4") ? r->isr_mask : r->isr_mask | r->pending_mask;
}

int32_t replica_isr_floor(const struct replica *r)
{
    return state_isr_floor(&r->state, r->min_isr);
}

/* The least log end that every member of the maximal ISR has reported in this epoch; -1 while one has not.
 * The leader's own part is what it has flushed. */
static int64_t least_reported_leo(const struct replica *r)
{
    int64_t least = KLOG_BUG("R5") ? r->leo : r->fleo;
    uint32_t members = max_isr(r);
    for (int32_t i = 0; i < r->state.n_replicas; i++)
        if ((members >> i & 1) != 0 && r->state.replicas[i] != r->me && r->follower[i].leo < least)
            least = r->follower[i].leo;
    return least;
}

/* ---- what holds after each event ---- */
static void hold_as_leader(const struct replica *r)
{
    KINVARIANT("R1", r->state.leader == r->me && (r->state.leader_be == r->be || KLOG_BUG("R1")));
    KINVARIANT("R16", r->leso <= r->leo);
    for (int32_t i = 0; i < r->state.n_replicas; i++)
        KINVARIANT("R6", r->follower[i].leo <= r->leo);
    KINVARIANT("R4", r->pending_mask == 0 || (r->pending_mask & bit_of(r, r->me)) != 0);
}

/* hw_before: what it was before the event. Returns whether hw moved. */
static bool hold(const struct replica *r, int64_t hw_before)
{
    KINVARIANT("S4", r->fleo >= 0 && r->fleo <= r->leo);
    KINVARIANT("R5", r->hw >= 0 && r->hw <= r->leo);
    KINVARIANT("R13", r->hw >= hw_before);
    if (r->role == REPLICA_LEADER)
        hold_as_leader(r);
    else
        KINVARIANT("R4", r->pending_mask == 0);
    return r->hw > hw_before;
}

/* R5. The watermark is frozen while fewer than the floor are in sync, and never goes back. */
static bool advance(struct replica *r)
{
    int64_t before = r->hw;
    if (r->role == REPLICA_LEADER && r->state.n_isr >= replica_isr_floor(r))
        r->hw = MAX(r->hw, least_reported_leo(r));
    return hold(r, before);
}

/* ---- states ---- */
void replica_init(struct replica *r, int32_t me, int64_t be, int64_t leo, int64_t fleo, int64_t hw)
{
    KCHECK(be >= 0 && leo >= 0 && fleo >= 0 && fleo <= leo);
    *r = (struct replica){
        .role = REPLICA_OFFLINE,
        .me = me,
        .be = be,
        .min_isr = 1,
        .damaged_in = -1,
        .leo = leo,
        .fleo = fleo,
        .hw = hw < 0 ? 0 : MIN(hw, leo),
        .since_ms = -1,
        .state = { .leader = -1, .leader_epoch = -1, .version = -1 },
    };
}

/* What the register makes of a replica whose log can be used. */
static enum replica_role role_by_state(const struct replica *r, const struct partition_state *s)
{
    if (s->leader == r->me)
        return s->leader_be == r->be || KLOG_BUG("R1") ? REPLICA_LEADER : REPLICA_OFFLINE;
    return s->leader < 0 || state_replica_index(s, r->me) < 0 ? REPLICA_OFFLINE : REPLICA_TRUNCATING;
}

/* Every new epoch starts from nothing: what followers reported in an older one proves nothing (R6, R9). */
static void begin_epoch(struct replica *r)
{
    for (int32_t i = 0; i < r->state.n_replicas; i++)
        if (!KLOG_BUG("R9-table"))
            r->follower[i] = (struct follower_progress){ .leo = -1, .caught_up_ms = -1 };
    r->dead_mask = 0;
    r->since_ms = -1;
    if (r->role == REPLICA_DAMAGED)
        return;
    replica_move(r, role_by_state(r, &r->state));
    if (r->role == REPLICA_LEADER)
        r->leso = r->leo;
    if (r->ails && replica_follows(r)) {
        replica_move(r, REPLICA_DAMAGED);
        r->damaged_in = r->state.leader_epoch - 1; /* nothing was fetched in this one */
    }
}

/* R1: within one epoch neither the leader nor the set of replicas changes, and versions only grow. Whoever wrote the
 * register may have broken it, so it is a reason to refuse, not an invariant of this process. */
static bool follows_from(const struct partition_state *before, const struct partition_state *s)
{
    if (s->leader_epoch > before->leader_epoch)
        return s->version > before->version;
    return s->leader == before->leader && s->leader_be == before->leader_be && s->n_replicas == before->n_replicas &&
           memcmp(s->replicas, before->replicas, (size_t)s->n_replicas * sizeof s->replicas[0]) == 0;
}

static enum replica_answer judge(const struct replica *r, const struct partition_state *s)
{
    const struct partition_state *now = &r->state;
    if (!state_is_sound(s))
        return REPLICA_CONTRADICTS;
    if ((s->leader_epoch < now->leader_epoch || (s->leader_epoch == now->leader_epoch && s->version < now->version)) &&
        !KLOG_BUG("R15"))
        return REPLICA_OLD;
    if (!follows_from(now, s))
        return REPLICA_CONTRADICTS;
    return s->version == now->version ? REPLICA_KNOWN : REPLICA_TAKEN;
}

enum replica_answer replica_set_state(struct replica *r, const struct partition_state *s)
{
    enum replica_answer a = judge(r, s);
    /* What is known already is no answer to a proposal: that is still under way (R3). */
    if (a != REPLICA_TAKEN && !(a == REPLICA_KNOWN && KLOG_BUG("R3")))
        return a;

    bool new_epoch = s->leader_epoch > r->state.leader_epoch;
    r->state = *s;
    r->isr_mask = mask_of(r, s->isr, s->n_isr);
    /* A higher version decides every proposal that was made on top of a lower one: it is in it, or can never be. */
    r->pending_mask = 0;
    r->unsettled = false;
    if (new_epoch)
        begin_epoch(r);
    advance(r);
    return a;
}

bool replica_would_lead(const struct replica *r, const struct partition_state *s)
{
    return r->role != REPLICA_DAMAGED && s->leader_epoch > r->state.leader_epoch && judge(r, s) == REPLICA_TAKEN &&
           role_by_state(r, s) == REPLICA_LEADER;
}

static void stop_leading(struct replica *r, enum replica_role to)
{
    r->pending_mask = 0;
    r->unsettled = false;
    replica_move(r, to);
}

void replica_set_broker_epoch(struct replica *r, int64_t be)
{
    KCHECK(be >= r->be);
    bool leads_as_another = r->role == REPLICA_LEADER && be != r->be;
    r->be = be;
    if (leads_as_another)
        stop_leading(r, REPLICA_OFFLINE);
    hold(r, r->hw);
}

void replica_set_min_isr(struct replica *r, int32_t min_isr)
{
    KCHECK(min_isr >= 1);
    r->min_isr = min_isr;
    advance(r);
}

/* ---- the log ---- */
bool replica_appended(struct replica *r, int64_t leo)
{
    KCHECK(leo >= r->leo);
    KINVARIANT("R12", r->role == REPLICA_LEADER || r->role == REPLICA_FETCHING);
    r->leo = leo;
    return advance(r);
}

bool replica_flushed(struct replica *r, int64_t fleo)
{
    /* A flush that began before a cut may report more than there is now. */
    if (fleo > r->leo)
        fleo = r->leo;
    if (fleo > r->fleo)
        r->fleo = fleo;
    return advance(r);
}

/* ---- a leader, about followers ---- */
enum kerr replica_fetch_check(const struct replica *r, int32_t broker_id, int64_t be, int32_t leader_epoch)
{
    if (r->role == REPLICA_DAMAGED)
        return KERR_KAFKA_STORAGE_ERROR;
    if (!KLOG_BUG("R6")) {
        if (leader_epoch < r->state.leader_epoch)
            return KERR_FENCED_LEADER_EPOCH;
        if (leader_epoch > r->state.leader_epoch)
            return KERR_UNKNOWN_LEADER_EPOCH;
    }
    int32_t i = state_replica_index(&r->state, broker_id);
    if (r->role != REPLICA_LEADER || i < 0 || broker_id == r->me)
        return KERR_NOT_LEADER_OR_FOLLOWER;
    return be < r->follower[i].be ? KERR_STALE_BROKER_EPOCH : KERR_NONE;
}

bool replica_asks_again(const struct replica *r, int32_t broker_id, int64_t leo)
{
    int32_t i = state_replica_index(&r->state, broker_id);
    return r->role == REPLICA_LEADER && i >= 0 && r->follower[i].leo == leo && r->follower[i].leader_leo > leo;
}

bool replica_follower_fetched(struct replica *r, int32_t broker_id, int64_t be, int64_t leo, int64_t now_ms)
{
    int32_t i = state_replica_index(&r->state, broker_id);
    if (r->role != REPLICA_LEADER || i < 0 || broker_id == r->me || leo < 0 || leo > r->leo)
        return false;

    struct follower_progress *f = &r->follower[i];
    /* It had all at this fetch, or with this one it has what there was at the one before: who is steadily a batch behind
     * does not lag. */
    if (leo == r->leo)
        f->caught_up_ms = now_ms;
    else if (f->leo >= 0 && leo >= f->leader_leo && f->fetched_ms > f->caught_up_ms)
        f->caught_up_ms = f->fetched_ms;
    f->leo = leo;
    f->be = be;
    f->fetched_ms = now_ms;
    f->leader_leo = r->leo;
    return advance(r);
}

/* ---- a follower ---- */
bool replica_may_use_answer(const struct replica *r, int32_t leader_epoch, int64_t offset)
{
    return replica_follows(r) && (r->state.leader_epoch == leader_epoch || KLOG_BUG("R6")) && r->leo == offset;
}

bool replica_may_cut(const struct replica *r, int32_t leader_epoch, int64_t offset)
{
    return r->role == REPLICA_TRUNCATING && replica_may_use_answer(r, leader_epoch, offset);
}

void replica_agreed(struct replica *r)
{
    if (r->role == REPLICA_TRUNCATING)
        replica_move(r, REPLICA_FETCHING);
}

int64_t replica_cut_at(const struct replica *r, int64_t own_end, int64_t their_end)
{
    if (KLOG_BUG("R12"))
        return r->hw;
    return MIN(own_end, MIN(their_end, r->leo));
}

bool replica_truncated(struct replica *r, int64_t leo, int32_t cut_epoch)
{
    KCHECK(leo >= 0 && leo <= r->leo);
    KINVARIANT("R12", r->role == REPLICA_TRUNCATING);
    bool broken = leo < r->hw && cut_epoch >= r->state.recovery;
    r->leo = leo;
    r->fleo = MIN(r->fleo, leo);
    r->hw = MIN(r->hw, leo);
    if (broken)
        replica_damage(r); /* R13 */
    hold(r, r->hw);
    return !broken;
}

void replica_restarted_at(struct replica *r, int64_t start)
{
    KINVARIANT("R12", replica_follows(r));
    KINVARIANT("R13", start >= r->leo);
    r->leo = r->fleo = r->hw = start;
    replica_move(r, REPLICA_TRUNCATING);
    hold(r, r->hw);
}

bool replica_learn_hw(struct replica *r, int64_t leader_hw)
{
    if (r->role != REPLICA_FETCHING)
        return false;

    int64_t before = r->hw;
    r->hw = MAX(r->hw, MIN(leader_hw, r->leo));
    return hold(r, before);
}

/* ---- damage ---- */
void replica_damage(struct replica *r)
{
    if (r->role != REPLICA_DAMAGED)
        r->damaged_in = r->state.leader_epoch;
    stop_leading(r, REPLICA_DAMAGED);
}

void replica_ail(struct replica *r)
{
    r->ails = true;
    if (replica_follows(r))
        replica_damage(r);
}

/* The register counts on it: as a member that may be elected, as the leader, or, in the epoch of the damage, by fetches
 * that the leader remembers. A new epoch makes the leader forget them, and fences those still under way (R6). */
static bool is_counted_on(const struct replica *r)
{
    const struct partition_state *s = &r->state;
    int32_t i = state_isr_index(s, r->me);
    return (i >= 0 && s->isr_be[i] > 0) || (s->leader == r->me && s->leader_be == r->be) ||
           (s->leader >= 0 && r->damaged_in >= 0 && s->leader_epoch <= r->damaged_in && !KLOG_BUG("R1-damage"));
}

bool replica_may_be_repaired(const struct replica *r)
{
    return r->role == REPLICA_DAMAGED && r->state.version >= 0 && (!is_counted_on(r) || KLOG_BUG("S10"));
}

bool replica_repaired(struct replica *r, int64_t leo, int64_t fleo, int64_t hw)
{
    KCHECK(leo >= 0 && fleo >= 0 && fleo <= leo);
    if (!replica_may_be_repaired(r))
        return false;
    r->ails = false;
    r->leo = leo;
    r->fleo = fleo;
    r->hw = hw < 0 ? 0 : MIN(hw, leo);
    replica_move(r, role_by_state(r, &r->state));
    hold(r, r->hw);
    return true;
}

/* ---- changes of the register ---- */
bool replica_has_all(const struct replica *r, int32_t broker_id)
{
    int32_t i = state_replica_index(&r->state, broker_id);
    if (r->role != REPLICA_LEADER || i < 0)
        return false;
    if (broker_id == r->me)
        return true;
    return r->follower[i].leo >= r->hw && (r->follower[i].leo >= r->leso || KLOG_BUG("R9"));
}

/* All, and told by the incarnation that is registered now (R10). */
static bool has_all_now(const struct replica *r, const struct live_broker *b, int32_t index)
{
    return b != NULL && replica_has_all(r, b->id) && (r->follower[index].be == b->be || KLOG_BUG("R10"));
}

static bool lags(const struct replica *r, const struct replica_tick *t, int32_t index)
{
    return t->now_ms - MAX(r->follower[index].caught_up_ms, r->since_ms) > t->lag_max_ms;
}

/* Who has all that there is is caught up at this moment, however long ago it had to ask. */
static void note_time(struct replica *r, const struct replica_tick *t)
{
    if (r->since_ms < 0)
        r->since_ms = t->now_ms;
    r->dead_mask = 0;
    for (int32_t i = 0; i < r->state.n_replicas; i++) {
        const struct live_broker *b = live_find(t->live, t->n_live, r->state.replicas[i]);
        if (b == NULL && r->state.replicas[i] != r->me)
            r->dead_mask |= 1u << i;
        else if (b != NULL && r->follower[i].be == b->be && r->follower[i].leo == r->leo)
            r->follower[i].caught_up_ms = t->now_ms;
    }
}

static void isr_add(struct partition_state *s, int32_t id, int64_t be)
{
    s->isr[s->n_isr] = id;
    s->isr_be[s->n_isr++] = be;
}

static void isr_drop(struct partition_state *s, int32_t at)
{
    s->n_isr--;
    for (int32_t i = at; i < s->n_isr; i++) {
        s->isr[i] = s->isr[i + 1];
        s->isr_be[i] = s->isr_be[i + 1];
    }
    s->isr[s->n_isr] = 0;
    s->isr_be[s->n_isr] = 0;
}

/* R9, R10: who is not in sync and has all joins; a member whose disk may have lost what it had when it joined is taken for
 * complete again once it has all. */
static bool take_in(const struct replica *r, const struct replica_tick *t, struct state_change *c)
{
    bool changed = false;
    for (int32_t i = 0; i < r->state.n_replicas; i++) {
        int32_t id = r->state.replicas[i];
        const struct live_broker *b = live_find(t->live, t->n_live, id);
        int32_t at = state_isr_index(&r->state, id);
        if (id == r->me || !has_all_now(r, b, i))
            continue;
        if (at < 0 && !lags(r, t, i))
            isr_add(&c->to, id, b->be);
        else if (at >= 0 && (c->to.isr_be[at] == 0 || c->to.isr_be[at] < b->base))
            c->to.isr_be[at] = b->be;
        else
            continue;
        if (!KLOG_BUG("R10"))
            state_change_check(c, id, b->be);
        changed = true;
    }
    return changed;
}

/* R8: the dead first, then those that lag, as far as the floor allows. */
static bool leave_out(const struct replica *r, const struct replica_tick *t, struct partition_state *to)
{
    int32_t before = to->n_isr;
    for (int dead = 1; dead >= 0; dead--)
        for (int32_t at = to->n_isr - 1; at >= 0 && to->n_isr > replica_isr_floor(r); at--) {
            int32_t i = state_replica_index(to, to->isr[at]);
            bool is_bad = dead ? (r->dead_mask >> i & 1) != 0 : lags(r, t, i);
            if (to->isr[at] != r->me && is_bad)
                isr_drop(to, at);
        }
    return to->n_isr < before;
}

/* The leader changes the in-sync set. A list of changes each of which the rules allow after the one before it. */
static bool propose_isr(const struct replica *r, const struct replica_tick *t, struct state_change *c)
{
    bool changed = take_in(r, t, c);
    changed |= leave_out(r, t, &c->to);
    return changed || r->unsettled;
}

/* This replica counts for nothing: it is in sync no more, so that nobody waits for it, or, where the floor needs a member,
 * may not be elected (R8, R11). */
static void count_out_me(const struct replica *r, struct partition_state *to)
{
    int32_t at = state_isr_index(to, r->me);
    if (at >= 0 && to->n_isr > replica_isr_floor(r))
        isr_drop(to, at);
    else if (at >= 0)
        to->isr_be[at] = 0;
}

/* A leader that ails, as soon as another may lead. */
static bool propose_stepping_down(const struct replica *r, const struct replica_tick *t, struct state_change *c)
{
    const struct live_broker *b = r->ails ? state_successor(&c->to, t->live, t->n_live, r->me) : NULL;
    if (b == NULL)
        return false;
    count_out_me(r, &c->to);
    state_change_check(c, b->id, b->be);
    return state_change_leader(c, b);
}

/* In a new epoch, in which this replica may not be elected; who leads goes on, or another takes over. */
static bool propose_confession(const struct replica *r, const struct replica_tick *t, struct state_change *c)
{
    if (!is_counted_on(r))
        return false;
    count_out_me(r, &c->to);
    if (c->to.leader != r->me || c->to.leader_be != r->be)
        return KLOG_BUG("R1-damage") || state_change_next_epoch(c);
    const struct live_broker *b = state_successor(&c->to, t->live, t->n_live, r->me);
    if (b != NULL)
        state_change_check(c, b->id, b->be);
    return state_change_leader(c, b);
}

void replica_set_full(struct replica *r, bool full)
{
    r->full = full;
}

static bool is_led(const struct replica *r, const struct replica_tick *t)
{
    const struct live_broker *b = live_find(t->live, t->n_live, r->state.leader);
    return b != NULL && b->be == r->state.leader_be;
}

/* There is no room here. Who keeps the others waiting makes way; it is counted on for what it has, as before. */
static bool propose_room(const struct replica *r, const struct replica_tick *t, struct state_change *c)
{
    if (!r->full)
        return false;
    if (r->role == REPLICA_LEADER) {
        bool is_new = t->now_ms - r->since_ms < REPLICA_FULL_AGAIN_MS;
        const struct live_broker *b = is_new ? NULL : state_successor(&c->to, t->live, t->n_live, r->me);
        if (b == NULL)
            return false;
        state_change_check(c, b->id, b->be);
        return state_change_leader(c, b);
    }
    int32_t at = state_isr_index(&c->to, r->me);
    if (at < 0 || c->to.n_isr <= replica_isr_floor(r) || !is_led(r, t))
        return false;
    isr_drop(&c->to, at);
    return state_change_next_epoch(c);
}

bool replica_tick(struct replica *r, const struct replica_tick *t, struct state_change *ret)
{
    if (r->role == REPLICA_LEADER)
        note_time(r, t);
    if (r->in_flight || r->role == REPLICA_OFFLINE)
        return false;
    state_change_begin(ret, &r->state, r->me, r->be);
    if (r->role == REPLICA_DAMAGED)
        return propose_confession(r, t, ret);
    if (r->role != REPLICA_LEADER)
        return propose_room(r, t, ret);
    return propose_stepping_down(r, t, ret) || propose_room(r, t, ret) || propose_isr(r, t, ret);
}

bool replica_proposal_sent(struct replica *r, const struct state_change *c)
{
    if (r->in_flight || c->to.version != r->state.version || (c->check[0].be != r->be && !KLOG_BUG("R2")))
        return false;
    if (r->role == REPLICA_LEADER && c->to.leader_epoch == r->state.leader_epoch)
        r->pending_mask |= mask_of(r, c->to.isr, c->to.n_isr);
    r->in_flight = true;
    r->sent_version = c->to.version;
    hold(r, r->hw);
    return true;
}

bool replica_proposal_confirmed(struct replica *r, const struct state_change *c, int64_t version)
{
    struct partition_state s = c->to;
    int64_t before = r->hw;
    r->in_flight = false;
    s.version = version;
    replica_set_state(r, &s);
    return hold(r, before);
}

bool replica_proposal_failed(struct replica *r)
{
    r->in_flight = false;
    if (!r->unsettled)
        r->pending_mask = 0;
    return advance(r);
}

void replica_proposal_unknown(struct replica *r)
{
    r->in_flight = false;
    if (r->role == REPLICA_LEADER && r->state.version == r->sent_version)
        r->unsettled = true;
    hold(r, r->hw);
}

/* ---- questions ---- */
bool replica_leads(const struct replica *r)
{
    return r->role == REPLICA_LEADER;
}

bool replica_follows(const struct replica *r)
{
    return r->role == REPLICA_TRUNCATING || r->role == REPLICA_FETCHING;
}

bool replica_has_min_isr(const struct replica *r)
{
    return r->state.n_isr - __builtin_popcount(r->isr_mask & r->dead_mask) >= r->min_isr;
}

bool replica_committed(const struct replica *r, int64_t last_offset)
{
    return r->hw > last_offset;
}

bool replica_hw_is_current(const struct replica *r)
{
    return r->role != REPLICA_LEADER || r->hw >= r->leso;
}

bool replica_is_in_max_isr(const struct replica *r, int32_t broker_id)
{
    return (max_isr(r) & bit_of(r, broker_id)) != 0;
}
