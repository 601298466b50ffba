/* SPDX-License-Identifier: Apache-2.0 */
/* The classic group protocol: what each request gets in each state; the rules beside the table as stories. */
#include "unit.h"

#include "tests/unit/daemon/group/fake_group.h"
#include "lib/base/attr.h"

/* ---- the state table: a group of two, ids[0] leads ---- */

enum { WAITS = -1000 }; /* the request is parked */

struct cell {
    enum group_state state, next;
    int want; /* an error, or WAITS */
};

static void check_ticket(const struct ticket *t, int want)
{
    if (want == WAITS)
        assert_waits(t);
    else
        assert_answer(t, want);
}

static void joining_as_a_new_member(void **state)
{
    (void)state;
    static const struct cell cells[] = {
        { GROUP_EMPTY, GROUP_PREPARING, WAITS },
        { GROUP_PREPARING, GROUP_PREPARING, WAITS },
        { GROUP_COMPLETING, GROUP_PREPARING, WAITS },
        { GROUP_STABLE, GROUP_PREPARING, WAITS },
        { GROUP_DEAD, GROUP_DEAD, KERR_COORDINATOR_NOT_AVAILABLE },
    };
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        char ids[2][FAKE_ID_MAX];
        struct fake *f = fake_in_state(cells[i].state, 2, ids);
        check_ticket(fake_join(f, (struct fake_join){ 0 }), cells[i].want);
        assert_state(f, cells[i].next);
        fake_free(f);
    }
}

static void joining_as_a_known_member(void **state)
{
    (void)state;
    static const struct {
        struct cell c;
        int who;              /* 0 leads */
        const char *metadata; /* "m" is what they joined with */
    } rows[] = {
        { { GROUP_EMPTY, GROUP_EMPTY, KERR_UNKNOWN_MEMBER_ID }, 0, "m" },
        { { GROUP_PREPARING, GROUP_COMPLETING, KERR_NONE }, 1, "m" }, /* the last one waited for */
        { { GROUP_COMPLETING, GROUP_COMPLETING, KERR_NONE }, 0, "m" },
        { { GROUP_COMPLETING, GROUP_COMPLETING, KERR_NONE }, 1, "m" },
        { { GROUP_COMPLETING, GROUP_PREPARING, WAITS }, 1, "new" },
        { { GROUP_STABLE, GROUP_PREPARING, WAITS }, 0, "m" },
        { { GROUP_STABLE, GROUP_STABLE, KERR_NONE }, 1, "m" },
        { { GROUP_STABLE, GROUP_PREPARING, WAITS }, 1, "new" },
        { { GROUP_DEAD, GROUP_DEAD, KERR_COORDINATOR_NOT_AVAILABLE }, 0, "m" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char ids[2][FAKE_ID_MAX];
        struct fake *f = fake_in_state(rows[i].c.state, 2, ids);
        const char *id = ids[rows[i].who][0] != '\0' ? ids[rows[i].who] : "stranger";
        int32_t generation = f->g->generation;
        struct ticket *t = fake_join(f, (struct fake_join){ .id = id, .metadata = rows[i].metadata });
        check_ticket(t, rows[i].c.want);
        assert_state(f, rows[i].c.next);
        /* The answer again; to the leader alone, who is in. */
        if (rows[i].c.want == KERR_NONE && rows[i].c.state != GROUP_PREPARING) {
            assert_int_equal(t->generation, generation);
            assert_string_equal(t->leader, ids[0]);
            assert_int_equal(t->n_members, rows[i].who == 0 ? 2 : -1);
        }
        fake_free(f);
    }
}

static void syncing(void **state)
{
    (void)state;
    static const struct cell cells[] = {
        { GROUP_EMPTY, GROUP_EMPTY, KERR_UNKNOWN_MEMBER_ID },
        { GROUP_PREPARING, GROUP_PREPARING, KERR_REBALANCE_IN_PROGRESS },
        { GROUP_COMPLETING, GROUP_COMPLETING, WAITS },
        { GROUP_STABLE, GROUP_STABLE, KERR_NONE },
        { GROUP_DEAD, GROUP_DEAD, KERR_COORDINATOR_NOT_AVAILABLE },
    };
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        char ids[2][FAKE_ID_MAX];
        struct fake *f = fake_in_state(cells[i].state, 2, ids);
        struct ticket *t = fake_sync(f, ids[1][0] != '\0' ? ids[1] : "stranger", f->g->generation, NULL);
        check_ticket(t, cells[i].want);
        assert_state(f, cells[i].next);
        if (cells[i].state == GROUP_STABLE)
            assert_string_equal(t->assignment, "a1");
        fake_free(f);
    }
}

