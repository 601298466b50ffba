/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One group of segments becomes one: every batch is looked at, written again as it is, with fewer records, as
 * an empty batch, or not at all. A batch that stays keeps its base offset, last offset delta, leader epoch,
 * producer, sequence and codec. The last batch of a group stays, if only empty, so that each segment ends
 * where the next begins: a reader behind the last record is led on, and recovery finds no gap.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/record/codec.h"
#include "lib/store/clean_int.h"

#define PLAIN_BYTES_MAX (1LL << 30)
#define WRITE_BYTES     (1 << 20)

struct filter {
    struct clean_pass *p;
    struct segment *fresh;
    int64_t group_end; /* offset */
    bool changed;
    struct bytebuf out;   /* batches not yet written */
    int64_t written;      /* bytes of the new .log in the file */
    struct bytebuf plain; /* records that stay, of the batch at hand */
    struct bytebuf batch; /* that batch anew */
    struct record_iter iter;
};

/* ---- writing ---- */

static int flush_out(struct filter *f)
{
    int rc = segfile_write(f->fresh->log, f->out.p, f->out.n, f->written);

    if (rc == 0)
        rc = clean_progress(f->p, (int64_t)f->out.n);
    f->written += (int64_t)f->out.n;
    f->out.n = 0;
    return rc;
}

static int emit(struct filter *f, struct slice batch, int64_t text_bytes)
{
    struct segment *s = f->fresh;
    struct batch_header h;
    int rc = 0;

    batch_header_read(batch.p, &h);
    if (s->sum.size + (int64_t)batch.n > INT32_MAX)
        return -EFBIG;
    if (segment_tails_full(s))
        rc = segment_write_tails(s, NULL);
    if (rc < 0)
        return rc;
    segment_add(s, &h, text_bytes, f->p->cfg.index_interval_bytes);
    bytebuf_add(&f->out, batch.p, batch.n);
    f->p->ret->records_after += h.count;
    return f->out.n >= WRITE_BYTES ? flush_out(f) : 0;
}

static void finish_header(struct bytebuf *b, struct batch_header *h)
{
    h->length = (int32_t)(b->n - BATCH_LOG_OVERHEAD);
    batch_header_write(b->p, h);
    put_be32(b->p + BATCH_CRC, batch_crc(b->p, b->n));
}

/* Not even the times stay: nothing is left that could have them. */
static int emit_empty(struct filter *f, const struct batch_header *old)
{
    struct batch_header h = *old;

    h.attributes &= (int16_t) ~(BATCH_ATTR_CODEC | BATCH_ATTR_DELETE_HORIZON);
    h.base_timestamp = h.max_timestamp = -1;
    h.count = 0;
    f->batch.n = 0;
    bytebuf_extend(&f->batch, BATCH_OVERHEAD);
    finish_header(&f->batch, &h);
    f->changed = true;
    return emit(f, slice_of(f->batch.p, f->batch.n), 0);
}

/* ---- records ---- */

struct kept { /* of one batch */
    int32_t n;
    int64_t text_bytes, max_timestamp;
    bool tombstones;
};

static bool keep_record(const struct filter *f, const struct batch_header *h, const struct record *r)
{
    const struct clean_pass *p = f->p;

    if (r->offset >= p->end)
        return true;
    if (kstr_is_null(r->key)) {
        p->ret->keyless++;
        return false;
    }
    if (r->offset < clean_map_get(p->map, r->key))
        return false;
    if (!kstr_is_null(r->value))
        return true;
    return (h->attributes & BATCH_ATTR_DELETE_HORIZON) == 0 || h->base_timestamp > p->o->now_ms;
}

