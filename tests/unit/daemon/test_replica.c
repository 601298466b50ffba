/* SPDX-License-Identifier: Apache-2.0 */
/* Rules R1-R16 of one replica, told as stories, and one walk over every short history. */
#include "unit.h"

#include "daemon/replica/replica.h"

static struct partition_state state_of(int32_t leader, int32_t epoch, int64_t version, int n_replicas,
                                       int n_isr)
{
    struct partition_state s = {
        .leader = leader, .leader_epoch = epoch, .version = version, .n_replicas = n_replicas, .n_isr = n_isr
    };
    for (int i = 0; i < n_replicas; i++)
        s.replicas[i] = i + 1;
    for (int i = 0; i < n_isr; i++)
        s.isr[i] = i + 1;
    return s;
}

/* Broker 1 leads three replicas in epoch 5; the first n_isr of them are in sync. */
static struct replica leader_of_three(int n_isr, int32_t min_isr, int64_t leo)
{
    struct replica r;
    struct partition_state s = state_of(1, 5, 0, 3, n_isr);
    replica_init(&r, 1, leo, leo, 0);
    replica_set_min_isr(&r, min_isr);
    assert_true(replica_set_state(&r, &s));
    return r;
}

static void alone_it_commits_what_it_has_flushed(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 0, 0, 1, 1);
    replica_init(&r, 1, 7, 7, 3);
    assert_int_equal(r.hw, 3);
    assert_true(replica_set_state(&r, &s));
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
    replica_init(&r, 1, 0, 0, 0);
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
    replica_init(&r, 1, 4, 4, 9);
    assert_int_equal(r.hw, 4);
    replica_init(&r, 1, 4, 4, -1);
    assert_int_equal(r.hw, 0);
}

static void hw_waits_for_the_slowest_in_sync_replica(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 2, 10);
    assert_int_equal(r.hw, 0);
    assert_false(replica_follower_fetched(&r, 2, 10));
    assert_true(replica_follower_fetched(&r, 3, 7));
    assert_int_equal(r.hw, 7);
    assert_true(replica_follower_fetched(&r, 3, 10));
    assert_int_equal(r.hw, 10);
}

static void a_replica_out_of_sync_does_not_hold_hw_back(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 2, 10);
    assert_true(replica_follower_fetched(&r, 2, 10));
    assert_int_equal(r.hw, 10);
    assert_false(replica_follower_fetched(&r, 3, 4));
    assert_int_equal(r.hw, 10);
}

static void the_leaders_own_flush_counts(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 2, 0);
    replica_appended(&r, 10);
    replica_follower_fetched(&r, 2, 10);
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
    replica_init(&r, 1, 0, 0, 0);
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
    assert_true(replica_set_state(&r, &newer));
    assert_false(replica_set_state(&r, &older_version));
    assert_false(replica_set_state(&r, &older_epoch));
    assert_int_equal(r.state.version, 3);
    assert_int_equal(r.state.n_isr, 2);
    assert_int_equal(r.role, REPLICA_LEADER);
}

static void a_new_epoch_forgets_what_followers_reported(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 2, 10);
    replica_follower_fetched(&r, 2, 10);
    replica_follower_fetched(&r, 3, 10);
    assert_int_equal(r.hw, 10);
    struct partition_state s = state_of(1, 6, 1, 3, 3);
    replica_appended(&r, 12);
    replica_flushed(&r, 12);
    assert_true(replica_set_state(&r, &s));
    assert_int_equal(r.leso, 12);
    assert_false(replica_hw_is_current(&r));
    assert_false(replica_follower_fetched(&r, 2, 12));
    assert_int_equal(r.hw, 10);
    assert_true(replica_follower_fetched(&r, 3, 12));
    assert_true(replica_hw_is_current(&r));
}

static void roles_follow_the_register(void **state)
{
    (void)state;
    struct replica r;
    replica_init(&r, 2, 5, 5, 5);
    assert_int_equal(r.role, REPLICA_OFFLINE);
    struct partition_state s = state_of(1, 0, 0, 3, 3);
    replica_set_state(&r, &s);
    assert_int_equal(r.role, REPLICA_FOLLOWER);
    s = state_of(2, 1, 1, 3, 3);
    replica_set_state(&r, &s);
    assert_int_equal(r.role, REPLICA_LEADER);
    s = state_of(1, 2, 2, 1, 1); /* no longer among the replicas */
    replica_set_state(&r, &s);
    assert_int_equal(r.role, REPLICA_OFFLINE);
    replica_damage(&r);
    s = state_of(2, 3, 3, 3, 3);
    assert_true(replica_set_state(&r, &s));
    assert_int_equal(r.role, REPLICA_DAMAGED); /* elected or not: it does not serve */
    assert_false(replica_leads(&r));
}

