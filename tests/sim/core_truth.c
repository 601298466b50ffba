/* SPDX-License-Identifier: Apache-2.0 */
/* What must be true in the core simulator; see core.h. Looks at logs, the register and requests, never at what a broker thinks of them. */
#include "tests/sim/core.h"

#include <string.h>

#include "lib/base/attr.h"

static int32_t floor_of(const struct core *c)
{
    return MIN(c->min_isr, c->n_brokers);
}

static bool same(const struct core_record *a, const struct core_record *b)
{
    return a->epoch == b->epoch && a->id == b->id;
}

/* Records that the log has as they were committed, from the beginning on. */
static int32_t common(const struct core *c, const struct core_log *l)
{
    int32_t n = 0;
    while (n < l->n && n < c->n_committed && same(&l->at[n], &c->committed[n]))
        n++;
    return n;
}

static bool has_all_committed(const struct core *c, int who)
{
    const struct core_log *l = &c->b[who].log;
    return (size_t)c->n_committed <= (size_t)(c->commit ? l->synced : l->n) &&
           memcmp(l->at, c->committed, (size_t)c->n_committed * sizeof l->at[0]) == 0;
}

/* By the register it may be elected, once it is registered. */
static bool claim_is_valid(const struct core *c, const struct partition_state *s, int who)
{
    int32_t at = state_isr_index(s, who + 1);
    return at >= 0 && s->isr_be[at] > 0 && s->isr_be[at] >= c->base[who];
}

static bool is_provable(const struct core *c, int who)
{
    return claim_is_valid(c, core_register(c), who) && !c->b[who].is_unproven && !c->b[who].is_damaged && !c->b[who].ails;
}

static int count_provable(const struct core *c)
{
    int n = 0;
    for (int i = 0; i < c->n_brokers; i++)
        n += is_provable(c, i);
    return n;
}

bool core_may_lose(struct core *c, int who)
{
    int n = 0;
    for (int i = 0; i < c->n_brokers; i++)
        n += i != who && c->lost[i];
    if (!c->lossy && n >= floor_of(c) - 1)
        return false;
    c->lost[who] = true;
    return true;
}

void core_truth_begin(struct core *c)
{
    c->n_committed = 0;
    memset(c->made, 0, sizeof c->made);
    memset(c->committed_at, 0, sizeof c->committed_at);
    memset(c->seen, 0, sizeof c->seen);
    c->n_ids = 0;
    c->lost_in = 0;
    memset(c->lost, 0, sizeof c->lost);
    c->is_healthy = true;
    c->steps = 0;
}

/* ---- the register ---- */
static void judge_members(const struct core *c, const struct partition_state *before, const struct partition_state *s)
{
    for (int32_t i = 0; i < s->n_isr; i++) {
        int32_t at = state_isr_index(before, s->isr[i]);
        int who = s->isr[i] - 1;
        if ((at >= 0 && before->isr_be[at] == s->isr_be[i]) || s->isr_be[i] == 0)
            continue;
        if (s->isr_be[i] != c->be[who])
            core_fail(c, "R10", "broker %d joins as of broker epoch %lld, and has %lld", s->isr[i], (long long)s->isr_be[i],
                      (long long)c->be[who]);
        if (c->b[who].is_damaged && c->b[who].owned_up)
            core_fail(c, "R9", "broker %d is believed again, and has said that it is damaged", s->isr[i]);
        if (!c->b[who].is_damaged && !c->b[who].is_unproven && !has_all_committed(c, who))
            core_fail(c, "R9", "broker %d joins with %d of %d committed records", s->isr[i], common(c, &c->b[who].log), c->n_committed);
    }
}

static void lose_by_recovery(struct core *c, const struct partition_state *s)
{
    const struct core_log *l = &c->b[s->leader - 1].log;
    int32_t n = MIN(common(c, l), c->commit ? l->synced : l->n);
    if (!c->lossy && c->recovery != RECOVERY_PROACTIVE)
        core_fail(c, "R11", "broker %d is elected with loss, and nothing that the rules cover had been lost", s->leader);
    if (n < c->n_committed)
        core_mark(CORE_MARK_records_lost_by_recovery);
    c->n_committed = n;
    c->lost_in = s->leader_epoch;
    c->is_healthy = false;
}

