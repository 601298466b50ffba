/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of sealed segments, when it is first needed: their .text header says it in one read. When
 * that or an index file is missing, too short, or contradicts the log, all three are made anew from the log.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/thread_state.h"
#include "lib/store/plog_int.h"

void plog_thread_may_not_wait(void)
{
    thread_state.may_not_wait = true;
}

#define REBUILDS_MAX 3 /* then the log itself is damaged, and rebuilding does not help */

static bool is_known(struct plog *l, const struct segment *s)
{
    lock_take(&l->mu);
    bool known = s->known;
    lock_release(&l->mu);
    return known;
}

static bool file_holds(struct entries *e, int32_t n)
{
    int64_t size = segfile_size(e->file);
    int64_t want = e->header_bytes + (int64_t)n * e->entry_bytes;

    return size == want || (size == -ENOENT && want == 0);
}

/* trusted: as in struct segment. */
static void set_known(struct plog *l, struct segment *s, const struct segment_sum *sum, int64_t text_base,
                      int64_t trusted)
{
    lock_take(&l->mu);
    if (s->known && (s->text_base != text_base || s->sum.text_bytes != sum->text_bytes))
        l->swaps++; /* what was told of its positions is void */
    segment_reset(s, sum);
    s->text_base = text_base;
    s->known = true;
    s->trusted = trusted;
    s->n_good = s->n_bad = 0;
    lock_release(&l->mu);
}

/* The functions below run under fix_mu. */
static bool load_from_header(struct plog *l, struct segment *s)
{
    lock_assert_held(&l->fix_mu);
    struct text_header h;

    if (!segment_read_header(s, &h) || h.version == 1 || !h.sealed || h.sum.size != s->sum.size ||
        !file_holds(&s->index, h.sum.index_n) || !file_holds(&s->time, h.sum.time_n) ||
        !file_holds(&s->text, h.sum.text_n))
        return false;
    set_known(l, s, &h.sum, h.text_base, INT64_MAX);
    return true;
}

/* text_base, text_end: where its text begins and ends, -1 where that is not known. 0, 1 when there is damage, -errno. */
static int rebuild(struct plog *l, struct segment *s, int64_t size, int64_t text_base, int64_t text_end,
                   bool sealed)
{
    if (thread_state.may_not_wait)
        return -EAGAIN;
    struct segment *fresh = segment_new(l->files, l->name, l->identity, s->base);

    lock_take(&l->mu);
    int32_t interval = l->cfg.index_interval_bytes;
    bool gone = s->gone;
    int next = plog_find_segment(l, s->base) + 1;
    int64_t limit_offset = next < l->n_segs ? l->segs[next]->base : l->end_offset;
    lock_release(&l->mu);
    if (gone) {
        segment_unref(fresh);
        return -ENOENT;
    }
    int64_t text_bytes = text_base >= 0 && text_end >= text_base ? text_end - text_base : -1;
    int rc = segment_rebuild(fresh, size, limit_offset, interval, text_bytes);
    fresh->text_base = text_base >= 0 ? text_base : MAX(text_end - fresh->sum.text_bytes, 0);
    bool damaged = rc == 1;
    if (rc >= 0) {
        s->rebuilds++; /* one that failed for want of space or descriptors says nothing about the log */
        rc = segment_write_header(fresh, sealed);
    }
    if (rc == 0) {
        rc = damaged;
        struct segment_sum sum = segment_sum(fresh);
        if (!sealed)
            sum.end_offset = s->sum.end_offset; /* the log knows better than damaged bytes */
        segfile_forget(s->index.file);
        segfile_forget(s->time.file);
        segfile_forget(s->text.file);
        set_known(l, s, &sum, fresh->text_base, sealed ? INT64_MAX : size);
    }
    segment_unref(fresh);
    return rc;
}

/* Text position of a segment whose header is lost, from its neighbour behind; -1 unless that is known. */
static int64_t text_end_from_next(struct plog *l, struct segment *s)
{
    struct text_header h;
    struct segment *next = NULL;
    int64_t end = -1;

    lock_take(&l->mu);
    int i = plog_find_segment(l, s->base);
    if (i + 1 < l->n_segs) {
        next = segment_ref(l->segs[i + 1]);
        end = next->known ? next->text_base : -1;
    }
    lock_release(&l->mu);
    if (next != NULL && end < 0 && segment_read_header(next, &h))
        end = h.text_base;
    segment_unref(next);
    return end;
}

static struct segment *segment_before(struct plog *l, const struct segment *s)
{
    lock_take(&l->mu);
    int i = plog_find_segment(l, s->base);
    struct segment *before = i > 0 && l->segs[i] == s ? segment_ref(l->segs[i - 1]) : NULL;
    lock_release(&l->mu);
    return before;
}