/* Fills f->plain with the records that stay, as they are. -EBADMSG: the batch contradicts itself. */
static int filter_records(struct filter *f, const struct batch_header *h, struct kept *ret)
{
    struct record r;
    int rc;

    *ret = (struct kept){ .max_timestamp = -1 };
    f->plain.n = 0;
    for (;;) {
        const uint8_t *from = f->iter.rest.p;
        rc = record_iter_next(&f->iter, &r);
        if (rc != 1)
            return rc;
        if (!keep_record(f, h, &r))
            continue;
        bytebuf_add(&f->plain, from, (size_t)(r.headers.p + r.headers.n - from));
        ret->n++;
        ret->text_bytes += (r.value.n > 0 ? r.value.n : 0) + 1;
        ret->max_timestamp = MAX(ret->max_timestamp, r.timestamp);
        ret->tombstones |= kstr_is_null(r.value);
    }
}

/* The records of f->plain with their timestamps relative to another base, behind what `ret` holds. */
static void rebase(struct filter *f, int64_t by, struct bytebuf *ret)
{
    const uint8_t *p = f->plain.p, *end = f->plain.p + f->plain.n;

    while (p < end) {
        int32_t n;
        int64_t delta;
        p = varint_get(p, end, &n);
        KCHECK(p != NULL && n > 1 && n <= end - p);
        const uint8_t *rest = varlong_get(p + 1, p + n, &delta);
        KCHECK(rest != NULL);
        delta = (int64_t)((uint64_t)delta + (uint64_t)by);
        size_t n_rest = (size_t)(p + n - rest), size = 1 + (size_t)varlong_size(delta) + n_rest;
        uint8_t *to = bytebuf_extend(ret, (size_t)varlong_size((int64_t)size) + size);
        to = varint_put(to, (int32_t)size);
        *to++ = *p;
        to = varlong_put(to, delta);
        memcpy(to, rest, n_rest);
        p += n;
    }
}

static int64_t horizon_from_now(const struct clean_options *o)
{
    return o->delete_retention_ms > INT64_MAX - o->now_ms ? INT64_MAX : o->now_ms + o->delete_retention_ms;
}

/* The batch with the records of f->plain. horizon: -1, or from when on its tombstones may go. */
static int emit_fewer(struct filter *f, const struct batch_header *old, const struct kept *k, int64_t horizon)
{
    struct batch_header h = *old;
    struct bytebuf moved = { 0 };
    struct slice plain = slice_of(f->plain.p, f->plain.n);

    h.count = k->n;
    if ((h.attributes & BATCH_ATTR_LOG_APPEND_TIME) == 0)
        h.max_timestamp = k->max_timestamp;
    if (horizon >= 0) {
        rebase(f, (int64_t)((uint64_t)h.base_timestamp - (uint64_t)horizon), &moved);
        plain = slice_of(moved.p, moved.n);
        h.attributes |= BATCH_ATTR_DELETE_HORIZON;
        h.base_timestamp = horizon;
    }
    f->batch.n = 0;
    bytebuf_extend(&f->batch, BATCH_OVERHEAD);
    int rc = codec_compress(batch_codec(&h), 0, plain, &f->batch);
    bytebuf_done(&moved);
    if (rc < 0)
        return rc;
    finish_header(&f->batch, &h);
    f->changed = true;
    return emit(f, slice_of(f->batch.p, f->batch.n), k->text_bytes);
}

/* ---- batches ---- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Must something of it stay even without records? */
static bool is_needed_empty(const struct filter *f, const struct batch_header *h)
{
    int64_t last = batch_last_offset(h);

    if (last + 1 >= f->group_end)
        return true;
    return h->producer_id >= 0 && f->p->n_active > 0 &&
           bsearch(&last, f->p->last_of_active, (size_t)f->p->n_active, sizeof last, compare) != NULL;
}

static void note_horizon(struct clean_pass *p, int64_t horizon)
{
    struct clean_result *ret = p->ret;

    if (ret->next_horizon_ms < 0 || horizon < ret->next_horizon_ms)
        ret->next_horizon_ms = horizon;
}

