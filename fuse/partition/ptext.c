/* SPDX-License-Identifier: Apache-2.0 */
/* The views of a partition and their texts; rules X1 to X4 and X6 of ptext.h. Loop's thread. */
#include "fuse/partition/ptext.h"

#include <stdlib.h>

#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

/* ---- lenses ---- */

/* What of a view says which records it shows, and how: those that differ in nothing else share their texts. */
#define LENS_PARTS ((unsigned)(VIEW_RANGE | VIEW_JSON | VIEW_TSV))

static bool same_bound(const struct bound *a, const struct bound *b)
{
    return a->kind == b->kind && a->value == b->value && a->when.kind == b->when.kind && a->when.ms == b->when.ms;
}

static bool lens_shows(const struct lens *l, const struct view *v)
{
    if (l->view.parts != (v->parts & LENS_PARTS))
        return false;
    return !lens_has_range(l) || (same_bound(&l->view.range.from, &v->range.from) && same_bound(&l->view.range.to, &v->range.to));
}

bool lens_is_plain(const struct lens *l)
{
    return l == &l->file->plain;
}

struct lens *lens_get(struct pfile *f, const struct view *v)
{
    struct lens *l;
    if (lens_shows(&f->plain, v))
        return lens_ref(&f->plain);
    LIST_FOREACH (l, &f->lenses, link) {
        if (lens_shows(l, v))
            return lens_ref(l);
    }
    l = xcalloc(1, sizeof *l);
    l->file = pfile_ref(f);
    l->refs = 1;
    l->view.parts = v->parts & LENS_PARTS;
    l->view.range = v->range;
    LIST_INSERT_HEAD(&f->lenses, l, link);
    return l;
}

struct lens *lens_ref(struct lens *l)
{
    if (lens_is_plain(l))
        pfile_ref(l->file);
    else
        l->refs++;
    return l;
}

void lens_unref(struct lens *l)
{
    if (l == NULL)
        return;
    struct pfile *f = l->file;
    if (lens_is_plain(l)) {
        pfile_unref(f);
    } else if (--l->refs == 0) {
        ptext_unref(l->text);
        LIST_REMOVE(l, link);
        free(l);
        pfile_unref(f);
    }
}

/* ---- texts ---- */

/* Does the broker not know its positions? */
static bool lens_prints(const struct lens *l)
{
    const struct range *r = &l->view.range;
    return (l->view.parts & (VIEW_JSON | VIEW_TSV)) != 0 || (lens_has_range(l) && r->to.kind == BOUND_TIME);
}

static struct ptext *ptext_new(struct lens *l)
{
    struct ptext *t = xcalloc(1, sizeof *t);
    struct pfile *f = l->file;
    t->file = f;
    t->lens = l;
    t->refs = 1;
    t->moves = t->window_moves = f->moves;
    t->whole_below = INT64_MAX;
    t->form = TEXT_FORM_PLAIN;
    t->form.form = view_form(&l->view);
    t->form.partition = (int32_t)f->key.partition;
    if (lens_prints(l)) {
        t->map = xcalloc(1, sizeof *t->map);
        map_init(t->map, 0);
    }
    chunk_list_init(&t->chunks);
    LIST_INIT(&t->fetches);
    LIST_INIT(&t->reprints);
    LIST_INIT(&t->places);
    LIST_INSERT_HEAD(&f->texts, t, link);
    return t;
}

static bool same_extent(const struct extent *a, const struct extent *b)
{
    return a->from == b->from && a->to == b->to && a->time_from == b->time_from && a->time_to == b->time_to;
}

/* Which records a text that is begun now would have. */
static struct window window_now(const struct lens *l)
{
    const struct ends *e = &l->file->ends;
    struct window w = l->window;
    if (!lens_has_range(l))
        w = (struct window){ EXTENT_ALL, e->start_text, INT64_MAX, false, l->file->ends_ns };
    w.extent.from = MAX(w.extent.from, e->start_offset);
    w.from_text = MAX(w.from_text, e->start_text);
    return w;
}

/* X2 */
static bool ptext_is_old(const struct ptext *t)
{
    const struct pfile *f = t->file;
    if (t->moves != f->moves)
        return true;
    if (!t->based)
        return false;
    if (t->on_position > 0 || t->lost)
        return true;
    struct window now = window_now(t->lens);
    if (t->map != NULL || lens_has_range(t->lens))
        return !same_extent(&now.extent, &t->window.extent);
    return t->base != now.from_text;
}