static void heartbeats(void **state)
{
    (void)state;
    static const struct cell cells[] = {
        { GROUP_EMPTY, GROUP_EMPTY, KERR_UNKNOWN_MEMBER_ID },
        { GROUP_PREPARING, GROUP_PREPARING, KERR_REBALANCE_IN_PROGRESS },
        { GROUP_COMPLETING, GROUP_COMPLETING, KERR_NONE },
        { GROUP_STABLE, GROUP_STABLE, KERR_NONE },
        { GROUP_DEAD, GROUP_DEAD, KERR_COORDINATOR_NOT_AVAILABLE },
    };
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        char ids[2][FAKE_ID_MAX];
        struct fake *f = fake_in_state(cells[i].state, 2, ids);
        const char *id = ids[1][0] != '\0' ? ids[1] : "stranger";
        assert_err(fake_heartbeat(f, id, f->g->generation), cells[i].want);
        assert_state(f, cells[i].next);
        fake_free(f);
    }
}

static void commits_of_members_and_of_strangers(void **state)
{
    (void)state;
    static const struct {
        enum group_state state;
        enum kerr member, stranger;
    } rows[] = {
        { GROUP_EMPTY, KERR_UNKNOWN_MEMBER_ID, KERR_NONE },
        { GROUP_PREPARING, KERR_NONE, KERR_UNKNOWN_MEMBER_ID },
        { GROUP_COMPLETING, KERR_REBALANCE_IN_PROGRESS, KERR_UNKNOWN_MEMBER_ID },
        { GROUP_STABLE, KERR_NONE, KERR_UNKNOWN_MEMBER_ID },
        { GROUP_DEAD, KERR_COORDINATOR_NOT_AVAILABLE, KERR_COORDINATOR_NOT_AVAILABLE },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char ids[2][FAKE_ID_MAX];
        struct fake *f = fake_in_state(rows[i].state, 2, ids);
        const char *id = ids[1][0] != '\0' ? ids[1] : "gone";
        assert_err(fake_commit(f, id, MAX(f->g->generation, 1)), rows[i].member);
        assert_err(fake_commit(f, "", -1), rows[i].stranger);
        fake_free(f);
    }
}

static void leaving(void **state)
{
    (void)state;
    static const struct cell cells[] = {
        { GROUP_EMPTY, GROUP_EMPTY, KERR_UNKNOWN_MEMBER_ID },
        { GROUP_PREPARING, GROUP_COMPLETING, KERR_NONE }, /* the last one waited for */
        { GROUP_COMPLETING, GROUP_PREPARING, KERR_NONE },
        { GROUP_STABLE, GROUP_PREPARING, KERR_NONE },
        { GROUP_DEAD, GROUP_DEAD, KERR_COORDINATOR_NOT_AVAILABLE },
    };
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        char ids[2][FAKE_ID_MAX];
        struct fake *f = fake_in_state(cells[i].state, 2, ids);
        assert_err(fake_leave(f, ids[1][0] != '\0' ? ids[1] : "stranger"), cells[i].want);
        assert_state(f, cells[i].next);
        fake_free(f);
    }
}

/* ---- who may ask ---- */

static void the_generation_is_judged_after_the_member(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 2, ids);
    int32_t old = f->g->generation - 1;

    assert_err(fake_heartbeat(f, "stranger", old), KERR_UNKNOWN_MEMBER_ID);
    assert_err(fake_heartbeat(f, ids[0], old), KERR_ILLEGAL_GENERATION);
    assert_err(fake_commit(f, "stranger", old), KERR_UNKNOWN_MEMBER_ID);
    assert_err(fake_commit(f, ids[0], old), KERR_ILLEGAL_GENERATION);
    assert_answer(fake_sync(f, "stranger", old, NULL), KERR_UNKNOWN_MEMBER_ID);
    assert_answer(fake_sync(f, ids[0], old, NULL), KERR_ILLEGAL_GENERATION);
    fake_free(f);
}

