/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of a text: any position is found again, in a bounded number of them, and what was lost is forgotten. */
#include "unit.h"

#include "fuse/text/map.h"

static void a_position_is_found_by_the_mark_before_it(void **state)
{
    (void)state;
    struct text_map m;
    map_init(&m, 100);
    assert_int_equal(m.front.offset, 100);
    map_grow(&m, 110, 1000, 500);
    assert_int_equal(m.n, 1); /* not far enough from the last */
    map_grow(&m, 120, MAP_STEP_BYTES, 1000);
    map_grow(&m, 130, 10, 10);
    map_grow(&m, 140, 10, 10);
    assert_int_equal(m.n, 2);
    assert_int_equal(m.marks[1].offset, 120);
    assert_int_equal(m.marks[1].at, MAP_STEP_BYTES + 1000);
    assert_int_equal(m.marks[1].stored, 1500);
    assert_int_equal(map_find(&m, 0), 0);
    assert_int_equal(map_find(&m, MAP_STEP_BYTES + 999), 0);
    assert_int_equal(map_find(&m, MAP_STEP_BYTES + 1000), 1);
    assert_int_equal(map_next(&m, 0)->offset, 120);
    assert_int_equal(map_next(&m, 1)->offset, 140);
    assert_int_equal(map_find_offset(&m, 119), 0);
    assert_int_equal(map_find_offset(&m, 120), 1);
    assert_int_equal(map_find_offset(&m, 1000), 1);
    assert_int_equal(map_at(&m, 100), 0);
    assert_int_equal(map_at(&m, 119), -1); /* between marks */
    assert_int_equal(map_at(&m, 120), MAP_STEP_BYTES + 1000);
    assert_int_equal(map_at(&m, 140), m.front.at);
    assert_int_equal(map_at(&m, 141), -1);
    map_done(&m);
}

static void records_without_text_move_the_front(void **state)
{
    (void)state;
    struct text_map m;
    map_init(&m, 0);
    map_grow(&m, 50, 0, 5000);
    assert_int_equal(m.front.offset, 50);
    assert_int_equal(m.front.at, 0);
    map_done(&m);
}

static void marks_are_bounded_and_still_find_every_position(void **state)
{
    (void)state;
    struct text_map m;
    map_init(&m, 0);
    for (int64_t i = 1; i <= 3 * MAP_MARKS_MAX; i++)
        map_grow(&m, i, MAP_STEP_BYTES, 1);
    assert_true(m.n <= MAP_MARKS_MAX);
    assert_true(m.step > MAP_STEP_BYTES);
    for (int64_t at = 0; at < m.front.at; at += 1234567) {
        size_t i = map_find(&m, at);
        assert_true(m.marks[i].at <= at && at < map_next(&m, i)->at);
        assert_int_equal(m.marks[i].at, m.marks[i].offset * MAP_STEP_BYTES);
    }
    map_done(&m);
}

static void what_was_lost_is_counted_anew_from_a_mark(void **state)
{
    (void)state;
    struct text_map m;
    map_init(&m, 0);
    for (int64_t i = 1; i <= 10; i++)
        map_grow(&m, i, MAP_STEP_BYTES, 1);
    map_cut(&m, 10);
    assert_int_equal(m.front.offset, 10);
    map_cut(&m, 5);
    assert_int_equal(m.front.offset, 5);
    assert_int_equal(m.front.at, 5 * MAP_STEP_BYTES);
    map_cut(&m, -1);
    assert_int_equal(m.front.offset, 0);
    assert_int_equal(m.n, 1);
    map_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_position_is_found_by_the_mark_before_it),
        cmocka_unit_test(records_without_text_move_the_front),
        cmocka_unit_test(marks_are_bounded_and_still_find_every_position),
        cmocka_unit_test(what_was_lost_is_counted_anew_from_a_mark),
    };
    return RUN(tests);
}
