/* SPDX-License-Identifier: Apache-2.0 */
/* Rules R1-R16 of one replica, told as stories, and one walk over every short history. Broker epochs are 10 times the
 * broker's id, unless a story is about them. */
#include "unit.h"

#include "daemon/replica/replica.h"

static struct partition_state state_of(int32_t leader, int32_t epoch, int64_t version, int n_replicas,
                                       int n_isr)
{
    struct partition_state s = {
        .leader = leader, .leader_be = leader * 10, .leader_epoch = epoch, .version = version, .n_replicas = n_replicas,
        .n_isr = n_isr
    };
    for (int i = 0; i < n_replicas; i++)
        s.replicas[i] = i + 1;
    for (int i = 0; i < n_isr; i++) {
        s.isr[i] = i + 1;
        s.isr_be[i] = 10 * (i + 1);
    }
    return s;
}

enum { LAG_MS = 1000 };

static const struct live_broker all_live[] = { { 1, 10, 1 }, { 2, 20, 1 }, { 3, 30, 1 } };
static const struct live_broker without_2[] = { { 1, 10, 1 }, { 3, 30, 1 } };
static const struct live_broker without_3[] = { { 1, 10, 1 }, { 2, 20, 1 } };

static bool tick(struct replica *r, int64_t now_ms, const struct live_broker *live, size_t n, struct state_change *ret)
{
    const struct replica_tick t = { .now_ms = now_ms, .lag_max_ms = LAG_MS, .live = live, .n_live = n };
    return replica_tick(r, &t, ret);
}

static bool tick_all(struct replica *r, int64_t now_ms, struct state_change *ret)
{
    return tick(r, now_ms, all_live, 3, ret);
}

static bool fetched(struct replica *r, int32_t id, int64_t leo)
{
    return replica_follower_fetched(r, id, 10 * id, leo, 0);
}

static void assert_isr(const struct partition_state *s, const int32_t *ids, int32_t n)
{
    assert_int_equal(s->n_isr, n);
    for (int32_t i = 0; i < n; i++)
        assert_int_equal(s->isr[i], ids[i]);
}

/* Broker 1 leads three replicas in epoch 5; the first n_isr of them are in sync. */
static struct replica leader_of_three(int n_isr, int32_t min_isr, int64_t leo)
{
    struct replica r;
    struct partition_state s = state_of(1, 5, 0, 3, n_isr);
    replica_init(&r, 1, 10, leo, leo, 0);
    replica_set_min_isr(&r, min_isr);
    assert_int_equal(replica_set_state(&r, &s), REPLICA_TAKEN);
    return r;
}

static void alone_it_commits_what_it_has_flushed(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 0, 0, 1, 1);
    replica_init(&r, 1, 10, 7, 7, 3);
    assert_int_equal(r.hw, 3);
    assert_int_equal(replica_set_state(&r, &s), REPLICA_TAKEN);
    assert_true(replica_leads(&r));
    assert_int_equal(r.hw, 7);
    assert_int_equal(r.leso, 7);

    assert_false(replica_appended(&r, 10));
    assert_int_equal(r.hw, 7);
    assert_false(replica_committed(&r, 9));
    assert_true(replica_flushed(&r, 9));
    assert_int_equal(r.hw, 9);
    assert_true(replica_committed(&r, 8));
    assert_false(replica_committed(&r, 9));
    assert_true(replica_flushed(&r, 10));
    assert_true(replica_committed(&r, 9));
}

static void a_flush_is_never_taken_back(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 0, 0, 1, 1);
    replica_init(&r, 1, 10, 0, 0, 0);
    replica_set_state(&r, &s);
    replica_appended(&r, 10);
    replica_flushed(&r, 8);
    assert_false(replica_flushed(&r, 5));
    assert_int_equal(r.fleo, 8);
    assert_true(replica_flushed(&r, 99)); /* more than there is counts as all of it */
    assert_int_equal(r.fleo, 10);
    assert_int_equal(r.hw, 10);
}

static void a_checkpoint_beyond_the_log_is_cut_to_it(void **state)
{
    (void)state;
    struct replica r;
    replica_init(&r, 1, 10, 4, 4, 9);
    assert_int_equal(r.hw, 4);
    replica_init(&r, 1, 10, 4, 4, -1);
    assert_int_equal(r.hw, 0);
}

static void hw_waits_for_the_slowest_in_sync_replica(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 2, 10);
    assert_int_equal(r.hw, 0);
    assert_false(fetched(&r, 2, 10));
    assert_true(fetched(&r, 3, 7));
    assert_int_equal(r.hw, 7);
    assert_true(fetched(&r, 3, 10));
    assert_int_equal(r.hw, 10);
}

static void a_replica_out_of_sync_does_not_hold_hw_back(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 2, 10);
    assert_true(fetched(&r, 2, 10));
    assert_int_equal(r.hw, 10);
    assert_false(fetched(&r, 3, 4));
    assert_int_equal(r.hw, 10);
}

static void the_leaders_own_flush_counts(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 2, 0);
    replica_appended(&r, 10);
    fetched(&r, 2, 10);
    assert_int_equal(r.hw, 0);
    assert_true(replica_flushed(&r, 6));
    assert_int_equal(r.hw, 6);
}

static void hw_is_frozen_below_the_floor(void **state)
{
    (void)state;
    struct replica r = leader_of_three(1, 2, 10);
    assert_false(replica_has_min_isr(&r));
    assert_int_equal(r.hw, 0);
    replica_set_min_isr(&r, 1);
    assert_true(replica_has_min_isr(&r));
    assert_int_equal(r.hw, 10);
}

