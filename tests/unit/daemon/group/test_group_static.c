/* SPDX-License-Identifier: Apache-2.0 */
/* Static members (KIP-345, KIP-814): a restart is not a rebalance, and of two with one name the later one
 * stays. */
#include "unit.h"

#include "tests/unit/daemon/group/fake_group.h"

/* Two static members, i0 leads; in the state STABLE. */
static struct fake *stable_statics(char ids[2][FAKE_ID_MAX])
{
    struct fake *f = fake_new(3000);
    struct ticket *t[2];

    t[0] = fake_join(f, (struct fake_join){ .instance = "i0", .id_required = true, .protocols = "range,rr" });
    t[1] = fake_join(f, (struct fake_join){ .instance = "i1", .id_required = true, .protocols = "range,rr" });
    fake_sleep(f, 6000);
    for (int i = 0; i < 2; i++) {
        assert_answer(t[i], KERR_NONE); /* no round trip for the id */
        snprintf(ids[i], FAKE_ID_MAX, "%s", t[i]->member_id);
    }
    char list[100];
    snprintf(list, sizeof list, "%s=a0,%s=a1", ids[0], ids[1]);
    fake_sync_as(f, ids[1], "i1", 1, NULL, NULL, NULL);
    fake_sync_as(f, ids[0], "i0", 1, NULL, NULL, list);
    fake_written(f, KERR_NONE);
    assert_state(f, GROUP_STABLE);
    return f;
}

static struct ticket *come_back(struct fake *f, const char *instance, bool can_skip)
{
    return fake_join(
        f, (struct fake_join){ .instance = instance, .protocols = "range,rr", .can_skip = can_skip });
}

static void a_restarted_follower_gets_its_place_back_without_a_rebalance(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);
    struct ticket *t = come_back(f, "i1", true);

    assert_waits(t); /* until the new id is durable */
    fake_written(f, KERR_NONE);
    assert_answer(t, KERR_NONE);
    assert_state(f, GROUP_STABLE);
    assert_int_equal(t->generation, 1);
    assert_string_not_equal(t->member_id, ids[1]);
    assert_string_equal(t->leader, ids[0]);
    assert_false(t->skip_assignment);
    assert_int_equal(t->n_members, -1);

    struct ticket *s = fake_sync_as(f, t->member_id, "i1", 1, NULL, NULL, NULL);
    assert_answer(s, KERR_NONE);
    assert_string_equal(s->assignment, "a1");
    fake_free(f);
}

static void a_restarted_leader_is_told_to_skip_the_assignment(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);
    struct ticket *t = come_back(f, "i0", true);

    fake_written(f, KERR_NONE);
    assert_answer(t, KERR_NONE);
    assert_true(t->skip_assignment);
    assert_string_equal(t->leader, t->member_id);
    assert_int_equal(t->n_members, 2);
    fake_free(f);
}

static void an_old_restarted_leader_is_told_its_former_id_as_leader(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);
    struct ticket *t = come_back(f, "i0", false);

    fake_written(f, KERR_NONE);
    assert_answer(t, KERR_NONE);
    assert_false(t->skip_assignment);
    assert_string_equal(t->leader, ids[0]);
    assert_string_not_equal(t->member_id, ids[0]);
    assert_int_equal(t->n_members, -1);
    fake_free(f);
}

static void whoever_uses_the_former_id_is_fenced(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);

    come_back(f, "i1", true);
    fake_written(f, KERR_NONE);
    assert_err(group_heartbeat(f->g, ids[1], "i1", 1, f->now_ms), KERR_FENCED_INSTANCE_ID);
    assert_err(group_may_commit(f->g, ids[1], "i1", 1, f->now_ms), KERR_FENCED_INSTANCE_ID);
    assert_err(group_leave(f->g, ids[1], "i1", f->now_ms), KERR_FENCED_INSTANCE_ID);
    assert_answer(fake_sync_as(f, ids[1], "i1", 1, NULL, NULL, NULL), KERR_FENCED_INSTANCE_ID);
    assert_answer(fake_join(f, (struct fake_join){ .id = ids[1], .instance = "i1" }),
                  KERR_FENCED_INSTANCE_ID);
    assert_err(fake_heartbeat(f, ids[1], 1), KERR_UNKNOWN_MEMBER_ID);
    assert_err(group_heartbeat(f->g, ids[1], "nobody", 1, f->now_ms), KERR_UNKNOWN_MEMBER_ID);
    fake_free(f);
}

