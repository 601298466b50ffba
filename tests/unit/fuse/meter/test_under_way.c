/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel waits for: found once by whoever answers, however many there are. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>

#include "fuse/meter/under_way.h"

static struct under_way u;

static void is(uint64_t number, uint32_t kind, int64_t since_ns)
{
    uint32_t k = 0;
    int64_t at = 0;
    assert_true(under_way_answered(&u, number, &k, &at));
    assert_int_equal(k, kind);
    assert_int_equal(at, since_ns);
}

static void is_not(uint64_t number)
{
    uint32_t k;
    int64_t at;
    assert_false(under_way_answered(&u, number, &k, &at));
}

static int end(void **state)
{
    (void)state;
    under_way_done(&u);
    memset(&u, 0, sizeof u);
    return 0;
}

static void each_is_answered_once(void **state)
{
    (void)state;
    is_not(2);
    assert_true(under_way_take(&u, 2, 15, 1000));
    assert_true(under_way_take(&u, 4, 16, -5));
    is_not(6);
    is(4, 16, -5);
    is_not(4);
    assert_true(under_way_take(&u, 4, 0, 7));
    is(4, 0, 7);
    is(2, 15, 1000);
    is_not(2);
}

static int n_blocks(void)
{
    int n = 0;
    while (n < UNDER_WAY_BLOCKS && atomic_load(&u.blocks[n]) != NULL)
        n++;
    return n;
}

static void many_wait_and_go_in_any_order(void **state)
{
    enum { MANY = 100000 };
    (void)state;
    for (uint64_t i = 1; i <= MANY; i++)
        assert_true(under_way_take(&u, 2 * i, (uint32_t)i % 50, (int64_t)i));
    int n = n_blocks();
    assert_in_range(n, 6, 10);
    for (uint64_t i = 1; i <= MANY; i += 2)
        is(2 * i, (uint32_t)i % 50, (int64_t)i);
    for (uint64_t i = 1; i <= MANY; i += 2) /* into what became free */
        assert_true(under_way_take(&u, UINT64_MAX - i, (uint32_t)i % 7, -(int64_t)i));
    assert_in_range(n_blocks(), n, n + 1);
    for (uint64_t i = MANY; i >= 2; i -= 2)
        is(2 * i, (uint32_t)i % 50, (int64_t)i);
    for (uint64_t i = 1; i <= MANY; i += 2)
        is(UINT64_MAX - i, (uint32_t)i % 7, -(int64_t)i);
    for (uint64_t i = 1; i <= MANY; i++)
        is_not(2 * i);
}

enum { RACES = 50000 };
static atomic_ullong taken;

static void *answers(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= RACES; i++) {
        while (atomic_load(&taken) < i)
            sched_yield();
        is(2 * i, (uint32_t)(i % 48), (int64_t)i * 3);
    }
    return NULL;
}

static void another_thread_answers(void **state)
{
    pthread_t other;
    (void)state;
    atomic_store(&taken, 0);
    assert_int_equal(pthread_create(&other, NULL, answers, NULL), 0);
    for (uint64_t i = 1; i <= RACES; i++) {
        assert_true(under_way_take(&u, 2 * i, (uint32_t)(i % 48), (int64_t)i * 3));
        atomic_store(&taken, i);
        assert_true(under_way_take(&u, 2 * i + 1, 1, 2));
        is(2 * i + 1, 1, 2);
    }
    pthread_join(other, NULL);
    is_not(2 * RACES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_is_answered_once, end),
        cmocka_unit_test_teardown(many_wait_and_go_in_any_order, end),
        cmocka_unit_test_teardown(another_thread_answers, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