struct ptext *ptext_now(struct lens *l)
{
    if (l->text != NULL && ptext_is_old(l->text)) {
        ptext_unref(l->text);
        l->text = NULL;
    }
    if (l->text == NULL)
        l->text = ptext_new(l);
    return l->text;
}

struct ptext *ptext_alone(struct lens *l)
{
    return ptext_new(l);
}

struct ptext *ptext_ref(struct ptext *t)
{
    t->refs++;
    return t;
}

void ptext_unref(struct ptext *t)
{
    if (t == NULL || --t->refs > 0)
        return;
    KINVARIANT("X1", t->readers == 0 && LIST_EMPTY(&t->fetches) && LIST_EMPTY(&t->reprints) && LIST_EMPTY(&t->places));
    KCHECK(t->run == NULL);
    chunk_list_clear(&t->file->mount->texts, &t->chunks);
    LIST_REMOVE(t, link);
    if (t->map != NULL)
        map_done(t->map);
    free(t->map);
    free(t);
}

void ptext_opened(struct ptext *t)
{
    t->lens->readers++;
    if (t->readers++ == 0)
        t->opened_ns = clock_mono_ns();
}

void ptext_closed(struct ptext *t)
{
    KINVARIANT("X1", t->readers > 0);
    t->lens->readers--;
    if (--t->readers > 0 || !t->based)
        return;
    t->based = false;
    t->lens->held--;
}

bool ptext_needs_ends(const struct ptext *t)
{
    const struct pfile *f = t->file;
    const struct lens *l = t->lens;
    bool fixing = !t->based && t->readers > 0;
    if (!f->ends_known || (fixing && f->ends_ns + SURE_NS < t->opened_ns) || t->lost)
        return true;
    if (!lens_has_range(l))
        return false;
    if (!t->based && (l->window.asked_ns == 0 || (fixing && l->window.asked_ns + SURE_NS < t->opened_ns)))
        return true;
    if (!t->based || t->map != NULL)
        return false;
    /* its first or last record has come, or the last one was moved */
    const struct window *w = &t->window;
    return (w->ahead && w->extent.from <= f->ends.end_offset) ||
           (w->extent.to <= f->ends.end_offset && (w->to_text == INT64_MAX || t->window_moves != f->moves));
}

/* Printed anew, unless it shows the same records as before. */
static void map_begin(struct ptext *t, const struct extent *before)
{
    const struct extent *now = &t->window.extent;
    t->form.time_from = now->time_from;
    t->form.time_to = now->time_to;
    if (t->map_age > 0 && !t->lost && same_extent(before, now))
        return;
    t->map_age++;
    t->lost = false;
    chunk_list_clear(&t->file->mount->texts, &t->chunks);
    map_done(t->map);
    map_init(t->map, now->from);
}

/* Nobody holds the text, so it begins where the log, or the range, begins now. */
static void ptext_begin(struct ptext *t)
{
    struct extent before = t->window.extent;
    t->window = window_now(t->lens);
    t->window_moves = t->file->moves;
    t->base = t->map != NULL ? 0 : t->window.from_text;
    t->whole_below = INT64_MAX;
    t->on_position = 0;
    if (t->map != NULL)
        map_begin(t, &before);
}

int64_t ptext_base(struct ptext *t)
{
    struct pfile *f = t->file;
    KCHECK(f->ends_known);
    if (t->based)
        return t->base;
    ptext_begin(t);
    if (t->readers > 0) {
        t->based = true;
        if (t->lens->held++ == 0) /* X4 */
            t->lens->held_from = t->map != NULL ? t->window.extent.from : t->base;
    }
    return t->base;
}

/* The text position behind the last record that is known. */
static int64_t ptext_end(const struct ptext *t)
{
    if (t->map != NULL)
        return t->map->front.at;
    if (t->window.ahead)
        return t->base;
    return lens_has_range(t->lens) ? MIN(t->window.to_text, t->file->ends.end_text) : t->file->ends.end_text;
}

int64_t ptext_size(struct ptext *t)
{
    int64_t base = ptext_base(t), end = ptext_end(t);
    if (t->on_position > 0)
        return t->on_position + MAX(end - t->on_text, 0);
    return MAX(end - base, 0);
}

int64_t ptext_limit(const struct ptext *t)
{
    bool cut = t->map != NULL || lens_has_range(t->lens);
    return cut ? MIN(t->window.extent.to, t->file->ends.end_offset) : t->file->ends.end_offset;
}

bool ptext_is_printed(const struct ptext *t)
{
    return t->map == NULL || t->map->front.offset >= ptext_limit(t);
}

