/* SPDX-License-Identifier: Apache-2.0 */
/* See plog_check.h. All but plog_problem() itself run under mu; `quiet`: under slow_mu and append_mu, too. */
#include "lib/store/plog_check.h"

#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/store/plog_int.h"

void (*plog_after_call)(struct plog *l);

/* Entries not yet written: rising, and of what the segment holds. */
static bool tail_is_right(const struct entries *e, struct entry_key key, int64_t limit)
{
    int64_t before = -1;

    for (int32_t i = e->n_file; i < e->n; i++) {
        int64_t v = entry_key_get(e->tail + (i - e->n_file) * e->entry_bytes, key);
        if (v <= before || v >= limit)
            return false;
        before = v;
    }
    return true;
}

static bool entries_are_right(const struct entries *e, struct entry_key key, int64_t limit)
{
    if (e->n < 0 || e->n_file < 0 || e->n_file > e->n || e->n - e->n_file > ENTRIES_TAIL)
        return false;
    return tail_is_right(e, key, limit);
}

static const char *segment_problem(const struct segment *s, int64_t end)
{
    if (s->gone)
        return "a segment that is gone is of the log";
    if (s->sum.size < 0 || s->flushed < 0 || s->text_base < 0 || s->sum.text_bytes < 0)
        return "a size is negative";
    if (s->foreign)
        return NULL;
    if (s->flushed > s->sum.size)
        return "S4: more of a segment is flushed than it has";
    if (!s->known)
        return NULL;
    if (s->sum.end_offset < s->base || s->sum.end_offset > end)
        return "S12: a segment ends behind where the next begins";
    if (s->sum.size == 0 && s->sum.end_offset != s->base)
        return "S12: an empty segment has offsets";
    if (!entries_are_right(&s->index, INDEX_POSITION, s->sum.size) || !entries_are_right(&s->text, TEXT_POSITION, s->sum.size) ||
        !entries_are_right(&s->time, TIME_OFFSET, s->sum.end_offset - s->base))
        return "an index has entries of what is not there";
    return NULL;
}

static const char *segments_problem(const struct plog *l)
{
    int64_t bytes = 0;

    if (l->n_segs < 1 || l->n_segs > l->cap_segs)
        return "there is no segment";
    for (int i = 1; i < l->n_segs; i++)
        if (l->segs[i]->base <= l->segs[i - 1]->base)
            return "S12: segments do not rise";
    for (int i = 0; i < l->n_segs; i++) {
        const struct segment *s = l->segs[i];
        const char *problem = segment_problem(s, plog_segment_end(l, i));
        if (problem != NULL)
            return problem;
        bytes += s->sum.size;
    }
    if (bytes != l->size_bytes)
        return "the size of the log is not that of its segments";
    const struct segment *active = plog_active(l);
    return active->known && active->sum.end_offset == l->end_offset ? NULL : "S1: the active segment does not end where the log does";
}

static const char *ends_problem(const struct plog *l)
{
    if (l->start_offset < l->segs[0]->base || l->start_offset > l->end_offset)
        return "the start is outside of the log";
    if (l->flushed.sum.end_offset > l->end_offset)
        return "S4: the flush point is behind the end";
    return NULL;
}

/* S4: every segment below the flush point is flushed, and that of the flush point as far as it says. */
static const char *flush_problem(const struct plog *l)
{
    const struct log_point *p = &l->flushed;

    for (int i = 0; i < l->n_segs; i++) {
        const struct segment *s = l->segs[i];
        if (s->foreign || s->base > p->segment)
            continue;
        if (s->base < p->segment && s->flushed < s->sum.size)
            return "S4: a segment below the flush point is not flushed";
        if (s->base == p->segment && (s->flushed < p->sum.size || s->sum.end_offset < p->sum.end_offset))
            return "S4: the flush point is behind what its segment has flushed";
    }
    return NULL;
}

static const char *borders_problem(const struct plog *l)
{
    uint32_t n = MIN(l->n_borders, (uint32_t)BORDERS);
    int64_t above = l->end_offset;
    const struct segment *active = plog_active(l);

    for (uint32_t i = 1; i <= n; i++) {
        const struct border *b = &l->borders[(l->n_borders - i) % BORDERS];
        if (b->offset > above || (i == 1 && b->offset != l->end_offset))
            return "borders do not rise to the end";
        if (b->segment == active->base && (b->position > active->sum.size || b->text > active->text_base + active->sum.text_bytes))
            return "a border is behind the end";
        above = b->offset;
    }
    return NULL;
}

