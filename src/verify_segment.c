/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks one segment in a single walk of its .log: checksums, order of offsets and epochs, the records, and
 * on the way each entry of the three indexes, which is sorted as the log is. An index that a crash left
 * behind the log is fine (it is only sparser); one that says something else than the log is not.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "lib/record/iter.h"
#include "lib/store/checkpoint.h"
#include "lib/store/flush_mark.h"
#include "lib/store/logscan.h"
#include "lib/store/segment.h"
#include "src/verify.h"

/* An index file and how far the walk has come in it. */
struct cursor {
    char *path;
    struct bytebuf file;
    size_t header_bytes, entry_bytes, at;
    bool missing, broken; /* broken: one finding a file is enough */
};

struct walk {
    struct verify *v;
    char *path; /* of the .log */
    int64_t base, limit_offset;
    bool last;
    const struct epochs *epochs;
    struct cursor index, time, text;
    struct text_header text_header;
    bool damaged;    /* some batch could not be read */
    bool text_known; /* its header could be read */
    uint32_t heads;  /* of the batches since the last entry of .text */
    uint32_t all_heads; /* of all; HEADS_UNKNOWN: some could not be read */
    bool heads_lost; /* some of those could not be read */
    int64_t heads_from; /* the first of them */
    int64_t size, end_offset, text_bytes,
        max_timestamp; /* of what has been walked; text_bytes -1: not counted */
    struct record_iter it;
};

/* ---- the index files ---- */
/* What a damaged cache of the newest segment means after an unclean stop: the next start makes it anew. */
static enum finding cache_finding(const struct walk *w)
{
    return w->last && !w->v->clean ? FINDING_WARNING : FINDING_ERROR;
}

static void cursor_open(struct walk *w, struct cursor *c, const char *dir, const char *suffix,
                        size_t header_bytes, size_t entry_bytes)
{
    c->path = xasprintf("%s/%020" PRId64 "%s", dir, w->base, suffix);
    c->header_bytes = c->at = header_bytes;
    c->entry_bytes = entry_bytes;
    int rc = fs_read_file(AT_FDCWD, c->path, OFFLINE_FILE_MAX, &c->file);
    c->broken = rc < 0;
    c->missing =
        rc == -ENOENT; /* a file comes with its first entries: sealed_check knows whether there were any */
    if (rc < 0 && !c->missing)
        verify_report(w->v, FINDING_ERROR, c->path, -1, "%s", strerror(-rc));
    else if (c->file.n > header_bytes && (c->file.n - header_bytes) % entry_bytes != 0)
        verify_report(w->v, cache_finding(w), c->path, -1, "its size is no whole number of entries");
}

static void cursor_close(struct cursor *c)
{
    free(c->path);
    bytebuf_done(&c->file);
}

static const uint8_t *cursor_entry(const struct cursor *c)
{
    return !c->broken && c->at + c->entry_bytes <= c->file.n ? c->file.p + c->at : NULL;
}

static void cursor_wrong(struct walk *w, struct cursor *c, const char *what)
{
    verify_report(w->v, cache_finding(w), c->path, (int64_t)c->at, "%s", what);
    c->broken = true;
}

/* Entries that point into bytes that were no batch: those were reported, the entries may be right. */
static void cursor_skip_damage(struct cursor *c, struct entry_key position, int64_t end)
{
    const uint8_t *e;

    while ((e = cursor_entry(c)) != NULL && entry_key_get(e, position) < end)
        c->at += c->entry_bytes;
}

/* Entries that name a position before `position` should have met their batch by now. */
static void index_step(struct walk *w, const struct batch_header *h, int64_t position)
{
    const uint8_t *e = cursor_entry(&w->index);

    if (e == NULL || entry_key_get(e, INDEX_POSITION) > position)
        return;
    if (entry_key_get(e, INDEX_POSITION) < position)
        cursor_wrong(w, &w->index, "the entry points to where no batch begins");
    else if (w->base + entry_key_get(e, INDEX_OFFSET) != batch_last_offset(h))
        cursor_wrong(w, &w->index, "the entry's offset is not that of the batch it points to");
    else
        w->index.at += w->index.entry_bytes;
}

