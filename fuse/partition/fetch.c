/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Getting the text at a position: find the batch that holds it (only when neither the chunk before nor the
 * ends tell), fetch from there, render into chunks. Several reads at one place share one fetch. Loop's
 * thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "fuse/partition/printed.h"
#include "lib/base/mem.h"
#include "lib/client/fetch.h"

/* Answers of the broker that contradict each other, since compaction passed between them, before a fetch gives up.
 */
#define FETCH_STEPS_MAX 100

struct fetch {
    struct ptext *text; /* owned reference, and one on its lens */
    int64_t at;         /* asked for: text position */
    int64_t start;      /* text position of `offset` */
    int64_t offset;
    int32_t max_bytes;
    int64_t until; /* text position up to which reading ahead goes on from here */
    int steps;
    int64_t deadline_ms;
    int moves;     /* the text's: its positions are of the same making */
    int32_t epoch; /* of the leader whose log it reads */
    int64_t hole_end;
    struct fetch_wait_list waiting;
    LIST_ENTRY(fetch) link;
    struct client_fetch fetch;
    struct find_call find;
    struct bytebuf held; /* text up to held_next, of which the place is asked for */
    int64_t held_next;
};

static void fetch_send(struct fetch *x);
static void place_send(struct fetch *x);

static void fetch_done(struct fetch *x, int rc)
{
    struct fetch_wait *w;
    LIST_REMOVE(x, link);
    struct lens *l = x->text->lens;
    if (rc == 0 && x->until > x->start && x->hole_end == 0)
        fetch_ahead(x->text, x->start, x->until, x->max_bytes);
    while ((w = LIST_FIRST(&x->waiting)) != NULL) {
        LIST_REMOVE(w, link);
        w->hole_end = x->hole_end;
        w->edge = TEXT_EDGE_NONE;
        w->cb(w, rc);
    }
    ptext_unref(x->text);
    lens_unref(l);
    bytebuf_done(&x->held);
    free(x);
}

int rc_of_kerr(enum kerr err)
{
    if (err == KERR_UNKNOWN_TOPIC_OR_PARTITION || err == KERR_UNKNOWN_TOPIC_ID)
        return -ENOENT;
    bool old_ends = err == KERR_OFFSET_OUT_OF_RANGE || err == KERR_POSITION_OUT_OF_RANGE || err == KERR_FENCED_LEADER_EPOCH;
    return old_ends ? -ERANGE : -kerr_errno(err);
}

/* ---- fetch ---- */

/* Moves on to what comes after the chunks that are here. */
static bool fetch_step_over_known(struct fetch *x)
{
    const struct chunk *k;
    bool moved = false;
    while ((k = chunk_find(&x->text->file->mount->texts, &x->text->chunks, x->start)) != NULL) {
        x->start = chunk_end(k);
        x->offset = k->next_offset;
        moved = true;
    }
    return moved;
}

/* Compaction was there, perhaps since the chunk before was read. The text is held until the broker has said
 * where it stands now. */
static void fetch_hold(struct fetch *x, struct slice batches, int64_t limit)
{
    x->held.n = 0;
    int rc = text_render(&x->text->file->mount->texts.iter, &x->text->form, batches, x->offset, limit, &x->held, &x->held_next);
    if (rc != 0 && x->held.n == 0)
        fetch_done(x, rc);
    else
        place_send(x);
}

static void fetch_keep(struct fetch *x, const struct client_fetched *got)
{
    struct ptext *t = x->text;
    int64_t limit = got->last_stable_offset >= 0 ? got->last_stable_offset : got->high_watermark;
    int64_t next = x->offset;
    if (lens_has_range(t->lens))
        limit = MIN(limit, t->window.extent.to);
    if (fetch_step_over_known(x)) { /* another fetch was faster */
        fetch_send(x);
        return;
    }
    if (text_has_gaps(got->batches, x->offset, limit)) {
        fetch_hold(x, got->batches, limit);
        return;
    }
    int rc = chunk_add(&t->file->mount->texts, &t->chunks, &t->form, x->start, x->offset, limit, got->batches, &next);
    if (rc == 1) /* nothing but markers, or the ends promised text that the log does not give */
        fetch_hold(x, got->batches, limit);
    else
        fetch_done(x, rc);
}

