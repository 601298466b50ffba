/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking what a view of a partition shows now (rules X2 and X6 of ptext.h): the log's ends, for a RANGE the offsets that it
 * comes to and where these stand in the text, for an open text whose end was not there yet whether it is by now, and what has
 * to be printed before it is known where a log that lost its tail goes on. One step after the other, each only where it is
 * needed; for the plain view all of it is ends_ask(). Loop's thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/client/positions.h"

/* Answers that contradict each other, since the log has moved between them, before an ask gives up. */
#define ASK_STEPS_MAX 64

struct text_ask {
    struct lens *lens;  /* owned reference */
    struct ptext *text; /* owned reference; NULL: for the lens alone */
    struct text_wait *wait;
    int64_t now_ms, now_ns;
    struct window window; /* as far as it is known */
    int moves;
    int64_t deadline_ms;
    int steps;
    struct ends_wait ends;
    struct position_find time;
    struct find_call find;
    struct text_wait print;
};

static void ask_end(struct text_ask *a, int rc)
{
    struct text_wait *w = a->wait;
    struct lens *l = a->lens;
    ptext_unref(a->text);
    free(a);
    w->ask = NULL;
    w->cb(w, rc);
    lens_unref(l);
}

/* ---- printing ---- */

static void on_printed(struct text_wait *w, int rc);

/* A size is wanted, or the place where a lost tail began. */
static void ask_print(struct text_ask *a)
{
    struct ptext *t = a->text;
    if (t != NULL && t->map != NULL && (t->lost || a->wait->printed)) {
        ptext_base(t);
        a->print = (struct text_wait){ .cb = on_printed, .counts = true };
        print_on(t, &a->print);
    } else {
        ask_end(a, 0);
    }
}

static void on_printed(struct text_wait *w, int rc)
{
    struct text_ask *a = container_of(w, struct text_ask, print);
    if (rc == -ERANGE && ++a->steps < ASK_STEPS_MAX) /* the log has moved on meanwhile */
        ends_ask(a->lens->file, &a->ends);
    else
        ask_end(a, rc);
}

/* ---- the window ---- */

/* Answers of two asks may cross; what was asked later is right. */
static void ask_window_known(struct text_ask *a)
{
    struct lens *l = a->lens;
    struct ptext *t = a->text;
    a->window.asked_ns = a->now_ns;
    if (t != NULL && t->based) {
        if (t->window.ahead && !a->window.ahead)
            ptext_reached(t, a->window.from_text);
        t->window.to_text = a->window.to_text;
        t->window_moves = a->moves;
    } else if (a->now_ns > l->window.asked_ns) {
        l->window = a->window;
    }
    ask_print(a);
}

static void ask_places(struct text_ask *a);

static void on_place(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct text_ask *a = call->user;
    const struct klog_find_text_response *r = response;
    (void)err;
    (void)version;
    if (rc == 0)
        rc = rc_of_kerr(r->error_code);
    if (rc == -ERANGE && ++a->steps < ASK_STEPS_MAX) {
        ends_ask(a->lens->file, &a->ends);
        return;
    }
    if (rc != 0) {
        ask_end(a, rc);
        return;
    }
    if (a->window.from_text < 0)
        a->window.from_text = r->text_position;
    else
        a->window.to_text = r->text_position;
    ask_places(a);
}

/* The text position of an offset; false: the broker is asked. */
static bool ask_place(struct text_ask *a, int64_t offset, int64_t beyond, int64_t *ret)
{
    struct pfile *f = a->lens->file;
    const struct ends *e = &f->ends;
    if (offset <= e->start_offset)
        *ret = e->start_text;
    else if (offset == e->end_offset)
        *ret = e->end_text;
    else if (offset > e->end_offset)
        *ret = beyond;
    else
        find_text(f, &a->find, FIND_BY_OFFSET, offset, e->leader_epoch, a->deadline_ms, on_place, a);
    return offset <= e->start_offset || offset >= e->end_offset;
}

static void ask_places(struct text_ask *a)
{
    const struct ends *e = &a->lens->file->ends;
    const struct extent *x = &a->window.extent;
    bool prints = extent_has_times(x) || view_form(&a->lens->view) != LINE_PLAIN;
    a->window.ahead = !prints && x->from > e->end_offset;
    if (!prints && a->window.from_text < 0 && !ask_place(a, x->from, e->end_text, &a->window.from_text))
        return;
    if (!prints && a->window.to_text < 0 && !ask_place(a, x->to, INT64_MAX, &a->window.to_text))
        return;
    ask_window_known(a);
}

static void ask_extent(struct text_ask *a, int64_t found)
{
    struct lens *l = a->lens;
    const struct ends *e = &l->file->ends;
    range_resolve(&l->view.range, a->now_ms, e->start_offset, e->end_offset, found, &a->window.extent);
    a->window.from_text = a->window.to_text = -1;
    ask_places(a);
}

static void on_time_found(struct position_find *f, int rc, enum kerr err, int64_t offset)
{
    struct text_ask *a = container_of(f, struct text_ask, time);
    (void)err;
    if (rc != 0)
        ask_end(a, rc);
    else
        ask_extent(a, offset);
}

static void ask_window(struct text_ask *a)
{
    struct lens *l = a->lens;
    struct pfile *f = l->file;
    int64_t at;
    if (!range_time(&l->view.range, a->now_ms, &at)) {
        ask_extent(a, -1);
        return;
    }
    a->time = (struct position_find){ .topic = pfile_topic(f),
                                      .topic_id = f->key.topic->id,
                                      .partition = pfile_partition(f),
                                      .at = at,
                                      .deadline_ms = a->deadline_ms,
                                      .cb = on_time_found };
    position_find(f->mount->client, &a->time);
}

/* ---- the ends ---- */

static void on_ask_ends(struct ends_wait *w, int rc)
{
    struct text_ask *a = container_of(w, struct text_ask, ends);
    const struct ptext *t = a->text;
    a->moves = a->lens->file->moves;
    if (rc != 0) {
        ask_end(a, rc);
    } else if (!lens_has_range(a->lens)) {
        ask_print(a);
    } else if (t == NULL || !t->based) {
        ask_window(a);
    } else if (t->map == NULL && ptext_needs_ends(t)) { /* its first or last record has come, or was moved */
        a->window = t->window;
        a->window.to_text = -1;
        a->window.from_text = t->window.ahead ? -1 : t->window.from_text;
        ask_places(a);
    } else {
        ask_print(a);
    }
}

static void ask_begin(struct lens *l, struct ptext *t, struct text_wait *w)
{
    struct text_ask *a = xcalloc(1, sizeof *a);
    a->lens = lens_ref(l);
    a->text = t == NULL ? NULL : ptext_ref(t);
    a->wait = w;
    a->now_ms = clock_wall_ms();
    a->now_ns = clock_mono_ns();
    a->deadline_ms = mount_deadline_ms(l->file->mount);
    a->ends.cb = on_ask_ends;
    w->ask = a;
    ends_ask(l->file, &a->ends);
}

void lens_ask(struct lens *l, struct text_wait *w)
{
    ask_begin(l, NULL, w);
}

void text_ask(struct ptext *t, struct text_wait *w)
{
    ask_begin(t->lens, t, w);
}
