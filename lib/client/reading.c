/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One or several partitions as a stream of lines; rules C1 to C4 of reading.h. Each partition finds its ends, and what a RANGE comes
 * to, then fetches ahead: while one answer is walked through, the next is on its way or here. On the client's loop.
 */
#include "lib/client/reading.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/client/positions.h"
#include "lib/client/records.h"

enum {
    FETCH_ALONE_BYTES = 1024 * 1024,
    FETCH_MERGED_BYTES = 1024 * 1024, /* a partition */
    FOLLOW_WAIT_MS = 500,
};

struct part {
    struct reading *reading;
    int32_t partition;
    enum { PART_FINDING, PART_READING, PART_DONE } state;
    int error; /* -errno, told once what stands before is handed out; whoever asks again has it tried again */
    bool live; /* C2: past the end that was seen */
    int64_t start, end;
    struct extent extent;
    int64_t to; /* offset to stop at; INT64_MAX: never */
    struct position_find find;
    bool finding;
    struct client_fetch fetch;
    bool fetching;
    int64_t fetch_next;          /* offset of the next fetch */
    struct records records;      /* being walked through */
    bool kept;                   /* an answer waits for that: */
    struct client_fetched next;  /* with a reference on its frame, and memory of its own for what was aborted */
    int64_t next_from;           /* the offset that it was fetched from */
    bool has_head;
    struct record head; /* while it is merged */
    TAILQ_ENTRY(part) arrived;
    bool has_arrived;
};

struct reading {
    struct client *c;
    struct reading_config cfg;
    char *topic;
    struct part *parts;
    size_t n;
    bool follow, waits, failed;
    struct part **heap; /* parts that have a head, the one with the least time first */
    size_t n_heap;
    size_t n_merging;                    /* parts that are not past the end seen */
    TAILQ_HEAD(, part) arrived;          /* live ones with something, in its order */
};

static void part_find(struct part *p, int64_t at, void (*cb)(struct position_find *, int, enum kerr, int64_t));
static void part_fetch(struct part *p);

static int64_t deadline(const struct reading *r, int64_t wait_ms)
{
    return loop_now_ms(client_loop(r->c)) + r->cfg.timeout_ms + wait_ms;
}

static void tell(struct reading *r)
{
    if (!r->waits)
        return;
    r->waits = false;
    r->cfg.ready(r->cfg.arg);
}

static void part_fail(struct part *p, int rc)
{
    p->error = rc;
    tell(p->reading);
}

/* ---- where it begins and ends ---- */

static void part_begin(struct part *p, int64_t found)
{
    struct reading *r = p->reading;
    p->extent = EXTENT_ALL;
    if ((r->cfg.view.parts & VIEW_RANGE) != 0)
        range_resolve(&r->cfg.view.range, r->cfg.now_ms, p->start, p->end, found, &p->extent);
    p->fetch_next = MAX(p->extent.from, p->start);
    p->to = r->follow ? p->extent.to : MIN(p->extent.to, p->end);
    records_init(&p->records, p->fetch_next, -1);
    p->state = PART_READING;
    part_fetch(p);
    tell(r);
}

static void on_time(struct position_find *f, int rc, enum kerr err, int64_t offset)
{
    struct part *p = f->user;
    (void)err;
    p->finding = false;
    if (rc != 0)
        part_fail(p, rc);
    else
        part_begin(p, offset);
}

static void on_end(struct position_find *f, int rc, enum kerr err, int64_t offset)
{
    struct part *p = f->user;
    const struct view *v = &p->reading->cfg.view;
    int64_t at;
    (void)err;
    p->finding = false;
    p->end = MAX(offset, p->start);
    if (rc != 0)
        part_fail(p, rc);
    else if ((v->parts & VIEW_RANGE) != 0 && range_time(&v->range, p->reading->cfg.now_ms, &at))
        part_find(p, at, on_time);
    else
        part_begin(p, -1);
}

/* C4: the log begins behind what was asked for, or has lost it. */
static void on_end_again(struct position_find *f, int rc, enum kerr err, int64_t offset)
{
    struct part *p = f->user;
    (void)err;
    p->finding = false;
    if (rc != 0) {
        part_fail(p, rc);
        return;
    }
    p->fetch_next = MAX(p->start, MIN(p->fetch_next, offset));
    p->to = p->reading->follow ? p->to : MIN(p->to, MAX(offset, p->start));
    part_fetch(p);
    tell(p->reading);
}

