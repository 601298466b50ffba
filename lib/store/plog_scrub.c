/* SPDX-License-Identifier: Apache-2.0 */
/* See plog_scrub.h. What looks like damage counts only when the log has not moved meanwhile. */
#include "lib/store/plog_scrub.h"

#include <errno.h>
#include <fcntl.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/store/plog_int.h"

struct piece { /* of a segment */
    struct segment *seg; /* a reference */
    int64_t size, limit_offset, next_base; /* next_base: INT64_MAX in the active one */
    bool foreign;
    int fd;
    struct store_io io; /* the log's, but what is read is not kept in memory */
    const struct store_io *below;
};

static int64_t read_once(const struct store_io *io, int fd, void *p, size_t n, off_t at)
{
    const struct piece *pc = container_of(io, struct piece, io);
    return pc->below->pread_once(pc->below, fd, p, n, at);
}

void scrub_begin(struct plog *l, struct scrub_cursor *c, int64_t from, bool one_segment)
{
    struct stamp st = plog_stamp(l);

    *c = (struct scrub_cursor){ .segment = -1, .next_offset = MAX(from, st.start_offset), .epoch = -1,
                                .start_offset = st.start_offset, .generation = st.generation, .swaps = st.swaps };
    lock_take(&l->mu);
    c->to = one_segment ? plog_segment_end(l, plog_find_segment(l, c->next_offset)) : l->end_offset;
    lock_release(&l->mu);
    c->done = c->next_offset >= c->to;
}

static void enter_front(struct scrub_cursor *c, int64_t base)
{
    c->segment = c->next_offset = base;
    c->at = 0;
    c->epoch = -1;
    c->after_damage = false;
}

/* The segment at hand; from its front when it is not the one that it was. */
static void find_piece(struct plog *l, struct scrub_cursor *c, struct piece *ret)
{
    const struct stamp was = { c->start_offset, c->generation, c->swaps };
    bool moved = plog_moved_since(l, &was);
    struct stamp now = plog_stamp(l);

    lock_take(&l->mu);
    int i = plog_find_segment(l, MAX(c->next_offset, l->start_offset));
    ret->seg = segment_ref(l->segs[i]);
    ret->size = ret->seg->sum.size;
    ret->foreign = ret->seg->foreign;
    ret->next_base = i + 1 < l->n_segs ? l->segs[i + 1]->base : INT64_MAX;
    ret->limit_offset = MIN(ret->next_base, l->end_offset);
    lock_release(&l->mu);
    if (moved || c->segment != ret->seg->base || c->at > ret->size)
        enter_front(c, ret->seg->base);
    c->start_offset = now.start_offset;
    c->generation = now.generation;
    c->swaps = now.swaps;
}

static int open_piece(struct plog *l, struct piece *pc)
{
    struct io_stat st;

    pc->below = l->io;
    pc->io = *l->io;
    pc->io.pread = read_once;
    pc->fd = l->io->openat(l->io, l->dirfd, segfile_path(pc->seg->log), O_RDONLY | O_NOFOLLOW, 0);
    if (pc->fd < 0)
        return pc->fd;
    int rc = l->io->fstat(l->io, pc->fd, &st);
    return rc == 0 && st.size < pc->size ? -EBADMSG : rc;
}

static void close_piece(struct plog *l, struct piece *pc)
{
    if (pc->fd >= 0)
        l->io->close(l->io, pc->fd);
    segment_unref(pc->seg);
}

static void told(struct scrub_found *ret, const struct scrub_cursor *c, int64_t at, int64_t n, int eno)
{
    ret->damage_at = c->next_offset;
    ret->eno = eno;
    ret->segment = c->segment;
    ret->at = at;
    ret->n = n;
}

/* The last batch says where the next segment begins. */
static bool lacks_its_end(const struct piece *pc, const struct logscan *scan)
{
    return pc->next_base != INT64_MAX && scan->at >= pc->size && scan->next_offset < pc->next_base && !scan->after_damage;
}

/* 0, or -errno of a read; ret says whether it met damage. */
static int read_piece(struct piece *pc, struct scrub_cursor *c, int64_t max_bytes, struct scrub_found *ret)
{
    struct logscan scan;
    struct scan_item it = { .what = SCAN_BATCH };
    int64_t expected = c->next_offset;
    int rc = 0;

    logscan_init(&scan, &pc->io, pc->fd, c->at, pc->size, c->next_offset);
    scan.limit_offset = pc->limit_offset;
    scan.epoch = c->epoch;
    scan.after_damage = c->after_damage;
    while (rc == 0 && it.what == SCAN_BATCH && scan.at - c->at < max_bytes) {
        expected = scan.next_offset;
        rc = logscan_next(&scan, &it);
    }
    bool damaged = rc == 0 && (it.what == SCAN_DAMAGED || it.what == SCAN_TAIL);
    bool short_of = rc == 0 && !damaged && lacks_its_end(pc, &scan);
    ret->bytes = scan.at - c->at;
    c->next_offset = damaged || rc < 0 ? expected : scan.next_offset;
    if (damaged || short_of)
        told(ret, c, it.at, damaged ? it.n : 0, EBADMSG);
    c->at = rc < 0 ? c->at : scan.at;
    c->next_offset = rc < 0 ? expected : scan.next_offset;
    c->epoch = scan.epoch;
    c->after_damage = scan.after_damage;
    logscan_done(&scan);
    return rc;
}

static void next_segment(const struct piece *pc, struct scrub_cursor *c)
{
    c->done = pc->next_base >= c->to;
    if (!c->done)
        enter_front(c, pc->next_base);
}

static bool is_damage(int rc)
{
    return rc == -EBADMSG || rc == -EIO || rc == -ENOENT || rc == -ELOOP;
}

int plog_scrub(struct plog *l, struct scrub_cursor *c, int64_t max_bytes, struct scrub_found *ret)
{
    struct piece pc = { .fd = -1 };

    *ret = (struct scrub_found){ .damage_at = -1 };
    if (c->done || datadir_failed(l->dd)) {
        c->done = true;
        return 0;
    }
    find_piece(l, c, &pc);
    const struct stamp st = { c->start_offset, c->generation, c->swaps };
    const struct scrub_cursor before = *c;
    int rc = pc.foreign ? -EBADMSG : open_piece(l, &pc);
    if (rc == 0)
        rc = read_piece(&pc, c, max_bytes, ret);
    if (is_damage(rc)) {
        told(ret, c, c->at, pc.size - c->at, -rc);
        c->at = pc.size; /* of that segment nothing more */
        rc = 0;
    }
    if (rc == 0 && plog_moved_since(l, &st)) {
        *c = before;
        *ret = (struct scrub_found){ .damage_at = -1, .bytes = ret->bytes };
    } else if (rc == 0 && c->at >= pc.size) {
        next_segment(&pc, c);
    }
    close_piece(l, &pc);
    return rc;
}
