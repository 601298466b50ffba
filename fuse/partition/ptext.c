/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a partition; rules X1 to X4 of ptext.h. Loop's thread. */
#include "fuse/partition/ptext.h"

#include <stdlib.h>

#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

static struct ptext *ptext_new(struct pfile *f)
{
    struct ptext *t = xcalloc(1, sizeof *t);
    t->file = f;
    t->refs = 1;
    t->moves = f->moves;
    t->whole_below = INT64_MAX;
    chunk_list_init(&t->chunks);
    LIST_INIT(&t->fetches);
    LIST_INIT(&t->places);
    LIST_INSERT_HEAD(&f->texts, t, link);
    return t;
}

/* X2 */
static bool ptext_is_old(const struct ptext *t)
{
    const struct pfile *f = t->file;
    return t->moves != f->moves || (t->based && (t->base != f->ends.start_text || t->on_position > 0));
}

struct ptext *ptext_now(struct pfile *f)
{
    if (f->text != NULL && ptext_is_old(f->text)) {
        ptext_unref(f->text);
        f->text = NULL;
    }
    if (f->text == NULL)
        f->text = ptext_new(f);
    return f->text;
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
    KINVARIANT("X1", t->readers == 0 && LIST_EMPTY(&t->fetches) && LIST_EMPTY(&t->places));
    chunk_list_clear(&t->file->mount->texts, &t->chunks);
    LIST_REMOVE(t, link);
    free(t);
}

void ptext_opened(struct ptext *t)
{
    t->file->readers++;
    if (t->readers++ == 0)
        t->opened_ns = clock_mono_ns();
}

void ptext_closed(struct ptext *t)
{
    KINVARIANT("X1", t->readers > 0);
    t->file->readers--;
    if (--t->readers > 0 || !t->based)
        return;
    t->based = false;
    t->file->held--;
}

bool ptext_needs_ends(const struct ptext *t)
{
    const struct pfile *f = t->file;
    return !f->ends_known || (!t->based && t->readers > 0 && f->ends_ns + SURE_NS < t->opened_ns);
}

/* Nobody holds the text, so it begins where the log begins now. */
static void ptext_begin(struct ptext *t)
{
    t->base = t->file->ends.start_text;
    t->whole_below = INT64_MAX;
    t->on_position = 0;
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
        if (f->held++ == 0) /* X4 */
            f->held_from = t->base;
    }
    return t->base;
}

int64_t ptext_size(struct ptext *t)
{
    int64_t base = ptext_base(t), end = t->file->ends.end_text;
    if (t->on_position > 0)
        return t->on_position + MAX(end - t->on_text, 0);
    return MAX(end - base, 0);
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
    return t->moves == t->file->moves || at >= t->sure_from;
}

/* ---- places ---- */

void place_lead(struct text_place *p, struct ptext *t)
{
    struct ptext *before = p->text;
    if (before == t)
        return;
    if (before != NULL)
        LIST_REMOVE(p, link);
    p->text = ptext_ref(t);
    LIST_INSERT_HEAD(&t->places, p, link);
    ptext_unref(before);
}

void place_done(struct text_place *p)
{
    if (p->text != NULL)
        LIST_REMOVE(p, link);
    ptext_unref(p->text);
    free(p->jumps);
}

/* ---- news of the log ---- */

void ptexts_moved(struct pfile *f, int64_t end_text)
{
    struct ptext *t;
    LIST_FOREACH (t, &f->texts, link)
        t->sure_from = t->moves == f->moves ? end_text : MAX(t->sure_from, end_text);
    f->moves++;
}

static void place_lost(struct text_place *p, int64_t text, int64_t offset)
{
    if (p->at < text)
        return;
    p->at = text;
    p->edge = (struct text_edge){ text, offset };
}

static void ptext_lost(struct ptext *t, int64_t text, int64_t offset)
{
    struct text_place *p;
    LIST_FOREACH (p, &t->places, link)
        place_lost(p, text, offset);
    chunk_list_cut(&t->file->mount->texts, &t->chunks, text);
    t->sure_from = MIN(t->sure_from, text);
    if (!t->based)
        return;
    int64_t size = ptext_size(t), kept = t->on_position > 0 ? t->whole_below : MAX(text - t->base, 0);
    t->whole_below = MIN(kept, MAX(text - t->base, 0));
    t->on_position = MAX(size, 1);
    t->on_text = text;
}

void ptexts_lost(struct pfile *f, int64_t text, int64_t offset)
{
    struct ptext *t;
    LIST_FOREACH (t, &f->texts, link)
        ptext_lost(t, text, offset);
}

static void place_shift(struct text_place *p, int64_t by)
{
    if (p->at >= 0)
        p->at += by;
    if (p->edge.at >= 0)
        p->edge.at += by;
    for (size_t i = 0; i < p->n_jumps; i++)
        p->jumps[i].at += by;
}

void ptexts_shift(struct pfile *f, int64_t by)
{
    struct ptext *t;
    struct text_place *p;
    LIST_FOREACH (t, &f->texts, link) {
        chunk_list_clear(&f->mount->texts, &t->chunks);
        t->base += by;
        t->sure_from += by;
        t->on_text += by;
        LIST_FOREACH (p, &t->places, link)
            place_shift(p, by);
    }
}
