/* SPDX-License-Identifier: Apache-2.0 */
/* Which records of fetched batches a reader sees, and where it goes on. */
#include "unit.h"

#include "lib/base/attr.h"
#include "lib/client/records.h"
#include "lib/record/build.h"

struct rig {
    struct bytebuf bytes;
    int64_t end; /* offset of the next batch */
    struct records r;
    struct rcbuf *frame;
    struct client_aborted aborted[4];
    int32_t n_aborted;
};

static int setup(void **state)
{
    struct rig *g = calloc(1, sizeof *g);
    records_init(&g->r, 0, -1);
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    records_done(&g->r);
    rcbuf_unref(g->frame);
    bytebuf_done(&g->bytes);
    free(g);
    return 0;
}

/* A batch with the given values, of a producer's transaction where pid >= 0. */
static void add(struct rig *g, int64_t pid, enum codec codec, const char *a, const char *b)
{
    struct batch_builder bb;
    struct batch_producer producer = { .id = pid, .transactional = pid >= 0 };
    size_t at = g->bytes.n;
    batch_builder_init(&bb);
    batch_builder_add(&bb, 1000, KSTR_NULL, kstr_of(a), NULL, 0);
    if (b != NULL)
        batch_builder_add(&bb, 1000, KSTR_NULL, kstr_of(b), NULL, 0);
    assert_int_equal(batch_builder_finish(&bb, codec, 0, &producer, 0, &g->bytes), 0);
    batch_builder_done(&bb);
    batch_set_base_offset(g->bytes.p + at, g->end);
    g->end += b != NULL ? 2 : 1;
}

static void add_marker(struct rig *g, int64_t pid, bool commits)
{
    struct batch_builder bb;
    struct batch_producer producer = { .id = pid, .transactional = true, .base_sequence = -1 };
    char key[4] = { 0, 0, 0, commits };
    size_t at = g->bytes.n;
    batch_builder_init(&bb);
    batch_builder_add(&bb, 1000, kstr_bytes(key, 4), kstr_bytes("\0\0\0\0\0\0", 6), NULL, 0);
    assert_int_equal(batch_builder_finish(&bb, CODEC_NONE, 0, &producer, BATCH_ATTR_CONTROL, &g->bytes), 0);
    batch_builder_done(&bb);
    batch_set_base_offset(g->bytes.p + at, g->end++);
}

static void abort_from(struct rig *g, int64_t pid, int64_t first_offset)
{
    g->aborted[g->n_aborted++] = (struct client_aborted){ pid, first_offset };
}

static void take(struct rig *g)
{
    struct client_fetched f = { .aborted = g->aborted, .n_aborted = g->n_aborted };
    g->frame = rcbuf_take(&g->bytes);
    f.frame = g->frame;
    f.batches = slice_of(g->frame->p, g->frame->n);
    records_take(&g->r, &f);
}

/* "0a 1b": offset and value of each. */
static void sees(struct rig *g, const char *expected, int end, int64_t next)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct record rec;
    int rc;
    while ((rc = records_next(&g->r, &rec)) == 1)
        bytebuf_printf(&b, "%s%lld%.*s", b.n > 0 ? " " : "", (long long)rec.offset, KSTR_FMT(rec.value));
    assert_string_equal(bytebuf_cstr(&b), expected);
    assert_int_equal(rc, end);
    assert_int_equal(g->r.next, next);
}

static void records_come_in_order_whatever_packs_them(void **state)
{
    struct rig *g = *state;
    add(g, -1, CODEC_NONE, "a", "b");
    add(g, -1, CODEC_GZIP, "c", "d");
    add(g, -1, CODEC_LZ4, "e", NULL);
    take(g);
    sees(g, "0a 1b 2c 3d 4e", 0, 5);
    sees(g, "", 0, 5);
}

