/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.flushed: how far the log was known to be on disk, written after every flush and before anybody is
 * told of it. It is waited for only once, before the first flush or checkpoint that counts on it: after a kill it is exact,
 * after a power cut it may lag, it never leads (S4).
 * A start decides by it what bad bytes are: below it damage, from it on the end of what reached the disk (S10); and
 * by the heads in it, whether what the newest segment holds above the checkpoint is what was written there (S15).
 *
 * mark_mu orders the writers: a flush that ends while the log is cut must not raise what was lowered (S11).
 */
#include "lib/store/plog_int.h"

bool plog_read_mark(struct plog *l, struct flush_mark *ret)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    int rc = io_read_file(l->io, l->dirfd, segfile_path(l->mark), MARK_BYTES, &b);

    if (rc == 0 && mark_decode(slice_of(b.p, b.n), ret) && ret->identity == l->identity)
        return true;
    *ret = (struct flush_mark){ .offset = -1, .segment = -1 };
    return false;
}

int plog_write_mark(struct plog *l, const struct log_point *flushed)
{
    uint8_t p[MARK_BYTES];
    const struct flush_mark m = {
        .offset = flushed->sum.end_offset,
        .identity = l->identity,
        .segment = flushed->segment,
        .position = flushed->sum.size,
        .all_heads = flushed->sum.all_heads,
    };

    mark_encode(p, &m);
    return segfile_write(l->mark, p, sizeof p, 0);
}

int plog_keep_mark(struct plog *l)
{
    int rc = 0;

    lock_take(&l->mark_mu);
    if (!l->mark_kept) {
        lock_take(&l->mu);
        struct log_point flushed = l->flushed;
        lock_release(&l->mu);
        rc = plog_write_mark(l, &flushed);
        if (rc == 0)
            rc = segfile_sync(l->mark);
        l->mark_kept = rc == 0;
        rc = rc == 0 ? 1 : rc;
    }
    lock_release(&l->mark_mu);
    return rc;
}
