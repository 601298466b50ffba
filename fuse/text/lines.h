/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting what is written into lines. Pure. */
#ifndef KLOG_FUSE_LINES_H
#define KLOG_FUSE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/slice.h"

/* What one write means, given that the open file holds `tail` bytes of a line already. */
struct lines {
    uint32_t *ends; /* ends[i]: bytes of the write up to and with the i-th '\n' */
    size_t n;       /* whole lines that may be appended */
    size_t rest;    /* bytes after the last of them that become the new tail */
    size_t taken;   /* bytes of the write that are dealt with: up to here it can be acknowledged */
    bool too_long;  /* what stands at `taken` belongs to a line over the limit */
    bool broken;    /* too_long, n is 0, and refusing the write loses part of a line: what
                     * follows would no longer begin at a line's beginning */
};

/* Lines longer than line_max are not appended, nor any piece of them. */
void lines_cut(const char *p, size_t size, size_t tail, size_t line_max, struct lines *ret);
void lines_done(struct lines *l);

#endif