static int keep_some(struct filter *f, const struct batch_header *h, struct slice bytes, const struct kept *k)
{
    bool has_horizon = (h->attributes & BATCH_ATTR_DELETE_HORIZON) != 0;
    bool cleaned = batch_last_offset(h) < f->p->end;
    int64_t horizon = k->tombstones && !has_horizon && cleaned ? horizon_from_now(f->p->o) : -1;

    if (k->tombstones && cleaned)
        note_horizon(f->p, horizon >= 0 ? horizon : h->base_timestamp);
    if (k->n == h->count && horizon < 0)
        return emit(f, bytes, k->text_bytes);
    return emit_fewer(f, h, k, horizon);
}

static int keep_none(struct filter *f, const struct batch_header *h, struct slice bytes)
{
    if (!is_needed_empty(f, h)) {
        f->changed = true;
        return 0;
    }
    return h->count == 0 ? emit(f, bytes, 0) : emit_empty(f, h);
}

static int filter_batch(struct filter *f, const struct batch_header *h, struct slice bytes)
{
    struct kept k = { 0 };

    f->p->ret->records_before += h->count;
    if (batch_is_control(h) && h->count > 0)
        return emit(f, bytes, 0);
    if (h->count == 0 || clean_txns_aborted(&f->p->txns, h))
        return keep_none(f, h, bytes);
    int rc = record_iter_start(&f->iter, bytes, PLAIN_BYTES_MAX);
    if (rc == 0)
        rc = filter_records(f, h, &k);
    if (rc < 0)
        return emit(f, bytes, 0); /* what cannot be read cannot be judged, and has no text either */
    return k.n > 0 ? keep_some(f, h, bytes, &k) : keep_none(f, h, bytes);
}

static int filter_scan(struct filter *f, struct logscan *scan)
{
    struct scan_item it;
    struct slice bytes;
    int rc;

    while ((rc = logscan_next(scan, &it)) == 0 && it.what != SCAN_END) {
        if (it.what != SCAN_BATCH)
            return -EBADMSG;
        rc = logscan_bytes(scan, &it, &bytes);
        if (rc == 0)
            rc = filter_batch(f, &it.h, bytes);
        if (rc == 0)
            rc = clean_progress(f->p, it.n);
        if (rc < 0)
            break;
    }
    return rc;
}

static int filter_segment(struct filter *f, int i)
{
    struct segment *s = f->p->range.segs[i];
    struct logscan scan;
    int rc = segfile_pin(s->log, false);

    if (rc < 0)
        return rc;
    logscan_init(&scan, f->p->l->io, segfile_fd(s->log), 0, s->sum.size, s->base);
    scan.limit_offset = f->p->range.ends[i];
    rc = filter_scan(f, &scan);
    logscan_done(&scan);
    segfile_unpin(s->log);
    return rc;
}

/* ---- the group ---- */

static struct segfile *cleaned_file(struct plog *l, int64_t base, enum segment_file which)
{
    char path[PATH_MAX], suffix[32];

    snprintf(suffix, sizeof suffix, "%s" CLEANED_SUFFIX, segment_suffix[which]);
    segment_path(path, sizeof path, l->name, base, suffix);
    return segfile_new(l->files, path);
}

static struct segment *cleaned_new(struct plog *l, int64_t base)
{
    struct segment *s = xcalloc(1, sizeof *s);

    atomic_init(&s->refs, 1);
    s->base = base;
    s->identity = l->identity;
    s->log = cleaned_file(l, base, SEGMENT_LOG);
    entries_init(&s->index, cleaned_file(l, base, SEGMENT_INDEX), 0, INDEX_ENTRY_BYTES);
    entries_init(&s->time, cleaned_file(l, base, SEGMENT_TIMEINDEX), 0, TIME_ENTRY_BYTES);
    entries_init(&s->text, cleaned_file(l, base, SEGMENT_TEXT), TEXT_HEADER_BYTES, TEXT_ENTRY_BYTES);
    s->sum = segment_sum_empty(base);
    return s;
}

static void unpin_files(struct segment *s, int n)
{
    for (int i = 0; i < n; i++)
        segfile_unpin(clean_file_of(s, (enum segment_file)i));
}

