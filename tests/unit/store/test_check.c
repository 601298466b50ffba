/* SPDX-License-Identifier: Apache-2.0 */
/* Each thing that plog_check() looks at, made wrong in a log that is right. */
#include "storetest.h"

static void fill(struct fixture *f)
{
    f->cfg.segment_bytes = 3000;
    f->cfg.index_interval_bytes = 600;
    must_open(f);
    for (int i = 0; i < 20; i++) {
        const struct batch_spec spec = { .n = 2, .value_bytes = 300, .producer_id = 9, .base_sequence = 2 * i };
        f->epoch = i / 8;
        plog_epoch_begin(f->l, f->epoch);
        assert_int_equal(append_spec(f, &spec).err, KERR_NONE);
        if (i == 15)
            assert_int_equal(flush(f), 0);
    }
    assert_int_equal(plog_delete_before(f->l, 5), 0);
    assert_int_equal(flush(f), 0);
    assert_int_equal(plog_checkpoint(f->l, 30, true), 0);
    const struct batch_spec last = { .n = 2, .value_bytes = 300, .producer_id = 9, .base_sequence = 40 };
    assert_int_equal(append_spec(f, &last).err, KERR_NONE);
    plog_after_call = NULL;
    assert_true(f->l->n_segs > 4);
    assert_null(plog_problem(f->l));
}

/* The field is made `wrong`, and then what it was. */
#define assert_told(l, field, wrong, what)                                    \
    do {                                                                      \
        __typeof__(field) right_ = (field);                                   \
        (field) = (wrong);                                                    \
        const char *problem_ = plog_problem(l);                               \
        (field) = right_;                                                     \
        if (problem_ == NULL || strstr(problem_, what) == NULL)               \
            fail_msg("%s := %s: %s", #field, #wrong, problem_ ? problem_ : "nothing is told"); \
        assert_null(plog_problem(l));                                         \
    } while (0)

static void every_planted_fault_is_told(void **state)
{
    struct fixture *f = *state;

    fill(f);
    struct plog *l = f->l;
    struct segment *first = l->segs[0], *second = l->segs[1], *active = plog_active(l);
    struct border *newest = &l->borders[(l->n_borders - 1) % BORDERS], *older = &l->borders[(l->n_borders - 2) % BORDERS];

    assert_told(l, l->n_segs, 0, "no segment");
    assert_told(l, l->segs[1], first, "do not rise");
    assert_told(l, second->gone, true, "is gone");
    assert_told(l, second->sum.text_bytes, -1, "negative");
    assert_told(l, second->flushed, second->sum.size + 1, "S4: more of a segment is flushed");
    assert_told(l, second->sum.end_offset, second->sum.end_offset + 1, "S12: a segment ends behind");
    assert_told(l, active->sum.end_offset, active->sum.end_offset - 1, "S1: the active segment");
    assert_told(l, active->known, false, "S1: the active segment");
    assert_told(l, l->end_offset, l->end_offset + 2, "S1: the active segment");
    assert_told(l, l->size_bytes, l->size_bytes - 1, "the size of the log");
    assert_told(l, l->start_offset, first->base - 1, "the start is outside");
    assert_told(l, l->start_offset, l->end_offset + 1, "the start is outside");
    assert_told(l, l->flushed.sum.end_offset, l->end_offset + 1, "S4: the flush point is behind the end");
    assert_told(l, first->flushed, first->sum.size - 1, "S4: a segment below the flush point");
    assert_told(l, l->flushed.sum.size, l->flushed.sum.size + 1, "S4: the flush point is behind what");
    assert_told(l, active->index.n_file, active->index.n + 1, "an index");
    assert_told(l, active->text.n, active->text.n + ENTRIES_TAIL + 1, "an index");
    assert_told(l, newest->offset, newest->offset - 2, "borders");
    assert_told(l, older->offset, newest->offset + 2, "borders");
    assert_told(l, newest->position, active->sum.size + 1, "a border is behind");
    assert_told(l, l->epochs.v[1].start, l->epochs.v[0].start, "R12: epochs do not rise");
    assert_told(l, l->epochs.v[l->epochs.n - 1].start, l->end_offset + 1, "R12: an epoch begins behind");
    assert_told(l, l->snapshot_offset, l->flushed.sum.end_offset + 1, "S4: a producer snapshot");
    assert_told(l, l->pending.offset, l->end_offset + 1, "S4: a producer snapshot");
    assert_told(l, l->start_marker, l->start_offset + 1, "S13: a start marker");
    assert_told(l, active->text_base, active->text_base + 1, "the text of a segment");
}

static void claims_that_lead_are_told(void **state)
{
    struct fixture *f = *state;
    struct checkpoint c;
    uint8_t right[CHECKPOINT_BYTES];

    fill(f);
    memcpy(right, f->l->saved, sizeof right);
    assert_true(checkpoint_decode(slice_of(right, sizeof right), &c));
    c.flushed.sum.end_offset = ends_of(f).flushed_offset + 1;
    checkpoint_encode(f->l->saved, &c);
    assert_non_null(strstr(plog_problem(f->l), "S4: the checkpoint is ahead"));
    c.flushed.sum.end_offset -= 2;
    c.start_offset = ends_of(f).start_offset + 1;
    checkpoint_encode(f->l->saved, &c);
    assert_non_null(strstr(plog_problem(f->l), "S13: the checkpoint is ahead"));
    memcpy(f->l->saved, right, sizeof right);
    assert_null(plog_problem(f->l));
}

/* A log that forgot its end, as a truncation would that left producers behind. */
static void a_producer_of_what_is_gone_is_told(void **state)
{
    struct fixture *f = *state;
    struct producers kept = { 0 };

    fill(f);
    producers_swap(&f->l->producers, &kept);
    assert_int_equal(plog_truncate(f->l, 30), 0);
    producers_swap(&f->l->producers, &kept);
    assert_non_null(strstr(plog_problem(f->l), "C5: a producer's batch is not in the log"));
    producers_swap(&f->l->producers, &kept);
    assert_null(plog_problem(f->l));
    producers_clear(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_planted_fault_is_told),
        T(claims_that_lead_are_told),
        T(a_producer_of_what_is_gone_is_told),
    };
    return RUN(tests);
}