static void a_follower_takes_hw_up_to_its_own_end(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 0, 0, 3, 3);
    replica_init(&r, 2, 5, 5, 0);
    replica_set_state(&r, &s);
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
    const int32_t all[] = { 1, 2, 3 };
    replica_follower_fetched(&r, 2, 10);
    assert_false(replica_may_join(&r, 3)); /* has not fetched */
    replica_follower_fetched(&r, 3, 9);
    assert_false(replica_may_join(&r, 3));
    assert_false(replica_propose_isr(&r, all, 3));
    replica_follower_fetched(&r, 3, 10);
    assert_true(replica_may_join(&r, 3));
    assert_true(replica_propose_isr(&r, all, 3));
    assert_false(replica_may_join(&r, 9)); /* no replica at all */
}

static void a_member_asked_for_counts_before_it_is_confirmed(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 1, 10);
    const int32_t all[] = { 1, 2, 3 };
    replica_follower_fetched(&r, 2, 10);
    replica_follower_fetched(&r, 3, 10);
    assert_true(replica_propose_isr(&r, all, 3));
    replica_appended(&r, 20);
    replica_flushed(&r, 20);
    assert_false(replica_follower_fetched(&r, 2, 20));
    assert_int_equal(r.hw, 10); /* waits for 3 already */
    assert_true(replica_proposal_failed(&r));
    assert_int_equal(r.hw, 20);
}

static void a_member_dropped_counts_until_it_is_confirmed(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 2, 10);
    const int32_t two[] = { 1, 2 };
    replica_follower_fetched(&r, 2, 10);
    assert_true(replica_propose_isr(&r, two, 2));
    assert_int_equal(r.hw, 0);
    struct partition_state s = state_of(1, 5, 1, 3, 2);
    assert_true(replica_set_state(&r, &s));
    assert_int_equal(r.hw, 10);
}

static void the_isr_never_shrinks_below_the_floor(void **state)
{
    (void)state;
    struct replica r = leader_of_three(2, 2, 0);
    const int32_t alone[] = { 1 }, without_leader[] = { 2, 3 };
    assert_false(replica_propose_isr(&r, alone, 1));
    assert_false(replica_propose_isr(&r, without_leader, 2));
    replica_set_min_isr(&r, 1);
    assert_true(replica_propose_isr(&r, alone, 1));
    assert_false(replica_propose_isr(&r, alone, 1)); /* one at a time */
}

static void a_cut_above_hw_is_fine_and_below_it_is_damage(void **state)
{
    (void)state;
    struct replica r;
    struct partition_state s = state_of(1, 0, 0, 3, 3);
    replica_init(&r, 2, 10, 10, 6);
    replica_set_state(&r, &s);
    assert_true(replica_truncated(&r, 6));
    assert_int_equal(r.leo, 6);
    assert_int_equal(r.fleo, 6);
    assert_int_equal(r.role, REPLICA_FOLLOWER);
    assert_false(replica_truncated(&r, 5));
    assert_int_equal(r.role, REPLICA_DAMAGED);
}

static void strangers_and_followers_of_followers_move_nothing(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 1, 10);
    assert_false(replica_follower_fetched(&r, 9, 10));
    assert_false(replica_follower_fetched(&r, 1, 10));
    assert_false(replica_learn_hw(&r, 10));
    assert_int_equal(r.hw, 0);
    struct partition_state s = state_of(2, 6, 1, 3, 3);
    replica_set_state(&r, &s);
    assert_false(replica_follower_fetched(&r, 3, 10));
    assert_false(replica_flushed(&r, 10));
    assert_int_equal(r.hw, 0);
}

/* ---- every history of DEPTH events over three replicas ---- */

enum { DEPTH = 6, EVENTS = 12 };

struct history {
    struct replica r;
    int64_t reported[4]; /* by broker id, in this epoch; -1 none */
    int32_t asked[3];    /* the proposal that is under way, as the test knows it */
    int32_t n_asked;
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
    for (int i = 0; i < h->n_asked; i++)
        if (h->asked[i] != 1)
            assert_true(h->reported[h->asked[i]] >= r->hw);
}