static void a_sync_for_another_protocol_is_refused(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 2, ids);
    int32_t gen = f->g->generation;

    assert_answer(fake_sync_as(f, ids[0], NULL, gen, "consumer", "range", NULL), KERR_NONE);
    assert_answer(fake_sync_as(f, ids[0], NULL, gen, "connect", "range", NULL),
                  KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_answer(fake_sync_as(f, ids[0], NULL, gen, "consumer", "sticky", NULL),
                  KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_answer(fake_sync_as(f, ids[0], NULL, gen - 1, "connect", "range", NULL), KERR_ILLEGAL_GENERATION);
    fake_free(f);
}

static void only_the_leader_learns_who_is_in(void **state)
{
    (void)state;
    struct fake *f = fake_new(3000);
    struct ticket *a = fake_join(f, (struct fake_join){ 0 }), *b = fake_join(f, (struct fake_join){ 0 });

    fake_sleep(f, 6000);
    assert_answer(a, KERR_NONE);
    assert_answer(b, KERR_NONE);
    assert_int_equal(a->generation, 1);
    assert_int_equal(b->generation, 1);
    assert_string_equal(a->leader, a->member_id); /* the first to join leads */
    assert_string_equal(b->leader, a->member_id);
    assert_int_equal(a->n_members, 2);
    assert_string_equal(a->members[0], a->member_id);
    assert_string_equal(a->members[1], b->member_id);
    assert_int_equal(b->n_members, -1);
    assert_string_equal(b->protocol, "range");
    assert_string_equal(b->protocol_type, "consumer");
    fake_free(f);
}

static void assignments_go_out_when_they_are_durable(void **state)
{
    (void)state;
    char ids[3][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_COMPLETING, 3, ids);
    char list[128];

    snprintf(list, sizeof list, "%s=x,%s=y,stranger=z", ids[0], ids[1]);
    struct ticket *b = fake_sync(f, ids[1], 1, NULL);
    struct ticket *a = fake_sync(f, ids[0], 1, list);
    struct ticket *c = fake_sync(f, ids[2], 1, NULL);
    assert_waits(a);
    assert_waits(b);
    assert_waits(c);
    fake_written(f, KERR_NONE);
    assert_state(f, GROUP_STABLE);
    assert_answer(a, KERR_NONE);
    assert_string_equal(a->assignment, "x");
    assert_string_equal(b->assignment, "y");
    assert_answer(c, KERR_NONE);
    assert_string_equal(c->assignment, ""); /* whom the leader forgot gets nothing */
    fake_free(f);
}

static void an_assignment_that_cannot_be_written_starts_over(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_COMPLETING, 2, ids);
    struct ticket *b = fake_sync(f, ids[1], 1, NULL), *a = fake_sync(f, ids[0], 1, NULL);

    fake_written(f, KERR_NOT_COORDINATOR);
    assert_answer(a, KERR_NOT_COORDINATOR);
    assert_answer(b, KERR_NOT_COORDINATOR);
    assert_state(f, GROUP_PREPARING);
    fake_free(f);
}

static void a_record_of_an_older_generation_concerns_nobody(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_COMPLETING, 2, ids);
    struct ticket *a = fake_sync(f, ids[0], 1, NULL);

    fake_join(f, (struct fake_join){ .id = ids[1], .metadata = "new" });
    assert_answer(a, KERR_REBALANCE_IN_PROGRESS);
    fake_join(f, (struct fake_join){ .id = ids[0] });
    assert_state(f, GROUP_COMPLETING);
    fake_written(f, KERR_NONE);
    assert_state(f, GROUP_COMPLETING);
    assert_int_equal(f->g->generation, 2);
    fake_free(f);
}

/* ---- ids first (KIP-394) ---- */

static void a_new_member_is_sent_away_to_come_back_with_its_id(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);
    struct ticket *t = fake_join(f, (struct fake_join){ .id_required = true });

    assert_answer(t, KERR_MEMBER_ID_REQUIRED);
    assert_string_equal(t->member_id, "m-0");
    assert_int_equal(t->generation, -1);
    assert_state(f, GROUP_EMPTY);

    t = fake_join(f, (struct fake_join){ .id = "m-0", .id_required = true });
    assert_answer(t, KERR_NONE);
    assert_string_equal(t->member_id, "m-0");
    assert_int_equal(t->generation, 1);
    fake_free(f);
}

static void an_id_that_nobody_was_given_is_unknown(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);

    assert_answer(fake_join(f, (struct fake_join){ .id = "m-77", .id_required = true }),
                  KERR_UNKNOWN_MEMBER_ID);
    fake_free(f);
}

static void a_pending_id_holds_up_the_rebalance_until_it_expires(void **state)
{
    (void)state;
    char ids[1][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 1, ids);

    assert_answer(fake_join(f, (struct fake_join){ .id_required = true, .session_ms = 7000 }),
                  KERR_MEMBER_ID_REQUIRED);
    assert_state(f, GROUP_STABLE);
    struct ticket *a = fake_join(f, (struct fake_join){ .id = ids[0] });
    assert_waits(a);
    fake_sleep(f, 6999);
    assert_waits(a);
    fake_sleep(f, 1);
    assert_answer(a, KERR_NONE);
    assert_null(f->g->pending);
    fake_free(f);
}

