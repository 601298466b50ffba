/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendering batches to lines, and keeping what was rendered in chunks that are found by text position. All chunks of a mount
 * share one cache with a bound: the least recently used one goes first, those that a reader has passed before them. An
 * answer points into chunks, so one lives until its last reference goes, which may be on another thread; all else is the
 * loop's.
 */
#include "fuse/text/text.h"

#include <errno.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

/* ---- rendering ---- */

/* The caller has made room: a record takes more bytes in its batch than value and '\n' here. */
static void render_plain(struct bytebuf *out, struct kstr value)
{
    uint8_t *p = out->p + out->n;
    size_t n = value.n > 0 ? (size_t)value.n : 0;
    memcpy(p, n > 0 ? value.p : "", n);
    p[n] = '\n';
    out->n += n + 1;
}

/* Where the text of records goes: out, or only its length, where out is NULL. */
struct text_sink {
    const struct text_form *form;
    struct bytebuf *out;
    struct line_index *notes; /* NULL: none are made */
    int64_t bytes;
};

static bool form_is_plain(const struct text_form *f)
{
    return f->form == LINE_PLAIN && f->time_from == INT64_MIN && f->time_to == INT64_MAX;
}

static int render_plain_batch(struct record_iter *it, int64_t from, int64_t limit, struct bytebuf *out)
{
    struct record r;
    int rc;
    bytebuf_room(out, it->rest.n + 1);
    while ((rc = record_iter_next(it, &r)) == 1) {
        if (r.offset >= from && r.offset < limit)
            render_plain(out, r.value);
    }
    return rc;
}

static int render_formed_batch(struct record_iter *it, int64_t from, int64_t limit, struct text_sink *sink)
{
    const struct text_form *f = sink->form;
    struct record r;
    int rc;
    while ((rc = record_iter_next(it, &r)) == 1) {
        if (r.offset < from || r.offset >= limit || r.timestamp < f->time_from || r.timestamp >= f->time_to)
            continue;
        if (sink->out == NULL) {
            sink->bytes += (int64_t)line_size(f->form, f->partition, &r);
            continue;
        }
        size_t before = sink->out->n;
        line_render(f->form, f->partition, &r, sink->out);
        if (sink->notes != NULL)
            line_index_add(sink->notes, r.offset, sink->out->n - before);
    }
    return rc;
}

static int render_batch(struct record_iter *it, struct slice batch, int64_t from, int64_t limit, struct text_sink *sink)
{
    if (record_iter_start(it, batch, TEXT_BATCH_MAX) != 0)
        return -EBADMSG;
    if (sink->out != NULL && sink->notes == NULL && form_is_plain(sink->form))
        return render_plain_batch(it, from, limit, sink->out);
    return render_formed_batch(it, from, limit, sink);
}

static int render_batches(struct record_iter *it, struct slice in, int64_t from, int64_t limit, struct text_sink *sink,
                          int64_t *next)
{
    *next = from;
    while (in.n > 0) {
        struct batch_header h;
        int rc = batch_check(in, INT32_MAX, &h);
        if (rc == -EAGAIN)
            return 0;
        if (rc != 0)
            return -EBADMSG;
        if (h.base_offset >= limit)
            return 0;
        size_t before = sink->out != NULL ? sink->out->n : 0, size = (size_t)batch_size(&h);
        int64_t bytes = sink->bytes, noted = sink->notes != NULL ? sink->notes->next : 0;
        size_t noted_bytes = sink->notes != NULL ? sink->notes->b.n : 0;
        if (!batch_is_control(&h) && (rc = render_batch(it, slice_of(in.p, size), from, limit, sink)) != 0) {
            if (sink->out != NULL)
                sink->out->n = before;
            if (sink->notes != NULL) {
                sink->notes->b.n = noted_bytes;
                sink->notes->next = noted;
            }
            sink->bytes = bytes;
            return rc;
        }
        *next = MAX(*next, MIN(batch_last_offset(&h) + 1, limit));
        in = slice_of(in.p + size, in.n - size);
    }
    return 0;
}

int text_render(struct record_iter *it, const struct text_form *form, struct slice in, int64_t from, int64_t limit,
                struct bytebuf *out, int64_t *next)
{
    struct text_sink sink = { .form = form, .out = out };
    return render_batches(it, in, from, limit, &sink, next);
}

int text_render_noted(struct record_iter *it, const struct text_form *form, struct slice in, int64_t from, int64_t limit,
                      struct bytebuf *out, struct line_index *notes, int64_t *next)
{
    struct text_sink sink = { .form = form, .out = out, .notes = notes };
    return render_batches(it, in, from, limit, &sink, next);
}

int text_measure(struct record_iter *it, const struct text_form *form, struct slice in, int64_t from, int64_t limit,
                 int64_t *ret_bytes, int64_t *next)
{
    struct text_sink sink = { .form = form, .bytes = *ret_bytes };
    int rc = render_batches(it, in, from, limit, &sink, next);
    *ret_bytes = sink.bytes;
    return rc;
}

