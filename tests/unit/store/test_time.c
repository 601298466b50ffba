/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets by timestamp: the smallest offset whose timestamp reaches the target, whatever their order and
 * span. */
#include "storetest.h"

static void put(struct fixture *f, int64_t ts, int n)
{
    const struct batch_spec spec = { .n = n, .value_bytes = 400, .timestamp = ts };
    assert_int_equal(append_spec(f, &spec).err, KERR_NONE);
}

static void assert_found(struct fixture *f, int64_t ts, int64_t limit, int64_t want)
{
    int64_t offset, found;
    assert_int_equal(plog_find_time(f->l, ts, limit, &offset, &found), 0);
    assert_int_equal(offset, want);
    if (want < 0)
        assert_int_equal(found, -1);
    else
        assert_true(found >= ts);
}

/* Case B11. */
static void the_first_record_not_older_is_found(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    for (int i = 1; i <= 3; i++)
        put(f, T0 + i * 1000000, 1);
    assert_found(f, T0, 3, 0);
    assert_found(f, T0 + 2000000, 3, 1);
    assert_found(f, T0 + 2000001, 3, 2);
    assert_found(f, T0 + 3000001, 3, -1);
    assert_found(f, T0 + 3000000, 2, -1);
}

/* Case C16: spans above 2^32 ms, any order. */
static void order_and_span_of_timestamps_do_not_matter(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    put(f, T0 - 200000000, 1);
    put(f, T0 - 9000000000, 1);
    put(f, T0 - 100000, 1);
    put(f, T0 - 8000000000, 1);
    for (int round = 0; round < 2; round++) {
        assert_found(f, T0 - 8999999999, 4, 0);
        assert_found(f, T0 - 200000000, 4, 0);
        assert_found(f, T0 - 150000, 4, 2);
        reopen(f, round == 0);
    }
}

static void inside_a_batch_the_record_counts(void **state)
{
    struct fixture *f = *state;

    must_open(f);
    put(f, T0, 10);
    put(f, T0 + 5, 10);
    assert_found(f, T0 + 7, 20, 7);
    assert_found(f, T0 + 12, 20, 17);
    assert_int_equal(plog_delete_before(f->l, 8), 0);
    assert_found(f, T0 + 7, 20, 8);
}

/* Against a walk over all records, with timestamps that jump about. */
static void many_segments_give_the_same_answer_as_a_walk(void **state)
{
    struct fixture *f = *state;
    int64_t ts[600];
    int n = 0;
    uint32_t seed = 1;

    f->cfg.segment_bytes = 20000;
    f->cfg.index_interval_bytes = 1000;
    must_open(f);
    while (n < 600) {
        seed = seed * 1664525 + 1013904223;
        int64_t t = T0 + (int64_t)(seed >> 8) % 100000 + n * 100;
        for (int i = 0; i < 3; i++)
            ts[n++] = t + i;
        put(f, t, 3);
    }
    for (int round = 0; round < 2; round++) {
        for (int64_t t = T0 - 1; t < T0 + 170000; t += 997) {
            int64_t want = 0;
            while (want < 600 && ts[want] < t)
                want++;
            assert_found(f, t, 600, want == 600 ? -1 : want);
        }
        reopen(f, round == 0);
    }
    int64_t offset, found, best = 0;
    for (int64_t limit = 600; limit > 0; limit -= 93) {
        limit -= limit % 3;
        best = 0;
        for (int64_t i = 0; i < limit; i++)
            best = ts[i] > ts[best] ? i : best;
        assert_int_equal(plog_max_timestamp(f->l, limit, &offset, &found), 0);
        assert_int_equal(offset, best);
        assert_int_equal(found, ts[best]);
    }
}

static void an_empty_log_has_no_timestamp(void **state)
{
    struct fixture *f = *state;
    int64_t offset, found;

    must_open(f);
    assert_found(f, 0, 0, -1);
    assert_int_equal(plog_max_timestamp(f->l, 0, &offset, &found), 0);
    assert_int_equal(offset, -1);
    assert_int_equal(found, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_first_record_not_older_is_found), T(order_and_span_of_timestamps_do_not_matter),
        T(inside_a_batch_the_record_counts),    T(many_segments_give_the_same_answer_as_a_walk),
        T(an_empty_log_has_no_timestamp),
    };
    return RUN(tests);
}