static void one_replica_with_min_isr_two_refuses_acks_all_but_shows_acks_one(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 0, 0, 1, 1);
    replica_init(&r, 1, 10, 0, 0, 0);
    replica_set_min_isr(&r, 2);
    replica_set_state(&r, &s);
    assert_false(replica_has_min_isr(&r));
    assert_int_equal(replica_isr_floor(&r), 1);
    replica_appended(&r, 3);
    assert_true(replica_flushed(&r, 3));
    assert_int_equal(r.hw, 3);
}

static void an_older_state_is_refused(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 1, 0);
    struct partition_state newer = state_of(1, 5, 3, 3, 2);
    struct partition_state older_version = state_of(1, 5, 2, 3, 3);
    struct partition_state older_epoch = state_of(2, 4, 9, 3, 3);
    assert_int_equal(replica_set_state(&r, &newer), REPLICA_TAKEN);
    assert_int_equal(replica_set_state(&r, &older_version), REPLICA_OLD);
    assert_int_equal(replica_set_state(&r, &older_epoch), REPLICA_OLD);
    assert_int_equal(r.state.version, 3);
    assert_int_equal(r.state.n_isr, 2);
    assert_int_equal(r.role, REPLICA_LEADER);
}

static void a_new_epoch_forgets_what_followers_reported(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 2, 10);
    fetched(&r, 2, 10);
    fetched(&r, 3, 10);
    assert_int_equal(r.hw, 10);
    struct partition_state s = state_of(1, 6, 1, 3, 3);
    replica_appended(&r, 12);
    replica_flushed(&r, 12);
    assert_int_equal(replica_set_state(&r, &s), REPLICA_TAKEN);
    assert_int_equal(r.leso, 12);
    assert_false(replica_hw_is_current(&r));
    assert_false(fetched(&r, 2, 12));
    assert_int_equal(r.hw, 10);
    assert_true(fetched(&r, 3, 12));
    assert_true(replica_hw_is_current(&r));
}

static void roles_follow_the_register(void **state)
{
    (void)state;
    struct replica r;
    replica_init(&r, 2, 20, 5, 5, 5);
    assert_int_equal(r.role, REPLICA_OFFLINE);
    struct partition_state s = state_of(1, 0, 0, 3, 3);
    replica_set_state(&r, &s);
    assert_int_equal(r.role, REPLICA_TRUNCATING);
    s = state_of(2, 1, 1, 3, 3);
    replica_set_state(&r, &s);
    assert_int_equal(r.role, REPLICA_LEADER);
    s = state_of(1, 2, 2, 1, 1); /* no longer among the replicas */
    replica_set_state(&r, &s);
    assert_int_equal(r.role, REPLICA_OFFLINE);
    replica_damage(&r);
    s = state_of(2, 3, 3, 3, 3);
    assert_int_equal(replica_set_state(&r, &s), REPLICA_TAKEN);
    assert_int_equal(r.role, REPLICA_DAMAGED); /* elected or not: it does not serve */
    assert_false(replica_leads(&r));
}

static void a_follower_takes_hw_up_to_its_own_end(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 0, 0, 3, 3);
    replica_init(&r, 2, 20, 5, 5, 0);
    replica_set_state(&r, &s);
    assert_false(replica_learn_hw(&r, 9)); /* not before it has agreed with the leader (R12) */
    assert_int_equal(r.hw, 0);
    replica_agreed(&r);
    assert_int_equal(r.role, REPLICA_FETCHING);
    assert_true(replica_learn_hw(&r, 9));
    assert_int_equal(r.hw, 5);
    assert_false(replica_learn_hw(&r, 3));
    assert_int_equal(r.hw, 5);
    assert_false(replica_appended(&r, 8));
    assert_true(replica_learn_hw(&r, 9));
    assert_int_equal(r.hw, 8);
}

static void joining_needs_hw_and_the_epochs_start(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 1, 10);
    struct state_change c;
    fetched(&r, 2, 10);
    assert_false(replica_has_all(&r, 3)); /* has not fetched */
    fetched(&r, 3, 9);
    assert_false(replica_has_all(&r, 3));
    assert_false(tick_all(&r, 0, &c));
    fetched(&r, 3, 10);
    assert_true(replica_has_all(&r, 3));
    assert_false(replica_has_all(&r, 9)); /* no replica at all */
    assert_true(tick_all(&r, 0, &c));
    assert_isr(&c.to, (int32_t[]){ 1, 2, 3 }, 3);
    assert_int_equal(c.to.isr_be[2], 30);
    assert_int_equal(c.to.leader_epoch, 5);
    assert_int_equal(c.to.version, 0);
    assert_int_equal(c.n_checks, 2); /* R2, R10 */
    assert_int_equal(c.check[0].id, 1);
    assert_int_equal(c.check[0].be, 10);
    assert_int_equal(c.check[1].id, 3);
    assert_int_equal(c.check[1].be, 30);
}

static void what_an_earlier_life_of_a_follower_showed_lets_nobody_join(void **state)
{
    (void)state;
    static const struct live_broker again[] = { { 1, 10, 1 }, { 2, 20, 1 }, { 3, 31, 31 } };
    struct replica r = leader_of_three(2, 1, 10);
    struct state_change c;
    fetched(&r, 2, 10);
    fetched(&r, 3, 10);
    assert_false(tick(&r, 0, again, 3, &c));
    assert_false(tick(&r, 0, without_3, 2, &c));
    assert_int_equal(replica_fetch_check(&r, 3, 31, 5), KERR_NONE);
    replica_follower_fetched(&r, 3, 31, 10, 0);
    assert_int_equal(replica_fetch_check(&r, 3, 30, 5), KERR_STALE_BROKER_EPOCH);
    assert_true(tick(&r, 0, again, 3, &c));
    assert_int_equal(c.to.isr_be[2], 31);
}