static const char *epochs_problem(const struct plog *l)
{
    const struct epochs *e = &l->epochs;

    for (int32_t i = 0; i < e->n; i++) {
        if (i > 0 && (e->v[i].epoch <= e->v[i - 1].epoch || e->v[i].start <= e->v[i - 1].start))
            return "R12: epochs do not rise";
        if (e->v[i].start > l->end_offset)
            return "R12: an epoch begins behind the end";
    }
    return NULL;
}

struct producers_walk {
    int64_t end;
    const char *problem;
};

static void look_at_producer(void *arg, const struct producer_state *p)
{
    struct producers_walk *w = arg;

    for (int i = 0; i < p->n; i++) {
        const struct producer_batch *b = &p->batches[i];
        if (b->base_offset > b->last_offset || b->last_offset >= w->end)
            w->problem = "C5: a producer's batch is not in the log";
        if (i > 0 && b->base_offset <= p->batches[i - 1].last_offset)
            w->problem = "C5: a producer's batches do not rise";
    }
}

static const char *producers_problem(const struct plog *l)
{
    struct producers_walk w = { .end = l->end_offset };

    producers_each(&l->producers, look_at_producer, &w);
    return w.problem;
}

/* What is stored may lag, and never leads. */
static const char *claims_problem(const struct plog *l)
{
    int64_t flushed = l->flushed.sum.end_offset;
    struct checkpoint c;

    if (l->snapshot_offset > flushed)
        return "S4: a producer snapshot is of an offset above the flush point";
    if (l->pending.offset > l->end_offset)
        return "S4: a producer snapshot is of an offset behind the end";
    if (l->start_marker > l->start_offset)
        return "S13: a start marker is above the start";
    if (!checkpoint_decode(slice_of(l->saved, sizeof l->saved), &c))
        return NULL;
    if (c.flushed.sum.end_offset > flushed)
        return "S4: the checkpoint is ahead of the flush point";
    return c.start_offset > l->start_offset ? "S13: the checkpoint is ahead of the start" : NULL;
}

/* This process wrote or checked all of it. */
static bool is_ours(const struct segment *s)
{
    return s->known && !s->foreign && s->trusted == 0;
}

/* The text of a segment ends where that of the next begins. Where offsets are missing between them so may text be. */
static const char *text_problem(const struct plog *l)
{
    for (int i = 0; i + 1 < l->n_segs; i++) {
        const struct segment *s = l->segs[i], *next = l->segs[i + 1];
        if (is_ours(s) && is_ours(next) && s->sum.end_offset == next->base &&
            s->text_base + s->sum.text_bytes != next->text_base)
            return "the text of a segment does not end where that of the next begins";
    }
    return NULL;
}

static const char *problem_under_mu(const struct plog *l, bool quiet)
{
    const char *(*const always[])(const struct plog *) = { segments_problem, ends_problem, flush_problem, borders_problem, epochs_problem, producers_problem };
    const char *(*const at_rest[])(const struct plog *) = { claims_problem, text_problem };
    const char *problem = NULL;

    for (size_t i = 0; problem == NULL && i < ARRAY_LEN(always); i++)
        problem = always[i](l);
    for (size_t i = 0; problem == NULL && quiet && i < ARRAY_LEN(at_rest); i++)
        problem = at_rest[i](l);
    return problem;
}

const char *plog_problem(struct plog *l)
{
    bool slow = lock_try(&l->slow_mu);
    bool append = slow && lock_try(&l->append_mu);

    lock_take(&l->mu);
    const char *problem = problem_under_mu(l, append);
    lock_release(&l->mu);
    if (append)
        lock_release(&l->append_mu);
    if (slow)
        lock_release(&l->slow_mu);
    return problem;
}

void plog_check(struct plog *l)
{
    const char *problem = plog_problem(l);

    if (problem != NULL)
        log_error("%s: %s", l->name, problem);
    KCHECK(problem == NULL);
}
