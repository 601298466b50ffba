/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes a partition, and what is then written: R11, ranks, hand-over, recovery. Broker epochs are 10 times the id. */
#include "unit.h"

#include "daemon/replica/election.h"

static const struct live_broker all_live[] = { { 1, 10, 1 }, { 2, 20, 1 }, { 3, 30, 1 } };

/* Brokers 1, 2, 3 in that order, all in sync, led by `leader` in epoch 5. */
static struct partition_state state_led_by(int32_t leader)
{
    return (struct partition_state){ .leader = leader,
                                     .leader_be = leader < 0 ? 0 : 10 * leader,
                                     .leader_epoch = 5,
                                     .replicas = { 1, 2, 3 },
                                     .n_replicas = 3,
                                     .isr = { 1, 2, 3 },
                                     .n_isr = 3,
                                     .isr_be = { 10, 20, 30 },
                                     .version = 7 };
}

static struct election decide(const struct election_input *in)
{
    struct election e;
    election_decide(in, &e);
    return e;
}

static struct election_input input(const struct partition_state *s, const struct live_broker *live, size_t n, int32_t me)
{
    return (struct election_input){ .state = s, .live = live, .n_live = n, .me = me, .be = 10 * me };
}

static void a_partition_that_is_led_is_left_alone(void **state)
{
    (void)state;
    struct partition_state s = state_led_by(1);
    for (int32_t me = 1; me <= 3; me++) {
        struct election_input in = input(&s, all_live, 3, me);
        assert_int_equal(decide(&in).what, ELECTION_NOTHING);
    }
}

static void the_first_of_the_replicas_takes_it_and_the_others_wait_their_turn(void **state)
{
    (void)state;
    struct partition_state s = state_led_by(-1);
    struct election_input in = input(&s, all_live, 3, 1);
    struct election e = decide(&in);
    assert_int_equal(e.what, ELECTION_TAKE);
    assert_int_equal(e.change.to.leader, 1);
    assert_int_equal(e.change.to.leader_be, 10);
    assert_int_equal(e.change.to.leader_epoch, 6);
    assert_int_equal(e.change.to.n_isr, 3);
    assert_int_equal(e.change.to.recovery, 0);
    assert_int_equal(e.change.to.version, 7);
    assert_int_equal(e.change.n_checks, 1);
    assert_int_equal(e.change.check[0].id, 1);
    assert_int_equal(e.change.check[0].be, 10);

    in = input(&s, all_live, 3, 3);
    in.leaderless_ms = 15;
    e = decide(&in);
    assert_int_equal(e.what, ELECTION_WAIT);
    assert_int_equal(e.wait_ms, 2 * ELECTION_RANK_MS - 15);
    in.leaderless_ms = 2 * ELECTION_RANK_MS;
    assert_int_equal(decide(&in).what, ELECTION_TAKE);
}

static void who_is_gone_or_restarted_leads_no_more(void **state)
{
    (void)state;
    static const struct live_broker without_1[] = { { 2, 20, 1 }, { 3, 30, 1 } };
    static const struct live_broker again_1[] = { { 1, 11, 1 }, { 2, 20, 1 }, { 3, 30, 1 } };
    struct partition_state s = state_led_by(1);
    struct election_input in = input(&s, without_1, 2, 2);
    assert_int_equal(decide(&in).what, ELECTION_TAKE); /* the first of those that live */
    in = input(&s, again_1, 3, 1);
    in.be = 11;
    assert_int_equal(decide(&in).what, ELECTION_TAKE);
    in.be = 10; /* it does not know yet that it was registered anew */
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
    in = input(&s, again_1, 3, 2);
    assert_int_equal(decide(&in).what, ELECTION_WAIT);
}

/* R11 */
static void only_a_member_whose_disk_kept_everything_is_elected(void **state)
{
    (void)state;
    static const struct live_broker unproven_1[] = { { 1, 11, 11 }, { 2, 20, 1 }, { 3, 30, 1 } };
    struct partition_state s = state_led_by(-1);
    struct election_input in = input(&s, unproven_1, 3, 1);
    in.be = 11;
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
    in = input(&s, unproven_1, 3, 2);
    assert_int_equal(decide(&in).what, ELECTION_TAKE); /* 1 is not waited for */

    s.isr_be[1] = 0; /* it says that it is damaged */
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
    s.isr_be[1] = 20;
    in.damaged = true;
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
    in.damaged = false;
    in.draining = true;
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);

    s.n_isr = 2; /* 3 is out of sync */
    in = input(&s, all_live, 3, 3);
    in.leaderless_ms = 1000;
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
    in = input(&s, all_live, 3, 9); /* no replica */
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
    s.leader_epoch = INT32_MAX - 1; /* there is no next one */
    in = input(&s, all_live, 3, 1);
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
    s = state_led_by(-1);
    s.isr[2] = 1; /* malformed */
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
}