static void on_start(struct position_find *f, int rc, enum kerr err, int64_t offset)
{
    struct part *p = f->user;
    (void)err;
    p->finding = false;
    p->start = offset;
    if (rc != 0)
        part_fail(p, rc);
    else
        part_find(p, POSITION_END, p->state == PART_FINDING ? on_end : on_end_again);
}

static void part_find(struct part *p, int64_t at, void (*cb)(struct position_find *, int, enum kerr, int64_t))
{
    struct reading *r = p->reading;
    p->finding = true;
    p->find = (struct position_find){ .topic = r->topic,
                                      .topic_id = r->cfg.topic_id,
                                      .partition = p->partition,
                                      .at = at,
                                      .deadline_ms = deadline(r, 0),
                                      .cb = cb,
                                      .user = p };
    position_find(r->c, &p->find);
}

/* ---- fetching ---- */

static int64_t batches_end(struct slice in, int64_t from)
{
    while (in.n >= BATCH_OVERHEAD) {
        struct batch_header h;
        batch_header_read(in.p, &h);
        if (batch_size(&h) < BATCH_OVERHEAD || batch_size(&h) > (int64_t)in.n)
            break;
        from = MAX(from, batch_last_offset(&h) + 1);
        in = slice_of(in.p + batch_size(&h), in.n - (size_t)batch_size(&h));
    }
    return from;
}

static void part_keep(struct part *p, const struct client_fetched *got)
{
    p->next = *got;
    p->next.frame = rcbuf_ref(got->frame);
    p->next.aborted = NULL;
    if (got->n_aborted > 0) {
        struct client_aborted *copy = xreallocarray(NULL, (size_t)got->n_aborted, sizeof *copy);
        memcpy(copy, got->aborted, (size_t)got->n_aborted * sizeof *copy);
        p->next.aborted = copy;
    }
    p->next_from = p->fetch_next;
    p->kept = true;
    p->fetch_next = batches_end(got->batches, p->fetch_next);
    if (!p->has_arrived)
        TAILQ_INSERT_TAIL(&p->reading->arrived, p, arrived);
    p->has_arrived = true;
}

static void part_drop_kept(struct part *p)
{
    if (!p->kept)
        return;
    rcbuf_unref(p->next.frame);
    free((void *)(uintptr_t)p->next.aborted);
    p->kept = false;
}

/* Nothing came: who does not follow has read all that is there. */
static void part_got_nothing(struct part *p, const struct client_fetched *got)
{
    int64_t limit = got->last_stable_offset >= 0 ? got->last_stable_offset : got->high_watermark;
    if (p->reading->follow) {
        p->live |= p->fetch_next >= p->end;
        part_fetch(p);
        return;
    }
    if (p->fetch_next < limit) {
        part_fail(p, -EIO);
        return;
    }
    p->to = MIN(p->to, p->fetch_next);
    tell(p->reading);
}

static void on_fetched(struct client_fetch *f, int rc, const struct client_fetched *got)
{
    struct part *p = f->user;
    p->fetching = false;
    if (rc == 0 && got->err == KERR_OFFSET_OUT_OF_RANGE) {
        part_find(p, POSITION_START, on_start);
        return;
    }
    if (rc == 0 && (got->err == KERR_UNKNOWN_TOPIC_ID || got->err == KERR_UNKNOWN_TOPIC_OR_PARTITION))
        rc = -ENOENT;
    else if (rc == 0 && got->err != KERR_NONE)
        rc = got->err == KERR_CORRUPT_MESSAGE ? -EIO : -kerr_errno(got->err);
    if (rc != 0) {
        part_fail(p, rc);
    } else if (got->batches.n == 0) {
        part_got_nothing(p, got);
    } else {
        part_keep(p, got);
        tell(p->reading);
    }
}

/* Has what comes next fetched, while there is room for it. */
static void part_fetch(struct part *p)
{
    struct reading *r = p->reading;
    if (p->state != PART_READING || p->fetching || p->finding || p->kept || p->error != 0 || p->fetch_next >= p->to)
        return;
    int32_t wait_ms = r->follow && p->fetch_next >= p->end ? FOLLOW_WAIT_MS : 0;
    p->fetching = true;
    p->fetch = (struct client_fetch){ .topic = r->topic,
                                      .topic_id = r->cfg.topic_id,
                                      .partition = p->partition,
                                      .offset = p->fetch_next,
                                      .max_bytes = r->n == 1 ? FETCH_ALONE_BYTES : FETCH_MERGED_BYTES,
                                      .max_wait_ms = wait_ms,
                                      .deadline_ms = deadline(r, wait_ms),
                                      .cb = on_fetched,
                                      .user = p };
    client_fetch(r->c, &p->fetch);
}

