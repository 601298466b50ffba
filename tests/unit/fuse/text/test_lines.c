/* SPDX-License-Identifier: Apache-2.0 */
/* What one write means in lines. */
#include "unit.h"

#include "fuse/text/lines.h"

static struct lines cut(const char *text, size_t tail, size_t line_max)
{
    struct lines l;
    lines_cut(text, strlen(text), tail, line_max, &l);
    return l;
}

static void whole_lines_and_a_rest_are_told_apart(void **state)
{
    (void)state;
    struct lines l = cut("ab\n\ncde\nrest", 0, 100);
    assert_int_equal(l.n, 3);
    assert_int_equal(l.ends[0], 3);
    assert_int_equal(l.ends[1], 4);
    assert_int_equal(l.ends[2], 8);
    assert_int_equal(l.rest, 4);
    assert_int_equal(l.taken, 12);
    assert_false(l.too_long);
    lines_done(&l);
}

static void without_a_newline_all_of_it_is_rest(void **state)
{
    (void)state;
    struct lines l = cut("abc", 5, 8);
    assert_int_equal(l.n, 0);
    assert_int_equal(l.rest, 3);
    assert_int_equal(l.taken, 3);
    assert_false(l.too_long);
    lines_done(&l);
}

static void the_tail_counts_for_the_first_line_only(void **state)
{
    (void)state;
    struct lines l = cut("abc\nabcd\n", 1, 4);
    assert_int_equal(l.n, 2);
    assert_false(l.too_long);
    lines_done(&l);
    l = cut("abc\nabcd\n", 2, 4);
    assert_int_equal(l.n, 0);
    assert_int_equal(l.taken, 0);
    assert_true(l.too_long);
    assert_true(l.broken);
    lines_done(&l);
}

static void lines_before_a_long_one_are_taken(void **state)
{
    (void)state;
    struct lines l = cut("ab\n12345\nc\n", 0, 4);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.taken, 3);
    assert_int_equal(l.rest, 0);
    assert_true(l.too_long);
    assert_false(l.broken);
    lines_done(&l);
}

static void a_whole_long_line_can_be_refused_without_harm(void **state)
{
    (void)state;
    struct lines l = cut("12345\n", 0, 4);
    assert_true(l.too_long);
    assert_false(l.broken);
    lines_done(&l);
}

static void a_piece_of_a_long_line_cannot(void **state)
{
    (void)state;
    struct lines l = cut("12345", 0, 4);
    assert_int_equal(l.taken, 0);
    assert_true(l.too_long);
    assert_true(l.broken);
    lines_done(&l);
    l = cut("ab\n12345", 0, 4);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.taken, 3);
    assert_true(l.too_long);
    assert_false(l.broken);
    lines_done(&l);
}

static void zero_bytes_are_bytes(void **state)
{
    (void)state;
    struct lines l;
    lines_cut("x\0y\n\0", 5, 0, 100, &l);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.ends[0], 4);
    assert_int_equal(l.rest, 1);
    lines_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_lines_and_a_rest_are_told_apart),
        cmocka_unit_test(without_a_newline_all_of_it_is_rest),
        cmocka_unit_test(the_tail_counts_for_the_first_line_only),
        cmocka_unit_test(lines_before_a_long_one_are_taken),
        cmocka_unit_test(a_whole_long_line_can_be_refused_without_harm),
        cmocka_unit_test(a_piece_of_a_long_line_cannot),
        cmocka_unit_test(zero_bytes_are_bytes),
    };
    return RUN(tests);
}
