/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the records of one batch. One thread an iterator. */
#ifndef KLOG_RECORD_ITER_H
#define KLOG_RECORD_ITER_H

#include "lib/base/buf.h"
#include "lib/record/batch.h"

struct record {
    int64_t offset;
    int64_t timestamp;      /* LogAppendTime already applied */
    struct kstr key, value; /* n = -1 is null; they point into the batch or the iterator's scratch */
    int32_t n_headers;
    struct slice headers; /* undecoded; see record_header_next */
};

struct record_iter {
    struct batch_header h;
    struct slice rest; /* plain bytes not yet walked */
    int32_t index;
    struct bytebuf scratch; /* decompressed records; reused from batch to batch */
};

void record_iter_init(struct record_iter *it); /* once */
void record_iter_done(struct record_iter *it);
/* batch: one whole batch (trailing bytes are ignored). 0, or -EBADMSG, -EFBIG (plain bytes over plain_max).
 */
int record_iter_start(struct record_iter *it, struct slice batch, size_t plain_max);
/* 1 and *ret, 0 at the end, -EBADMSG. */
int record_iter_next(struct record_iter *it, struct record *ret);
/* Takes one header off the front of *headers; 1, 0 at the end, -EBADMSG. */
int record_header_next(struct slice *headers, struct kstr *key, struct kstr *value);

#endif