static void two_with_one_name_the_parked_one_is_fenced(void **state)
{
    (void)state;
    struct fake *f = fake_new(3000);
    struct ticket *a = fake_join(f, (struct fake_join){ .instance = "i" });
    struct ticket *b = fake_join(f, (struct fake_join){ .instance = "i" });

    assert_answer(a, KERR_FENCED_INSTANCE_ID);
    assert_waits(b);
    fake_sleep(f, 6000);
    assert_answer(b, KERR_NONE);
    assert_int_equal(b->n_members, 1);
    assert_string_equal(b->leader, b->member_id);

    struct ticket *s = fake_sync_as(f, b->member_id, "i", 1, NULL, NULL, NULL);
    fake_join(f, (struct fake_join){ .instance = "i" });
    assert_answer(
        s, KERR_FENCED_INSTANCE_ID); /* its id is in an assignment that is being written: all over again */
    assert_state(f, GROUP_COMPLETING);
    assert_int_equal(f->g->generation, 2);
    fake_free(f);
}

static void a_return_that_changes_the_protocol_rebalances(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);
    struct ticket *t =
        fake_join(f, (struct fake_join){ .instance = "i1", .protocols = "rr", .can_skip = true });

    assert_waits(t);
    assert_state(f, GROUP_PREPARING);
    fake_free(f);
}

static void a_return_that_only_brings_other_metadata_does_not(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);
    struct ticket *t =
        fake_join(f, (struct fake_join){ .instance = "i1", .protocols = "range,rr", .metadata = "new" });

    fake_written(f, KERR_NONE);
    assert_answer(t, KERR_NONE);
    assert_state(f, GROUP_STABLE);
    fake_free(f);
}

static void a_return_that_cannot_be_written_is_tried_again(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);
    struct ticket *t = come_back(f, "i1", true);

    fake_written(f, KERR_COORDINATOR_NOT_AVAILABLE);
    assert_answer(t, KERR_COORDINATOR_NOT_AVAILABLE);
    assert_state(f, GROUP_STABLE);
    t = come_back(f, "i1", true);
    fake_written(f, KERR_NONE);
    assert_answer(t, KERR_NONE);
    assert_string_equal(fake_sync_as(f, t->member_id, "i1", 1, NULL, NULL, NULL)->assignment, "a1");
    fake_free(f);
}

static void a_rebalance_takes_a_returning_member_along(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);
    struct ticket *t = come_back(f, "i1", true);
    struct ticket *lead =
        fake_join(f, (struct fake_join){ .id = ids[0], .instance = "i0", .protocols = "range,rr" });

    assert_answer(t, KERR_NONE); /* it had joined: the new generation needs no more of it */
    assert_answer(lead, KERR_NONE);
    assert_int_equal(t->generation, 2);
    fake_written(f, KERR_NONE);
    assert_state(f, GROUP_COMPLETING);
    fake_free(f);
}

static void each_return_waits_for_its_own_record(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);
    struct ticket *a = come_back(f, "i0", true);
    int64_t first = f->writing[0];
    struct ticket *b = come_back(f, "i1", true);

    assert_int_equal(f->n_writing, 2);
    group_persisted(f->g, first, KERR_NONE, f->now_ms);
    assert_answer(a, KERR_NONE);
    assert_waits(b);
    fake_free(f);
}

static void it_stays_away_for_its_session_and_no_longer(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);

    fake_sleep(f, 9000);
    assert_err(group_heartbeat(f->g, ids[0], "i0", 1, f->now_ms), KERR_NONE);
    assert_state(f, GROUP_STABLE);
    fake_sleep(f, 1000);
    assert_state(f, GROUP_PREPARING);
    assert_int_equal(group_n_members(f->g), 1);
    fake_free(f);
}

static void an_absent_static_member_survives_a_rebalance(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);
    struct ticket *a = fake_join(f, (struct fake_join){ .session_ms = 100000, .rebalance_ms = 5000 });
    struct ticket *b =
        fake_join(f, (struct fake_join){ .instance = "i", .session_ms = 100000, .rebalance_ms = 5000 });

    a = fake_join(f, (struct fake_join){ .id = a->member_id, .session_ms = 100000, .rebalance_ms = 5000 });
    assert_answer(b, KERR_NONE);
    a = fake_join(f, (struct fake_join){
                         .id = a->member_id, .metadata = "x", .session_ms = 100000, .rebalance_ms = 5000 });
    assert_waits(a);
    fake_sleep(f, 5000);
    assert_answer(a, KERR_NONE);
    assert_int_equal(a->n_members, 2); /* its partitions stay its own */
    fake_sync(f, a->member_id, 3, NULL);
    fake_written(f, KERR_NONE);
    assert_state(f, GROUP_STABLE);
    for (int i = 0; i < 5; i++) {
        fake_sleep(f, 10000);
        assert_err(fake_heartbeat(f, a->member_id, 3), KERR_NONE);
    }
    fake_free(f);
}