static void a_pending_id_that_leaves_is_waited_for_no_more(void **state)
{
    (void)state;
    char ids[1][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 1, ids);
    struct ticket *p = fake_join(f, (struct fake_join){ .id_required = true });
    struct ticket *a = fake_join(f, (struct fake_join){ .id = ids[0] });

    assert_waits(a);
    assert_err(fake_leave(f, p->member_id), KERR_NONE);
    assert_answer(a, KERR_NONE);
    fake_free(f);
}

static void a_pending_id_that_comes_back_takes_part(void **state)
{
    (void)state;
    char ids[1][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 1, ids);
    struct ticket *p = fake_join(f, (struct fake_join){ .id_required = true });
    struct ticket *a = fake_join(f, (struct fake_join){ .id = ids[0] });

    assert_waits(a);
    p = fake_join(f, (struct fake_join){ .id = p->member_id, .id_required = true });
    assert_answer(p, KERR_NONE);
    assert_answer(a, KERR_NONE);
    assert_int_equal(a->n_members, 2);
    fake_free(f);
}

/* ---- protocols ---- */

static void the_protocol_with_most_votes_wins(void **state)
{
    (void)state;
    struct fake *f = fake_new(3000);
    struct ticket *a = fake_join(f, (struct fake_join){ .protocols = "sticky,range,rr" });

    fake_join(f, (struct fake_join){ .protocols = "rr,range" });
    fake_join(f, (struct fake_join){ .protocols = "range,rr" });
    fake_sleep(f, 20000);
    assert_string_equal(a->protocol,
                        "range"); /* a's first candidate and the third's; sticky is not everybody's */
    fake_free(f);
}

static void with_equal_votes_the_first_member_decides(void **state)
{
    (void)state;
    struct fake *f = fake_new(3000);
    struct ticket *a = fake_join(f, (struct fake_join){ .protocols = "rr,range" });

    fake_join(f, (struct fake_join){ .protocols = "range,rr" });
    fake_sleep(f, 20000);
    assert_string_equal(a->protocol, "rr");
    fake_free(f);
}

static void a_protocol_named_twice_counts_once(void **state)
{
    (void)state;
    char ids[1][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 1, ids);

    assert_answer(fake_join(f, (struct fake_join){ .protocols = "rr,rr" }), KERR_INCONSISTENT_GROUP_PROTOCOL);
    struct ticket *t = fake_join(f, (struct fake_join){ .protocols = "range,rr,range" });
    fake_join(f, (struct fake_join){ .id = ids[0], .protocols = "range,range" });
    assert_answer(t, KERR_NONE);
    assert_string_equal(t->protocol, "range");
    fake_free(f);
}

