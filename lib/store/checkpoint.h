/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.checkpoint: where the log starts, up to where it is known to be on disk, and the high watermark.
 * It may lag behind the log, it never leads it (S4); unreadable means that the log is scanned from its front.
 */
#ifndef KLOG_STORE_CHECKPOINT_H
#define KLOG_STORE_CHECKPOINT_H

#include "lib/store/segment.h"

#define CHECKPOINT_FILE  "partition.checkpoint"
#define CHECKPOINT_BYTES 152

struct log_point {          /* a batch border and everything known up to it */
    int64_t segment;        /* base offset of its segment */
    int64_t text_base;      /* of that segment */
    struct segment_sum sum; /* of that segment; sum.size is the position, sum.end_offset the offset */
};

struct checkpoint {
    int64_t start_offset;
    int64_t hw;
    struct log_point flushed;
    int64_t producers_offset; /* producer state up to here is in a snapshot ... */
    bool producers_empty;     /* ... or was empty, and has no file */
    uint32_t identity;        /* of the log; 0 in version 1, which knows neither heads nor sealed segments */
    uint32_t sealed;          /* checksum over the sealed segments there were, bases and sizes */
};

void checkpoint_encode(uint8_t ret[CHECKPOINT_BYTES], const struct checkpoint *c);
/* Version 1 too: its identity is 0. */
bool checkpoint_decode(struct slice s, struct checkpoint *ret);

#endif