static void a_member_that_restarted_without_proof_is_believed_again_when_it_has_all(void **state)
{
    (void)state;
    static const struct live_broker again[] = { { 1, 10, 1 }, { 2, 25, 25 }, { 3, 30, 1 } };
    struct replica r = leader_of_three(3, 2, 10);
    struct state_change c;
    fetched(&r, 3, 10);
    fetched(&r, 2, 10);
    assert_false(tick(&r, 0, again, 3, &c));
    replica_follower_fetched(&r, 2, 25, 4, 0);
    assert_false(tick(&r, 0, again, 3, &c));
    replica_follower_fetched(&r, 2, 25, 10, 0);
    assert_true(tick(&r, 0, again, 3, &c));
    assert_isr(&c.to, (int32_t[]){ 1, 2, 3 }, 3);
    assert_int_equal(c.to.isr_be[1], 25);
    assert_int_equal(c.check[1].id, 2);
    assert_int_equal(c.check[1].be, 25);
}

/* Where nothing is lost by a restart all bases are 0. */
static void a_member_that_said_it_was_damaged_is_believed_again_when_it_has_all(void **state)
{
    (void)state;
    static const struct live_broker proven[] = { { 1, 10, 0 }, { 2, 20, 0 }, { 3, 30, 0 } };
    struct replica r = leader_of_three(3, 2, 10);
    struct partition_state s = r.state;
    struct state_change c;
    s.version = 1;
    s.isr_be[1] = 0;
    assert_int_equal(replica_set_state(&r, &s), REPLICA_TAKEN);
    fetched(&r, 3, 10);
    fetched(&r, 2, 9);
    assert_false(tick(&r, 0, proven, 3, &c));
    fetched(&r, 2, 10);
    assert_true(tick(&r, 0, proven, 3, &c));
    assert_int_equal(c.to.isr_be[1], 20);
    assert_int_equal(c.check[1].id, 2);
}

static void a_member_asked_for_counts_before_it_is_confirmed(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 1, 10);
    struct state_change c, again;
    fetched(&r, 2, 10);
    fetched(&r, 3, 10);
    assert_true(tick_all(&r, 0, &c));
    assert_true(replica_proposal_sent(&r, &c));
    assert_false(tick_all(&r, 0, &again)); /* one at a time */
    assert_false(replica_proposal_sent(&r, &c));
    replica_appended(&r, 20);
    replica_flushed(&r, 20);
    assert_false(fetched(&r, 2, 20));
    assert_int_equal(r.hw, 10); /* waits for 3 already */
    assert_true(replica_proposal_failed(&r));
    assert_int_equal(r.hw, 20);
}

static void a_member_dropped_counts_until_it_is_confirmed(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 2, 10);
    struct state_change c;
    fetched(&r, 2, 10);
    assert_true(tick(&r, 0, without_3, 2, &c));
    assert_isr(&c.to, (int32_t[]){ 1, 2 }, 2);
    assert_true(replica_proposal_sent(&r, &c));
    assert_int_equal(r.hw, 0);
    assert_true(replica_proposal_confirmed(&r, &c, 1));
    assert_int_equal(r.hw, 10);
    assert_int_equal(r.state.version, 1);
}

/* R3: an unknown outcome counts as both, until a higher version is seen; a write that follows it brings one about. */
static void an_unknown_outcome_counts_both_ways_until_it_is_settled(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 1, 10);
    struct state_change c, second;
    fetched(&r, 2, 10);
    fetched(&r, 3, 10);
    assert_true(tick_all(&r, 0, &c));
    assert_true(replica_proposal_sent(&r, &c));
    replica_proposal_unknown(&r);
    replica_appended(&r, 20);
    replica_flushed(&r, 20);
    assert_false(fetched(&r, 2, 20));
    struct partition_state same = r.state;
    assert_int_equal(replica_set_state(&r, &same), REPLICA_KNOWN); /* it may yet be written */
    assert_int_equal(r.hw, 10);

    assert_true(tick(&r, 1, without_3, 2, &second)); /* it would change nothing, but settle it */
    assert_isr(&second.to, (int32_t[]){ 1, 2 }, 2);
    assert_true(replica_proposal_sent(&r, &second));
    assert_false(replica_proposal_failed(&r)); /* so the first was written, or somebody else's */
    assert_int_equal(r.hw, 10);
    assert_true(tick(&r, 1, without_3, 2, &second));
    assert_true(replica_proposal_sent(&r, &second));
    assert_true(replica_proposal_confirmed(&r, &second, 1));
    assert_int_equal(r.hw, 20);
    assert_false(tick(&r, 1, without_3, 2, &second));
}

static void an_unknown_outcome_that_a_later_state_decides_is_none(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 1, 10);
    struct state_change c;
    fetched(&r, 2, 10);
    assert_true(tick(&r, 0, without_3, 2, &c));
    assert_true(replica_proposal_sent(&r, &c));
    struct partition_state s = c.to;
    s.version = 1;
    assert_int_equal(replica_set_state(&r, &s), REPLICA_TAKEN); /* the watch was faster than the answer */
    assert_int_equal(r.hw, 10);
    replica_proposal_unknown(&r);
    assert_false(tick(&r, 0, without_3, 2, &c));
}

