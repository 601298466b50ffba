/* SPDX-License-Identifier: Apache-2.0 */
/* partition.flushed: how far a log was on disk at its last flush, and what its newest segment held up to there.
 * docs/DISK-FORMAT.md has the bytes. */
#ifndef KLOG_STORE_FLUSH_MARK_H
#define KLOG_STORE_FLUSH_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/slice.h"

#define MARK_FILE  "partition.flushed"
#define MARK_BYTES 48

struct flush_mark {
    int64_t offset; /* everything below it was on disk */
    uint32_t identity;
    /* where that is, and the heads of all batches of that segment before it; segment -1: version 1, which did not say */
    int64_t segment, position;
    uint32_t all_heads;
};

void mark_encode(uint8_t ret[MARK_BYTES], const struct flush_mark *m);
bool mark_decode(struct slice s, struct flush_mark *ret);

#endif