static void strangers_to_the_groups_protocols_are_refused(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 2, ids);

    assert_answer(fake_join(f, (struct fake_join){ .type = "connect" }), KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_answer(fake_join(f, (struct fake_join){ .protocols = "rr" }), KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_answer(fake_join(f, (struct fake_join){ .protocols = "" }), KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_answer(fake_join(f, (struct fake_join){ .id = ids[1], .protocols = "rr" }),
                  KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_state(f, GROUP_STABLE);
    fake_free(f);
}

static void an_empty_group_takes_any_protocol_but_none(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);

    assert_answer(fake_join(f, (struct fake_join){ .type = "" }), KERR_INCONSISTENT_GROUP_PROTOCOL);
    assert_answer(fake_join(f, (struct fake_join){ .protocols = "" }), KERR_INCONSISTENT_GROUP_PROTOCOL);
    struct ticket *t = fake_join(f, (struct fake_join){ 0 });
    assert_answer(t, KERR_NONE);
    assert_err(fake_leave(f, t->member_id), KERR_NONE);
    assert_state(f, GROUP_EMPTY);
    t = fake_join(f, (struct fake_join){ .type = "connect", .protocols = "sessioned" });
    assert_answer(t, KERR_NONE);
    assert_string_equal(t->protocol_type, "connect");
    fake_free(f);
}

/* A rolling change from range to rr: both, then rr alone. */
static void protocols_can_be_exchanged_one_member_at_a_time(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 2, ids);

    for (int i = 0; i < 2; i++) {
        struct ticket *t = fake_join(f, (struct fake_join){ .id = ids[i], .protocols = "rr,range" });
        struct ticket *other =
            fake_join(f, (struct fake_join){ .id = ids[1 - i], .protocols = i == 0 ? "range" : "rr,range" });
        assert_answer(t, KERR_NONE);
        assert_string_equal(other->protocol, i == 0 ? "range" : "rr");
    }
    assert_waits(fake_join(f, (struct fake_join){ .id = ids[0], .protocols = "rr" }));
    assert_answer(fake_join(f, (struct fake_join){ .id = ids[1], .protocols = "range" }),
                  KERR_INCONSISTENT_GROUP_PROTOCOL);
    fake_free(f);
}

/* ---- time ---- */

static void the_initial_delay_gathers_members_into_one_rebalance(void **state)
{
    (void)state;
    struct fake *f = fake_new(3000);
    struct ticket *a = fake_join(f, (struct fake_join){ 0 });

    fake_sleep(f, 2000);
    struct ticket *b = fake_join(f, (struct fake_join){ 0 });
    fake_sleep(f, 1000);
    assert_waits(a); /* b came, so it is extended once more */
    fake_sleep(f, 2999);
    assert_waits(b);
    fake_sleep(f, 1);
    assert_answer(a, KERR_NONE);
    assert_answer(b, KERR_NONE);
    assert_int_equal(a->generation, 1);
    fake_free(f);
}

static void the_initial_delay_ends_with_the_rebalance_timeout(void **state)
{
    (void)state;
    struct fake *f = fake_new(3000);
    struct ticket *a = fake_join(f, (struct fake_join){ .rebalance_ms = 7000 });

    for (int i = 0; i < 6; i++) {
        fake_sleep(f, 1000);
        fake_join(f, (struct fake_join){ .rebalance_ms = 7000 });
    }
    assert_waits(a);
    fake_sleep(f, 1000);
    assert_answer(a, KERR_NONE);
    assert_int_equal(a->n_members, 7);
    fake_free(f);
}

static void an_initial_delay_that_all_have_left_ends_empty(void **state)
{
    (void)state;
    struct fake *f = fake_new(3000);
    struct ticket *a = fake_join(f, (struct fake_join){ 0 });

    assert_err(fake_leave(f, "m-0"), KERR_NONE);
    assert_answer(a, KERR_UNKNOWN_MEMBER_ID);
    assert_state(f, GROUP_PREPARING);
    fake_sleep(f, 3000);
    assert_state(f, GROUP_EMPTY);
    fake_free(f);
}

static void a_silent_member_is_expelled_after_its_session(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 2, ids);

    for (int i = 0; i < 3; i++) {
        fake_sleep(f, 4000);
        assert_err(fake_heartbeat(f, ids[0], 1), i < 2 ? KERR_NONE : KERR_REBALANCE_IN_PROGRESS);
    }
    assert_state(f, GROUP_PREPARING);
    assert_null(group_member_find(f->g, ids[1]));
    struct ticket *a = fake_join(f, (struct fake_join){ .id = ids[0] });
    assert_answer(a, KERR_NONE);
    assert_int_equal(a->generation, 2);
    assert_int_equal(a->n_members, 1);
    fake_free(f);
}

static void commits_syncs_and_joins_are_signs_of_life_too(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 2, ids);

    for (int i = 0; i < 9; i++) {
        fake_sleep(f, 6000);
        assert_err(fake_heartbeat(f, ids[0], 1), KERR_NONE);
        if (i % 3 == 0)
            assert_err(fake_commit(f, ids[1], 1), KERR_NONE);
        else if (i % 3 == 1)
            assert_answer(fake_sync(f, ids[1], 1, NULL), KERR_NONE);
        else
            assert_answer(fake_join(f, (struct fake_join){ .id = ids[1] }), KERR_NONE);
    }
    assert_state(f, GROUP_STABLE);
    fake_free(f);
}

static void stragglers_are_dropped_after_the_rebalance_timeout(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_PREPARING, 2, ids);

    for (int i = 0; i < 11; i++) { /* it heartbeats, but does not join */
        fake_sleep(f, 5000);
        assert_err(fake_heartbeat(f, ids[1], 1), KERR_REBALANCE_IN_PROGRESS);
    }
    fake_sleep(f, 5000);
    assert_state(f, GROUP_COMPLETING);
    assert_int_equal(group_n_members(f->g), 1);
    assert_err(fake_heartbeat(f, ids[1], 1), KERR_UNKNOWN_MEMBER_ID);
    fake_free(f);
}

static void the_longest_rebalance_timeout_counts(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);
    struct ticket *a = fake_join(f, (struct fake_join){ .rebalance_ms = 20000, .session_ms = 100000 });
    struct ticket *b = fake_join(f, (struct fake_join){ .rebalance_ms = 40000, .session_ms = 100000 });

    assert_waits(b);
    a = fake_join(f, (struct fake_join){ .id = a->member_id, .rebalance_ms = 20000, .session_ms = 100000 });
    assert_answer(b, KERR_NONE);
    struct ticket *c = fake_join(f, (struct fake_join){ .rebalance_ms = 1000, .session_ms = 100000 });
    fake_sleep(f, 39999);
    assert_waits(c);
    fake_sleep(f, 1);
    assert_answer(c, KERR_NONE);
    assert_int_equal(group_n_members(f->g), 1);
    fake_free(f);
}