static void judge_election(struct core *c, const struct partition_state *before, const struct partition_state *s)
{
    if (s->leader < 0 || (s->leader == before->leader && s->leader_be == before->leader_be))
        return;
    if (s->recovery == s->leader_epoch)
        lose_by_recovery(c, s);
    else if (!claim_is_valid(c, before, s->leader - 1))
        core_fail(c, "R11", "broker %d is elected and has no valid claim", s->leader);
}

void core_truth_written(struct core *c, const struct core_request *q, const struct partition_state *before)
{
    const struct partition_state *s = core_register(c);
    bool led_anew = s->leader != before->leader || s->leader_be != before->leader_be;
    int32_t step = s->leader_epoch - before->leader_epoch;
    if (q->be != c->be[q->from])
        core_fail(c, "R2", "broker %d wrote as of broker epoch %lld, and has %lld", q->from + 1, (long long)q->be, (long long)c->be[q->from]);
    if (step < (led_anew ? 1 : 0) || step > 1 || s->version != before->version + 1)
        core_fail(c, "R1", "epoch %d after %d, version %lld after %lld", s->leader_epoch, before->leader_epoch, (long long)s->version,
                  (long long)before->version);
    if (!state_is_sound(s) || s->n_replicas != before->n_replicas)
        core_fail(c, "R1", "the register is malformed");
    judge_election(c, before, s);
    if (s->recovery != s->leader_epoch || !led_anew) {
        if (s->n_isr < floor_of(c) && s->n_isr < before->n_isr)
            core_fail(c, "R8", "%d in sync are left of %d", s->n_isr, before->n_isr);
        judge_members(c, before, s);
    }
    if (c->b[q->from].is_damaged && q->why == ELECTION_NOTHING)
        c->b[q->from].owned_up = true;
    if (step > 0)
        c->committed_at[s->leader_epoch] = c->n_committed;
}

void core_truth_mended(const struct core *c, int who)
{
    if (claim_is_valid(c, core_register(c), who))
        core_fail(c, "S10", "broker %d cuts a log that counts as in sync", who + 1);
}

/* ---- the logs ---- */
static int32_t epoch_before(const struct core_log *l, int32_t offset)
{
    return offset == 0 ? -1 : l->at[offset - 1].epoch;
}

void core_truth_made(struct core *c, int who, int32_t offset)
{
    const struct core_log *l = &c->b[who].log;
    const struct core_record *r = &l->at[offset];
    if (c->made[r->epoch][offset].id != 0)
        core_fail(c, "R1", "two records at offset %d of epoch %d", offset, r->epoch);
    c->made[r->epoch][offset].id = r->id;
    c->made[r->epoch][offset].epoch_before = epoch_before(l, offset);
}

void core_truth_copied(struct core *c, int who, int32_t offset)
{
    const struct core_log *l = &c->b[who].log;
    const struct core_record *r = &l->at[offset];
    if (c->made[r->epoch][offset].id != r->id)
        core_fail(c, "R14", "broker %d has another record at offset %d of epoch %d", who + 1, offset, r->epoch);
    if (c->made[r->epoch][offset].epoch_before != epoch_before(l, offset))
        core_fail(c, "R12", "broker %d has the record at offset %d of epoch %d after one of epoch %d, and it was made after one of %d", who + 1,
                  offset, r->epoch, epoch_before(l, offset), c->made[r->epoch][offset].epoch_before);
}

void core_truth_cut(struct core *c, int who, int32_t from, int32_t to)
{
    const struct core_log *l = &c->b[who].log;
    for (int32_t i = from; i < to && i < c->n_committed; i++)
        if (same(&l->at[i], &c->committed[i]))
            core_fail(c, "R13", "broker %d cuts the committed record at offset %d", who + 1, i);
}

void core_truth_fetched(struct core *c, int leader, const struct core_message *m)
{
    const struct replica *r = &c->b[leader].r;
    if (m->epoch != r->state.leader_epoch)
        core_fail(c, "R6", "broker %d took a fetch of epoch %d in %d", leader + 1, m->epoch, r->state.leader_epoch);
}

