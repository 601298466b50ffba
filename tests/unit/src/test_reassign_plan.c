/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: as little as possible moves, racks stay apart, brokers get as many as each other. */
#include "unit.h"

#include "lib/base/attr.h"
#include "src/reassign_plan.h"

enum { BROKERS = 6, PARTS = 40 };

struct scene {
    struct plan p;
    struct plan_broker brokers[BROKERS];
    struct plan_part parts[PARTS];
};

/* Racks in turn; replicas of partition i on brokers i, i + 1, ... of the first `used`. */
static void make(struct scene *s, int brokers, int racks, int parts, int replicas, int used)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < brokers; i++)
        s->brokers[i] = (struct plan_broker){ .id = i + 1, .rack = racks == 0 ? -1 : i % racks, .receives = true };
    for (int i = 0; i < parts; i++) {
        s->parts[i].n = replicas;
        for (int k = 0; k < replicas; k++)
            s->parts[i].replicas[k] = (i + k) % used + 1;
    }
    s->p = (struct plan){ s->brokers, (size_t)brokers, s->parts, (size_t)parts, 0, true };
}

static int moved(const struct scene *s)
{
    int n = 0;

    for (size_t i = 0; i < s->p.n_parts; i++)
        n += s->parts[i].n_moved;
    return n;
}

static void check(const struct scene *s, int racks)
{
    for (size_t i = 0; i < s->p.n_parts; i++) {
        const struct plan_part *pt = &s->parts[i];
        for (int32_t k = 0; k < pt->n; k++)
            for (int32_t j = 0; j < k; j++) {
                assert_int_not_equal(pt->replicas[k], pt->replicas[j]);
                if (racks >= pt->n)
                    assert_int_not_equal((pt->replicas[k] - 1) % racks, (pt->replicas[j] - 1) % racks);
            }
    }
}

static void level_brokers_need_nothing(void **state)
{
    (void)state;
    struct scene s;

    make(&s, 4, 0, 8, 2, 4);
    assert_int_equal(plan_make(&s.p), -1);
    for (size_t i = 0; i < s.p.n_parts; i++)
        assert_false(s.parts[i].changed);
}

static void a_new_broker_gets_its_share_and_no_more_moves(void **state)
{
    (void)state;
    struct scene s;

    make(&s, 4, 0, 12, 3, 3); /* 12 each on three, none on the fourth: 9 each */
    for (int i = 0; i < 3; i++)
        s.brokers[i].receives = false;
    assert_int_equal(plan_make(&s.p), -1);
    assert_int_equal(moved(&s), 9);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(s.brokers[i].n_replicas, 9);
        assert_int_equal(s.brokers[i].n_first, 3);
    }
    check(&s, 0);
}

static void a_drained_broker_is_empty_and_the_rest_stays(void **state)
{
    (void)state;
    struct scene s;

    make(&s, 6, 3, 30, 3, 6);
    s.brokers[4].empties = true;
    s.p.balance = false;
    assert_int_equal(plan_make(&s.p), -1);
    assert_int_equal(s.brokers[4].n_replicas, 0);
    assert_int_equal(moved(&s), 15); /* what it had */
    check(&s, 3);
}

static void racks_come_before_balance(void **state)
{
    (void)state;
    struct scene s;

    make(&s, 3, 2, 10, 2, 2); /* brokers 1 and 3 in one rack, 2 alone in the other */
    assert_int_equal(plan_make(&s.p), -1);
    assert_int_equal(s.brokers[0].n_replicas, 5);
    assert_int_equal(s.brokers[1].n_replicas, 10);
    assert_int_equal(s.brokers[2].n_replicas, 5);
    check(&s, 2);
}

static void other_numbers_of_replicas(void **state)
{
    (void)state;
    struct scene s;

    make(&s, 3, 0, 6, 1, 1);
    s.p.n_replicas = 3;
    assert_int_equal(plan_make(&s.p), -1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(s.brokers[i].n_replicas, 6);
    check(&s, 0);
    s.p.n_replicas = 2;
    assert_int_equal(plan_make(&s.p), -1);
    assert_int_equal(moved(&s), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(s.brokers[i].n_replicas, 4);
    s.p.n_replicas = 4;
    assert_int_equal(plan_make(&s.p), 0);
}

static void a_broker_that_is_not_there_is_replaced(void **state)
{
    (void)state;
    struct scene s;

    make(&s, 3, 0, 4, 2, 3);
    s.p.n_brokers = 2; /* the third is dead */
    assert_int_equal(plan_make(&s.p), -1);
    for (size_t i = 0; i < s.p.n_parts; i++) {
        assert_int_equal(s.parts[i].n, 2);
        assert_int_equal(s.parts[i].replicas[0] + s.parts[i].replicas[1], 3);
    }
    make(&s, 3, 0, 4, 3, 3);
    s.p.n_brokers = 2;
    assert_int_equal(plan_make(&s.p), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(level_brokers_need_nothing),
        cmocka_unit_test(a_new_broker_gets_its_share_and_no_more_moves),
        cmocka_unit_test(a_drained_broker_is_empty_and_the_rest_stays),
        cmocka_unit_test(racks_come_before_balance),
        cmocka_unit_test(other_numbers_of_replicas),
        cmocka_unit_test(a_broker_that_is_not_there_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