static void the_isr_never_shrinks_below_the_floor(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 2, 0);
    struct state_change c;
    assert_false(tick(&r, 0, without_2, 2, &c));
    assert_false(replica_has_min_isr(&r)); /* two are in sync, one lives (R7) */
    replica_set_min_isr(&r, 1);
    assert_true(tick(&r, 0, without_2, 2, &c));
    assert_isr(&c.to, (int32_t[]){ 1 }, 1);
    assert_int_equal(c.to.isr_be[0], 10);
    assert_int_equal(c.to.isr_be[1], 0);
}

static void at_the_floor_a_dead_member_leaves_when_another_joins(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 2, 10);
    struct state_change c;
    fetched(&r, 3, 10);
    assert_true(tick(&r, 0, without_2, 2, &c));
    assert_isr(&c.to, (int32_t[]){ 1, 3 }, 2);
    assert_int_equal(c.to.isr_be[1], 30);
}

static void who_lags_is_left_out_and_who_has_all_never_lags(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 1, 10);
    struct state_change c;
    assert_false(tick_all(&r, 5000, &c)); /* the time is counted from here */
    replica_follower_fetched(&r, 2, 20, 10, 5000);
    replica_follower_fetched(&r, 3, 30, 4, 5000);
    assert_false(tick_all(&r, 5000 + LAG_MS, &c));
    assert_true(tick_all(&r, 5001 + LAG_MS, &c));
    assert_isr(&c.to, (int32_t[]){ 1, 2 }, 2);

    replica_appended(&r, 20); /* 2 had all until now */
    assert_true(tick_all(&r, 5001 + LAG_MS, &c));
    assert_isr(&c.to, (int32_t[]){ 1, 2 }, 2);
    assert_true(tick_all(&r, 5002 + 2 * LAG_MS, &c));
    assert_isr(&c.to, (int32_t[]){ 1 }, 1);
}

static void a_steady_follower_that_is_always_a_batch_behind_does_not_lag(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 1, 10);
    struct state_change c;
    assert_false(tick_all(&r, 0, &c));
    for (int64_t ms = 0; ms < 5 * LAG_MS; ms += LAG_MS / 2) {
        replica_follower_fetched(&r, 2, 20, r.leo - 5, ms);
        replica_follower_fetched(&r, 3, 30, r.leo, ms);
        replica_appended(&r, r.leo + 5);
        replica_follower_fetched(&r, 3, 30, r.leo, ms);
        assert_false(tick_all(&r, ms, &c));
    }
}

static void a_cut_above_hw_is_fine_and_below_it_is_damage(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 0, 0, 3, 3);
    replica_init(&r, 2, 20, 10, 10, 6);
    replica_set_state(&r, &s);
    assert_true(replica_truncated(&r, 6, 0));
    assert_int_equal(r.leo, 6);
    assert_int_equal(r.fleo, 6);
    assert_int_equal(r.role, REPLICA_TRUNCATING);
    assert_false(replica_truncated(&r, 5, 0));
    assert_int_equal(r.role, REPLICA_DAMAGED);
}

/* R13: an election noted in the register may have lost what was written before it, however long ago that was. */
static void a_cut_below_hw_is_allowed_for_what_is_older_than_a_recovery(void **state)
{
    (void)state;
    for (int32_t cut_epoch = 3; cut_epoch <= 4; cut_epoch++) {
        struct replica r;
        struct partition_state s = state_of(1, 6, 0, 3, 3);
        s.recovery = 4;
        replica_init(&r, 2, 20, 10, 10, 6);
        replica_set_state(&r, &s);
        assert_int_equal(replica_truncated(&r, 5, cut_epoch), cut_epoch < 4);
        assert_int_equal(r.role, cut_epoch < 4 ? REPLICA_TRUNCATING : REPLICA_DAMAGED);
        assert_int_equal(r.hw, 5);
    }
}

static void a_follower_below_all_that_is_kept_starts_anew(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 0, 0, 3, 2);
    replica_init(&r, 3, 30, 10, 8, 6);
    replica_set_state(&r, &s);
    replica_agreed(&r);
    replica_restarted_at(&r, 100);
    assert_int_equal(r.leo, 100);
    assert_int_equal(r.fleo, 100);
    assert_int_equal(r.hw, 100);
    assert_int_equal(r.role, REPLICA_TRUNCATING);
}

static void an_answer_to_an_earlier_question_is_of_no_use(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 5, 0, 3, 3);
    replica_init(&r, 2, 20, 10, 10, 6);
    assert_false(replica_may_use_answer(&r, -1, 10));
    replica_set_state(&r, &s);
    assert_true(replica_may_use_answer(&r, 5, 10));
    assert_false(replica_may_use_answer(&r, 4, 10));
    assert_false(replica_may_use_answer(&r, 5, 9));
    s = state_of(2, 6, 1, 3, 3);
    replica_set_state(&r, &s);
    assert_false(replica_may_use_answer(&r, 6, 10));
}

/* A late answer speaks of an earlier log of the same length. */
static void where_to_cut_is_heard_before_the_logs_agree_only(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 5, 0, 3, 3);
    replica_init(&r, 2, 20, 10, 10, 6);
    replica_set_state(&r, &s);
    assert_true(replica_may_cut(&r, 5, 10));
    assert_false(replica_may_cut(&r, 4, 10));
    assert_true(replica_truncated(&r, replica_cut_at(&r, 8, 9), 4));
    assert_int_equal(r.leo, 8);
    assert_true(replica_may_cut(&r, 5, 8));
    replica_agreed(&r);
    replica_appended(&r, 10);
    assert_false(replica_may_cut(&r, 5, 10));
    assert_true(replica_may_use_answer(&r, 5, 10));
}