/* The walk's max_timestamp has this batch in it already. */
static void time_step(struct walk *w, const struct batch_header *h)
{
    const uint8_t *e;

    while ((e = cursor_entry(&w->time)) != NULL &&
           w->base + entry_key_get(e, TIME_OFFSET) <= batch_last_offset(h)) {
        if (!w->damaged && w->base + entry_key_get(e, TIME_OFFSET) < h->base_offset)
            cursor_wrong(w, &w->time, "the entry's offset is that of no batch");
        else if (!w->damaged && entry_key_get(e, TIME_TIMESTAMP) != w->max_timestamp)
            cursor_wrong(w, &w->time, "the entry's timestamp is not the greatest up to its offset");
        else
            w->time.at += w->time.entry_bytes;
    }
}

/* The batches since the last entry must be those that were written there; another one may come after. */
static void heads_check(struct walk *w, uint32_t heads, int64_t position)
{
    if (!w->heads_lost && heads != HEADS_UNKNOWN && w->heads != heads)
        verify_report(w->v, FINDING_ERROR, w->path, w->heads_from,
                      "the batches from here to %" PRId64 " are not those that were written there: a wrong offset, or "
                      "another file; or .text is not of this segment",
                      position);
    w->heads = 0;
    w->heads_lost = false;
    w->heads_from = position;
}

static void text_step(struct walk *w, const struct batch_header *h, int64_t position)
{
    const uint8_t *e = cursor_entry(&w->text);

    if (e == NULL)
        return;
    if (!text_entry_ok(e))
        cursor_wrong(w, &w->text, "the entry's checksum does not match");
    else if (entry_key_get(e, TEXT_POSITION) > position)
        return;
    else if (entry_key_get(e, TEXT_POSITION) < position)
        cursor_wrong(w, &w->text, "the entry points to where no batch begins");
    else if (w->base + entry_key_get(e, TEXT_OFFSET) != h->base_offset)
        cursor_wrong(w, &w->text, "the entry's offset is not that of the batch it points to");
    else if (w->text_bytes >= 0 && entry_key_get(e, TEXT_TEXT) != w->text_bytes)
        cursor_wrong(w, &w->text, "the entry's text position is not the sum of the values before it");
    else {
        w->text.at += w->text.entry_bytes;
        heads_check(w, text_entry_heads(e), position);
    }
}

static void text_header_check(struct walk *w)
{
    const struct cursor *c = &w->text;

    if (c->missing)
        verify_report(w->v, FINDING_WARNING, c->path, -1, "it is missing; the broker makes it anew");
    if (c->broken)
        return;
    w->text_known =
        text_header_decode(c->file.p, (int64_t)c->file.n, &w->text_header) && w->text_header.base == w->base;
    if (!w->text_known) {
        verify_report(w->v, cache_finding(w), c->path, 0, "its header is damaged");
        w->text.broken = true;
    } else if (w->text_header.version == 1) { /* made anew when it is needed */
        w->text.broken = true;
    } else if (w->text_header.identity != w->v->identity && w->v->identity != 0) {
        verify_report(w->v, cache_finding(w), c->path, 0, "it is another partition's");
        w->text.broken = true;
        w->text_known = false;
    }
}

static void count_check(struct walk *w, const struct cursor *c, int32_t n)
{
    size_t there = c->file.n > c->header_bytes ? (c->file.n - c->header_bytes) / c->entry_bytes : 0;

    if (there != (size_t)n)
        verify_report(w->v, cache_finding(w), c->path, -1,
                      "it has %zu entries, but the segment was sealed with %d", there, n);
}

