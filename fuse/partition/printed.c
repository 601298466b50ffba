/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts whose positions no broker knows (X6 of ptext.h): records are printed to learn where they stand. A run prints on from
 * the front of the text's map, once for all who wait for it; what it prints is kept for readers, and only counted for sizes,
 * but for the front of a text, which is small and likely to be read next. What was printed before is printed again from the
 * mark before it, or from the record that a reader goes on with, up to the next mark. If that comes out as long as it was it
 * is as it was. Else (X7) its positions are known no more: who goes on with that very record is led to a detour, which holds
 * what is left of it, and from there to the next mark; who asked for another position is told EIO. What only retention has
 * cut, while nothing was compacted, stands at the end of where it stood. Loop's thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "fuse/partition/printed.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/client/fetch.h"

#define PRINT_FETCH_BYTES (1024 * 1024)
/* So much of a text is kept when it is counted: who asks for a size mostly reads next. */
#define PRINT_KEEP_BYTES (4 * 1024 * 1024)

LIST_HEAD(text_wait_list, text_wait);

struct map_run {
    struct ptext *text; /* owned reference, and one on its lens */
    int age;            /* the map's, when it began */
    int32_t epoch;      /* of the leader whose log it reads */
    int64_t ahead; /* text position up to which it prints for nobody yet */
    struct text_wait_list waiting;
    bool fetching;
    int turn;
    struct client_fetch fetch[2]; /* one is on its way while the other's batches are printed */
};

/* A text may take longer to print than one answer of a broker: the time-out is for each of them. */
static struct client_fetch fetch_of(const struct ptext *t, int64_t offset, int32_t max_bytes, int32_t epoch)
{
    struct pfile *f = t->file;
    return (struct client_fetch){ .topic = pfile_topic(f),
                                  .topic_id = f->key.topic->id,
                                  .partition = pfile_partition(f),
                                  .fenced = true,
                                  .leader_epoch = epoch,
                                  .offset = offset,
                                  .max_bytes = max_bytes,
                                  .deadline_ms = mount_deadline_ms(f->mount) };
}

/* What an answer comes to: -ERANGE where it is about a log that is no longer so. */
static int verdict(const struct ptext *t, int age, int32_t epoch, int rc, const struct client_fetched *got)
{
    if (rc == 0)
        rc = got->err == KERR_CORRUPT_MESSAGE ? -EBADMSG : rc_of_kerr(got->err);
    return rc == 0 && (age != t->map_age || epoch != t->file->ends.leader_epoch) ? -ERANGE : rc;
}

/* Up to which offset there is something to print now. */
static int64_t print_limit(const struct ptext *t)
{
    return t->lost ? MIN(t->lost_offset, ptext_limit(t)) : ptext_limit(t);
}

/* ---- runs ---- */

static void run_tell(struct text_wait *w, int rc)
{
    LIST_REMOVE(w, link);
    w->cb(w, rc);
}

static void run_free(struct map_run *r)
{
    struct ptext *t = r->text;
    struct lens *l = t->lens;
    ptext_unref(t);
    lens_unref(l);
    free(r);
}

/* With an rc for those who wait. Damage is the end of a text for who only counts. */
static void run_end(struct map_run *r, int rc)
{
    struct text_wait *w;
    if (r->text->run == r)
        r->text->run = NULL;
    while ((w = LIST_FIRST(&r->waiting)) != NULL)
        run_tell(w, rc == -EBADMSG && w->counts ? 0 : rc);
    run_free(r);
}

/* Tells those who have what they waited for; they may ask for more. */
static void run_satisfy(struct map_run *r)
{
    struct ptext *t = r->text;
    struct text_wait *w, *next;
    struct text_wait_list told = LIST_HEAD_INITIALIZER(told);
    bool all = !t->lost && ptext_is_printed(t);
    for (w = LIST_FIRST(&r->waiting); w != NULL; w = next) {
        next = LIST_NEXT(w, link);
        if (!all && (w->counts || w->at >= t->map->front.at))
            continue;
        LIST_REMOVE(w, link);
        LIST_INSERT_HEAD(&told, w, link);
    }
    while ((w = LIST_FIRST(&told)) != NULL)
        run_tell(w, 0);
}