void clean_discard(struct segment *fresh, bool files)
{
    unpin_files(fresh, SEGMENT_FILES);
    if (files)
        segment_unlink(fresh);
    segment_unref(fresh);
}

/* All four are there from the beginning, empty, whatever an earlier attempt has left, and stay open. */
static int make_files(struct plog *l, struct segment *s)
{
    for (int i = 0; i < SEGMENT_FILES; i++) {
        struct segfile *file = clean_file_of(s, (enum segment_file)i);
        int rc = segfile_pin(file, true);
        if (rc == 0) {
            rc = l->io->ftruncate(l->io, segfile_fd(file), 0);
            if (rc < 0)
                segfile_unpin(file);
        }
        if (rc < 0) {
            unpin_files(s, i);
            return rc;
        }
    }
    return 0;
}

/* As old as the newest of its records, not as new as the exchange. */
static void keep_time(struct clean_pass *p, struct segment *from, struct segment *s)
{
    const struct store_io *io = p->l->io;
    struct io_stat st;

    if (io->statat(io, p->l->dirfd, segfile_path(from->log), 0, &st) == 0)
        io->set_mtime(io, segfile_fd(s->log), st.mtime_ns);
}

static int finish(struct filter *f, struct segment *last)
{
    struct segment *s = f->fresh;
    int rc = flush_out(f);

    if (rc < 0)
        return rc;
    if (s->sum.end_offset != f->group_end)
        return -EBADMSG;
    segment_add_last_time(s);
    rc = segment_write_tails(s, NULL);
    if (rc == 0)
        rc = segment_write_header(s, true);
    if (rc == 0)
        rc = segfile_sync(s->log);
    if (rc == 0)
        rc = segfile_sync(s->index.file);
    if (rc == 0)
        rc = segfile_sync(s->time.file);
    if (rc == 0)
        rc = segfile_sync(s->text.file);
    keep_time(f->p, last, s);
    s->flushed = s->sum.size;
    s->known = true;
    return rc;
}

/* The text ends where it ended: what was taken out moves the rest up. */
static int64_t text_base_of_rest(struct clean_pass *p, int first, int n, const struct segment *fresh)
{
    const struct segment *last = p->range.segs[first + n - 1];

    lock_take(&p->l->mu);
    int64_t end = last->text_base + last->sum.text_bytes;
    lock_release(&p->l->mu);
    return MAX(end - fresh->sum.text_bytes, 0);
}

static int filter_group(struct filter *f, int first, int n)
{
    struct clean_pass *p = f->p;
    int rc = 0;

    record_iter_init(&f->iter);
    for (int i = first; rc == 0 && i < first + n; i++)
        rc = filter_segment(f, i);
    if (rc == 0 && f->changed) {
        f->fresh->text_base = text_base_of_rest(p, first, n, f->fresh);
        rc = finish(f, p->range.segs[first + n - 1]);
    }
    record_iter_done(&f->iter);
    bytebuf_done(&f->out);
    bytebuf_done(&f->plain);
    bytebuf_done(&f->batch);
    return rc;
}

int clean_group(struct clean_pass *p, int first, int n, struct segment **ret)
{
    struct filter f = { .p = p, .group_end = p->range.ends[first + n - 1], .changed = n > 1 };

    f.fresh = cleaned_new(p->l, p->range.segs[first]->base);
    int rc = make_files(p->l, f.fresh);
    if (rc < 0) {
        segment_unlink(f.fresh);
        segment_unref(f.fresh);
        return plog_disk_error(p->l, rc, p->l->name);
    }
    rc = filter_group(&f, first, n);
    if (rc < 0 || !f.changed) {
        clean_discard(f.fresh, true);
        f.fresh = NULL;
    }
    *ret = f.fresh;
    return rc == -EBADMSG || rc == -EFBIG || rc == -ECANCELED ? rc : plog_disk_error(p->l, rc, p->l->name);
}