static void what_lies_before_the_position_is_left_out(void **state)
{
    struct rig *g = *state;
    records_init(&g->r, 3, -1);
    add(g, -1, CODEC_GZIP, "a", "b");
    add(g, -1, CODEC_NONE, "c", "d");
    take(g);
    sees(g, "3d", 0, 4);
}

static void a_part_of_a_batch_at_the_end_is_fetched_again(void **state)
{
    struct rig *g = *state;
    add(g, -1, CODEC_NONE, "a", "b");
    add(g, -1, CODEC_NONE, "c", "d");
    g->bytes.n -= 1;
    take(g);
    sees(g, "0a 1b", 0, 2);
}

static void control_records_are_passed_over(void **state)
{
    struct rig *g = *state;
    add(g, 7, CODEC_NONE, "a", NULL);
    add_marker(g, 7, true);
    take(g);
    sees(g, "0a", 0, 2);
}

static void only_control_records_move_the_position_all_the_same(void **state)
{
    struct rig *g = *state;
    add_marker(g, 7, true);
    add_marker(g, 8, false);
    take(g);
    sees(g, "", 0, 2);
}

static void aborted_transactions_are_not_seen(void **state)
{
    struct rig *g = *state;
    add(g, 7, CODEC_NONE, "a", NULL);  /* 0: aborted */
    add(g, 8, CODEC_NONE, "b", NULL);  /* 1: committed */
    add(g, 7, CODEC_GZIP, "c", NULL);  /* 2: aborted */
    add(g, -1, CODEC_NONE, "d", NULL); /* 3: in no transaction */
    add_marker(g, 7, false);           /* 4 */
    add(g, 7, CODEC_NONE, "e", NULL);  /* 5: another one */
    add_marker(g, 8, true);            /* 6 */
    add_marker(g, 7, true);            /* 7 */
    add(g, 7, CODEC_NONE, "f", NULL);  /* 8: aborted again */
    add_marker(g, 7, false);           /* 9 */
    abort_from(g, 7, 8);
    abort_from(g, 7, 0);
    take(g);
    sees(g, "1b 3d 5e", 0, 10);
}

static void an_abort_that_began_before_the_fetch_counts(void **state)
{
    struct rig *g = *state;
    records_init(&g->r, 50, -1);
    g->end = 50;
    add(g, 7, CODEC_NONE, "a", NULL);
    add_marker(g, 7, false);
    add(g, 7, CODEC_NONE, "b", NULL);
    abort_from(g, 7, 20);
    take(g);
    sees(g, "52b", 0, 53);
}

static void the_same_producer_without_a_transaction_is_seen(void **state)
{
    struct rig *g = *state;
    struct batch_builder bb;
    struct batch_producer producer = { .id = 7 };
    batch_builder_init(&bb);
    batch_builder_add(&bb, 1000, KSTR_NULL, kstr_of("a"), NULL, 0);
    assert_int_equal(batch_builder_finish(&bb, CODEC_NONE, 0, &producer, 0, &g->bytes), 0);
    batch_builder_done(&bb);
    abort_from(g, 7, 0);
    take(g);
    sees(g, "0a", 0, 1);
}

static void damage_is_told_where_it_is(void **state)
{
    struct rig *g = *state;
    add(g, -1, CODEC_NONE, "a", NULL);
    add(g, -1, CODEC_NONE, "b", NULL);
    g->bytes.p[g->bytes.n - 2] ^= 1;
    take(g);
    sees(g, "0a", -EBADMSG, 1);
    sees(g, "", 0, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(records_come_in_order_whatever_packs_them),
        T(what_lies_before_the_position_is_left_out),
        T(a_part_of_a_batch_at_the_end_is_fetched_again),
        T(control_records_are_passed_over),
        T(only_control_records_move_the_position_all_the_same),
        T(aborted_transactions_are_not_seen),
        T(an_abort_that_began_before_the_fetch_counts),
        T(the_same_producer_without_a_transaction_is_seen),
        T(damage_is_told_where_it_is),
    };
    return RUN(tests);
}