static void whom_the_leader_forgets_gets_nothing(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX], list[2 * FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 2, ids);
    assert_answer(fake_sync(f, ids[1], f->g->generation, NULL), KERR_NONE);
    /* a new generation, in which the leader gives all to itself */
    struct ticket *a = fake_join(f, (struct fake_join){ .id = ids[0], .metadata = "other" });
    struct ticket *b = fake_join(f, (struct fake_join){ .id = ids[1], .metadata = "other" });
    assert_answer(a, KERR_NONE);
    assert_answer(b, KERR_NONE);
    int32_t generation = f->g->generation;
    snprintf(list, sizeof list, "%s=all", ids[0]);
    struct ticket *s1 = fake_sync(f, ids[1], generation, NULL), *s0 = fake_sync(f, ids[0], generation, list);
    fake_written(f, KERR_NONE);
    assert_answer(s0, KERR_NONE);
    assert_answer(s1, KERR_NONE);
    assert_string_equal(s0->assignment, "all");
    assert_string_equal(s1->assignment, "");
    fake_free(f);
}

static void who_does_not_sync_in_time_is_dropped(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_COMPLETING, 2, ids);
    struct ticket *b = fake_sync(f, ids[1], 1, NULL);

    for (int i = 0; i < 12; i++) { /* the leader is alive, but assigns nothing */
        assert_waits(b);
        fake_sleep(f, 5000);
        fake_heartbeat(f, ids[0], 1);
    }
    assert_answer(b, KERR_REBALANCE_IN_PROGRESS);
    assert_null(group_member_find(f->g, ids[0]));
    b = fake_join(f, (struct fake_join){ .id = ids[1] });
    assert_answer(b, KERR_NONE);
    assert_string_equal(b->leader, ids[1]);
    fake_free(f);
}

static void parked_members_do_not_expire(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_COMPLETING, 2, ids);
    struct ticket *b = fake_sync(f, ids[1], 1, NULL);

    for (int i = 0; i < 8; i++) {
        fake_sleep(f, 5000);
        assert_err(fake_heartbeat(f, ids[0], 1), KERR_NONE);
    }
    assert_waits(b);
    fake_sync(f, ids[0], 1, NULL);
    fake_written(f, KERR_NONE);
    assert_answer(b, KERR_NONE);
    fake_sleep(f, 9999); /* its session began anew with the answer */
    assert_non_null(group_member_find(f->g, ids[1]));
    fake_sleep(f, 1);
    assert_null(group_member_find(f->g, ids[1]));
    fake_free(f);
}

/* Its connection may be long gone, and nobody would notice (KAFKA-7610). */
static void a_new_member_that_cannot_finish_its_first_join_expires(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);
    struct ticket *a = fake_join(f, (struct fake_join){ .rebalance_ms = 400000, .session_ms = 400000 });
    struct ticket *b = fake_join(f, (struct fake_join){ 0 });

    assert_answer(a, KERR_NONE);
    fake_sleep(f, 299999);
    assert_waits(b);
    fake_sleep(f, 1);
    assert_answer(b, KERR_UNKNOWN_MEMBER_ID);
    assert_string_equal(b->member_id, "");
    fake_free(f);
}

static void a_leaver_frees_those_who_wait_for_it(void **state)
{
    (void)state;
    char ids[3][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_PREPARING, 3, ids);
    struct ticket *b = fake_join(f, (struct fake_join){ .id = ids[1] });

    assert_waits(b);
    assert_err(fake_leave(f, ids[2]), KERR_NONE);
    assert_answer(b, KERR_NONE);
    assert_int_equal(b->generation, 2);
    fake_free(f);
}

static void a_parked_leaver_is_told(void **state)
{
    (void)state;
    char ids[3][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_PREPARING, 3, ids);
    struct ticket *b = fake_join(f, (struct fake_join){ .id = ids[1] });

    assert_err(fake_leave(f, ids[1]), KERR_NONE);
    assert_answer(b, KERR_UNKNOWN_MEMBER_ID);
    fake_free(f);

    f = fake_in_state(GROUP_COMPLETING, 2, ids);
    b = fake_sync(f, ids[1], 1, NULL);
    assert_err(fake_leave(f, ids[1]), KERR_NONE);
    assert_answer(b, KERR_UNKNOWN_MEMBER_ID);
    fake_free(f);
}

static void a_join_during_the_sync_sends_all_back(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_COMPLETING, 2, ids);
    struct ticket *b = fake_sync(f, ids[1], 1, NULL);

    assert_waits(fake_join(f, (struct fake_join){ 0 }));
    assert_answer(b, KERR_REBALANCE_IN_PROGRESS);
    fake_free(f);
}