static void a_fetch_of_another_epoch_is_refused(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 1, 10);
    assert_int_equal(replica_fetch_check(&r, 2, 20, 5), KERR_NONE);
    assert_int_equal(replica_fetch_check(&r, 2, 20, 4), KERR_FENCED_LEADER_EPOCH);
    assert_int_equal(replica_fetch_check(&r, 2, 20, 6), KERR_UNKNOWN_LEADER_EPOCH);
    assert_int_equal(replica_fetch_check(&r, 9, 90, 5), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(replica_fetch_check(&r, 1, 10, 5), KERR_NOT_LEADER_OR_FOLLOWER);
    struct partition_state s = state_of(2, 6, 1, 3, 3);
    replica_set_state(&r, &s);
    assert_int_equal(replica_fetch_check(&r, 3, 30, 6), KERR_NOT_LEADER_OR_FOLLOWER);
    replica_damage(&r);
    assert_int_equal(replica_fetch_check(&r, 3, 30, 6), KERR_KAFKA_STORAGE_ERROR);
}

static void strangers_and_followers_of_followers_move_nothing(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 1, 10);
    assert_false(fetched(&r, 9, 10));
    assert_false(fetched(&r, 1, 10));
    assert_false(replica_learn_hw(&r, 10));
    fetched(&r, 2, 11); /* more than there is is no progress either */
    assert_int_equal(r.follower[1].leo, -1);
    assert_int_equal(r.hw, 0);
    struct partition_state s = state_of(2, 6, 1, 3, 3);
    replica_set_state(&r, &s);
    assert_false(fetched(&r, 3, 10));
    assert_false(replica_flushed(&r, 10));
    assert_int_equal(r.hw, 0);
}

/* R1: not the epoch of an earlier life, and none once this one is registered anew. */
static void a_leader_that_restarted_does_not_go_on(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 5, 0, 3, 3);
    replica_init(&r, 1, 11, 10, 10, 0);
    assert_false(replica_would_lead(&r, &s));
    assert_int_equal(replica_set_state(&r, &s), REPLICA_TAKEN);
    assert_int_equal(r.role, REPLICA_OFFLINE);
    s.leader_epoch = 6;
    s.leader_be = 11;
    s.version = 1;
    assert_true(replica_would_lead(&r, &s));
    assert_int_equal(replica_set_state(&r, &s), REPLICA_TAKEN);
    assert_true(replica_leads(&r));
    replica_set_broker_epoch(&r, 12);
    assert_int_equal(r.role, REPLICA_OFFLINE);
}

/* A watch fires for other changes of the topic too, and then tells the same state once more. */
static void the_known_state_told_again_forgets_no_proposal(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 2, 10);
    struct partition_state same = r.state;
    struct state_change c;
    fetched(&r, 2, 10);
    fetched(&r, 3, 10);
    assert_true(tick_all(&r, 0, &c));
    assert_true(replica_proposal_sent(&r, &c));
    assert_int_equal(replica_set_state(&r, &same), REPLICA_KNOWN);
    replica_appended(&r, 20);
    replica_flushed(&r, 20);
    fetched(&r, 2, 20);
    assert_int_equal(r.hw, 10); /* 3 may be in sync by now, and has 10 */
    assert_false(replica_proposal_sent(&r, &c));

    same.version++; /* another writer was faster, so the proposal's own write fails */
    assert_int_equal(replica_set_state(&r, &same), REPLICA_TAKEN);
    assert_int_equal(r.hw, 20);
}

/* R1 is for whoever writes the register to keep; what does not is refused. */
static void a_state_that_contradicts_its_epoch_is_refused(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 2, 10);
    struct partition_state other[9];
    for (int i = 0; i < 9; i++) {
        other[i] = r.state;
        other[i].version += i;
    }
    other[0].leader = 2;
    other[1].n_replicas = 2;
    other[1].n_isr = 2;
    other[2].replicas[2] = other[2].isr[2] = 9;
    other[3].leader_be = 11;
    other[4].n_replicas = REPLICA_MAX + 1; /* malformed from here on */
    other[5].isr[1] = 1;
    other[6].isr[1] = 9;
    other[7].leader = 9;
    other[8].leader_epoch = INT32_MAX;
    for (int i = 0; i < 9; i++)
        assert_int_equal(replica_set_state(&r, &other[i]), REPLICA_CONTRADICTS);
    struct partition_state back = state_of(1, 6, 0, 3, 3); /* a new epoch, and not a new version */
    assert_int_equal(replica_set_state(&r, &back), REPLICA_CONTRADICTS);
    assert_true(replica_leads(&r));
    assert_int_equal(r.state.n_replicas, 3);
    assert_int_equal(r.state.replicas[2], 3);
}

/* ---- damage ---- */
static void a_damaged_follower_says_so_and_comes_back_when_it_is_not_counted_on(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 5, 3, 3, 3);
    struct state_change c;
    replica_init(&r, 2, 20, 10, 10, 6);
    replica_set_state(&r, &s);
    replica_damage(&r);
    assert_false(replica_repaired(&r, 12, 12, 12));
    replica_set_min_isr(&r, 3); /* the floor needs it */
    assert_true(tick_all(&r, 0, &c));
    assert_int_equal(c.to.n_isr, 3);
    assert_int_equal(c.to.isr_be[1], 0);
    replica_set_min_isr(&r, 2);
    assert_true(tick_all(&r, 0, &c));
    assert_int_equal(c.to.n_isr, 2); /* nobody waits for it */
    assert_int_equal(c.to.isr[0], 1);
    assert_int_equal(c.to.isr[1], 3);
    assert_int_equal(c.to.isr_be[1], 30);
    assert_int_equal(c.to.isr_be[0], 10);
    assert_int_equal(c.to.leader, 1);
    assert_int_equal(c.to.leader_be, 10);
    assert_int_equal(c.to.leader_epoch, 6); /* what it fetched before is fenced, and forgotten */
    assert_int_equal(c.to.version, 3);
    assert_int_equal(c.n_checks, 1);
    assert_int_equal(c.check[0].id, 2);
    assert_true(replica_proposal_sent(&r, &c));
    assert_false(tick_all(&r, 0, &c));
    replica_proposal_unknown(&r);
    assert_true(tick_all(&r, 0, &c));
    assert_true(replica_proposal_sent(&r, &c));
    replica_proposal_confirmed(&r, &c, 4);
    assert_int_equal(r.role, REPLICA_DAMAGED);
    assert_false(tick_all(&r, 0, &c));
    assert_true(replica_repaired(&r, 12, 12, 11));
    assert_int_equal(r.role, REPLICA_TRUNCATING);
    assert_int_equal(r.hw, 11);
}

