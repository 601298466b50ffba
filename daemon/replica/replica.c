/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles move only in replica_move(), by this picture:
 *
 *     OFFLINE <---> FOLLOWER <---> LEADER          a register state of a higher epoch decides
 *        |             |             |
 *        +-------------+-------------+--> DAMAGED  the disk failed, or the log was cut below hw; stays
 *
 * The high watermark moves only in advance(), which is R5 written down. Each event ends in hold(), where everything
 * that must be true of a replica is asserted: that costs a few comparisons, and a wrong watermark costs records.
 */
#include "daemon/replica/replica.h"

#include <string.h>

#include "lib/base/check.h"

#define B(role) (1u << REPLICA_##role)

static const uint8_t role_next[REPLICA_ROLES] = {
    [REPLICA_OFFLINE] = B(OFFLINE) | B(FOLLOWER) | B(LEADER) | B(DAMAGED),
    [REPLICA_FOLLOWER] = B(OFFLINE) | B(FOLLOWER) | B(LEADER) | B(DAMAGED),
    [REPLICA_LEADER] = B(OFFLINE) | B(FOLLOWER) | B(LEADER) | B(DAMAGED),
    [REPLICA_DAMAGED] = B(DAMAGED),
};

static void replica_move(struct replica *r, enum replica_role to) /* the only writer of r->role */
{
    KCHECK(role_next[r->role] & (1u << to));
    r->role = to;
}

static int32_t id_index(const int32_t *ids, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return i;
    return -1;
}

static bool in_isr(const struct replica *r, int32_t id)
{
    return id_index(r->state.isr, r->state.n_isr, id) >= 0;
}

static bool in_max_isr(const struct replica *r, int32_t id) /* R4 */
{
    return in_isr(r, id) || id_index(r->pending_isr, r->n_pending, id) >= 0;
}

int32_t replica_isr_floor(const struct replica *r)
{
    return r->min_isr < r->state.n_replicas ? r->min_isr : r->state.n_replicas;
}

/* The least log end that every member of the maximal ISR has reported in this epoch; -1 while one has not.
 * The leader's own part is what it has flushed. */
static int64_t least_reported_leo(const struct replica *r)
{
    int64_t least = r->fleo;
    for (int32_t i = 0; i < r->state.n_replicas; i++) {
        const struct follower_progress *f = &r->follower[i];
        if (f->broker_id != r->me && in_max_isr(r, f->broker_id) && f->leo < least)
            least = f->leo;
    }
    return least;
}

/* ---- what holds after each event ---- */
static void hold_as_leader(const struct replica *r)
{
    KINVARIANT("R1", r->state.leader == r->me);
    KINVARIANT("R16", r->leso <= r->leo);
    for (int32_t i = 0; i < r->state.n_replicas; i++)
        KINVARIANT("R6", r->follower[i].broker_id == r->state.replicas[i] && r->follower[i].leo <= r->leo);
    KINVARIANT("R4", r->n_pending == 0 || id_index(r->pending_isr, r->n_pending, r->me) >= 0);
}