static void a_repeated_request_takes_the_place_of_the_first(void **state)
{
    (void)state;
    char ids[3][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_PREPARING, 3, ids);
    struct ticket *b1 = fake_join(f, (struct fake_join){ .id = ids[1] }),
                  *b2 = fake_join(f, (struct fake_join){ .id = ids[1] });

    assert_answer(b1, KERR_REBALANCE_IN_PROGRESS);
    assert_waits(b2);
    struct ticket *c = fake_join(f, (struct fake_join){ .id = ids[2] });
    assert_answer(b2, KERR_NONE);
    assert_answer(c, KERR_NONE);
    struct ticket *s1 = fake_sync(f, ids[1], 2, NULL), *s2 = fake_sync(f, ids[1], 2, NULL);
    assert_answer(s1, KERR_REBALANCE_IN_PROGRESS);
    assert_waits(s2);
    fake_free(f);
}

/* ---- generations ---- */

static void an_emptied_group_keeps_its_record_and_counts_on(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 2, ids);
    int records = f->n_records;

    fake_leave(f, ids[0]);
    fake_leave(f, ids[1]);
    assert_state(f, GROUP_EMPTY);
    assert_int_equal(f->g->generation, 2);
    assert_null(f->g->protocol);
    assert_null(f->g->leader);
    assert_int_equal(f->n_records, records + 1);
    struct ticket *t = fake_join(f, (struct fake_join){ 0 });
    fake_sleep(f, 3000);
    assert_int_equal(t->generation, 3);
    fake_free(f);
}

static void a_group_that_is_too_large_turns_newcomers_away(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);

    f->env.size_max = 2;
    struct ticket *a = fake_join(f, (struct fake_join){ 0 });
    struct ticket *b = fake_join(f, (struct fake_join){ 0 });
    a = fake_join(f, (struct fake_join){ .id = a->member_id });
    assert_answer(b, KERR_NONE);
    struct ticket *c = fake_join(f, (struct fake_join){ 0 });
    assert_answer(c, KERR_GROUP_MAX_SIZE_REACHED);
    assert_string_equal(c->member_id, "");
    assert_state(f, GROUP_COMPLETING);
    assert_waits(fake_join(f, (struct fake_join){ .id = a->member_id, .metadata = "new" }));
    fake_free(f);
}

/* group.max.size was lowered and the broker started anew. */
static void a_group_that_became_too_large_loses_those_who_come_last(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);
    struct kstr name = kstr_of("range"), metadata = kstr_of("m");

    f->env.size_max = 2;
    group_restore(f->g, 5, "consumer", "range", "x0", 1);
    for (int i = 0; i < 3; i++) {
        char id[16];
        snprintf(id, sizeof id, "x%d", i);
        struct group_join as = { .member_id = id,
                                 .client_id = "c",
                                 .client_host = "h",
                                 .session_timeout_ms = 10000,
                                 .rebalance_timeout_ms = 60000,
                                 .protocol_type = "consumer",
                                 .names = &name,
                                 .metadata = &metadata,
                                 .n_protocols = 1 };
        group_restore_member(f->g, &as, "", 0, f->now_ms);
    }
    group_restored(f->g, f->now_ms);
    assert_state(f, GROUP_PREPARING);
    struct ticket *a = fake_join(f, (struct fake_join){ .id = "x0" }),
                  *b = fake_join(f, (struct fake_join){ .id = "x1" });
    assert_waits(b);
    assert_answer(fake_join(f, (struct fake_join){ .id = "x2" }), KERR_GROUP_MAX_SIZE_REACHED);
    assert_answer(a, KERR_NONE);
    assert_answer(b, KERR_NONE);
    assert_int_equal(a->generation, 6);
    fake_free(f);
}

static void a_leader_that_does_not_come_back_is_replaced(void **state)
{
    (void)state;
    char ids[2][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 2, ids);
    struct ticket *b = fake_join(f, (struct fake_join){ .id = ids[1], .metadata = "new" });

    fake_sleep(f, 10000); /* the leader's session ends */
    assert_answer(b, KERR_NONE);
    assert_string_equal(b->leader, ids[1]);
    assert_int_equal(b->n_members, 1);
    fake_free(f);
}

