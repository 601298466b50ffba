/* SPDX-License-Identifier: Apache-2.0 */
/* Records by their place in a piece of text; see line_index.h. Pure. */
#include "fuse/text/line_index.h"

#include "lib/base/check.h"
#include "lib/base/varint.h"

void line_index_begin(struct line_index *x, int64_t offset)
{
    x->b.n = 0;
    x->first = x->next = offset;
    x->hint = (struct line_cursor){ 0, 0, offset };
}

void line_index_done(struct line_index *x)
{
    bytebuf_done(&x->b);
    line_index_begin(x, 0);
}

static void put(struct line_index *x, int64_t left_out, size_t bytes)
{
    uint8_t *p = bytebuf_room(&x->b, (size_t)2 * VARLONG_MAX);
    p = uvarint_put(p, (uint64_t)left_out);
    p = uvarint_put(p, bytes);
    x->b.n = (size_t)(p - x->b.p);
}

void line_index_add(struct line_index *x, int64_t offset, size_t bytes)
{
    KCHECK(offset >= x->next && bytes > 0);
    put(x, offset - x->next, bytes);
    x->next = offset + 1;
}

void line_index_join(struct line_index *x, struct line_index *more)
{
    KCHECK(more->first >= x->next);
    if (more->first > x->next)
        put(x, more->first - x->next, 0);
    bytebuf_add(&x->b, more->b.p, more->b.n);
    x->next = more->next;
    line_index_done(more);
}

/* The bytes are this process's own, so that they are whole. */
static struct line_cursor step(const struct line_index *x, struct line_cursor c, struct line_place *ret)
{
    uint64_t left_out = 0, bytes = 0;
    const uint8_t *p = x->b.p + c.pos, *end = x->b.p + x->b.n;
    p = uvarint_get(p, end, VARLONG_MAX, &left_out);
    KCHECK(p != NULL);
    p = uvarint_get(p, end, VARLONG_MAX, &bytes);
    KCHECK(p != NULL);
    *ret = (struct line_place){ c.at, c.at + (int64_t)bytes, c.offset + (int64_t)left_out };
    return (struct line_cursor){ (size_t)(p - x->b.p), ret->end, ret->offset + (bytes > 0) };
}

bool line_index_find(struct line_index *x, int64_t at, struct line_place *ret)
{
    struct line_cursor c = x->hint.at <= at ? x->hint : (struct line_cursor){ 0, 0, x->first };
    while (c.pos < x->b.n) {
        struct line_cursor next = step(x, c, ret);
        if (ret->end > at) {
            x->hint = c;
            return true;
        }
        c = next;
    }
    return false;
}