/* Nobody counts on it by the register, but its leader knows a fetch of before the damage. */
static void a_damaged_replica_out_of_sync_asks_for_a_new_epoch_too(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 5, 3, 3, 2);
    struct state_change c;
    replica_init(&r, 3, 30, 10, 10, 6);
    replica_damage(&r); /* before any state: an earlier life's fetches are fenced by the broker epoch */
    replica_set_state(&r, &s);
    assert_false(tick_all(&r, 0, &c));
    assert_true(replica_repaired(&r, 12, 12, 11));
    replica_damage(&r);
    assert_false(replica_repaired(&r, 12, 12, 11));
    assert_true(tick_all(&r, 0, &c));
    assert_int_equal(c.to.leader_epoch, 6);
    assert_int_equal(c.to.n_isr, 2);
}

static void a_damaged_leader_hands_over(void **state)
{
    (void)state;
    static const struct live_broker alone[] = { { 1, 10, 1 }, { 2, 21, 21 } };
    struct replica r = leader_of_three(3, 2, 10);
    struct state_change c;
    replica_damage(&r);
    assert_false(replica_leads(&r));
    assert_true(tick(&r, 0, without_2, 2, &c));
    assert_int_equal(c.to.leader, 3);
    assert_int_equal(c.to.leader_be, 30);
    assert_int_equal(c.to.leader_epoch, 6);
    assert_int_equal(c.to.n_isr, 2);
    assert_int_equal(c.to.isr[0], 2);
    assert_int_equal(c.to.isr[1], 3);
    assert_int_equal(c.n_checks, 2);
    assert_int_equal(c.check[1].id, 3);
    assert_int_equal(c.check[1].be, 30);
    assert_true(tick(&r, 0, alone, 2, &c)); /* 2 may not lead (R11) */
    assert_int_equal(c.to.leader, -1);
    assert_int_equal(c.to.leader_epoch, 6);
}

/* S10: what is good of the only log there is is served on. */
static void a_leader_that_ails_goes_on_until_another_may_lead(void **state)
{
    (void)state;
    static const struct live_broker alone[] = { { 1, 10, 1 }, { 2, 21, 21 } };
    struct replica r = leader_of_three(3, 2, 10);
    struct state_change c;
    replica_ail(&r);
    assert_true(replica_leads(&r));
    assert_false(replica_may_be_repaired(&r));
    tick(&r, 0, alone, 2, &c); /* whatever is left out of the in-sync set */
    assert_int_equal(c.to.leader, 1);
    assert_int_equal(c.to.leader_epoch, 5);
    assert_true(tick(&r, 0, without_2, 2, &c));
    assert_int_equal(c.to.leader, 3);
    assert_int_equal(c.to.leader_be, 30);
    assert_int_equal(c.to.leader_epoch, 6);
    assert_int_equal(c.to.n_isr, 2);
    assert_int_equal(c.to.isr[0], 2);
    assert_int_equal(c.n_checks, 2);
    assert_int_equal(c.check[1].id, 3);
    assert_true(replica_proposal_sent(&r, &c));
    assert_true(replica_leads(&r));
    replica_proposal_confirmed(&r, &c, 9);
    assert_int_equal(r.role, REPLICA_DAMAGED);
    assert_true(replica_may_be_repaired(&r));
    assert_true(replica_repaired(&r, 4, 4, 10));
    assert_int_equal(r.role, REPLICA_TRUNCATING);
    assert_int_equal(r.hw, 4);
    assert_false(r.ails);
}

/* There is room elsewhere: the leader hands over at once, and not again in the first seconds of an epoch. */
static void a_leader_whose_disk_is_full_hands_over(void **state)
{
    (void)state;
    static const struct live_broker alone[] = { { 1, 10, 1 } };
    struct replica r = leader_of_three(3, 2, 10);
    struct state_change c;
    tick_all(&r, 0, &c);
    replica_set_full(&r, true);
    tick_all(&r, REPLICA_FULL_AGAIN_MS - 1, &c); /* whoever lags is left out */
    assert_int_equal(c.to.leader_epoch, 5);
    assert_true(tick_all(&r, REPLICA_FULL_AGAIN_MS, &c));
    assert_int_equal(c.to.leader, 2);
    assert_int_equal(c.to.leader_be, 20);
    assert_int_equal(c.to.leader_epoch, 6);
    assert_int_equal(c.to.n_isr, 3); /* what it has it has */
    assert_int_equal(c.n_checks, 2);
    assert_int_equal(c.check[1].id, 2);
    tick(&r, REPLICA_FULL_AGAIN_MS, alone, 1, &c); /* nobody to hand over to */
    assert_int_equal(c.to.leader_epoch, 5);
    replica_set_full(&r, false);
    tick_all(&r, REPLICA_FULL_AGAIN_MS, &c);
    assert_int_equal(c.to.leader_epoch, 5);
}