/* ---- records of one partition ---- */

/* Begins with the answer that is kept. */
static bool part_take(struct part *p)
{
    if (!p->kept)
        return false;
    p->records.next = MAX(p->records.next, p->next_from);
    records_take(&p->records, &p->next);
    part_drop_kept(p);
    part_fetch(p);
    return true;
}

/* Whoever asks again has it fetched again: what was received may be damaged, and not the log. */
static void part_damaged(struct part *p)
{
    if (p->fetching)
        client_fetch_cancel(p->reading->c, &p->fetch);
    p->fetching = false;
    part_drop_kept(p);
    p->fetch_next = p->records.next;
    p->error = -EIO;
}

/* 1 and a record of the range, 0: none is here, or -errno. */
static int part_next(struct part *p, struct record *ret)
{
    for (;;) {
        int rc = p->state == PART_READING ? records_next(&p->records, ret) : 0;
        if (rc < 0)
            part_damaged(p);
        if (rc == 1 && ret->offset >= p->to)
            p->state = PART_DONE;
        else if (rc == 1 && extent_has(&p->extent, ret))
            return 1;
        else if (rc == 1 || (rc == 0 && part_take(p)))
            continue;
        break;
    }
    if (p->state == PART_READING && p->records.next >= p->to && !p->kept)
        p->state = PART_DONE;
    part_fetch(p);
    return p->state == PART_DONE ? 0 : p->error;
}

static void render(struct part *p, const struct record *rec, struct bytebuf *out)
{
    line_render(view_form(&p->reading->cfg.view), p->partition, rec, out);
}

/* Everything of the part that is here. */
static int part_drain(struct part *p, size_t want, struct bytebuf *out)
{
    struct record rec;
    int rc = 0;
    while (out->n < want && (rc = part_next(p, &rec)) == 1)
        render(p, &rec, out);
    p->live |= rc == 0 && p->state != PART_FINDING && MAX(p->records.next, p->fetch_next) >= p->end;
    return rc;
}

/* ---- merging (C2) ---- */

static bool comes_before(const struct part *a, const struct part *b)
{
    if (a->head.timestamp != b->head.timestamp)
        return a->head.timestamp < b->head.timestamp;
    return a->partition < b->partition;
}

static void heap_swap(struct part **h, size_t i, size_t k)
{
    struct part *p = h[i];
    h[i] = h[k];
    h[k] = p;
}

static void heap_down(struct reading *r, size_t i)
{
    for (size_t k; (k = 2 * i + 1) < r->n_heap; i = k) {
        if (k + 1 < r->n_heap && comes_before(r->heap[k + 1], r->heap[k]))
            k++;
        if (!comes_before(r->heap[k], r->heap[i]))
            return;
        heap_swap(r->heap, i, k);
    }
}

static void heap_add(struct reading *r, struct part *p)
{
    size_t i = r->n_heap++;
    r->heap[i] = p;
    for (; i > 0 && comes_before(r->heap[i], r->heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap_swap(r->heap, i, (i - 1) / 2);
}

/* Past the end that was seen, and so no longer merged. */
static bool part_is_past(const struct part *p)
{
    return p->state == PART_DONE || (p->state == PART_READING && !p->has_head && p->records.next >= p->end) ||
           (p->has_head && p->head.offset >= p->end);
}

/* Each part that is merged gets a head; -errno of one that cannot. */
static int merge_heads(struct reading *r)
{
    int error = 0;
    r->n_merging = 0;
    for (size_t i = 0; i < r->n; i++) {
        struct part *p = &r->parts[i];
        if (p->live)
            continue;
        int rc = p->has_head ? 0 : part_next(p, &p->head);
        if (rc == 1)
            p->has_head = true;
        if (rc == 1 && p->head.offset < p->end)
            heap_add(r, p);
        p->live = part_is_past(p);
        r->n_merging += !p->live;
        if (rc < 0)
            error = rc;
    }
    return error;
}

/* Gives what the merge allows: all that are merged have a head. */
static int merge_step(struct reading *r, size_t want, struct bytebuf *out)
{
    int rc = 0;
    while (r->n_merging > 0 && r->n_heap == r->n_merging && out->n < want) {
        struct part *p = r->heap[0];
        render(p, &p->head, out);
        rc = part_next(p, &p->head);
        p->has_head = rc == 1;
        if (rc == 1 && p->head.offset < p->end) {
            heap_down(r, 0);
            continue;
        }
        r->heap[0] = r->heap[--r->n_heap];
        heap_down(r, 0);
        p->live = part_is_past(p);
        r->n_merging -= p->live;
        if (rc < 0)
            break;
    }
    return MIN(rc, 0);
}

/* As they arrive; a part that met its head in the merge begins with that. */
static int live_step(struct reading *r, size_t want, struct bytebuf *out)
{
    struct part *p;
    int rc = 0;
    for (size_t i = 0; i < r->n && rc >= 0 && out->n < want; i++) {
        p = &r->parts[i];
        if (p->has_head && p->state == PART_READING)
            render(p, &p->head, out);
        p->has_head = false;
    }
    while (rc >= 0 && out->n < want && (p = TAILQ_FIRST(&r->arrived)) != NULL) {
        rc = part_drain(p, want, out);
        if (out->n >= want)
            break;
        TAILQ_REMOVE(&r->arrived, p, arrived);
        p->has_arrived = false;
    }
    for (size_t i = 0; i < r->n && rc >= 0; i++)
        rc = r->parts[i].kept || r->parts[i].state == PART_DONE ? 0 : r->parts[i].error;
    return MIN(rc, 0);
}

static bool all_done(const struct reading *r)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->parts[i].state != PART_DONE)
            return false;
    }
    return true;
}

