/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of sealed segments, when it is first needed: their .text header says it in one read. When
 * that or an index file is missing, too short, or contradicts the log, all three are made anew from the log.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/plog_int.h"

#define REBUILDS_MAX 3 /* then the log itself is damaged, and rebuilding does not help */

static bool is_known(struct plog *l, const struct segment *s)
{
    pthread_mutex_lock(&l->mu);
    bool known = s->known;
    pthread_mutex_unlock(&l->mu);
    return known;
}

static bool file_holds(struct entries *e, int32_t n)
{
    int64_t size = segfile_size(e->file);
    int64_t want = e->header_bytes + (int64_t)n * e->entry_bytes;

    return size == want || (size == -ENOENT && want == 0);
}

static void set_known(struct plog *l, struct segment *s, const struct segment_sum *sum, int64_t text_base)
{
    pthread_mutex_lock(&l->mu);
    segment_reset(s, sum);
    s->text_base = text_base;
    s->known = true;
    pthread_mutex_unlock(&l->mu);
}

/* The functions below run under fix_mu. */
static bool load_from_header(struct plog *l, struct segment *s)
{
    struct text_header h;

    if (!segment_read_header(s, &h) || !h.sealed || h.sum.size != s->sum.size ||
        !file_holds(&s->index, h.sum.index_n) || !file_holds(&s->time, h.sum.time_n) ||
        !file_holds(&s->text, h.sum.text_n))
        return false;
    set_known(l, s, &h.sum, h.text_base);
    return true;
}

/* text_end: where the text ends, when that is known and text_base is only a guess; else -1. */
static int rebuild(struct plog *l, struct segment *s, int64_t size, int64_t text_base, int64_t text_end,
                   bool sealed)
{
    struct segment *fresh = segment_new(l->files, l->name, s->base);

    pthread_mutex_lock(&l->mu);
    int32_t interval = l->cfg.index_interval_bytes;
    bool gone = s->gone;
    int next = plog_find_segment(l, s->base) + 1;
    int64_t limit_offset = next < l->n_segs ? l->segs[next]->base : INT64_MAX;
    s->rebuilds++;
    pthread_mutex_unlock(&l->mu);
    if (gone) {
        segment_unref(fresh);
        return -ENOENT;
    }
    int rc = segment_rebuild(fresh, size, limit_offset, interval);
    fresh->text_base = text_end >= fresh->sum.text_bytes ? text_end - fresh->sum.text_bytes : text_base;
    if (rc == 0)
        rc = segment_write_header(fresh, sealed);
    if (rc == 0) {
        struct segment_sum sum = segment_sum(fresh);
        if (!sealed)
            sum.end_offset = s->sum.end_offset; /* the log knows better than damaged bytes */
        segfile_forget(s->index.file);
        segfile_forget(s->time.file);
        segfile_forget(s->text.file);
        set_known(l, s, &sum, fresh->text_base);
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

    pthread_mutex_lock(&l->mu);
    int i = plog_find_segment(l, s->base);
    if (i + 1 < l->n_segs) {
        next = segment_ref(l->segs[i + 1]);
        end = next->known ? next->text_base : -1;
    }
    pthread_mutex_unlock(&l->mu);
    if (next != NULL && end < 0 && segment_read_header(next, &h))
        end = h.text_base;
    segment_unref(next);
    return end;
}

static struct segment *segment_before(struct plog *l, const struct segment *s)
{
    pthread_mutex_lock(&l->mu);
    int i = plog_find_segment(l, s->base);
    struct segment *before = i > 0 && l->segs[i] == s ? segment_ref(l->segs[i - 1]) : NULL;
    pthread_mutex_unlock(&l->mu);
    return before;
}

/* Own header, however old, has the right text base; else it follows from a neighbour; the first segment of
 * all begins at 0. 1 when `s` is known afterwards, 0 when its predecessor must be known first. */
static int load_or_rebuild(struct plog *l, struct segment *s, struct segment *before)
{
    struct text_header h;

    if (is_known(l, s) || load_from_header(l, s))
        return 1;
    int rc;
    if (segment_read_header(s, &h))
        rc = rebuild(l, s, s->sum.size, h.text_base, -1, true);
    else if (before == NULL)
        rc = rebuild(l, s, s->sum.size, 0, text_end_from_next(l, s), true);
    else if (is_known(l, before))
        rc = rebuild(l, s, s->sum.size, before->text_base + before->sum.text_bytes, -1, true);
    else
        return 0;
    return rc < 0 ? rc : 1;
}

/* Walks back to a segment whose place is known, then forward again: usually no step at all. */
static int load_under_fix(struct plog *l, struct segment *s)
{
    struct segment **chain = NULL;
    int n = 0, rc = 0;

    for (struct segment *at = segment_ref(s); at != NULL;) {
        chain = xreallocarray(chain, (size_t)n + 1, sizeof(struct segment *));
        chain[n++] = at;
        struct segment *before = segment_before(l, at);
        rc = load_or_rebuild(l, at, before);
        if (rc != 0) {
            segment_unref(before);
            break;
        }
        at = before;
    }
    for (int i = n - 2; rc > 0 && i >= 0; i--)
        rc = load_or_rebuild(l, chain[i], chain[i + 1]);
    for (int i = 0; i < n; i++)
        segment_unref(chain[i]);
    free(chain);
    return rc < 0 ? rc : 0;
}

int plog_load_segment(struct plog *l, struct segment *s)
{
    if (is_known(l, s))
        return 0;
    pthread_mutex_lock(&l->fix_mu);
    int rc = load_under_fix(l, s);
    pthread_mutex_unlock(&l->fix_mu);
    return rc;
}

int plog_repair_segment(struct plog *l, struct segment *s)
{
    int rc = -EBADMSG;

    pthread_mutex_lock(&l->append_mu);
    pthread_mutex_lock(&l->fix_mu);
    if (s->rebuilds < REBUILDS_MAX)
        rc = rebuild(l, s, s->sum.size, s->text_base, -1, s != plog_active(l));
    pthread_mutex_unlock(&l->fix_mu);
    pthread_mutex_unlock(&l->append_mu);
    return rc;
}