static bool run_counts(const struct map_run *r)
{
    const struct text_wait *w;
    LIST_FOREACH (w, &r->waiting, link) {
        if (w->counts)
            return true;
    }
    return false;
}

static bool run_is_read(const struct map_run *r)
{
    const struct text_wait *w;
    const struct text_map *m = r->text->map;
    LIST_FOREACH (w, &r->waiting, link) {
        if (!w->counts && w->at < m->front.at + PRINT_KEEP_BYTES) /* else the place is far ahead */
            return true;
    }
    return m->front.at < MAX(r->ahead, PRINT_KEEP_BYTES);
}

static void on_run_fetched(struct client_fetch *cf, int rc, const struct client_fetched *got);

static void run_send(struct map_run *r, int64_t offset)
{
    struct client_fetch *cf = &r->fetch[r->turn ^= 1];
    *cf = fetch_of(r->text, offset, PRINT_FETCH_BYTES, r->epoch);
    cf->cb = on_run_fetched;
    cf->user = r;
    r->fetching = true;
    client_fetch(r->text->file->mount->client, cf);
}

/* Is there a reason to go on, and something to go on with? */
static bool run_goes_on(const struct map_run *r)
{
    const struct ptext *t = r->text;
    return t->map->front.offset < print_limit(t) && (!LIST_EMPTY(&r->waiting) || r->ahead > t->map->front.at);
}

/* Prints what came from the front on. 0; -EBADMSG: nothing before damage; -ERANGE: nothing though the ends promised it. */
static int run_print(struct map_run *r, struct slice in, int64_t limit)
{
    struct ptext *t = r->text;
    struct text_cache *c = &t->file->mount->texts;
    int64_t from = t->map->front.offset, at = t->map->front.at, next = from, bytes = 0, stored;
    struct bytebuf text = { 0 };
    struct line_index lines = { 0 };
    int rc;
    line_index_begin(&lines, from);
    text_batches_end(in, from, limit, &stored);
    if (run_is_read(r)) {
        rc = text_render_noted(&c->iter, &t->form, in, from, limit, &text, &lines, &next);
        bytes = (int64_t)text.n;
    } else {
        rc = text_measure(&c->iter, &t->form, in, from, limit, &bytes, &next);
    }
    if (next > from) {
        map_grow(t->map, next, bytes, stored);
        if (text.n > 0)
            chunk_put(c, &t->chunks, at, from, next, &text, &lines);
    }
    bytebuf_done(&text);
    line_index_done(&lines);
    return next > from ? 0 : rc != 0 ? rc : -ERANGE;
}

/* What retention took before it was printed has no place. */
static void run_skip_removed(struct ptext *t)
{
    int64_t to = MIN(t->file->ends.start_offset, print_limit(t));
    if (t->map->front.offset < to)
        map_grow(t->map, to, 0, 0);
}

static void run_step(struct map_run *r)
{
    struct ptext *t = r->text;
    run_skip_removed(t);
    if (t->lost && t->map->front.offset >= t->lost_offset)
        ptext_lost(t, t->map->front.at, t->lost_offset);
    run_satisfy(r);
    if (t->map_age != r->age)
        run_end(r, -ERANGE);
    else if (!run_goes_on(r))
        run_end(r, LIST_EMPTY(&r->waiting) ? 0 : -ERANGE);
    else
        run_send(r, t->map->front.offset);
}

/* The batches are printed while the broker makes the next answer. */
static void on_run_fetched(struct client_fetch *cf, int rc, const struct client_fetched *got)
{
    struct map_run *r = cf->user;
    struct ptext *t = r->text;
    int64_t limit, stored;
    r->fetching = false;
    if ((rc = verdict(t, r->age, r->epoch, rc, got)) != 0) {
        run_end(r, rc);
        return;
    }
    limit = got->last_stable_offset >= 0 ? got->last_stable_offset : got->high_watermark;
    limit = MIN(limit, t->lost ? t->lost_offset : t->window.extent.to);
    struct rcbuf *frame = rcbuf_ref(got->frame);
    struct slice batches = got->batches;
    int64_t next = text_batches_end(batches, t->map->front.offset, limit, &stored);
    bool more = run_counts(r) || r->ahead > t->map->front.at + PRINT_FETCH_BYTES;
    if (more && next > t->map->front.offset && next < print_limit(t))
        run_send(r, next);
    rc = run_print(r, batches, limit);
    rcbuf_unref(frame);
    if (rc == 0 && r->fetching && t->map->front.offset != next) /* damage on the way */
        rc = -EBADMSG;
    if (rc == 0 && r->fetching) {
        run_satisfy(r);
        return;
    }
    if (rc != 0 && r->fetching)
        client_fetch_cancel(t->file->mount->client, &r->fetch[r->turn]);
    if (rc != 0)
        run_end(r, rc);
    else
        run_step(r);
}