/* All files may have been closed meanwhile and the next opened after compaction; or the log lost its tail. */
static bool fetch_still_fits(const struct fetch *x)
{
    return x->moves == x->text->moves && x->epoch == x->text->file->ends.leader_epoch;
}

/* What an answer comes to: -errno, and -ERANGE where it is about a text that is no longer so. */
static int fetch_verdict(const struct fetch *x, int rc, enum kerr err)
{
    if (rc == 0)
        rc = rc_of_kerr(err);
    return rc == 0 && !fetch_still_fits(x) ? -ERANGE : rc;
}

static void on_fetched(struct client_fetch *cf, int rc, const struct client_fetched *got)
{
    struct fetch *x = cf->user;
    rc = fetch_verdict(x, rc, rc == 0 ? got->err : KERR_NONE);
    if (rc != 0)
        fetch_done(x, rc);
    else
        fetch_keep(x, got);
}

static void fetch_send(struct fetch *x)
{
    fetch_step_over_known(x);
    if (x->start > x->at) {
        fetch_done(x, 0);
        return;
    }
    struct pfile *f = x->text->file;
    x->fetch = (struct client_fetch){ .topic = pfile_topic(f),
                                      .topic_id = f->key.topic->id,
                                      .partition = pfile_partition(f),
                                      .fenced = true,
                                      .leader_epoch = x->epoch,
                                      .offset = x->offset,
                                      .max_bytes = x->max_bytes,
                                      .deadline_ms = x->deadline_ms,
                                      .cb = on_fetched,
                                      .user = x };
    client_fetch(f->mount->client, &x->fetch);
}

/* ---- find ---- */

static enum kerr judge_find(struct client_call *call, int16_t version, const void *response)
{
    const struct klog_find_text_response *resp = response;
    (void)call;
    (void)version;
    bool final = resp->error_code == KERR_FENCED_LEADER_EPOCH || resp->error_code == KERR_CORRUPT_MESSAGE; /* it stays so */
    return final ? KERR_NONE : (enum kerr)resp->error_code;
}

static void on_found(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct fetch *x = call->user;
    const struct klog_find_text_response *resp = response;
    const struct ends *e = &x->text->file->ends;
    (void)err;
    (void)version;
    if (rc == 0)
        rc = rc_of_kerr(resp->error_code);
    if (rc == 0 && (resp->text_position < 0 || resp->text_position > x->at || resp->base_offset < 0))
        rc = -EIO;
    if (rc != 0) {
        fetch_done(x, rc);
        return;
    }
    x->start = resp->text_position;
    x->offset = resp->base_offset;
    if (x->offset < e->start_offset) { /* the log begins inside this batch */
        x->start = e->start_text;
        x->offset = e->start_offset;
    }
    fetch_send(x);
}

void find_text(struct pfile *f, struct find_call *c, int8_t by, int64_t value, int32_t epoch, int64_t deadline_ms,
               void (*cb)(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response), void *user)
{
    wire_defaults(&wire_klog_find_text_request, &c->body);
    c->body.topic = kstr_of(pfile_topic(f));
    c->body.topic_id = f->key.topic->id;
    c->body.partition = pfile_partition(f);
    c->body.current_leader_epoch = epoch;
    c->body.by = by;
    c->body.value = value;
    c->call = (struct client_call){ .target = TARGET_LEADER,
                                    .topic = pfile_topic(f),
                                    .topic_id = f->key.topic->id,
                                    .partition = pfile_partition(f),
                                    .request = &wire_klog_find_text_request,
                                    .body = &c->body,
                                    .max_version = -1,
                                    .deadline_ms = deadline_ms,
                                    .judge = judge_find,
                                    .cb = cb,
                                    .user = user };
    client_call(f->mount->client, &c->call);
}