/* G6. What members bring is counted while they are here, and no request passes the limit. */
static void what_members_keep_has_a_limit(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);
    atomic_llong all;
    char metadata[2000];

    atomic_init(&all, 0);
    f->env.all_bytes = &all;
    f->env.all_bytes_max = 10000;
    memset(metadata, 'm', sizeof metadata - 1);
    metadata[sizeof metadata - 1] = '\0';
    struct ticket *a = fake_join(f, (struct fake_join){ 0 });
    int64_t one = atomic_load(&all);
    assert_true(one > 0 && one == f->g->bytes);
    struct ticket *big = fake_join(f, (struct fake_join){ .id = a->member_id, .metadata = metadata });
    assert_answer(big, KERR_NONE);
    assert_int_equal(atomic_load(&all), one + (int64_t)strlen(metadata) - 1);
    assert_answer(fake_join(f, (struct fake_join){ .id = a->member_id }), KERR_NONE);
    assert_int_equal(atomic_load(&all), one);

    atomic_fetch_add(&all, 10000 - 2 * one); /* other groups': one more like it fits */
    struct ticket *pending = fake_join(f, (struct fake_join){ .id_required = true, .metadata = metadata });
    assert_answer(pending, KERR_GROUP_MAX_SIZE_REACHED);
    assert_int_equal(atomic_load(&all), 10000 - one);
    struct ticket *b = fake_join(f, (struct fake_join){ 0 });
    assert_waits(b);
    assert_answer(fake_join(f, (struct fake_join){ 0 }), KERR_GROUP_MAX_SIZE_REACHED);
    assert_answer(fake_join(f, (struct fake_join){ .id = a->member_id, .metadata = metadata }), KERR_GROUP_MAX_SIZE_REACHED);
    fake_sleep(f, 300000);
    assert_state(f, GROUP_EMPTY);
    assert_int_equal(atomic_load(&all), 10000 - 2 * one);
    fake_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joining_as_a_new_member),
        cmocka_unit_test(joining_as_a_known_member),
        cmocka_unit_test(syncing),
        cmocka_unit_test(heartbeats),
        cmocka_unit_test(commits_of_members_and_of_strangers),
        cmocka_unit_test(leaving),
        cmocka_unit_test(the_generation_is_judged_after_the_member),
        cmocka_unit_test(a_sync_for_another_protocol_is_refused),
        cmocka_unit_test(only_the_leader_learns_who_is_in),
        cmocka_unit_test(assignments_go_out_when_they_are_durable),
        cmocka_unit_test(an_assignment_that_cannot_be_written_starts_over),
        cmocka_unit_test(a_record_of_an_older_generation_concerns_nobody),
        cmocka_unit_test(a_new_member_is_sent_away_to_come_back_with_its_id),
        cmocka_unit_test(an_id_that_nobody_was_given_is_unknown),
        cmocka_unit_test(a_pending_id_holds_up_the_rebalance_until_it_expires),
        cmocka_unit_test(a_pending_id_that_leaves_is_waited_for_no_more),
        cmocka_unit_test(a_pending_id_that_comes_back_takes_part),
        cmocka_unit_test(the_protocol_with_most_votes_wins),
        cmocka_unit_test(with_equal_votes_the_first_member_decides),
        cmocka_unit_test(a_protocol_named_twice_counts_once),
        cmocka_unit_test(strangers_to_the_groups_protocols_are_refused),
        cmocka_unit_test(an_empty_group_takes_any_protocol_but_none),
        cmocka_unit_test(protocols_can_be_exchanged_one_member_at_a_time),
        cmocka_unit_test(the_initial_delay_gathers_members_into_one_rebalance),
        cmocka_unit_test(the_initial_delay_ends_with_the_rebalance_timeout),
        cmocka_unit_test(an_initial_delay_that_all_have_left_ends_empty),
        cmocka_unit_test(a_silent_member_is_expelled_after_its_session),
        cmocka_unit_test(commits_syncs_and_joins_are_signs_of_life_too),
        cmocka_unit_test(stragglers_are_dropped_after_the_rebalance_timeout),
        cmocka_unit_test(the_longest_rebalance_timeout_counts),
        cmocka_unit_test(whom_the_leader_forgets_gets_nothing),
        cmocka_unit_test(who_does_not_sync_in_time_is_dropped),
        cmocka_unit_test(parked_members_do_not_expire),
        cmocka_unit_test(a_new_member_that_cannot_finish_its_first_join_expires),
        cmocka_unit_test(a_leaver_frees_those_who_wait_for_it),
        cmocka_unit_test(a_parked_leaver_is_told),
        cmocka_unit_test(a_join_during_the_sync_sends_all_back),
        cmocka_unit_test(a_repeated_request_takes_the_place_of_the_first),
        cmocka_unit_test(an_emptied_group_keeps_its_record_and_counts_on),
        cmocka_unit_test(a_group_that_is_too_large_turns_newcomers_away),
        cmocka_unit_test(a_group_that_became_too_large_loses_those_who_come_last),
        cmocka_unit_test(a_leader_that_does_not_come_back_is_replaced),
        cmocka_unit_test(what_members_keep_has_a_limit),
    };
    return RUN(tests);
}
