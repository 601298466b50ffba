/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sealed segments that the scan does not walk: each must end where the next begins. One small read a segment,
 * unless its summary is lost or the file is not as long as it was; then it is read.
 */
#include <inttypes.h>
#include <stdio.h>

#include "lib/store/recover.h"

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
        known = false;
        r->changed = true;
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