typedef void found_fn(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response);

static void find_ask(struct fetch *x, int8_t by, int64_t value, found_fn *cb)
{
    find_text(x->text->file, &x->find, by, value, x->epoch, x->deadline_ms, cb, x);
}

static void find_send(struct fetch *x)
{
    find_ask(x, FIND_BY_POSITION, x->at, on_found);
}

/* ---- where held text stands ---- */

/* Compaction passed between two answers. */
static void fetch_retry(struct fetch *x)
{
    if (++x->steps < FETCH_STEPS_MAX)
        fetch_send(x);
    else
        fetch_done(x, -ERANGE);
}

static void on_next_found(struct client_call *call, int rc, enum kerr err, int16_t version,
                          const void *response)
{
    struct fetch *x = call->user;
    const struct klog_find_text_response *resp = response;
    (void)err;
    (void)version;
    if (rc == 0)
        rc = rc_of_kerr(resp->error_code);
    if (rc != 0) {
        fetch_done(x, rc);
        return;
    }
    if (resp->text_position == x->start && resp->base_offset > x->offset)
        x->offset = resp->base_offset;
    fetch_retry(x);
}

/* No text in the batches from x->offset on (emptied by compaction, markers), and more of them may follow: the text
 * index knows the next one that has some, however many there are. */
static void fetch_skip_textless(struct fetch *x)
{
    if (x->held_next <= x->offset) { /* the ends promised text that the log does not give */
        fetch_done(x, -ERANGE);
        return;
    }
    x->offset = x->held_next;
    find_ask(x, FIND_BY_POSITION, x->start, on_next_found);
}

/* It ends at `end`. Its place is known from its end, since what is behind keeps its positions. */
static void fetch_place(struct fetch *x, int64_t end)
{
    struct ptext *t = x->text;
    int64_t start = end - (int64_t)x->held.n;
    if (start < x->start) {
        fetch_retry(x);
    } else if (x->start < x->at && start > x->start) {
        fetch_done(x, -EBADMSG); /* what the reader has of this line, or had before it, was moved or is gone */
    } else if (start == x->start && x->held.n == 0) {
        fetch_skip_textless(x);
    } else {
        if (start > x->start && !chunk_set_hole(&t->chunks, x->start, start))
            x->hole_end = start; /* there is no chunk in front: those who wait are told */
        if (x->held.n > 0)
            chunk_put(&t->file->mount->texts, &t->chunks, start, x->offset, x->held_next, &x->held, NULL);
        fetch_done(x, 0);
    }
}

static void on_placed(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct fetch *x = call->user;
    const struct klog_find_text_response *resp = response;
    (void)err;
    (void)version;
    rc = fetch_verdict(x, rc, rc == 0 ? resp->error_code : KERR_NONE);
    if (rc != 0)
        fetch_done(x, rc);
    else if (fetch_step_over_known(x)) /* another fetch was faster */
        fetch_send(x);
    else
        fetch_place(x, resp->text_position);
}

static void place_send(struct fetch *x)
{
    find_ask(x, FIND_BY_OFFSET, x->held_next, on_placed);
}

/* ---- the two together ---- */

static bool edge_holds(const struct ptext *t, int64_t at, struct text_edge edge)
{
    return edge.at >= 0 && edge.at <= at && edge.offset >= t->file->ends.start_offset;
}

bool fetch_goes_on(struct ptext *t, int64_t at, struct text_edge edge)
{
    const struct chunk *before = chunk_before(&t->chunks, at);
    if (t->map != NULL)
        return true;
    return (before != NULL && before->next_offset >= t->file->ends.start_offset) || edge_holds(t, at, edge);
}