/* Its log has damage inside: better than nobody. */
static void who_ails_stands_behind_all_others(void **state)
{
    (void)state;
    struct partition_state s = state_led_by(-1);
    struct election_input in = input(&s, all_live, 3, 1);
    in.ails = true;
    struct election e = decide(&in);
    assert_int_equal(e.what, ELECTION_WAIT);
    assert_int_equal(e.wait_ms, 3 * ELECTION_RANK_MS);
    in.leaderless_ms = 3 * ELECTION_RANK_MS;
    assert_int_equal(decide(&in).what, ELECTION_TAKE);
}

static void of_those_that_may_not_lead_the_least_loss_is_chosen(void **state)
{
    (void)state;
    struct partition_state s = state_led_by(-1);
    s.n_isr = 2; /* 3 is out of sync */
    s.isr_be[0] = 0; /* 1 says that it is damaged */
    assert_int_equal(state_least_loss(&s, all_live, 3)->id, 2);
    assert_int_equal(state_least_loss(&s, all_live + 2, 1)->id, 3);
    assert_int_equal(state_least_loss(&s, all_live, 1)->id, 1);
    s.isr_be[1] = 0;
    assert_int_equal(state_least_loss(&s, all_live, 3)->id, 3);
    assert_null(state_least_loss(&s, all_live, 0));
}

static void who_stops_hands_over_to_one_that_may_lead(void **state)
{
    (void)state;
    static const struct live_broker unproven_2[] = { { 1, 10, 1 }, { 2, 21, 21 }, { 3, 30, 1 } };
    struct partition_state s = state_led_by(1);
    struct election_input in = input(&s, unproven_2, 3, 1);
    in.draining = true;
    struct election e = decide(&in);
    assert_int_equal(e.what, ELECTION_HAND_OVER);
    assert_int_equal(e.change.to.leader, 3);
    assert_int_equal(e.change.to.leader_be, 30);
    assert_int_equal(e.change.to.leader_epoch, 6);
    assert_int_equal(e.change.n_checks, 2);
    assert_int_equal(e.change.check[0].id, 1);
    assert_int_equal(e.change.check[1].id, 3);
    assert_int_equal(e.change.check[1].be, 30);
    in = input(&s, unproven_2, 2, 1);
    in.draining = true;
    assert_int_equal(decide(&in).what, ELECTION_NOTHING); /* nobody is there to take it */
    in = input(&s, all_live, 3, 2);
    in.draining = true;
    assert_int_equal(decide(&in).what, ELECTION_NOTHING); /* not its own */
}

static void the_preferred_replica_gets_it_back_when_it_may_lead(void **state)
{
    (void)state;
    static const struct live_broker unproven_1[] = { { 1, 11, 11 }, { 2, 20, 1 }, { 3, 30, 1 } };
    struct partition_state s = state_led_by(2);
    struct state_change c;
    struct election_input in = input(&s, all_live, 3, 2);
    assert_true(election_to_preferred(&in, &c));
    assert_int_equal(c.to.leader, 1);
    assert_int_equal(c.to.leader_be, 10);
    assert_int_equal(c.to.leader_epoch, 6);
    assert_int_equal(c.n_checks, 2);
    in = input(&s, unproven_1, 3, 2);
    assert_false(election_to_preferred(&in, &c));
    in = input(&s, all_live, 3, 3);
    assert_false(election_to_preferred(&in, &c)); /* does not lead */
    s = state_led_by(1);
    in = input(&s, all_live, 3, 1);
    assert_false(election_to_preferred(&in, &c));
}

/* ---- nobody may be elected ---- */
static const struct live_broker all_unproven[] = { { 1, 11, 11 }, { 2, 21, 21 }, { 3, 31, 31 } };

static struct election_input unproven_input(const struct partition_state *s, int32_t me, enum recovery how)
{
    struct election_input in = input(s, all_unproven, 3, me);
    in.be = 10 * me + 1;
    in.recovery = how;
    return in;
}

static void by_hand_nothing_happens(void **state)
{
    (void)state;
    struct partition_state s = state_led_by(1);
    struct election_input in = unproven_input(&s, 1, RECOVERY_MANUAL);
    in.leaderless_ms = 100000;
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
}