void core_truth_used(struct core *c, int follower, const struct core_message *m)
{
    const struct replica *r = &c->b[follower].r;
    if (m->epoch != r->state.leader_epoch || m->to + 1 != r->state.leader || m->offset != c->b[follower].log.n)
        core_fail(c, "R6", "broker %d used an answer of epoch %d in %d", follower + 1, m->epoch, r->state.leader_epoch);
}

/* ---- after each step ---- */
/* What a leader's watermark passes is committed. */
static void commit(struct core *c, int who)
{
    const struct core_broker *b = &c->b[who];
    int64_t from = MIN(c->hw_seen[who], c->n_committed);
    if (b->r.hw > c->hw_seen[who] && b->r.state.n_isr < floor_of(c))
        core_fail(c, "R5", "broker %d moves its watermark with %d in sync", who + 1, b->r.state.n_isr);
    if (b->r.hw > c->hw_seen[who] && c->commit && b->r.hw > b->log.synced)
        core_fail(c, "R5", "broker %d moves its watermark to %lld, and has synced %d", who + 1, (long long)b->r.hw, b->log.synced);
    if (b->r.state.leader_epoch < c->lost_in)
        return; /* an election that may lose records has taken place without its knowledge */
    for (int64_t i = from; i < (c->commit ? MIN(b->r.hw, b->log.synced) : b->r.hw); i++) {
        if (i < c->n_committed && !same(&b->log.at[i], &c->committed[i]))
            core_fail(c, "R18", "broker %d commits another record at offset %lld", who + 1, (long long)i);
        if (i >= c->n_committed)
            c->committed[c->n_committed++] = b->log.at[i];
    }
}

static void follow_hw(struct core *c, int who)
{
    const struct core_broker *b = &c->b[who];
    if (b->r.hw != c->hw_seen[who])
        core_say(c, "broker %d: watermark %lld, role %d epoch %d, log %d synced %d", who + 1, (long long)b->r.hw, (int)b->r.role,
                 b->r.state.leader_epoch, b->log.n, b->log.synced);
    /* Who was elected with loss may have gone on copying until it heard of that; and a member that had been away may have kept what
     * was given up. */
    if (replica_leads(&b->r) && (b->r.hw > c->hw_seen[who] || (c->lost_in > 0 && b->r.hw > c->n_committed)))
        commit(c, who);
    bool rose = b->r.hw > c->hw_seen[who];
    c->hw_seen[who] = b->r.hw;
    if (b->r.state.leader_epoch < c->lost_in || (c->lost_in > 0 && !rose) || !(b->r.role == REPLICA_LEADER || b->r.role == REPLICA_FETCHING))
        return;
    if (b->r.hw > c->n_committed || memcmp(b->log.at, c->committed, (size_t)b->r.hw * sizeof b->log.at[0]) != 0)
        core_fail(c, "R5", "broker %d takes %lld records for committed, and %d of %d are there", who + 1, (long long)b->r.hw,
                  common(c, &b->log), c->n_committed);
}

static void judge_max_isr(const struct core *c, int who)
{
    const struct replica *r = &c->b[who].r;
    const struct partition_state *s = core_register(c);
    if (!replica_leads(r) || r->state.leader_epoch != s->leader_epoch)
        return;
    for (int32_t i = 0; i < s->n_isr; i++)
        if (!replica_is_in_max_isr(r, s->isr[i]))
            core_fail(c, "R3", "broker %d is in sync by the register, which the leader does not reckon with", s->isr[i]);
    for (uint32_t k = 0; c->n_under_way > 0 && k < MIN(c->n_requests, CORE_REQUESTS); k++) {
        const struct core_request *q = &c->requests[k];
        if (!q->under_way || q->from != who || q->be != c->be[who] || q->change.to.version != c->version ||
            q->change.to.leader_epoch != s->leader_epoch)
            continue;
        if (q->change.to.n_isr > s->n_isr)
            core_mark(CORE_MARK_two_sets_count);
        for (int32_t i = 0; i < q->change.to.n_isr; i++)
            if (!replica_is_in_max_isr(r, q->change.to.isr[i]))
                core_fail(c, "R4", "broker %d may be in sync by a write under way, which the leader does not reckon with",
                          q->change.to.isr[i]);
    }
    if (replica_hw_is_current(r) && r->hw < c->committed_at[s->leader_epoch])
        core_fail(c, "R16", "the leader's watermark is %lld, and %d records were committed before its epoch", (long long)r->hw,
                  c->committed_at[s->leader_epoch]);
}