/* A sealed segment's header holds what the walk must have come to. */
static void sealed_check(struct walk *w)
{
    const struct segment_sum *sum = &w->text_header.sum;

    if (!w->text_known || !w->text_header.sealed)
        return;
    count_check(w, &w->index, sum->index_n);
    count_check(w, &w->time, sum->time_n);
    if (!w->text.broken)
        count_check(w, &w->text, sum->text_n);
    if (!w->text.broken && sum->size == w->size)
        heads_check(w, sum->heads, w->size);
    if (w->damaged)
        return;
    if (sum->size != w->size || sum->end_offset != w->end_offset)
        verify_report(w->v, cache_finding(w), w->text.path, 0,
                      "it says the log ends at offset %" PRId64 ", but that is %" PRId64, sum->end_offset,
                      w->end_offset);
    else if (w->text_bytes >= 0 && sum->text_bytes != w->text_bytes)
        verify_report(w->v, cache_finding(w), w->text.path, 0,
                      "it counts %" PRId64 " bytes of text, but there are %" PRId64, sum->text_bytes,
                      w->text_bytes);
    else if (sum->max_timestamp != w->max_timestamp)
        verify_report(w->v, cache_finding(w), w->text.path, 0, "its greatest timestamp is not the log's");
}

static void entries_left_check(struct walk *w)
{
    struct cursor *const all[] = { &w->index, &w->time, &w->text };

    for (size_t i = 0; i < ARRAY_LEN(all) && !w->damaged; i++) {
        if (cursor_entry(all[i]) != NULL)
            cursor_wrong(w, all[i], "the entry points behind the log's last batch");
    }
}

/* ---- the batches ---- */
/* Text bytes of the batch's records, -1 when they are damaged. */
static int64_t records_check(struct walk *w, struct slice batch)
{
    struct record r;
    int64_t text_bytes = 0;
    int rc = record_iter_start(&w->it, batch, OFFLINE_PLAIN_MAX);

    while (rc == 0 && (rc = record_iter_next(&w->it, &r)) == 1) {
        text_bytes += (r.value.n > 0 ? r.value.n : 0) + 1;
        rc = 0;
    }
    if (rc < 0)
        return -1;
    return batch_is_control(&w->it.h) ? 0 : text_bytes;
}

static void batch_records_check(struct walk *w, struct logscan *s, const struct scan_item *item)
{
    struct slice bytes;

    if (w->v->quick) {
        w->text_bytes = -1;
        return;
    }
    int rc = logscan_bytes(s, item, &bytes);
    int64_t text_bytes = rc == 0 ? records_check(w, bytes) : -1;
    if (text_bytes < 0) {
        verify_report(w->v, FINDING_ERROR, w->path, item->at,
                      "the records of the batch at offset %" PRId64 " are damaged", item->h.base_offset);
        w->text_bytes = -1;
    } else if (w->text_bytes >= 0) {
        w->text_bytes += text_bytes;
    }
}

/* The file of leader epochs may lag behind the batches above the checkpoint (S6), until a clean stop. */
static bool is_newer_epoch(const struct walk *w, const struct scan_item *item)
{
    const struct verify *v = w->v;
    bool above = w->base > v->flush_segment || (w->base == v->flush_segment && item->at >= v->flush_position);

    return above && !v->clean && item->h.leader_epoch > epochs_latest(w->epochs);
}

static void batch_check_epoch(struct walk *w, const struct scan_item *item)
{
    int32_t known = epochs_at(w->epochs, item->h.base_offset);

    if (is_newer_epoch(w, item))
        return;
    if (w->epochs->n > 0 && known >= 0 && known != item->h.leader_epoch)
        verify_report(w->v, FINDING_ERROR, w->path, item->at,
                      "offset %" PRId64 " was written in leader epoch %d, but " EPOCHS_FILE " says %d",
                      item->h.base_offset, item->h.leader_epoch, known);
}

/* What was on disk of the newest segment at the last flush is there still. */
static void mark_check(struct walk *w)
{
    struct verify *v = w->v;
    bool here = w->last && w->base == v->mark_segment && !(w->text_known && w->text_header.sealed);

    if (!here || w->size < v->mark_position || w->all_heads == HEADS_UNKNOWN || v->mark_heads == HEADS_UNKNOWN)
        return;
    if (w->size > v->mark_position || w->all_heads != v->mark_heads)
        verify_report(v, FINDING_ERROR, w->path, -1,
                      "the batches below %" PRId64 " are not those that " MARK_FILE " knows", v->mark_position);
    v->mark_segment = -1;
}