static int failed_part(const struct reading *r)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->parts[i].error != 0)
            return r->parts[i].partition;
    }
    return -1;
}

static int step(struct reading *r, size_t want, struct bytebuf *out)
{
    if (r->n == 1)
        return part_drain(&r->parts[0], want, out);
    int rc = 0;
    if (!reading_is_live(r)) {
        r->n_heap = 0;
        for (size_t i = 0; i < r->n; i++) {
            struct part *p = &r->parts[i];
            if (p->has_head && !p->live && p->head.offset < p->end)
                heap_add(r, p);
        }
        rc = merge_heads(r);
        if (rc == 0)
            rc = merge_step(r, want, out);
    }
    if (rc == 0 && r->n_merging == 0)
        rc = live_step(r, want, out);
    return rc;
}

static void parts_retry(struct reading *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct part *p = &r->parts[i];
        if (p->error == 0)
            continue;
        p->error = 0;
        if (p->state == PART_FINDING)
            part_find(p, POSITION_START, on_start);
        else
            part_fetch(p);
    }
}

int reading_next(struct reading *r, size_t want, struct bytebuf *out, int32_t *ret_partition)
{
    size_t before = out->n;
    if (r->failed)
        parts_retry(r);
    r->failed = false;
    int rc = step(r, before + want, out);
    if (out->n > before)
        return READING_MORE;
    if (rc < 0) {
        *ret_partition = failed_part(r);
        r->failed = true;
        return rc;
    }
    if (all_done(r))
        return READING_END;
    r->waits = true;
    return READING_WAIT;
}

bool reading_is_live(const struct reading *r)
{
    for (size_t i = 0; i < r->n; i++) {
        if (!r->parts[i].live && r->parts[i].state != PART_DONE)
            return false;
    }
    return true;
}

bool reading_has_before(const struct reading *r)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->parts[i].extent.from > r->parts[i].start)
            return true;
    }
    return false;
}

/* ---- life ---- */

struct reading *reading_new(struct client *c, const struct reading_config *cfg)
{
    struct reading *r = xcalloc(1, sizeof *r);
    r->c = c;
    r->cfg = *cfg;
    r->topic = xstrdup(cfg->topic);
    r->cfg.topic = r->topic;
    r->cfg.partitions = NULL;
    r->follow = (cfg->view.parts & VIEW_FOLLOW) != 0;
    r->n = r->n_merging = cfg->n_partitions;
    r->parts = xcalloc(MAX(r->n, (size_t)1), sizeof *r->parts);
    r->heap = xcalloc(MAX(r->n, (size_t)1), sizeof *r->heap);
    TAILQ_INIT(&r->arrived);
    for (size_t i = 0; i < r->n; i++) {
        struct part *p = &r->parts[i];
        p->reading = r;
        p->partition = cfg->partitions[i];
        records_init(&p->records, 0, -1);
        part_find(p, POSITION_START, on_start);
    }
    return r;
}

void reading_free(struct reading *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->n; i++) {
        struct part *p = &r->parts[i];
        if (p->finding)
            position_find_cancel(&p->find);
        if (p->fetching)
            client_fetch_cancel(r->c, &p->fetch);
        part_drop_kept(p);
        records_done(&p->records);
    }
    free(r->parts);
    free(r->heap);
    free(r->topic);
    free(r);
}
