/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting what is written into lines; see lines.h. Pure. */
#include "fuse/text/lines.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"

static void lines_add(struct lines *l, size_t *cap, size_t end)
{
    if (l->n == *cap) {
        *cap = *cap == 0 ? 16 : *cap * 2;
        l->ends = xreallocarray(l->ends, *cap, sizeof *l->ends);
    }
    l->ends[l->n++] = (uint32_t)end;
}

void lines_cut(const char *p, size_t size, size_t tail, size_t line_max, struct lines *ret)
{
    *ret = (struct lines){ 0 };
    size_t cap = 0, at = 0, held = tail;
    const char *nl;
    while (at < size && (nl = memchr(p + at, '\n', size - at)) != NULL) {
        size_t end = (size_t)(nl - p) + 1;
        if (end - 1 - at + held > line_max) {
            ret->too_long = true;
            break;
        }
        lines_add(ret, &cap, end);
        at = end;
        held = 0;
    }
    ret->taken = at;
    if (!ret->too_long && size - at + held > line_max)
        ret->too_long = true;
    if (!ret->too_long) {
        ret->rest = size - at;
        ret->taken = size;
    } else if (ret->n == 0) {
        ret->broken = tail > 0 || p[size - 1] != '\n';
    }
}

void lines_done(struct lines *l)
{
    free(l->ends);
    l->ends = NULL;
}
