/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elections; see election.h. Pure.
 *
 *     led, by another               nothing
 *     led, by this broker           nothing; draining: hand over to the first other that may lead (R11)
 *     not led, some may lead        those in the order of the replicas, each ELECTION_RANK_MS after the one before; who
 *                                   knows of damage inside its log behind all others
 *     not led, nobody may lead      as `recovery` says; the epoch is then noted in the register, which lets followers cut
 *                                   what they know to be committed (R13)
 */
#include "daemon/replica/election.h"

#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"

static const struct live_broker *live_of(const struct election_input *in, int32_t id)
{
    return live_find(in->live, in->n_live, id);
}

static bool may_lead(const struct election_input *in, int32_t id)
{
    return state_may_lead(in->state, in->live, in->n_live, id);
}

/* How many of the replicas come before this broker among those for which `stands` is true; -1: it is none of them. */
static int32_t rank_of_me(const struct election_input *in, bool (*stands)(const struct election_input *in, int32_t id))
{
    int32_t rank = 0;
    if (!stands(in, in->me))
        return -1;
    for (int32_t i = 0; i < in->state->n_replicas && in->state->replicas[i] != in->me; i++)
        rank += stands(in, in->state->replicas[i]);
    return rank;
}

static void take(const struct election_input *in, bool loss, struct election *ret)
{
    const struct live_broker *me = live_of(in, in->me);
    struct partition_state *to = &ret->change.to;
    state_change_begin(&ret->change, in->state, in->me, in->be);
    if (!state_change_leader(&ret->change, me))
        return;
    ret->what = loss ? ELECTION_TAKE_LOSS : ELECTION_TAKE;
    if (!loss)
        return;
    /* What the others have may part from this log: none of them may be elected without having followed it. */
    to->recovery = to->leader_epoch;
    memset(to->isr, 0, sizeof to->isr);
    memset(to->isr_be, 0, sizeof to->isr_be);
    to->n_isr = 1;
    to->isr[0] = in->me;
    to->isr_be[0] = in->be;
}

/* In its turn. */
static void stand(const struct election_input *in, int32_t rank, bool loss, struct election *ret)
{
    int64_t at_ms = (int64_t)rank * ELECTION_RANK_MS;
    if (in->leaderless_ms < at_ms) {
        ret->what = ELECTION_WAIT;
        ret->wait_ms = at_ms - in->leaderless_ms;
        return;
    }
    take(in, loss, ret);
}

/* ---- nobody may lead ---- */
static bool is_live_member(const struct election_input *in, int32_t id)
{
    return state_isr_index(in->state, id) >= 0 && live_of(in, id) != NULL;
}

static bool is_live_replica(const struct election_input *in, int32_t id)
{
    return state_replica_index(in->state, id) >= 0 && live_of(in, id) != NULL;
}

static void stand_proactively(const struct election_input *in, struct election *ret)
{
    bool a_member_lives = false;
    for (int32_t i = 0; i < in->state->n_isr; i++)
        a_member_lives |= is_live_member(in, in->state->isr[i]);
    int32_t rank = rank_of_me(in, a_member_lives ? is_live_member : is_live_replica);
    if (rank >= 0)
        stand(in, rank, true, ret);
}

static const struct election_claim *claim_of(const struct election_input *in, int32_t id)
{
    const struct live_broker *b = live_of(in, id);
    for (size_t i = 0; b != NULL && i < in->n_claims; i++)
        if (in->claims[i].id == id && in->claims[i].be == b->be)
            return &in->claims[i];
    return NULL;
}

static bool is_longer(const struct election_claim *a, const struct election_claim *b)
{
    return a->last_epoch != b->last_epoch ? a->last_epoch > b->last_epoch : a->leo > b->leo;
}

/* The member with the longest log; NULL: not all of them have spoken yet. */
static const struct election_claim *longest_claim(const struct election_input *in)
{
    const struct partition_state *s = in->state;
    const struct election_claim *best = NULL;
    for (int32_t i = 0; i < s->n_replicas; i++) {
        if (state_isr_index(s, s->replicas[i]) < 0)
            continue;
        const struct election_claim *c = claim_of(in, s->replicas[i]);
        if (c == NULL)
            return NULL;
        if (best == NULL || is_longer(c, best))
            best = c;
    }
    return best;
}

/* When every member is there and none provably has everything, the one with most. */
static void stand_balanced(const struct election_input *in, struct election *ret)
{
    const struct partition_state *s = in->state;
    if (state_isr_index(s, in->me) < 0)
        return;
    for (int32_t i = 0; i < s->n_isr; i++)
        if (!is_live_member(in, s->isr[i]))
            return;
    if (claim_of(in, in->me) == NULL) {
        ret->what = ELECTION_CLAIM;
        return;
    }
    const struct election_claim *best = longest_claim(in);
    if (best == NULL || best->id != in->me || in->damaged)
        return;
    take(in, true, ret);
    for (int32_t i = 0; i < s->n_isr && ret->what == ELECTION_TAKE_LOSS; i++)
        if (s->isr[i] != in->me)
            state_change_check(&ret->change, s->isr[i], live_of(in, s->isr[i])->be);
}

/* ---- all of it ---- */
static void hand_over(const struct election_input *in, const struct live_broker *to, struct state_change *c, bool *ret_done)
{
    state_change_begin(c, in->state, in->me, in->be);
    state_change_check(c, to->id, to->be);
    *ret_done = state_change_leader(c, to);
}

static void decide_led(const struct election_input *in, struct election *ret)
{
    bool done = false;
    if (!in->draining || in->state->leader != in->me)
        return;
    const struct live_broker *b = state_successor(in->state, in->live, in->n_live, in->me);
    if (b != NULL)
        hand_over(in, b, &ret->change, &done);
    if (done)
        ret->what = ELECTION_HAND_OVER;
}

static void decide_not_led(const struct election_input *in, struct election *ret)
{
    if (state_successor(in->state, in->live, in->n_live, -1) != NULL) {
        int32_t rank = rank_of_me(in, may_lead);
        if (rank >= 0 && !in->damaged)
            stand(in, in->ails ? rank + in->state->n_replicas : rank, false, ret);
        return;
    }
    if (in->recovery == RECOVERY_BALANCED)
        stand_balanced(in, ret);
    if (in->recovery == RECOVERY_PROACTIVE && !in->damaged)
        stand_proactively(in, ret);
}

void election_decide(const struct election_input *in, struct election *ret)
{
    const struct live_broker *me = live_of(in, in->me);
    ret->what = ELECTION_NOTHING;
    ret->wait_ms = 0;
    if (!state_is_sound(in->state) || state_replica_index(in->state, in->me) < 0 || me == NULL || me->be != in->be)
        return;
    if (state_is_led(in->state, in->live, in->n_live))
        decide_led(in, ret);
    else if (!in->draining)
        decide_not_led(in, ret);
}

bool election_to_preferred(const struct election_input *in, struct state_change *ret)
{
    const struct partition_state *s = in->state;
    bool done = false;
    if (!state_is_sound(s) || s->leader != in->me || s->replicas[0] == in->me ||
        !state_is_led(s, in->live, in->n_live) || !may_lead(in, s->replicas[0]))
        return false;
    hand_over(in, live_of(in, s->replicas[0]), ret, &done);
    return done;
}