/* The run that is on its way, or a new one, which is to be sent. One that works on a map of before ends by itself. */
static struct map_run *run_of(struct ptext *t)
{
    struct map_run *r = t->run;
    if (r != NULL && r->age == t->map_age)
        return r;
    r = t->run = xcalloc(1, sizeof *r);
    r->text = ptext_ref(t);
    lens_ref(t->lens);
    r->age = t->map_age;
    r->epoch = t->file->ends.leader_epoch;
    LIST_INIT(&r->waiting);
    return r;
}

void print_on(struct ptext *t, struct text_wait *w)
{
    bool on_its_way = t->run != NULL && t->run->age == t->map_age;
    struct map_run *r = run_of(t);
    LIST_INSERT_HEAD(&r->waiting, w, link);
    if (!on_its_way)
        run_step(r);
}

static void print_ahead(struct ptext *t, int64_t until)
{
    bool on_its_way = t->run != NULL && t->run->age == t->map_age;
    if (ptext_is_printed(t) || t->lost || until <= t->map->front.at)
        return;
    struct map_run *r = run_of(t);
    r->ahead = MAX(r->ahead, until);
    if (!on_its_way)
        run_step(r);
}

/* ---- what was printed before ---- */

/* Text from the record at left.offset, which stands at left.at, up to the mark `right`. */
struct reprint {
    struct ptext *text; /* owned reference, and one on its lens */
    int age;
    int32_t epoch;
    struct map_mark left, right;
    int64_t from; /* the first record that was asked for: left.offset, or where the log begins by now */
    int64_t next; /* offset to fetch from */
    struct text_edge hole; /* what follows left.at is there; at -1: it is at its place */
    bool checked;  /* whether compaction was there is known */
    int64_t until; /* text position up to which it goes on for nobody yet */
    int steps;
    struct bytebuf held;
    struct line_index lines; /* of it */
    struct fetch_wait_list waiting;
    struct client_fetch fetch;
    struct ends_wait ends;
    LIST_ENTRY(reprint) link;
};

/* Fetches of a few bytes that one piece of text may need; more means that broker and map contradict each other. */
#define REPRINT_STEPS_MAX 10000
#define REPRINT_FETCH_BYTES_MIN 4096

static void reprint_free(struct reprint *x)
{
    struct lens *l = x->text->lens;
    bytebuf_done(&x->held);
    line_index_done(&x->lines);
    ptext_unref(x->text);
    lens_unref(l);
    free(x);
}

/* Is the record that the waiting one has begun the first on the detour? Then he goes on within it. */
static bool goes_on_within(const struct reprint *x, const struct fetch_wait *w, struct line_place *first)
{
    return first->end > 0 && first->offset == x->left.offset && w->edge.at == x->left.at && w->at < x->left.at + first->end;
}

/* Tells one who waited where to go on, after something of the text was taken; 0 or -EBADMSG. */
static int reprint_lead(const struct reprint *x, struct fetch_wait *w, struct line_place *first)
{
    bool placed = !ptext_is_detour(x->hole.at);
    if (placed && !ptext_is_detour(w->at) && w->at >= x->hole.at)
        return 0;
    w->hole_end = x->hole.at;
    if (w->at == x->left.at) {
        w->edge = x->hole;
        return 0;
    }
    if (placed || !goes_on_within(x, w, first))
        return -EBADMSG; /* what it had of this line, or had before it, was moved or is gone */
    w->hole_end += w->at - x->left.at;
    w->edge = (struct text_edge){ x->hole.at, first->offset };
    return 0;
}