static void judge_view(struct core *c, int who)
{
    const struct core_broker *b = &c->b[who];
    const struct partition_state *s = &b->r.state;
    if (c->seen[who].life == b->life &&
        (s->leader_epoch < c->seen[who].epoch || (s->leader_epoch == c->seen[who].epoch && s->version < c->seen[who].version)))
        core_fail(c, "R15", "broker %d goes back from epoch %d to %d", who + 1, c->seen[who].epoch, s->leader_epoch);
    c->seen[who].life = b->life;
    c->seen[who].epoch = s->leader_epoch;
    c->seen[who].version = s->version;
}

void core_truth_step(struct core *c)
{
    c->steps++;
    for (int i = 0; i < c->n_brokers; i++) {
        if (!c->b[i].running) {
            c->hw_seen[i] = c->b[i].hw_saved;
            continue;
        }
        judge_view(c, i);
        follow_hw(c, i);
        judge_max_isr(c, i);
    }
    int provable = count_provable(c);
    for (int i = 0; i < c->n_brokers; i++)
        if (is_provable(c, i) && !has_all_committed(c, i))
            core_fail(c, "R18", "broker %d may be elected with %d of %d committed records", i + 1, common(c, &c->b[i].log), c->n_committed);
    if (!c->lossy && c->is_healthy && provable == 0)
        core_fail(c, "R18", "nobody provably has everything, and fewer than the floor have lost something");
    c->is_healthy = c->is_healthy || provable >= floor_of(c);
    for (int i = 0; i < c->n_brokers; i++)
        if (is_provable(c, i) || (state_isr_index(core_register(c), i + 1) < 0 && !c->b[i].is_unproven && !c->b[i].is_damaged && !c->b[i].ails))
            c->lost[i] = false;
}

/* ---- the end ---- */
/* By what is alive, and by how recovery is set, must the partition be led? */
static bool must_be_led(const struct core *c)
{
    const struct partition_state *s = core_register(c);
    bool all_members_up = true, an_undamaged_one = false;
    for (int i = 0; i < c->n_brokers; i++) {
        if (c->b[i].up && is_provable(c, i))
            return true;
        if (state_isr_index(s, i + 1) >= 0) {
            all_members_up = all_members_up && c->b[i].up;
            an_undamaged_one = an_undamaged_one || (c->b[i].up && !c->b[i].is_damaged);
        }
    }
    if (s->leader >= 0 && c->b[s->leader - 1].ails) /* nobody to hand over to: what is good is served */
        return false;
    if (c->recovery == RECOVERY_BALANCED)
        return all_members_up && an_undamaged_one;
    return c->recovery == RECOVERY_PROACTIVE && an_undamaged_one;
}

/* What is still missing; NULL: nothing. */
static const char *missing(const struct core *c, int *ret_who)
{
    const struct partition_state *s = core_register(c);
    *ret_who = s->leader;
    if (s->leader < 0 || !c->b[s->leader - 1].running || !replica_leads(&c->b[s->leader - 1].r))
        return "does not lead";
    const struct core_broker *leader = &c->b[s->leader - 1];
    for (int i = 0; i < c->n_brokers; i++) {
        const struct core_broker *b = &c->b[i];
        *ret_who = b->id;
        if (b->up && (!is_provable(c, i) || (b != leader && b->r.role != REPLICA_FETCHING)))
            return "is not in sync";
        if (b->up && (b->log.n != leader->log.n || memcmp(b->log.at, leader->log.at, (size_t)b->log.n * sizeof b->log.at[0]) != 0))
            return "has another log than the leader";
        if (!b->up && state_isr_index(s, b->id) >= 0)
            return "is dead for good and still counts as in sync";
    }
    *ret_who = leader->id;
    return leader->r.hw == leader->log.n ? NULL : "leads, and its watermark stands still";
}

bool core_truth_is_settled(const struct core *c)
{
    int who;
    return missing(c, &who) == NULL;
}

void core_truth_end(const struct core *c)
{
    int who;
    const char *what = must_be_led(c) ? missing(c, &who) : NULL;
    if (what != NULL)
        core_fail(c, "liveness", "all has been healed for long, and broker %d %s", who, what);
}