static void a_follower_whose_disk_is_full_keeps_nobody_waiting(void **state)
{
    (void)state;
    static const struct live_broker no_leader[] = { { 2, 20, 1 }, { 3, 30, 1 } };
    struct replica r;
    struct partition_state s = state_of(1, 5, 3, 3, 3);
    struct state_change c;
    replica_init(&r, 2, 20, 10, 10, 6);
    replica_set_min_isr(&r, 2);
    replica_set_state(&r, &s);
    assert_false(tick_all(&r, 0, &c));
    replica_set_full(&r, true);
    assert_false(tick(&r, 0, no_leader, 2, &c)); /* it may have to lead */
    assert_true(tick_all(&r, 0, &c));
    assert_int_equal(c.to.n_isr, 2);
    assert_int_equal(state_isr_index(&c.to, 2), -1);
    assert_int_equal(c.to.leader, 1);
    assert_int_equal(c.to.leader_epoch, 6);
    assert_true(replica_proposal_sent(&r, &c));
    replica_proposal_confirmed(&r, &c, 4);
    assert_true(replica_follows(&r));
    assert_false(tick_all(&r, 0, &c)); /* once */

    replica_set_min_isr(&r, 3); /* R8: the floor keeps it in */
    s = state_of(1, 7, 5, 3, 3);
    replica_set_state(&r, &s);
    assert_false(tick_all(&r, 0, &c));
}

static void a_follower_that_ails_is_damaged_and_so_is_one_that_comes_to_follow(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 5, 3, 3, 3);
    struct state_change c;
    replica_init(&r, 2, 20, 10, 10, 6);
    replica_ail(&r);
    assert_int_equal(r.role, REPLICA_OFFLINE); /* it may be the only one */
    replica_set_state(&r, &s);
    assert_int_equal(r.role, REPLICA_DAMAGED);
    assert_false(replica_may_be_repaired(&r)); /* the register counts on it */
    assert_true(tick_all(&r, 0, &c));
    assert_true(replica_proposal_sent(&r, &c));
    replica_proposal_confirmed(&r, &c, 4);
    assert_true(replica_repaired(&r, 3, 3, 6));
    assert_int_equal(r.role, REPLICA_TRUNCATING);
    replica_ail(&r);
    assert_int_equal(r.role, REPLICA_DAMAGED);
}

static void a_follower_that_asks_twice_for_the_same_is_noticed(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 2, 10);
    assert_false(replica_asks_again(&r, 2, 10));
    replica_follower_fetched(&r, 2, 20, 8, 0);
    assert_true(replica_asks_again(&r, 2, 8));
    assert_false(replica_asks_again(&r, 2, 9));
    assert_false(replica_asks_again(&r, 9, 8));
    replica_follower_fetched(&r, 2, 20, 10, 0); /* it has all: asking again is waiting */
    assert_false(replica_asks_again(&r, 2, 10));
}

/* ---- every history of DEPTH events over three replicas ---- */

enum { DEPTH = 6, EVENTS = 13 };

struct history {
    struct replica r;
    int64_t reported[4]; /* by broker id, in this epoch; -1 none */
    uint32_t counted;    /* by broker id: who may be in sync by what was sent and not told to have failed */
    struct state_change asked;
    bool is_asked, is_unknown;
    int64_t now_ms;
};

static void check_rules(const struct history *h, int64_t hw_before)
{
    const struct replica *r = &h->r;
    assert_true(r->hw >= hw_before);
    assert_true(r->hw <= r->leo && r->fleo <= r->leo);
    if (r->hw == hw_before)
        return;
    assert_true(r->hw <= r->fleo); /* it moved: then every member has it */
    assert_true(r->state.n_isr >= replica_isr_floor(r));
    for (int i = 0; i < r->state.n_isr; i++)
        if (r->state.isr[i] != 1)
            assert_true(h->reported[r->state.isr[i]] >= r->hw);
    for (int32_t id = 2; id <= 3; id++)
        if ((h->counted >> id & 1) != 0)
            assert_true(h->reported[id] >= r->hw);
}

static void propose(struct history *h, const struct live_broker *live, size_t n)
{
    struct state_change c;
    if (!tick(&h->r, h->now_ms, live, n, &c))
        return;
    assert_false(h->is_asked);
    assert_true(c.to.n_isr >= replica_isr_floor(&h->r) || c.to.n_isr >= h->r.state.n_isr);
    assert_true(replica_proposal_sent(&h->r, &c));
    h->asked = c;
    h->is_asked = true;
    for (int32_t i = 0; i < c.to.n_isr; i++)
        h->counted |= 1u << c.to.isr[i];
}

/* The register has a new state: what was asked for last is in it. */
static void confirm(struct history *h, bool new_epoch)
{
    struct partition_state s = h->is_asked || h->is_unknown ? h->asked.to : h->r.state;
    s.version = h->r.state.version + 1;
    if (new_epoch) {
        s.leader_epoch++;
        h->reported[2] = h->reported[3] = -1;
    }
    assert_int_equal(replica_set_state(&h->r, &s), REPLICA_TAKEN);
    if (h->is_asked)
        replica_proposal_confirmed(&h->r, &h->asked, s.version);
    h->is_asked = h->is_unknown = false;
    h->counted = 0;
}

static void fetch(struct history *h, int32_t id, int64_t leo)
{
    fetched(&h->r, id, leo);
    h->reported[id] = leo;
}