int64_t text_batches_end(struct slice in, int64_t from, int64_t limit, int64_t *ret_bytes)
{
    *ret_bytes = 0;
    while (in.n >= BATCH_OVERHEAD) {
        struct batch_header h;
        batch_header_read(in.p, &h);
        if (h.base_offset >= limit || batch_size(&h) < BATCH_OVERHEAD || batch_size(&h) > (int64_t)in.n ||
            batch_last_offset(&h) < from)
            break;
        from = MIN(batch_last_offset(&h) + 1, limit);
        *ret_bytes += batch_size(&h);
        in = slice_of(in.p + batch_size(&h), in.n - (size_t)batch_size(&h));
    }
    return from;
}

bool text_has_gaps(struct slice in, int64_t from, int64_t limit)
{
    while (in.n >= BATCH_OVERHEAD) {
        struct batch_header h;
        batch_header_read(in.p, &h);
        if (h.base_offset >= limit || batch_size(&h) < BATCH_OVERHEAD || batch_size(&h) > (int64_t)in.n)
            return false;
        if (h.base_offset > from || h.count != h.last_offset_delta + 1)
            return true;
        from = batch_last_offset(&h) + 1;
        in = slice_of(in.p + batch_size(&h), in.n - (size_t)batch_size(&h));
    }
    return false;
}

/* ---- keeping ---- */

void text_cache_init(struct text_cache *c, size_t bytes_max)
{
    *c = (struct text_cache){ .bytes_max = bytes_max };
    TAILQ_INIT(&c->used);
    record_iter_init(&c->iter);
}

void text_cache_done(struct text_cache *c)
{
    KCHECK(TAILQ_EMPTY(&c->used) && c->bytes == 0);
    record_iter_done(&c->iter);
}

void chunk_list_init(struct chunk_list *l)
{
    *l = (struct chunk_list){ 0 };
    TAILQ_INIT(&l->chunks);
}

void chunk_unref(struct chunk *k)
{
    if (atomic_fetch_sub(&k->refs, 1) > 1)
        return;
    bytebuf_done(&k->text);
    line_index_done(&k->lines);
    free(k);
}

struct chunk *chunk_copy(int64_t start, const uint8_t *p, size_t n)
{
    struct chunk *k = xcalloc(1, sizeof *k);
    k->start = start;
    bytebuf_add(&k->text, p, n);
    atomic_init(&k->refs, 1);
    return k;
}

static size_t chunk_memory(const struct chunk *k)
{
    return k->text.cap + k->lines.b.cap;
}

/* Out of its list and of the cache. */
static void chunk_drop(struct text_cache *c, struct chunk *k)
{
    if (k->list->hint == k)
        k->list->hint = NULL;
    TAILQ_REMOVE(&k->list->chunks, k, link);
    TAILQ_REMOVE(&c->used, k, used);
    KCHECK(c->bytes >= chunk_memory(k));
    c->bytes -= chunk_memory(k);
    chunk_unref(k);
}

void chunk_list_clear(struct text_cache *c, struct chunk_list *l)
{
    struct chunk *k;
    while ((k = TAILQ_FIRST(&l->chunks)) != NULL)
        chunk_drop(c, k);
}

void chunk_list_cut(struct text_cache *c, struct chunk_list *l, int64_t at)
{
    struct chunk *k;
    while ((k = TAILQ_LAST(&l->chunks, chunk_tailq)) != NULL && (chunk_end(k) > at || k->hole_end > at))
        chunk_drop(c, k);
}

/* Drops the least recently used ones, but never `keep`. */
static void cache_shrink(struct text_cache *c, const struct chunk *keep)
{
    struct chunk *k;
    while ((k = TAILQ_FIRST(&c->used)) != NULL && k != keep &&
           (c->bytes > c->bytes_max || (k->passed && c->bytes > TEXT_PASSED_MAX)))
        chunk_drop(c, k);
}

static void chunk_touch(struct text_cache *c, struct chunk *k)
{
    TAILQ_REMOVE(&c->used, k, used);
    TAILQ_INSERT_TAIL(&c->used, k, used);
    k->passed = false;
}

/* The last chunk that starts at or before `at`; NULL. Readers move forward, so the search begins where it
 * last ended. */
static struct chunk *chunk_at_or_before(struct chunk_list *l, int64_t at)
{
    struct chunk *k = l->hint != NULL && l->hint->start <= at ? l->hint : TAILQ_FIRST(&l->chunks);
    if (k == NULL || k->start > at)
        return NULL;
    for (struct chunk *next; (next = TAILQ_NEXT(k, link)) != NULL && next->start <= at;)
        k = next;
    l->hint = k;
    return k;
}

struct chunk *chunk_find(struct text_cache *c, struct chunk_list *l, int64_t at)
{
    struct chunk *k = chunk_at_or_before(l, at);
    if (k == NULL || chunk_end(k) <= at)
        return NULL;
    chunk_touch(c, k);
    return k;
}

struct chunk *chunk_before(struct chunk_list *l, int64_t at)
{
    struct chunk *k = chunk_at_or_before(l, at - 1);
    return k != NULL && chunk_end(k) == at ? k : NULL;
}