/* A dynamic leader died, and of those who are left nobody has joined: the rebalance waits for them, or for
 * their sessions. */
static void with_only_absent_static_members_the_rebalance_waits(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);

    f->g->members->rebalance_timeout_ms = 2000;
    ((struct group_member *)f->g->members->hh.next)->rebalance_timeout_ms = 2000;
    assert_waits(fake_join(f, (struct fake_join){ .protocols = "range", .rebalance_ms = 2000 }));
    assert_err(fake_leave(f, "m-2"), KERR_NONE);
    fake_sleep(f, 3000);
    assert_state(f, GROUP_PREPARING);
    assert_int_equal(group_n_members(f->g), 2);
    fake_sleep(f, 10000);
    assert_state(f, GROUP_EMPTY);
    fake_free(f);
}

static void it_can_be_removed_by_its_name(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = stable_statics(ids);

    assert_err(group_leave(f->g, "", "nobody", f->now_ms), KERR_UNKNOWN_MEMBER_ID);
    assert_err(group_leave(f->g, "", NULL, f->now_ms), KERR_UNKNOWN_MEMBER_ID);
    assert_err(group_leave(f->g, "", "i1", f->now_ms), KERR_NONE);
    assert_null(group_member_find(f->g, ids[1]));
    assert_state(f, GROUP_PREPARING);
    fake_free(f);
}

/* It was answered its join and never synced; the leader's assignment made the group stable all the same. It is
 * restarted, and while the record with its new id is on its way, the time to sync is over. */
static void returns_while_the_time_to_sync_ends(void **state)
{
    (void)state;
    struct fake *f = fake_new(3000);
    struct ticket *lead = fake_join(f, (struct fake_join){ .rebalance_ms = 5000, .session_ms = 60000 });
    struct ticket *st = fake_join(f, (struct fake_join){ .instance = "s", .rebalance_ms = 5000, .session_ms = 60000 });

    fake_sleep(f, 6000);
    assert_answer(st, KERR_NONE);
    char list[128];
    snprintf(list, sizeof list, "%s=a,%s=b", lead->member_id, st->member_id);
    fake_sync(f, lead->member_id, f->g->generation, list);
    fake_written(f, KERR_NONE);
    assert_state(f, GROUP_STABLE);
    int64_t due = f->g->sync_due_ms;

    struct ticket *again = fake_join(f, (struct fake_join){ .instance = "s", .rebalance_ms = 5000, .session_ms = 60000 });
    assert_waits(again);
    fake_sleep(f, 6000);
    assert_true(f->now_ms > due);
    assert_waits(again);
    fake_written(f, KERR_NONE);
    assert_answer(again, KERR_NONE); /* nothing has changed for the others */
    assert_state(f, GROUP_STABLE);
    assert_int_equal(again->generation, lead->generation);
    struct ticket *sync = fake_sync_as(f, again->member_id, "s", again->generation, NULL, NULL, NULL);
    assert_answer(sync, KERR_NONE);
    assert_string_equal(sync->assignment, "b");
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restarted_follower_gets_its_place_back_without_a_rebalance),
        cmocka_unit_test(a_restarted_leader_is_told_to_skip_the_assignment),
        cmocka_unit_test(an_old_restarted_leader_is_told_its_former_id_as_leader),
        cmocka_unit_test(whoever_uses_the_former_id_is_fenced),
        cmocka_unit_test(two_with_one_name_the_parked_one_is_fenced),
        cmocka_unit_test(a_return_that_changes_the_protocol_rebalances),
        cmocka_unit_test(a_return_that_only_brings_other_metadata_does_not),
        cmocka_unit_test(a_return_that_cannot_be_written_is_tried_again),
        cmocka_unit_test(a_rebalance_takes_a_returning_member_along),
        cmocka_unit_test(each_return_waits_for_its_own_record),
        cmocka_unit_test(it_stays_away_for_its_session_and_no_longer),
        cmocka_unit_test(an_absent_static_member_survives_a_rebalance),
        cmocka_unit_test(with_only_absent_static_members_the_rebalance_waits),
        cmocka_unit_test(it_can_be_removed_by_its_name),
        cmocka_unit_test(returns_while_the_time_to_sync_ends),
    };
    return RUN(tests);
}
