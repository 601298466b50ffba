/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sealed segments that the scan does not walk: each must end where the next begins. One small read a segment,
 * unless its summary is lost or the file is not as long as it was; then it is read.
 *
 * A file that is whole but not the one that was written there (a copy of another partition's, another cluster's, an
 * exchange) stays where it is, is told, and nothing of it is read: its summary knows better.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "lib/store/recover.h"

bool recovery_is_foreign(struct recovery *r, struct segment *s, const struct segment_sum *sum)
{
    static const struct segment_sum none;
    struct text_header h;
    int64_t size = s->flushed; /* of the file */

    if (size == 0 || !segment_read_header(s, &h) || h.version == 1)
        return false;
    if (sum == NULL)
        sum = h.sealed ? &h.sum : &none;
    if (sum->size == 0)
        return false;
    segment_reset(s, sum);
    bool foreign = plog_is_foreign(r->l, s, size);
    struct segment_sum empty = segment_sum_empty(s->base);
    segment_reset(s, &empty);
    s->sum.size = size;
    if (foreign)
        recovery_note(r, "%s is not the file that was written there: its records cannot be read",
                      segfile_path(s->log));
    return foreign;
}

int recovery_keep_foreign(struct recovery *r, struct segment *s)
{
    struct text_header h;

    if (!segment_read_header(s, &h))
        return -EBADMSG;
    segment_reset(s, &h.sum);
    s->text_base = h.text_base;
    s->known = true;
    s->foreign = true;
    r->changed = true;
    recovery_note_hole(r, s->base);
    return 0;
}

static int look_at_segment(struct recovery *r, int i)
{
    struct plog *l = r->l;
    struct segment *s = l->segs[i];
    struct text_header h;
    bool known = segment_read_header(s, &h) && h.sealed;
    int64_t end = h.sum.end_offset;

    if (known && h.sum.size != s->sum.size) {
        recovery_note(r, "%s has %" PRId64 " bytes, it was closed with %" PRId64, segfile_path(s->log), s->sum.size,
                      h.sum.size);
        r->changed = true;
        if (recovery_is_foreign(r, s, NULL))
            return recovery_keep_foreign(r, s);
        known = false;
    }
    if (!known) {
        int rc = plog_load_segment(l, s);
        if (rc < 0)
            return rc;
        end = s->sum.end_offset;
        r->rec->rebuilt_indexes++;
    }
    recovery_note_gap(r, end, l->segs[i + 1]->base);
    return 0;
}

int recovery_look_at_sealed(struct recovery *r)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < r->first && i + 1 < r->l->n_segs; i++)
        rc = look_at_segment(r, i);
    return rc;
}