/* hw_before: what it was before the event. Returns whether hw moved. */
static bool hold(const struct replica *r, int64_t hw_before)
{
    KINVARIANT("S4", r->fleo >= 0 && r->fleo <= r->leo);
    KINVARIANT("R5", r->hw >= 0 && r->hw <= r->leo);
    KINVARIANT("R13", r->hw >= hw_before || r->role == REPLICA_DAMAGED);
    if (r->role == REPLICA_LEADER)
        hold_as_leader(r);
    else
        KINVARIANT("R4", r->n_pending == 0 || r->role == REPLICA_DAMAGED);
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

void replica_init(struct replica *r, int32_t me, int64_t leo, int64_t fleo, int64_t hw)
{
    KCHECK(leo >= 0 && fleo >= 0 && fleo <= leo);
    *r = (struct replica){
        .role = REPLICA_OFFLINE,
        .me = me,
        .min_isr = 1,
        .leo = leo,
        .fleo = fleo,
        .hw = hw < 0 ? 0 : MIN(hw, leo),
        .state = { .leader = -1, .leader_epoch = -1, .version = -1 },
    };
}

/* Every new epoch starts from nothing: what followers reported in an older one proves nothing (R6, R9). */
static void begin_epoch(struct replica *r)
{
    for (int32_t i = 0; i < r->state.n_replicas; i++)
        r->follower[i] = (struct follower_progress){ .broker_id = r->state.replicas[i], .leo = -1 };
    if (r->role == REPLICA_DAMAGED)
        return;
    if (r->state.leader == r->me) {
        replica_move(r, REPLICA_LEADER);
        r->leso = r->leo;
    } else {
        bool hosted = id_index(r->state.replicas, r->state.n_replicas, r->me) >= 0;
        replica_move(r, hosted ? REPLICA_FOLLOWER : REPLICA_OFFLINE);
    }
}

/* R1: within one epoch neither the leader nor the set of replicas changes. Whoever wrote the register may have
 * broken it, so it is a reason to refuse, not an invariant of this process. */
static bool is_one_epochs_state(const struct partition_state *before, const struct partition_state *s)
{
    return s->leader == before->leader && s->n_replicas == before->n_replicas &&
           memcmp(s->replicas, before->replicas, (size_t)s->n_replicas * sizeof s->replicas[0]) == 0;
}

bool replica_set_state(struct replica *r, const struct partition_state *s)
{
    KCHECK(s->n_replicas >= 0 && s->n_replicas <= REPLICA_MAX);
    KCHECK(s->n_isr >= 0 && s->n_isr <= REPLICA_MAX);
    if (s->leader_epoch < r->state.leader_epoch ||
        (s->leader_epoch == r->state.leader_epoch && s->version < r->state.version))
        return false;

    bool new_epoch = s->leader_epoch > r->state.leader_epoch;
    if (!new_epoch && !is_one_epochs_state(&r->state, s))
        return false;
    /* What is known already is no answer to a proposal: that is still under way (R4). */
    if (!new_epoch && s->version == r->state.version)
        return true;
    r->state = *s;
    r->n_pending = 0;
    if (new_epoch)
        begin_epoch(r);
    advance(r);
    return true;
}

void replica_set_min_isr(struct replica *r, int32_t min_isr)
{
    KCHECK(min_isr >= 1);
    r->min_isr = min_isr;
    advance(r);
}

bool replica_appended(struct replica *r, int64_t leo)
{
    KCHECK(leo >= r->leo);
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

bool replica_follower_fetched(struct replica *r, int32_t broker_id, int64_t leo)
{
    int32_t i = id_index(r->state.replicas, r->state.n_replicas, broker_id);
    if (r->role != REPLICA_LEADER || i < 0 || broker_id == r->me)
        return false;

    r->follower[i].leo = leo > r->leo ? r->leo : leo;
    return advance(r);
}

bool replica_learn_hw(struct replica *r, int64_t leader_hw)
{
    if (r->role != REPLICA_FOLLOWER)
        return false;

    int64_t before = r->hw;
    r->hw = MAX(r->hw, MIN(leader_hw, r->leo));
    return hold(r, before);
}

bool replica_truncated(struct replica *r, int64_t leo)
{
    KCHECK(leo >= 0 && leo <= r->leo);
    int64_t before = r->hw;
    bool lost = leo < r->hw;
    r->leo = leo;
    r->fleo = MIN(r->fleo, leo);
    r->hw = MIN(r->hw, leo);
    if (lost)
        replica_damage(r);
    hold(r, before);
    return !lost;
}

void replica_damage(struct replica *r)
{
    replica_move(r, REPLICA_DAMAGED);
}

bool replica_propose_isr(struct replica *r, const int32_t *isr, int32_t n)
{
    KCHECK(n >= 0 && n <= REPLICA_MAX);
    if (r->role != REPLICA_LEADER || r->n_pending > 0 || id_index(isr, n, r->me) < 0)
        return false;
    if (n < r->state.n_isr && n < replica_isr_floor(r))
        return false; /* R8 */
    for (int32_t i = 0; i < n; i++)
        if (!in_isr(r, isr[i]) && !replica_may_join(r, isr[i]))
            return false; /* R9 */

    memcpy(r->pending_isr, isr, (size_t)n * sizeof *isr);
    r->n_pending = n;
    hold(r, r->hw);
    return true;
}

bool replica_proposal_failed(struct replica *r)
{
    r->n_pending = 0;
    return advance(r);
}

bool replica_leads(const struct replica *r)
{
    return r->role == REPLICA_LEADER;
}

bool replica_has_min_isr(const struct replica *r)
{
    return r->state.n_isr >= r->min_isr;
}

bool replica_committed(const struct replica *r, int64_t last_offset)
{
    return r->hw > last_offset;
}

bool replica_may_join(const struct replica *r, int32_t broker_id)
{
    int32_t i = id_index(r->state.replicas, r->state.n_replicas, broker_id);
    if (r->role != REPLICA_LEADER || i < 0)
        return false;
    return broker_id == r->me || (r->follower[i].leo >= r->hw && r->follower[i].leo >= r->leso);
}

bool replica_hw_is_current(const struct replica *r)
{
    return r->role != REPLICA_LEADER || r->hw >= r->leso;
}
