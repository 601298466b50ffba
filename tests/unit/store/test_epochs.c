/* SPDX-License-Identifier: Apache-2.0 */
/* Where leader epochs ended, answer for answer as Kafka's LeaderEpochFileCache has it, and what truncation at either
 * end and a checkpoint file leave of them. */
#include "unit.h"

#include <string.h>

#include "lib/store/epochs.h"

enum step { END, ASSIGN, CUT_START, CUT_END };

struct change {
    enum step step;
    int32_t epoch;
    int64_t offset;
};

struct question {
    int32_t asked, epoch;
    int64_t end;
};

struct history {
    const char *name;
    struct change changes[8];
    const char *file; /* what is kept in the end */
    int64_t log_end;
    struct question asked[8]; /* up to the first of -2 */
};

#define NO_MORE { -2, 0, 0 }
static const struct history histories[] = {
    { "nothing is known",
      { { END, 0, 0 } },
      "0\n0\n",
      0,
      { { -1, -1, -1 }, { 0, -1, -1 }, { 7, -1, -1 }, NO_MORE } },
    { "one epoch",
      { { ASSIGN, 3, 5 } },
      "0\n1\n3 5\n",
      9,
      { { -1, -1, -1 }, { 0, 0, 5 }, { 2, 2, 5 }, { 3, 3, 9 }, { 4, -1, -1 }, { INT32_MAX, -1, -1 }, NO_MORE } },
    { "several, with gaps",
      { { ASSIGN, 0, 0 }, { ASSIGN, 2, 10 }, { ASSIGN, 5, 20 } },
      "0\n3\n0 0\n2 10\n5 20\n",
      30,
      { { -1, -1, -1 }, { 0, 0, 10 }, { 1, 0, 10 }, { 2, 2, 20 }, { 4, 2, 20 }, { 5, 5, 30 }, { 6, -1, -1 }, NO_MORE } },
    { "one that got no record gives way",
      { { ASSIGN, 2, 10 }, { ASSIGN, 5, 20 }, { ASSIGN, 6, 20 } },
      "0\n2\n2 10\n6 20\n",
      20,
      { { 2, 2, 20 }, { 5, 2, 20 }, { 6, 6, 20 }, { 7, -1, -1 }, NO_MORE } },
    { "retention inside an epoch",
      { { ASSIGN, 0, 0 }, { ASSIGN, 2, 10 }, { ASSIGN, 5, 20 }, { CUT_START, 0, 15 } },
      "0\n2\n2 15\n5 20\n",
      30,
      { { 0, 0, 15 }, { 1, 1, 15 }, { 2, 2, 20 }, { 3, 2, 20 }, { 5, 5, 30 }, { 6, -1, -1 }, NO_MORE } },
    { "retention at an epoch's first record",
      { { ASSIGN, 0, 0 }, { ASSIGN, 2, 10 }, { ASSIGN, 5, 20 }, { CUT_START, 0, 20 } },
      "0\n1\n5 20\n",
      30,
      { { 0, 0, 20 }, { 2, 2, 20 }, { 4, 4, 20 }, { 5, 5, 30 }, { 6, -1, -1 }, NO_MORE } },
    { "everything removed: the latest goes on at the end",
      { { ASSIGN, 1, 0 }, { ASSIGN, 2, 10 }, { CUT_START, 0, 30 } },
      "0\n1\n2 30\n",
      30,
      { { 0, 0, 30 }, { 1, 1, 30 }, { 2, 2, 30 }, { 3, -1, -1 }, NO_MORE } },
    { "everything removed, then a new leader",
      { { ASSIGN, 1, 0 }, { CUT_START, 0, 10 }, { ASSIGN, 2, 10 } },
      "0\n1\n2 10\n",
      20,
      { { 0, 0, 10 }, { 1, 1, 10 }, { 2, 2, 20 }, { 3, -1, -1 }, NO_MORE } },
    { "the tail cut inside an epoch",
      { { ASSIGN, 1, 0 }, { ASSIGN, 2, 10 }, { ASSIGN, 4, 20 }, { CUT_END, 0, 15 } },
      "0\n2\n1 0\n2 10\n",
      15,
      { { 1, 1, 10 }, { 2, 2, 15 }, { 3, -1, -1 }, { 4, -1, -1 }, NO_MORE } },
    { "the tail cut at an epoch's first record",
      { { ASSIGN, 1, 0 }, { ASSIGN, 2, 10 }, { CUT_END, 0, 10 } },
      "0\n1\n1 0\n",
      10,
      { { 1, 1, 10 }, { 2, -1, -1 }, NO_MORE } },
    { "cut at both ends",
      { { ASSIGN, 1, 0 }, { ASSIGN, 2, 10 }, { ASSIGN, 3, 20 }, { CUT_START, 0, 12 }, { CUT_END, 0, 18 } },
      "0\n1\n2 12\n",
      18,
      { { 0, 0, 12 }, { 1, 1, 12 }, { 2, 2, 18 }, { 3, -1, -1 }, NO_MORE } },
    { "all cut",
      { { ASSIGN, 1, 5 }, { CUT_END, 0, 5 } },
      "0\n0\n",
      5,
      { { 0, -1, -1 }, { 1, -1, -1 }, NO_MORE } },
};

static void make(const struct history *h, struct epochs *ret)
{
    for (const struct change *c = h->changes; c->step != END; c++) {
        if (c->step == ASSIGN)
            epochs_assign(ret, c->epoch, c->offset);
        else if (c->step == CUT_START)
            epochs_truncate_start(ret, c->offset);
        else
            epochs_truncate_end(ret, c->offset);
    }
}

static void ask(const struct history *h, const struct epochs *e)
{
    for (const struct question *q = h->asked; q->asked != -2; q++) {
        int32_t epoch = -7;
        int64_t end = -7;
        epochs_end(e, q->asked, h->log_end, &epoch, &end);
        if (epoch != q->epoch || end != q->end)
            fail_msg("%s: epoch %d ended as %d at %lld, not as %d at %lld", h->name, q->asked, epoch, (long long)end,
                     q->epoch, (long long)q->end);
    }
}

static void each_history_ends_as_in_kafka(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(histories); i++) {
        const struct history *h = &histories[i];
        struct epochs e = { 0 }, again = { 0 };
        struct bytebuf b = { 0 };
        make(h, &e);
        epochs_encode(&e, &b);
        assert_string_equal(bytebuf_cstr(&b), h->file);
        ask(h, &e);
        assert_true(epochs_decode(slice_of(b.p, b.n), &again));
        ask(h, &again);
        epochs_done(&e);
        epochs_done(&again);
        bytebuf_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_history_ends_as_in_kafka) };
    return RUN(tests);
}