static void batch_check_all(struct walk *w, struct logscan *s, const struct scan_item *item)
{
    text_step(w, &item->h, item->at);
    w->heads = heads_add(w->heads, &item->h);
    w->all_heads = heads_add(w->all_heads, &item->h);
    batch_records_check(w, s, item);
    batch_check_epoch(w, item);
    index_step(w, &item->h, item->at);
    w->max_timestamp = MAX(w->max_timestamp, item->h.max_timestamp);
    time_step(w, &item->h);
    w->size = item->at + item->n;
    w->end_offset = batch_last_offset(&item->h) + 1;
    if (w->base == w->v->flush_segment && w->size == w->v->flush_position && w->heads != w->v->flush_heads &&
        w->v->flush_heads != HEADS_UNKNOWN &&
        !w->heads_lost && !w->text.broken && cursor_entry(&w->text) == NULL)
        verify_report(w->v, FINDING_ERROR, w->path, w->heads_from,
                      "the batches from here to %" PRId64 " are not those that " CHECKPOINT_FILE " knows", w->size);
    mark_check(w);
    w->v->batches++;
    w->v->records += item->h.count;
}

static void damage_report(struct walk *w, const struct scan_item *item)
{
    bool torn = item->what == SCAN_TAIL && w->last && !w->v->clean;

    if (item->what == SCAN_DAMAGED)
        verify_report(w->v, FINDING_ERROR, w->path, item->at,
                      "%" PRId64 " bytes are no batch; good ones follow", item->n);
    else
        verify_report(w->v, torn ? FINDING_WARNING : FINDING_ERROR, w->path, item->at,
                      "the last %" PRId64 " bytes are no batch%s", item->n,
                      torn ? "; the next start cuts them off" : "");
    w->text_bytes = -1;
    w->damaged = true;
    w->heads_lost = true;
    w->all_heads = HEADS_UNKNOWN;
    cursor_skip_damage(&w->index, INDEX_POSITION, item->at + item->n);
    cursor_skip_damage(&w->text, TEXT_POSITION, item->at + item->n);
}

static int walk_log(struct walk *w, int fd, int64_t size)
{
    CLEANUP(logscan_done) struct logscan s;
    struct scan_item item;
    int rc;

    logscan_init(&s, &store_io_real, fd, 0, size, w->base);
    s.limit_offset = w->limit_offset;
    while ((rc = logscan_next(&s, &item)) == 0 && item.what != SCAN_END) {
        if (item.what == SCAN_BATCH)
            batch_check_all(w, &s, &item);
        else
            damage_report(w, &item);
        progress_add(&w->v->progress, item.n, w->path);
    }
    return rc;
}

static void verify_log(struct walk *w)
{
    CLEANUP(closep) int fd = open(w->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    int rc = fd < 0 || fstat(fd, &st) < 0 ? -errno : walk_log(w, fd, st.st_size);

    if (rc < 0) {
        verify_report(w->v, FINDING_ERROR, w->path, -1, "%s", strerror(-rc));
        return;
    }
    w->v->bytes += st.st_size;
    sealed_check(w);
    entries_left_check(w);
}

void verify_segment(struct verify *v, const char *dir, const struct epochs *epochs, struct segment_facts *ret)
{
    struct walk w = {
        .v = v,
        .path = xasprintf("%s/%020" PRId64 ".log", dir, ret->base),
        .base = ret->base,
        .limit_offset = ret->limit_offset,
        .last = ret->last,
        .epochs = epochs,
        .end_offset = ret->base,
        .max_timestamp = -1,
    };

    record_iter_init(&w.it);
    cursor_open(&w, &w.index, dir, segment_suffix[SEGMENT_INDEX], 0, INDEX_ENTRY_BYTES);
    cursor_open(&w, &w.time, dir, segment_suffix[SEGMENT_TIMEINDEX], 0, TIME_ENTRY_BYTES);
    cursor_open(&w, &w.text, dir, segment_suffix[SEGMENT_TEXT], TEXT_HEADER_BYTES, TEXT_ENTRY_BYTES);
    text_header_check(&w);
    verify_log(&w);

    v->segments++;
    ret->end_offset = w.end_offset;
    ret->text_bytes = w.text_bytes;
    ret->text_base = w.text_known ? w.text_header.text_base : -1;
    cursor_close(&w.index);
    cursor_close(&w.time);
    cursor_close(&w.text);
    record_iter_done(&w.it);
    free(w.path);
}
