/* SPDX-License-Identifier: Apache-2.0 */
/* Places of readers in texts; see place.h. Loop's thread. */
#include "fuse/partition/place.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "lib/base/mem.h"

/* What is kept of a line that was begun: of a longer one the rest is EIO where compaction takes it under a reader. */
#define REST_MAX (256 * 1024)

static void rest_drop(struct text_place *p)
{
    if (p->rest != NULL)
        chunk_unref(p->rest);
    p->rest = NULL;
}

void place_lead(struct text_place *p, struct ptext *t)
{
    struct ptext *before = p->text;
    if (before == t)
        return;
    if (before != NULL)
        LIST_REMOVE(p, link);
    rest_drop(p);
    p->text = ptext_ref(t);
    LIST_INSERT_HEAD(&t->places, p, link);
    ptext_unref(before);
}

void place_done(struct text_place *p)
{
    if (p->text != NULL)
        LIST_REMOVE(p, link);
    rest_drop(p);
    ptext_unref(p->text);
    free(p->jumps);
}

/* ---- going on ---- */

static bool rest_holds(const struct text_place *p, int64_t at)
{
    return p->rest != NULL && at >= p->rest->start && at < chunk_end(p->rest);
}

/* Where reading stops within a line, the record and the rest of it are remembered. */
static bool line_begun(struct text_place *p, int64_t at)
{
    struct ptext *t = p->text;
    struct line_place l;
    struct chunk *k = chunk_find(&t->file->mount->texts, &t->chunks, at);
    if (k == NULL || !line_index_find(&k->lines, at - k->start, &l))
        return false;
    p->edge = (struct text_edge){ k->start + l.begin, l.offset };
    p->rest_next = l.offset + 1;
    if (p->edge.at < at && k->start + l.end - at <= REST_MAX)
        p->rest = chunk_copy(at, k->text.p + (at - k->start), (size_t)(k->start + l.end - at));
    return true;
}

struct text_edge place_edge(const struct text_place *p, int64_t at)
{
    const struct chunk *before = chunk_before(&p->text->chunks, at);
    if (before != NULL)
        return (struct text_edge){ at, before->next_offset };
    if (p->rest != NULL && at == chunk_end(p->rest))
        return (struct text_edge){ at, p->rest_next };
    return p->at == at ? p->edge : TEXT_EDGE_NONE;
}

/* At the end of a detour (printed.c) the text's own positions go on where that is known without printing. */
static void place_home(struct text_place *p)
{
    int64_t at;
    if (!ptext_is_detour(p->at) || p->edge.at != p->at || (at = map_at(p->text->map, p->edge.offset)) < 0)
        return;
    p->at = p->edge.at = at;
}

void place_went(struct text_place *p, int64_t at, struct text_edge known)
{
    if (p->text->map == NULL) {
        p->at = at;
        p->edge = fetch_edge(p->text, at);
        if (p->edge.at < 0)
            p->edge = known;
        return;
    }
    if (rest_holds(p, at)) {
        p->at = at;
        return;
    }
    struct text_edge edge = place_edge(p, at);
    rest_drop(p);
    p->at = at;
    p->edge = edge.at >= 0 ? edge : known;
    if (p->edge.at != at)
        line_begun(p, at);
    place_home(p);
}

size_t place_rest(const struct text_place *p, int64_t at, size_t n, struct text_span *span)
{
    if (!rest_holds(p, at) || span->bytes >= n || span->n == TEXT_PIECES_MAX)
        return 0;
    size_t skip = (size_t)(at - p->rest->start), take = MIN(p->rest->text.n - skip, n - span->bytes);
    span->iov[span->n] = (struct iovec){ p->rest->text.p + skip, take };
    span->chunks[span->n++] = p->rest;
    span->bytes += take;
    return take;
}

/* ---- news of the log ---- */

/* Other records will stand where the line stands that was begun: what is left of it moves out of their way. */
static void rest_lost(struct text_place *p, int64_t offset)
{
    struct chunk *rest = p->rest;
    size_t skip = (size_t)(p->at - rest->start);
    p->rest = chunk_copy(ptext_detour(p->text, rest->text.n - skip), rest->text.p + skip, rest->text.n - skip);
    chunk_unref(rest);
    p->at = p->rest->start;
    p->edge = TEXT_EDGE_NONE;
    p->rest_next = MIN(p->rest_next, offset);
}

void place_lost(struct text_place *p, int64_t text, int64_t offset)
{
    bool before = p->text->map != NULL && p->edge.at >= 0 ? p->edge.offset < offset : p->at < text;
    if (before)
        return;
    if (rest_holds(p, p->at)) {
        rest_lost(p, offset);
        return;
    }
    p->at = text;
    p->edge = (struct text_edge){ text, offset };
}

void place_shift(struct text_place *p, int64_t by)
{
    if (p->at >= 0)
        p->at += by;
    if (p->edge.at >= 0)
        p->edge.at += by;
    for (size_t i = 0; i < p->n_jumps; i++)
        p->jumps[i].at += by;
}