static void forget(struct history *h, bool unknown)
{
    if (!h->is_asked)
        return;
    h->is_asked = false;
    h->is_unknown |= unknown;
    if (unknown)
        replica_proposal_unknown(&h->r);
    else
        replica_proposal_failed(&h->r);
    if (!h->is_unknown)
        h->counted = 0;
}

static void apply(struct history *h, int event)
{
    switch (event) {
    case 0:
        replica_appended(&h->r, h->r.leo + 2);
        break;
    case 1:
        replica_flushed(&h->r, h->r.leo);
        break;
    case 2:
        fetch(h, 2, h->r.leo);
        break;
    case 3:
        fetch(h, 3, h->r.leo);
        break;
    case 4:
        fetch(h, 3, h->r.leo - 1);
        break;
    case 5:
        propose(h, all_live, 3);
        break;
    case 6:
        propose(h, without_3, 2);
        break;
    case 7:
        propose(h, without_2, 2);
        break;
    case 8:
        h->now_ms += LAG_MS + 1;
        propose(h, all_live, 3);
        break;
    case 9:
        confirm(h, false);
        break;
    case 10:
        confirm(h, true);
        break;
    case 11:
        forget(h, false);
        break;
    case 12:
        forget(h, true);
        break;
    }
}

static void walk(const struct history *h, int depth)
{
    if (depth == 0)
        return;
    for (int event = 0; event < EVENTS; event++) {
        struct history next = *h;
        apply(&next, event);
        check_rules(&next, h->r.hw);
        walk(&next, depth - 1);
    }
}

static void every_short_history_keeps_the_rules(void **state)
{
    (void)state;
    for (int32_t min_isr = 1; min_isr <= 2; min_isr++)
        for (int n_isr = 1; n_isr <= 3; n_isr++) {
            struct history h = { .r = leader_of_three(n_isr, min_isr, 4), .reported = { -1, -1, -1, -1 } };
            walk(&h, n_isr == 2 ? DEPTH : DEPTH - 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_commits_what_it_has_flushed),
        cmocka_unit_test(a_flush_is_never_taken_back),
        cmocka_unit_test(a_checkpoint_beyond_the_log_is_cut_to_it),
        cmocka_unit_test(hw_waits_for_the_slowest_in_sync_replica),
        cmocka_unit_test(a_replica_out_of_sync_does_not_hold_hw_back),
        cmocka_unit_test(the_leaders_own_flush_counts),
        cmocka_unit_test(hw_is_frozen_below_the_floor),
        cmocka_unit_test(one_replica_with_min_isr_two_refuses_acks_all_but_shows_acks_one),
        cmocka_unit_test(an_older_state_is_refused),
        cmocka_unit_test(a_new_epoch_forgets_what_followers_reported),
        cmocka_unit_test(roles_follow_the_register),
        cmocka_unit_test(a_follower_takes_hw_up_to_its_own_end),
        cmocka_unit_test(joining_needs_hw_and_the_epochs_start),
        cmocka_unit_test(what_an_earlier_life_of_a_follower_showed_lets_nobody_join),
        cmocka_unit_test(a_member_that_restarted_without_proof_is_believed_again_when_it_has_all),
        cmocka_unit_test(a_member_that_said_it_was_damaged_is_believed_again_when_it_has_all),
        cmocka_unit_test(a_member_asked_for_counts_before_it_is_confirmed),
        cmocka_unit_test(a_member_dropped_counts_until_it_is_confirmed),
        cmocka_unit_test(an_unknown_outcome_counts_both_ways_until_it_is_settled),
        cmocka_unit_test(an_unknown_outcome_that_a_later_state_decides_is_none),
        cmocka_unit_test(the_isr_never_shrinks_below_the_floor),
        cmocka_unit_test(at_the_floor_a_dead_member_leaves_when_another_joins),
        cmocka_unit_test(who_lags_is_left_out_and_who_has_all_never_lags),
        cmocka_unit_test(a_steady_follower_that_is_always_a_batch_behind_does_not_lag),
        cmocka_unit_test(a_cut_above_hw_is_fine_and_below_it_is_damage),
        cmocka_unit_test(a_cut_below_hw_is_allowed_for_what_is_older_than_a_recovery),
        cmocka_unit_test(a_follower_below_all_that_is_kept_starts_anew),
        cmocka_unit_test(an_answer_to_an_earlier_question_is_of_no_use),
        cmocka_unit_test(where_to_cut_is_heard_before_the_logs_agree_only),
        cmocka_unit_test(a_fetch_of_another_epoch_is_refused),
        cmocka_unit_test(strangers_and_followers_of_followers_move_nothing),
        cmocka_unit_test(a_leader_that_restarted_does_not_go_on),
        cmocka_unit_test(the_known_state_told_again_forgets_no_proposal),
        cmocka_unit_test(a_state_that_contradicts_its_epoch_is_refused),
        cmocka_unit_test(a_damaged_follower_says_so_and_comes_back_when_it_is_not_counted_on),
        cmocka_unit_test(a_damaged_replica_out_of_sync_asks_for_a_new_epoch_too),
        cmocka_unit_test(a_damaged_leader_hands_over),
        cmocka_unit_test(a_leader_that_ails_goes_on_until_another_may_lead),
        cmocka_unit_test(a_leader_whose_disk_is_full_hands_over),
        cmocka_unit_test(a_follower_whose_disk_is_full_keeps_nobody_waiting),
        cmocka_unit_test(a_follower_that_ails_is_damaged_and_so_is_one_that_comes_to_follow),
        cmocka_unit_test(a_follower_that_asks_twice_for_the_same_is_noticed),
        cmocka_unit_test(every_short_history_keeps_the_rules),
    };
    return RUN(tests);
}