static void proactively_a_member_is_taken_before_others(void **state)
{
    (void)state;
    struct partition_state s = state_led_by(1);
    s.n_isr = 1;
    s.isr[0] = 2;
    s.isr_be[0] = 20;
    struct election_input in = unproven_input(&s, 1, RECOVERY_PROACTIVE);
    assert_int_equal(decide(&in).what, ELECTION_NOTHING); /* 2 lives and was in sync */
    in = unproven_input(&s, 2, RECOVERY_PROACTIVE);
    struct election e = decide(&in);
    assert_int_equal(e.what, ELECTION_TAKE_LOSS);
    assert_int_equal(e.change.to.recovery, 6);
    assert_int_equal(e.change.to.isr_be[0], 21);
    assert_int_equal(e.change.to.n_isr, 1);

    static const struct live_broker without_2[] = { { 1, 11, 11 }, { 3, 31, 31 } };
    in = unproven_input(&s, 3, RECOVERY_PROACTIVE);
    in.live = without_2;
    in.n_live = 2;
    e = decide(&in);
    assert_int_equal(e.what, ELECTION_WAIT);
    assert_int_equal(e.wait_ms, ELECTION_RANK_MS);
    in.leaderless_ms = ELECTION_RANK_MS;
    e = decide(&in);
    assert_int_equal(e.what, ELECTION_TAKE_LOSS);
    assert_int_equal(e.change.to.leader, 3);
    assert_int_equal(e.change.to.n_isr, 1); /* what 2 has parts from this log */
    assert_int_equal(e.change.to.isr[0], 3);
    assert_int_equal(e.change.to.isr_be[0], 31);
    in.damaged = true;
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
}

static void balanced_the_longest_log_of_all_members_is_taken(void **state)
{
    (void)state;
    struct partition_state s = state_led_by(1);
    struct election_claim claims[] = { { 1, 11, 4, 100 }, { 2, 21, 5, 80 }, { 3, 31, 5, 90 } };
    struct election_input in = unproven_input(&s, 3, RECOVERY_BALANCED);
    assert_int_equal(decide(&in).what, ELECTION_CLAIM);
    in.claims = claims;
    in.n_claims = 3;
    struct election e = decide(&in);
    assert_int_equal(e.what, ELECTION_TAKE_LOSS);
    assert_int_equal(e.change.to.leader, 3);
    assert_int_equal(e.change.to.recovery, 6);
    assert_int_equal(e.change.to.n_isr, 1); /* the others have to follow it first */
    assert_int_equal(e.change.to.isr[0], 3);
    assert_int_equal(e.change.to.isr_be[0], 31);
    assert_int_equal(e.change.to.isr_be[1], 0);
    assert_int_equal(e.change.n_checks, 3); /* those it was compared with are still the same */
    for (int32_t me = 1; me <= 2; me++) {
        in = unproven_input(&s, me, RECOVERY_BALANCED);
        in.claims = claims;
        in.n_claims = 3;
        assert_int_equal(decide(&in).what, ELECTION_NOTHING);
    }
    in = unproven_input(&s, 3, RECOVERY_BALANCED);
    in.claims = claims + 1; /* 1 has not spoken */
    in.n_claims = 2;
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
    claims[0].be = 10; /* or has since restarted */
    in.claims = claims;
    in.n_claims = 3;
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
    claims[0] = (struct election_claim){ 1, 11, -1, 0 }; /* its log is damaged */
    assert_int_equal(decide(&in).what, ELECTION_TAKE_LOSS);
    in.n_live = 2; /* a member is missing that may have more */
    assert_int_equal(decide(&in).what, ELECTION_NOTHING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partition_that_is_led_is_left_alone),
        cmocka_unit_test(the_first_of_the_replicas_takes_it_and_the_others_wait_their_turn),
        cmocka_unit_test(who_is_gone_or_restarted_leads_no_more),
        cmocka_unit_test(only_a_member_whose_disk_kept_everything_is_elected),
        cmocka_unit_test(who_stops_hands_over_to_one_that_may_lead),
        cmocka_unit_test(who_ails_stands_behind_all_others),
        cmocka_unit_test(of_those_that_may_not_lead_the_least_loss_is_chosen),
        cmocka_unit_test(the_preferred_replica_gets_it_back_when_it_may_lead),
        cmocka_unit_test(by_hand_nothing_happens),
        cmocka_unit_test(proactively_a_member_is_taken_before_others),
        cmocka_unit_test(balanced_the_longest_log_of_all_members_is_taken),
    };
    return RUN(tests);
}