struct text_edge fetch_edge(struct ptext *t, int64_t at)
{
    const struct chunk *k = chunk_before(&t->chunks, at);
    if (k != NULL)
        return (struct text_edge){ at, k->next_offset };
    k = chunk_find(&t->file->mount->texts, &t->chunks, at);
    return k != NULL ? (struct text_edge){ k->start, k->first_offset } : TEXT_EDGE_NONE;
}

/* Where to fetch from, without asking. */
static bool place_known(struct ptext *t, int64_t at, struct text_edge edge, struct fetch *x)
{
    const struct pfile *f = t->file;
    const struct chunk *before = chunk_before(&t->chunks, at);
    if (before != NULL && before->next_offset >= f->ends.start_offset) {
        x->offset = before->next_offset;
    } else if (at == f->ends.start_text && t->moves == f->moves) {
        x->offset = f->ends.start_offset;
    } else if (lens_has_range(t->lens) && at == t->window.from_text && t->moves == f->moves) {
        x->offset = t->window.extent.from;
    } else if (edge_holds(t, at, edge)) {
        x->start = edge.at;
        x->offset = edge.offset;
    } else {
        return false;
    }
    return true;
}

static struct fetch *fetch_at(struct ptext *t, int64_t at)
{
    struct fetch *x;
    LIST_FOREACH (x, &t->fetches, link) {
        if (x->at == at && fetch_still_fits(x))
            return x;
    }
    return NULL;
}

/* The one fetch for a place; *ret_new: it was not there yet, and has to be begun. */
static struct fetch *fetch_for(struct ptext *t, int64_t at, int32_t max_bytes, bool *ret_new)
{
    struct fetch *x = fetch_at(t, at);
    *ret_new = x == NULL;
    if (x != NULL)
        return x;
    x = xcalloc(1, sizeof *x);
    x->text = ptext_ref(t);
    lens_ref(t->lens);
    x->at = x->start = at;
    x->max_bytes = max_bytes;
    x->moves = t->moves;
    x->epoch = t->file->ends.leader_epoch;
    x->deadline_ms = mount_deadline_ms(t->file->mount);
    LIST_INIT(&x->waiting);
    LIST_INSERT_HEAD(&t->fetches, x, link);
    return x;
}

static void fetch_begin(struct fetch *x, struct text_edge edge)
{
    if (place_known(x->text, x->at, edge, x))
        fetch_send(x);
    else
        find_send(x);
}

void fetch_text(struct ptext *t, int64_t at, struct text_edge edge, int32_t max_bytes, struct fetch_wait *w)
{
    bool is_new;
    if (t->map != NULL) {
        printed_fetch(t, at, edge, w);
        return;
    }
    struct fetch *x = fetch_for(t, at, max_bytes, &is_new);
    LIST_INSERT_HEAD(&x->waiting, w, link);
    if (is_new)
        fetch_begin(x, edge);
}

/* The first position from `at` on that is not here. */
static int64_t first_missing(struct ptext *t, int64_t at, int64_t until)
{
    const struct chunk *k;
    while (at < until) {
        if ((k = chunk_find(&t->file->mount->texts, &t->chunks, at)) != NULL)
            at = chunk_end(k);
        int64_t to = chunk_hole_end(&t->chunks, at);
        if (k == NULL && to == at)
            break;
        at = to;
    }
    return at;
}

void fetch_ahead(struct ptext *t, int64_t at, int64_t until, int32_t max_bytes)
{
    const struct pfile *f = t->file;
    bool is_new;
    if (t->map != NULL) {
        printed_ahead(t, at, until);
        return;
    }
    at = first_missing(t, at, until);
    if (at >= until || ptext_at_end(t, at) || at < f->ends.start_text || f->key.topic->gone || !ptext_is_sure(t, at))
        return;
    struct fetch *x = fetch_for(t, at, max_bytes, &is_new);
    x->until = MAX(x->until, until);
    if (is_new)
        fetch_begin(x, TEXT_EDGE_NONE);
}