/* first: the line on the detour, if there is one; the bytes it was held in may be a chunk's by now. */
static void reprint_tell(struct reprint *x, int rc, struct line_place *first)
{
    struct fetch_wait *w;
    struct ptext *t = x->text;
    LIST_REMOVE(x, link);
    if (rc == 0 && x->until > x->right.at && x->hole.at < 0 && x->age == t->map_age)
        printed_ahead(t, x->right.at, x->until);
    while ((w = LIST_FIRST(&x->waiting)) != NULL) {
        LIST_REMOVE(w, link);
        w->cb(w, rc == 0 && x->hole.at >= 0 ? reprint_lead(x, w, first) : rc);
    }
    reprint_free(x);
}

static void reprint_end(struct reprint *x, int rc)
{
    struct line_place none = { 0 };
    reprint_tell(x, rc, &none);
}

static void reprint_put(struct reprint *x, int64_t at)
{
    struct ptext *t = x->text;
    if (x->held.n > 0)
        chunk_put(&t->file->mount->texts, &t->chunks, at, x->from, x->right.offset, &x->held, &x->lines);
}

static void reprint_detour(struct reprint *x)
{
    struct line_place first = { 0 };
    if (LIST_EMPTY(&x->waiting)) {
        reprint_end(x, 0);
    } else if (x->held.n == 0) { /* nothing is left before the mark */
        x->hole = (struct text_edge){ x->right.at, x->right.offset };
        reprint_end(x, 0);
    } else {
        line_index_find(&x->lines, 0, &first);
        x->hole = (struct text_edge){ ptext_detour(x->text, x->held.n), x->from };
        reprint_put(x, x->hole.at);
        reprint_tell(x, 0, &first);
    }
}

/* Something is missing. Where the log's start has passed the place it is asked whether compaction was there, too. */
static void reprint_shorter(struct reprint *x, int64_t start)
{
    struct ptext *t = x->text;
    bool cut = !ptext_is_detour(x->left.at) && x->left.offset < t->file->ends.start_offset;
    if (cut && !x->checked) {
        ends_ask(t->file, &x->ends);
    } else if (cut && t->moves == t->file->moves) {
        x->hole = (struct text_edge){ start, x->from };
        reprint_put(x, start);
        reprint_end(x, 0);
    } else {
        reprint_detour(x);
    }
}

static void reprint_place(struct reprint *x)
{
    int64_t start = x->right.at - (int64_t)x->held.n;
    if (ptext_is_detour(x->left.at)) {
        reprint_detour(x);
    } else if (start < x->left.at) { /* no record gets longer */
        reprint_end(x, -EBADMSG);
    } else if (start > x->left.at) {
        reprint_shorter(x, start);
    } else {
        reprint_put(x, start);
        reprint_end(x, 0);
    }
}

static void reprint_send(struct reprint *x);

static void on_reprint_fetched(struct client_fetch *cf, int rc, const struct client_fetched *got)
{
    struct reprint *x = cf->user;
    struct ptext *t = x->text;
    int64_t next = x->next;
    if ((rc = verdict(t, x->age, x->epoch, rc, got)) == 0)
        rc = text_render_noted(&t->file->mount->texts.iter, &t->form, got->batches, x->next, x->right.offset, &x->held, &x->lines,
                               &next);
    bool past = rc == 0 && next == x->next && got->batches.n > 0; /* the rest of it was compacted away */
    if (rc == -EBADMSG && next > x->next)
        rc = 0;
    x->next = past ? x->right.offset : next;
    if (rc != 0)
        reprint_end(x, rc);
    else if (x->next >= x->right.offset)
        reprint_place(x);
    else if (next == cf->offset || ++x->steps > REPRINT_STEPS_MAX)
        reprint_end(x, -ERANGE);
    else
        reprint_send(x);
}

static void reprint_send(struct reprint *x)
{
    int64_t stored = x->right.stored - x->left.stored;
    int32_t max = (int32_t)MIN(MAX(stored, (int64_t)REPRINT_FETCH_BYTES_MIN), (int64_t)4 * PRINT_FETCH_BYTES);
    x->fetch = fetch_of(x->text, x->next, max, x->epoch);
    x->fetch.cb = on_reprint_fetched;
    x->fetch.user = x;
    client_fetch(x->text->file->mount->client, &x->fetch);
}

