/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of a text; see map.h. Pure. */
#include "fuse/text/map.h"

#include <stdlib.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

void map_init(struct text_map *m, int64_t offset)
{
    *m = (struct text_map){ .step = MAP_STEP_BYTES, .front = { .offset = offset } };
    m->cap = 8;
    m->marks = xreallocarray(NULL, m->cap, sizeof *m->marks);
    m->marks[m->n++] = m->front;
}

void map_done(struct text_map *m)
{
    free(m->marks);
    *m = (struct text_map){ 0 };
}

/* Leaves every other one out. */
static void map_thin(struct text_map *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i += 2)
        m->marks[n++] = m->marks[i];
    m->n = n;
    m->step *= 2;
}

static void map_mark(struct text_map *m)
{
    if (m->n == MAP_MARKS_MAX)
        map_thin(m);
    if (m->n == m->cap)
        m->marks = xreallocarray(m->marks, m->cap *= 2, sizeof *m->marks);
    m->marks[m->n++] = m->front;
}

void map_grow(struct text_map *m, int64_t offset, int64_t text_bytes, int64_t stored_bytes)
{
    KCHECK(offset >= m->front.offset && text_bytes >= 0 && stored_bytes >= 0);
    if (m->front.at - m->marks[m->n - 1].at >= m->step)
        map_mark(m);
    m->front.offset = offset;
    m->front.at += text_bytes;
    m->front.stored += stored_bytes;
}

size_t map_find(const struct text_map *m, int64_t at)
{
    size_t low = 0, high = m->n;
    KCHECK(at >= 0 && at < m->front.at);
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (m->marks[mid].at <= at)
            low = mid;
        else
            high = mid;
    }
    return low;
}

size_t map_find_offset(const struct text_map *m, int64_t offset)
{
    size_t low = 0, high = m->n;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (m->marks[mid].offset <= offset)
            low = mid;
        else
            high = mid;
    }
    return low;
}

int64_t map_at(const struct text_map *m, int64_t offset)
{
    const struct map_mark *mark = &m->marks[map_find_offset(m, offset)];
    return offset == m->front.offset ? m->front.at : offset == mark->offset ? mark->at : -1;
}

const struct map_mark *map_next(const struct text_map *m, size_t i)
{
    return i + 1 < m->n ? &m->marks[i + 1] : &m->front;
}

void map_cut(struct text_map *m, int64_t offset)
{
    if (m->front.offset <= offset)
        return;
    while (m->n > 1 && m->marks[m->n - 1].offset > offset)
        m->n--;
    m->front = m->marks[m->n - 1];
}
