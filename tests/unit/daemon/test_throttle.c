/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes a second, whatever the size of the pieces and of the steps of time. */
#include "unit.h"

#include "daemon/config/topic_config.h"
#include "daemon/replica/throttle.h"
#include "lib/base/attr.h"

static void without_a_bound_all_passes(void **state)
{
    (void)state;
    struct throttle t;

    throttle_init(&t);
    assert_true(throttle_room(&t, 5) == INT64_MAX);
    throttle_passed(&t, INT64_MAX, 5);
    assert_true(throttle_room(&t, 5) == INT64_MAX);
    throttle_done(&t);
}

/* Pieces of `piece` bytes, whenever any may pass, looked at each `step` ms: how much in 10 s. */
static int64_t passed_in_ten_seconds(int64_t rate, int64_t piece, int64_t step)
{
    struct throttle t;
    int64_t sum = 0;

    throttle_init(&t);
    throttle_set_rate(&t, rate);
    for (int64_t now = 1000; now < 11000; now += step)
        while (throttle_room(&t, now) > 0) {
            throttle_passed(&t, piece, now);
            sum += piece;
        }
    throttle_done(&t);
    return sum;
}

static void the_rate_holds(void **state)
{
    (void)state;
    static const int64_t pieces[] = { 1000, 5000, 3000000 }, steps[] = { 1, 7, 500 };

    for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
        for (size_t k = 0; k < ARRAY_LEN(steps); k++) {
            int64_t sum = passed_in_ten_seconds(1000000, pieces[i], steps[k]);
            assert_in_range(sum, 9000000, 11000000 + pieces[i]); /* a second is saved up at the start */
        }
}

static void waiting(void **state)
{
    (void)state;
    struct throttle t;

    throttle_init(&t);
    throttle_set_rate(&t, 1000);
    assert_int_equal(throttle_room(&t, 0), 1000);
    throttle_passed(&t, 1200, 0);
    assert_int_equal(throttle_room(&t, 0), 0);
    assert_int_equal(throttle_wait_ms(&t, 0), 201);
    assert_int_equal(throttle_room(&t, 201), 1);
    throttle_passed(&t, 1000000, 201);
    assert_int_equal(throttle_wait_ms(&t, 201), 1000);
    throttle_set_rate(&t, 0); /* nothing passes */
    assert_int_equal(throttle_room(&t, 100000), 0);
    assert_int_equal(throttle_wait_ms(&t, 100000), 1000);
    throttle_set_rate(&t, INT64_MAX); /* taken away: no debt is left */
    assert_true(throttle_room(&t, 100000) == INT64_MAX);
    throttle_done(&t);
}

static void lists_of_replicas(void **state)
{
    (void)state;
    assert_true(topic_config_throttles("*", 7, 1));
    assert_true(topic_config_throttles("0:1,7:1", 7, 1));
    assert_true(topic_config_throttles("7:1,0:1", 7, 1));
    assert_false(topic_config_throttles("", 7, 1));
    assert_false(topic_config_throttles("7:2,1:7,17:1,7:11", 7, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_bound_all_passes),
        cmocka_unit_test(the_rate_holds),
        cmocka_unit_test(waiting),
        cmocka_unit_test(lists_of_replicas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