static struct segment *segment_after(struct plog *l, const struct segment *s)
{
    lock_take(&l->mu);
    int i = plog_find_segment(l, s->base);
    struct segment *after = l->segs[i] == s && i + 1 < l->n_segs ? segment_ref(l->segs[i + 1]) : NULL;
    lock_release(&l->mu);
    return after;
}

static int load_from_behind(struct plog *l, struct segment *first);

/* How much text damage had is known when the next segment's place is. */
static int rebuild_damaged(struct plog *l, struct segment *s, int64_t text_base)
{
    struct segment *next = segment_after(l, s);
    int rc = next == NULL ? 0 : load_from_behind(l, next);

    if (rc == 1)
        rc = rebuild(l, s, s->sum.size, text_base, next->text_base, true);
    segment_unref(next);
    return rc;
}

/* Own header, however old, has the right text base; else it follows from a neighbour. 1 when `s` is known afterwards,
 * 0 when that of another segment must be known first. */
static int load_or_rebuild(struct plog *l, struct segment *s, struct segment *before)
{
    struct text_header h;

    if (is_known(l, s) || load_from_header(l, s))
        return 1;
    int64_t text_end = text_end_from_next(l, s), text_base = -1;
    if (segment_read_header(s, &h))
        text_base = h.text_base;
    else if (before != NULL && is_known(l, before))
        text_base = before->text_base + before->sum.text_bytes;
    if (text_base < 0 && (before != NULL || text_end < 0))
        return 0;
    int rc = rebuild(l, s, s->sum.size, text_base, text_end, true);
    if (rc == 1 && text_end < 0)
        rc = rebuild_damaged(l, s, text_base);
    return rc < 0 ? rc : 1;
}

struct chain { /* of segments with references */
    struct segment **segs;
    int n;
};

static void chain_add(struct chain *c, struct segment *s)
{
    c->segs = xreallocarray(c->segs, (size_t)c->n + 1, sizeof *c->segs);
    c->segs[c->n++] = s;
}

static void chain_done(struct chain *c)
{
    for (int i = 0; i < c->n; i++)
        segment_unref(c->segs[i]);
    free(c->segs);
}

/* Counted from the next segment whose place is known, as the active one's always is. 1 when it is known now, 0 when
 * no place is: the log is being opened. */
static int load_from_behind(struct plog *l, struct segment *first)
{
    struct chain c = { 0 };
    int64_t text_end = -1;
    int rc = 0;

    for (struct segment *at = segment_ref(first); at != NULL; at = segment_after(l, at)) {
        chain_add(&c, at);
        text_end = text_end_from_next(l, at);
        if (text_end >= 0)
            break;
    }
    for (int i = c.n - 1; text_end >= 0 && rc >= 0 && i >= 0; i--) {
        rc = rebuild(l, c.segs[i], c.segs[i]->sum.size, -1, text_end, true);
        text_end = c.segs[i]->text_base;
    }
    chain_done(&c);
    return rc < 0 ? rc : text_end >= 0;
}

/* Walks back to a segment whose place is known, then forward again: usually no step at all. */
static int load_under_fix(struct plog *l, struct segment *s)
{
    struct chain c = { 0 };
    int rc = 0;

    for (struct segment *at = segment_ref(s); at != NULL;) {
        chain_add(&c, at);
        struct segment *before = segment_before(l, at);
        rc = load_or_rebuild(l, at, before);
        if (rc == 0 && before == NULL)
            rc = load_from_behind(l, at);
        if (rc == 0 && before == NULL) {
            rc = rebuild(l, at, at->sum.size, 0, -1, true);
            rc = rc < 0 ? rc : 1;
        }
        if (rc != 0) {
            segment_unref(before);
            break;
        }
        at = before;
    }
    for (int i = c.n - 2; rc > 0 && i >= 0; i--)
        rc = load_or_rebuild(l, c.segs[i], c.segs[i + 1]);
    chain_done(&c);
    return rc < 0 ? rc : 0;
}

int plog_load_segment(struct plog *l, struct segment *s)
{
    if (is_known(l, s))
        return 0;
    if (!thread_state.may_not_wait)
        lock_take(&l->fix_mu);
    else if (!lock_try(&l->fix_mu))
        return -EAGAIN; /* somebody makes an index anew */
    int rc = load_under_fix(l, s);
    lock_release(&l->fix_mu);
    return rc;
}

int plog_repair_segment(struct plog *l, struct segment *s)
{
    int rc = -EBADMSG;

    if (thread_state.may_not_wait)
        return -EAGAIN;
    lock_take(&l->append_mu);
    lock_take(&l->fix_mu);
    if (s->rebuilds < REBUILDS_MAX && !s->foreign) {
        int64_t text_end = text_end_from_next(l, s);
        if (text_end < 0 && is_known(l, s))
            text_end = s->text_base + s->sum.text_bytes;
        rc = MIN(rebuild(l, s, s->sum.size, s->text_base, text_end, s != plog_active(l)), 0);
    }
    lock_release(&l->fix_mu);
    lock_release(&l->append_mu);
    return rc;
}
