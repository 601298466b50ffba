/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a producer's batch (KIP-98): a table of histories, each step with its verdict, and how much is
 * remembered. */
#include "unit.h"

#include "lib/store/producers.h"

enum { FINE = PRODUCER_APPEND, AGAIN = PRODUCER_DUPLICATE, NO = PRODUCER_REFUSED };

struct step {
    int64_t id;
    int16_t epoch;
    int32_t sequence, n;
    int verdict;
    int64_t what; /* NO: the error; AGAIN: the offset that the batch has */
};

/* Steps that are let in are in the log then, from offset 0 on. */
static void play(const struct step *steps, size_t n)
{
    struct producers ps = { 0 };
    int64_t offset = 0;

    for (size_t i = 0; i < n; i++) {
        const struct step *s = &steps[i];
        struct batch_header h = { .producer_id = s->id,
                                  .producer_epoch = s->epoch,
                                  .base_sequence = s->sequence,
                                  .last_offset_delta = s->n - 1,
                                  .base_offset = offset };
        struct producer_batch known = { .base_offset = -1 };
        enum kerr err = KERR_NONE;
        int verdict = (int)producers_check(&ps, &h, &err, &known);
        if (verdict != s->verdict)
            fail_msg("step %zu: verdict %d, not %d", i, verdict, s->verdict);
        if (verdict == NO)
            assert_int_equal(err, s->what);
        if (verdict == AGAIN) {
            assert_int_equal(known.base_offset, s->what);
            assert_int_equal(known.last_offset, s->what + s->n - 1);
        }
        if (verdict != FINE)
            continue;
        producers_add(&ps, &h, (int64_t)i);
        offset += s->n;
    }
    producers_clear(&ps);
}
#define PLAY(steps) play(steps, ARRAY_LEN(steps))

static void sequences_go_on_without_a_gap(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { 7, 0, 0, 3, FINE, 0 },
        { 7, 0, 3, 1, FINE, 0 },
        { 7, 0, 5, 1, NO, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER },
        { 7, 0, 2, 1, NO, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER }, /* part of one that is there is none of them */
        { 7, 0, 3, 2, NO, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER },
        { 7, 0, 4, 1, FINE, 0 },
        { 8, 0, 100, 1, FINE, 0 }, /* nobody knows it: it may begin anywhere */
        { 8, 0, 102, 1, NO, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER },
        { 8, 0, 101, 1, FINE, 0 },
    };
    PLAY(steps);
}

static void each_of_the_last_five_is_known_again(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { 7, 0, 0, 2, FINE, 0 },
        { 7, 0, 2, 1, FINE, 0 },
        { 7, 0, 3, 1, FINE, 0 },
        { 7, 0, 4, 1, FINE, 0 },
        { 7, 0, 5, 1, FINE, 0 },
        { 7, 0, 0, 2, AGAIN, 0 },
        { 7, 0, 2, 1, AGAIN, 2 },
        { 7, 0, 5, 1, AGAIN, 5 },
        { 7, 0, 6, 1, FINE, 0 },
        { 7, 0, 0, 2, NO, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER }, /* the sixth is forgotten */
        { 7, 0, 2, 1, AGAIN, 2 },
    };
    PLAY(steps);
}

static void a_new_epoch_begins_at_zero_and_ends_the_old_one(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { 7, 1, 0, 1, FINE, 0 },
        { 7, 1, 1, 1, FINE, 0 },
        { 7, 2, 2, 1, NO, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER },
        { 7, 2, 0, 1, FINE, 0 }, /* no repeat of the old epoch's, though the numbers are the same */
        { 7, 1, 2, 1, NO, KERR_INVALID_PRODUCER_EPOCH },
        { 7, 1, 1, 1, NO, KERR_INVALID_PRODUCER_EPOCH },
        { 7, 2, 0, 1, AGAIN, 2 },
        { 7, 2, 1, 1, FINE, 0 },
    };
    PLAY(steps);
}

static void sequences_go_round(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { 7, 0, INT32_MAX - 1, 2, FINE, 0 },
        { 7, 0, 1, 1, NO, KERR_OUT_OF_ORDER_SEQUENCE_NUMBER },
        { 7, 0, 0, 1, FINE, 0 },
        { 7, 0, INT32_MAX - 1, 2, AGAIN, 0 },
    };
    PLAY(steps);
}

static void who_is_silent_is_forgotten(void **state)
{
    (void)state;
    struct producers ps = { 0 };
    struct batch_header h = { .producer_id = 1, .base_sequence = 5 };
    struct producer_batch known;
    enum kerr err;

    producers_add(&ps, &h, 100);
    h.producer_id = 2;
    producers_add(&ps, &h, 200);
    producers_expire(&ps, 200);
    assert_int_equal(ps.n, 1);
    h.base_sequence = 7;
    assert_int_equal(producers_check(&ps, &h, &err, &known), PRODUCER_REFUSED);
    h.producer_id = 1;
    assert_int_equal(producers_check(&ps, &h, &err, &known), PRODUCER_APPEND);
    producers_clear(&ps);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_go_on_without_a_gap),
        cmocka_unit_test(each_of_the_last_five_is_known_again),
        cmocka_unit_test(a_new_epoch_begins_at_zero_and_ends_the_old_one),
        cmocka_unit_test(sequences_go_round),
        cmocka_unit_test(who_is_silent_is_forgotten),
    };
    return RUN(tests);
}
