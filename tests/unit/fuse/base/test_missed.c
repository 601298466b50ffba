/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time-out of a mount (rules M1 to M4 of missed.c), by a clock and two clients that are only numbers here: since when each
 * misses an answer, and when it heard one last.
 */
#include "unit.h"

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"

struct client {
    int64_t missing_since_ms, heard_ms;
};

static int64_t now_ms;
static struct client asks, writes;
static const struct options opt = { .timeout_ms = 5000 };

int64_t client_missing_since_ms(const struct client *c)
{
    return c->missing_since_ms;
}

int64_t client_heard_ms(const struct client *c)
{
    return c->heard_ms;
}

int64_t loop_now_ms(const struct loop *lp)
{
    (void)lp;
    return now_ms;
}

/* At 100 s, with what each client knows. */
static struct mount mount_at(struct client a, struct client w)
{
    now_ms = 100000;
    asks = a;
    writes = w;
    return (struct mount){ .opt = &opt, .client = &asks, .writer = &writes };
}

static void a_question_has_the_whole_time_out_while_nothing_is_missed(void **state)
{
    (void)state;
    struct mount m = mount_at((struct client){ 0, 99000 }, (struct client){ 0, 98000 });
    assert_int_equal(mount_deadline_ms(&m), 105000);
    assert_false(mount_misses_brokers(&m));
}

static void questions_and_appends_count_from_the_first_that_is_missed(void **state)
{
    (void)state;
    struct mount m = mount_at((struct client){ 98000, 0 }, (struct client){ 99000, 0 });
    assert_int_equal(mount_deadline_ms(&m), 103000);
    m = mount_at((struct client){ 0, 90000 }, (struct client){ 97000, 0 });
    assert_int_equal(mount_deadline_ms(&m), 102000);
    m = mount_at((struct client){ 97000, 0 }, (struct client){ 0, 90000 });
    assert_int_equal(mount_deadline_ms(&m), 102000);
}

static void an_answer_to_either_client_ends_what_was_missed_before_it(void **state)
{
    (void)state;
    struct mount m = mount_at((struct client){ 90000, 0 }, (struct client){ 0, 99500 });
    assert_int_equal(mount_deadline_ms(&m), 104500);
    assert_false(mount_misses_brokers(&m));
    m = mount_at((struct client){ 0, 99500 }, (struct client){ 90000, 0 });
    assert_int_equal(mount_deadline_ms(&m), 104500);
}

static void who_comes_after_the_time_out_is_a_probe_with_all_that_come_meanwhile(void **state)
{
    (void)state;
    struct mount m = mount_at((struct client){ 90000, 0 }, (struct client){ 0, 0 });
    assert_int_equal(mount_deadline_ms(&m), 101000);
    now_ms = 100600;
    assert_int_equal(mount_deadline_ms(&m), 101000);
    now_ms = 101100; /* it has failed a moment ago: that is the answer */
    assert_int_equal(mount_deadline_ms(&m), 101120);
    now_ms = 102000;
    assert_int_equal(mount_deadline_ms(&m), 103000);
}

static void what_is_known_has_to_do_after_a_second_without_an_answer(void **state)
{
    (void)state;
    struct mount m = mount_at((struct client){ 99001, 0 }, (struct client){ 0, 0 });
    assert_false(mount_misses_brokers(&m));
    now_ms = 100001;
    assert_true(mount_misses_brokers(&m));
}

/* Else a slow disk would keep new topics from being seen. */
static void an_append_that_takes_long_keeps_no_question_from_being_asked(void **state)
{
    (void)state;
    struct mount m = mount_at((struct client){ 0, 90000 }, (struct client){ 95000, 0 });
    assert_false(mount_misses_brokers(&m));
}

static void a_write_that_must_not_block_is_patient_until_brokers_are_missed(void **state)
{
    (void)state;
    struct mount m = mount_at((struct client){ 0, 0 }, (struct client){ 0, 0 });
    assert_int_equal(mount_nonblock_wait_ms(&m), 500);
    m = mount_at((struct client){ 0, 0 }, (struct client){ 99600, 0 });
    assert_int_equal(mount_nonblock_wait_ms(&m), 500);
    m = mount_at((struct client){ 0, 0 }, (struct client){ 99500, 0 });
    assert_int_equal(mount_nonblock_wait_ms(&m), 20);
}

static void it_is_patient_when_readers_have_just_heard_a_broker(void **state)
{
    (void)state;
    struct mount m = mount_at((struct client){ 0, 99900 }, (struct client){ 95000, 0 });
    assert_int_equal(mount_nonblock_wait_ms(&m), 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_has_the_whole_time_out_while_nothing_is_missed),
        cmocka_unit_test(questions_and_appends_count_from_the_first_that_is_missed),
        cmocka_unit_test(an_answer_to_either_client_ends_what_was_missed_before_it),
        cmocka_unit_test(who_comes_after_the_time_out_is_a_probe_with_all_that_come_meanwhile),
        cmocka_unit_test(what_is_known_has_to_do_after_a_second_without_an_answer),
        cmocka_unit_test(an_append_that_takes_long_keeps_no_question_from_being_asked),
        cmocka_unit_test(a_write_that_must_not_block_is_patient_until_brokers_are_missed),
        cmocka_unit_test(it_is_patient_when_readers_have_just_heard_a_broker),
    };
    return RUN(tests);
}