/* All of it is gone, or retention has cut it. */
static void on_reprint_ends(struct ends_wait *w, int rc)
{
    struct reprint *x = container_of(w, struct reprint, ends);
    x->checked = true;
    if (rc == 0 && x->age == x->text->map_age && x->right.at >= 0)
        reprint_place(x);
    else
        reprint_end(x, rc != 0 ? rc : x->right.at < 0 ? -EBADMSG : -ERANGE);
}

/* The nearest place before `at` of which the record is known: the end of the chunk before it, the record that the reader is in, a
 * mark. On a detour there is no mark: offset -1. */
static struct map_mark left_of(struct ptext *t, int64_t at, struct text_edge edge)
{
    const struct chunk *before = chunk_before(&t->chunks, at);
    struct map_mark left = { -1, at, 0 };
    if (!ptext_is_detour(at))
        left = t->map->marks[map_find(t->map, at)];
    if (before != NULL)
        edge = (struct text_edge){ at, before->next_offset };
    if (edge.at >= 0 && edge.at <= at && edge.offset >= left.offset && (edge.at > left.at || left.offset < 0) &&
        ptext_is_detour(edge.at) == ptext_is_detour(at)) {
        left.offset = edge.offset;
        left.at = edge.at;
        left.stored = t->map->marks[map_find_offset(t->map, edge.offset)].stored;
    }
    return left;
}

static struct reprint *reprint_at(struct ptext *t, const struct map_mark *left)
{
    struct reprint *x;
    LIST_FOREACH (x, &t->reprints, link) {
        if (x->left.at == left->at && x->left.offset == left->offset && x->age == t->map_age)
            return x;
    }
    return NULL;
}

/* From the record on up to the next mark that the log has not passed. */
static void reprint_begin(struct reprint *x)
{
    struct ptext *t = x->text;
    int64_t start = t->file->ends.start_offset;
    size_t i = map_find_offset(t->map, MAX(x->left.offset, start));
    x->from = x->next = MAX(x->left.offset, start);
    line_index_begin(&x->lines, x->from);
    x->right = *map_next(t->map, i);
    if (x->left.offset < 0)
        x->right.at = -1; /* nobody knows the place any more */
    if (x->left.offset >= 0 && x->next < x->right.offset)
        reprint_send(x);
    else
        ends_ask(t->file, &x->ends);
}

static struct reprint *reprint_for(struct ptext *t, int64_t at, struct text_edge edge)
{
    struct map_mark left = left_of(t, at, edge);
    struct reprint *x = reprint_at(t, &left);
    if (x != NULL)
        return x;
    x = xcalloc(1, sizeof *x);
    x->text = ptext_ref(t);
    lens_ref(t->lens);
    x->age = t->map_age;
    x->epoch = t->file->ends.leader_epoch;
    x->left = left;
    x->hole = TEXT_EDGE_NONE;
    x->ends.cb = on_reprint_ends;
    LIST_INIT(&x->waiting);
    LIST_INSERT_HEAD(&t->reprints, x, link);
    reprint_begin(x);
    return x;
}

/* ---- both ---- */

static void on_front_printed(struct text_wait *p, int rc)
{
    struct fetch_wait *w = container_of(p, struct fetch_wait, print);
    w->cb(w, rc);
}

void printed_fetch(struct ptext *t, int64_t at, struct text_edge edge, struct fetch_wait *w)
{
    w->at = at;
    w->hole_end = 0;
    w->edge = edge;
    if (at < t->map->front.at || ptext_is_detour(at)) {
        struct reprint *x = reprint_for(t, at, edge);
        LIST_INSERT_HEAD(&x->waiting, w, link);
    } else {
        w->print = (struct text_wait){ .cb = on_front_printed, .at = at };
        print_on(t, &w->print);
    }
}

void printed_ahead(struct ptext *t, int64_t at, int64_t until)
{
    const struct chunk *k;
    struct text_cache *c = &t->file->mount->texts;
    while (at < until && (k = chunk_find(c, &t->chunks, at)) != NULL)
        at = chunk_end(k);
    if (at >= until || ptext_is_detour(at) || t->lost || t->file->key.topic->gone)
        return;
    if (at >= t->map->front.at) {
        print_ahead(t, until);
        return;
    }
    struct reprint *x = reprint_for(t, at, TEXT_EDGE_NONE);
    x->until = MAX(x->until, until);
}