bool ptext_at_end(const struct ptext *t, int64_t at)
{
    return !ptext_is_detour(at) && at >= ptext_end(t) && ptext_is_printed(t);
}

bool ptext_is_over(const struct ptext *t, int64_t at)
{
    return lens_has_range(t->lens) && t->window.extent.to <= t->file->ends.end_offset && ptext_at_end(t, at);
}

bool ptext_is_before_start(const struct ptext *t, int64_t at)
{
    return t->map == NULL && at < t->file->ends.start_text;
}

int64_t ptext_detour(struct ptext *t, size_t n)
{
    int64_t at = INT64_MAX / 2 + t->detours;
    t->detours += (int64_t)n + 1; /* no two are taken for one */
    return at;
}

int64_t ptext_place(struct ptext *t, int64_t position)
{
    int64_t base = ptext_base(t);
    if (position < t->whole_below)
        return base + position;
    return position < t->on_position ? -1 : t->on_text + position - t->on_position;
}

bool ptext_is_sure(const struct ptext *t, int64_t at)
{
    return t->map != NULL || t->moves == t->file->moves || at >= t->sure_from;
}

int64_t lens_ino_text(const struct lens *l)
{
    if (l->held > 0)
        return l->held_from;
    if (!l->file->ends_known || (lens_has_range(l) && l->window.asked_ns == 0))
        return 0;
    struct window w = window_now(l);
    return lens_is_plain(l) || !lens_prints(l) ? w.from_text : w.extent.from;
}

/* ---- news of the log ---- */

void ptexts_moved(struct pfile *f, int64_t end_text)
{
    struct ptext *t;
    LIST_FOREACH (t, &f->texts, link)
        t->sure_from = t->moves == f->moves ? end_text : MAX(t->sure_from, end_text);
    f->moves++;
}

/* size: what it was before. */
static void text_lost(struct ptext *t, int64_t text, int64_t offset, int64_t size)
{
    struct text_place *p;
    LIST_FOREACH (p, &t->places, link)
        place_lost(p, text, offset);
    chunk_list_cut(&t->file->mount->texts, &t->chunks, text);
    t->sure_from = MIN(t->sure_from, text);
    if (t->window.extent.to > offset)
        t->window.to_text = INT64_MAX;
    if (!t->based)
        return;
    int64_t kept = t->on_position > 0 ? t->whole_below : MAX(text - t->base, 0);
    t->whole_below = MIN(kept, MAX(text - t->base, 0));
    t->on_position = MAX(size, 1);
    t->on_text = text;
}

/* Where the last record that is left ends is known once the records before it are printed again, from the mark before. */
static void map_lost(struct ptext *t, int64_t offset)
{
    if (t->map->front.offset <= offset)
        return;
    if (!t->lost)
        t->lost_size = t->based ? ptext_size(t) : 0;
    t->lost_offset = t->lost ? MIN(t->lost_offset, offset) : offset;
    t->lost = true;
    t->map_age++;
    map_cut(t->map, offset);
    chunk_list_cut(&t->file->mount->texts, &t->chunks, t->map->front.at);
}

void ptexts_lost(struct pfile *f, int64_t text, int64_t offset)
{
    struct ptext *t;
    LIST_FOREACH (t, &f->texts, link) {
        if (t->map == NULL)
            text_lost(t, text, offset, t->based ? ptext_size(t) : 0);
        else if (t->map_age > 0)
            map_lost(t, offset);
    }
}

void ptext_reached(struct ptext *t, int64_t text)
{
    struct text_place *p;
    t->window.ahead = false;
    t->window.from_text = t->base = text;
    LIST_FOREACH (p, &t->places, link)
        p->at = p->at < 0 ? p->at : text;
}

void ptext_lost(struct ptext *t, int64_t text, int64_t offset)
{
    t->lost = false;
    text_lost(t, text, offset, t->lost_size);
}

static void window_shift(struct window *w, int64_t by)
{
    w->from_text += by;
    if (w->to_text != INT64_MAX)
        w->to_text += by;
}

void ptexts_shift(struct pfile *f, int64_t by)
{
    struct ptext *t;
    struct text_place *p;
    struct lens *l;
    LIST_FOREACH (l, &f->lenses, link)
        window_shift(&l->window, by);
    LIST_FOREACH (t, &f->texts, link) {
        if (t->map != NULL)
            continue;
        chunk_list_clear(&f->mount->texts, &t->chunks);
        window_shift(&t->window, by);
        t->base += by;
        t->sure_from += by;
        t->on_text += by;
        LIST_FOREACH (p, &t->places, link)
            place_shift(p, by);
    }
}