static struct chunk *chunk_new(struct text_cache *c, struct chunk_list *l, int64_t start, int64_t offset)
{
    struct chunk *k = xcalloc(1, sizeof *k), *before = chunk_at_or_before(l, start);
    k->start = start;
    k->first_offset = k->next_offset = offset;
    line_index_begin(&k->lines, offset);
    k->list = l;
    atomic_init(&k->refs, 1);
    if (before != NULL)
        TAILQ_INSERT_AFTER(&l->chunks, before, k, link);
    else
        TAILQ_INSERT_HEAD(&l->chunks, k, link);
    TAILQ_INSERT_TAIL(&c->used, k, used);
    return k;
}

/* Where the text of a fetch goes: at the end of a short chunk that stops there, else into a new one. */
static struct chunk *chunk_for(struct text_cache *c, struct chunk_list *l, int64_t start, int64_t offset)
{
    struct chunk *k = chunk_before(l, start);
    if (k != NULL && k->text.n < CHUNK_GROW_BELOW && k->next_offset <= offset && atomic_load(&k->refs) == 1) {
        chunk_touch(c, k);
        return k;
    }
    return chunk_new(c, l, start, offset);
}

int chunk_add(struct text_cache *c, struct chunk_list *l, const struct text_form *form, int64_t start, int64_t offset,
              int64_t limit, struct slice in, int64_t *next)
{
    KCHECK(chunk_find(c, l, start) == NULL);
    struct chunk *k = chunk_for(c, l, start, offset), *after;
    size_t before = k->text.n, cap = k->text.cap;
    bytebuf_room(&k->text, in.n);
    int rc = text_render(&c->iter, form, in, offset, limit, &k->text, next);
    c->bytes += k->text.cap - cap;
    after = TAILQ_NEXT(k, link);
    if (after != NULL && chunk_end(k) > after->start) { /* the rest is in the next chunk already */
        k->text.n = (size_t)(after->start - k->start);
        *next = after->first_offset;
    }
    k->next_offset = *next;
    bool grew = k->text.n > before;
    if (k->text.n == 0)
        chunk_drop(c, k);
    else
        cache_shrink(c, k);
    return grew ? 0 : rc != 0 ? rc : 1;
}

static void drop_between(struct text_cache *c, struct chunk_list *l, int64_t start, int64_t end)
{
    struct chunk *k = chunk_at_or_before(l, start), *next;
    if (k == NULL || chunk_end(k) <= start)
        k = k == NULL ? TAILQ_FIRST(&l->chunks) : TAILQ_NEXT(k, link);
    for (; k != NULL && k->start < end; k = next) {
        next = TAILQ_NEXT(k, link);
        chunk_drop(c, k);
    }
}

void chunk_put(struct text_cache *c, struct chunk_list *l, int64_t start, int64_t offset, int64_t next, struct bytebuf *text,
               struct line_index *lines)
{
    KCHECK(text->n > 0);
    drop_between(c, l, start, start + (int64_t)text->n);
    struct chunk *k = chunk_for(c, l, start, offset);
    size_t before = chunk_memory(k);
    k->next_offset = next;
    if (k->text.n == 0) {
        k->text = *text;
        *text = (struct bytebuf){ 0 };
    } else {
        bytebuf_add(&k->text, text->p, text->n);
        bytebuf_done(text);
    }
    if (lines != NULL)
        line_index_join(&k->lines, lines);
    c->bytes += chunk_memory(k) - before;
    cache_shrink(c, k);
}

bool chunk_set_hole(struct chunk_list *l, int64_t at, int64_t to)
{
    struct chunk *k = chunk_before(l, at);
    if (k != NULL)
        k->hole_end = to;
    return k != NULL;
}

int64_t chunk_hole_end(struct chunk_list *l, int64_t at)
{
    const struct chunk *k = chunk_before(l, at);
    return k == NULL ? at : MAX(at, k->hole_end);
}

size_t chunk_gather(struct text_cache *c, struct chunk_list *l, int64_t at, size_t n, struct text_span *span)
{
    size_t before = span->bytes;
    struct chunk *k;
    while (span->bytes < n && span->n < TEXT_PIECES_MAX && (k = chunk_find(c, l, at)) != NULL) {
        size_t skip = (size_t)(at - k->start), take = MIN(k->text.n - skip, n - span->bytes);
        span->iov[span->n] = (struct iovec){ k->text.p + skip, take };
        span->chunks[span->n++] = k;
        span->bytes += take;
        at += (int64_t)take;
    }
    return span->bytes - before;
}

void text_span_ref(struct text_span *span)
{
    for (int i = 0; i < span->n; i++)
        atomic_fetch_add(&span->chunks[i]->refs, 1);
}

void chunk_pass(struct text_cache *c, struct chunk_list *l, int64_t at, size_t n)
{
    struct chunk *k = chunk_at_or_before(l, at);
    for (; k != NULL && chunk_end(k) <= at + (int64_t)n; k = TAILQ_NEXT(k, link)) {
        k->passed = true;
        TAILQ_REMOVE(&c->used, k, used);
        TAILQ_INSERT_HEAD(&c->used, k, used);
    }
}