static void propose(struct history *h, const int32_t *isr, int32_t n)
{
    if (!replica_propose_isr(&h->r, isr, n))
        return;
    assert_int_equal(h->n_asked, 0);
    memcpy(h->asked, isr, (size_t)n * sizeof *isr);
    h->n_asked = n;
}

static void confirm(struct history *h, bool new_epoch)
{
    struct partition_state s = h->r.state;
    s.version++;
    if (h->n_asked > 0) {
        memcpy(s.isr, h->asked, sizeof h->asked);
        s.n_isr = h->n_asked;
    }
    h->n_asked = 0;
    if (new_epoch) {
        s.leader_epoch++;
        h->reported[2] = h->reported[3] = -1;
    }
    assert_true(replica_set_state(&h->r, &s));
}

static void fetch(struct history *h, int32_t id, int64_t leo)
{
    replica_follower_fetched(&h->r, id, leo);
    h->reported[id] = leo < h->r.leo ? leo : h->r.leo;
}

static void apply(struct history *h, int event)
{
    static const int32_t alone[] = { 1 }, two[] = { 1, 2 }, other[] = { 1, 3 }, all[] = { 1, 2, 3 };
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
        propose(h, alone, 1);
        break;
    case 6:
        propose(h, two, 2);
        break;
    case 7:
        propose(h, other, 2);
        break;
    case 8:
        propose(h, all, 3);
        break;
    case 9:
        confirm(h, false);
        break;
    case 10:
        confirm(h, true);
        break;
    case 11:
        replica_proposal_failed(&h->r);
        h->n_asked = 0;
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

/* A watch fires for other changes of the topic too, and then tells the same state once more. */
static void the_known_state_told_again_forgets_no_proposal(void **state)
{
    (void)state;
    const int32_t all[] = { 1, 2, 3 };
    struct replica r = leader_of_three(2, 2, 10);
    struct partition_state same = r.state;
    replica_follower_fetched(&r, 2, 10);
    replica_follower_fetched(&r, 3, 10);
    assert_true(replica_propose_isr(&r, all, 3));
    assert_true(replica_set_state(&r, &same));
    replica_appended(&r, 20);
    replica_flushed(&r, 20);
    replica_follower_fetched(&r, 2, 20);
    assert_int_equal(r.hw, 10); /* 3 may be in sync by now, and has 10 */
    assert_false(replica_propose_isr(&r, all, 3));

    same.version++; /* another writer was faster, so the proposal's own write fails */
    assert_true(replica_set_state(&r, &same));
    assert_int_equal(r.hw, 20);
}

/* R1 is for whoever writes the register to keep; what does not is refused. */
static void a_state_that_contradicts_its_epoch_is_refused(void **state)
{
    (void)state;
    struct replica r = leader_of_three(3, 2, 10);
    struct partition_state other[3];
    for (int i = 0; i < 3; i++) {
        other[i] = r.state;
        other[i].version += i;
    }
    other[0].leader = 2;
    other[1].n_replicas = 2;
    other[2].replicas[2] = 9;
    for (int i = 0; i < 3; i++)
        assert_false(replica_set_state(&r, &other[i]));
    assert_true(replica_leads(&r));
    assert_int_equal(r.state.n_replicas, 3);
    assert_int_equal(r.state.replicas[2], 3);
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
        cmocka_unit_test(the_known_state_told_again_forgets_no_proposal),
        cmocka_unit_test(a_state_that_contradicts_its_epoch_is_refused),
        cmocka_unit_test(a_new_epoch_forgets_what_followers_reported),
        cmocka_unit_test(roles_follow_the_register),
        cmocka_unit_test(a_follower_takes_hw_up_to_its_own_end),
        cmocka_unit_test(joining_needs_hw_and_the_epochs_start),
        cmocka_unit_test(a_member_asked_for_counts_before_it_is_confirmed),
        cmocka_unit_test(a_member_dropped_counts_until_it_is_confirmed),
        cmocka_unit_test(the_isr_never_shrinks_below_the_floor),
        cmocka_unit_test(a_cut_above_hw_is_fine_and_below_it_is_damage),
        cmocka_unit_test(strangers_and_followers_of_followers_move_nothing),
        cmocka_unit_test(every_short_history_keeps_the_rules),
    };
    return RUN(tests);
}
