/* SPDX-License-Identifier: Apache-2.0 */
/* Builds one record batch. One thread a builder. */
#ifndef KLOG_RECORD_BUILD_H
#define KLOG_RECORD_BUILD_H

#include "lib/base/buf.h"
#include "lib/record/batch.h"

struct record_header {
    struct kstr key, value;
};

struct batch_builder {
    struct bytebuf out; /* header space and plain records */
    int64_t base_timestamp, max_timestamp;
    int32_t count;
};

void batch_builder_init(struct batch_builder *b);
void batch_builder_done(struct batch_builder *b);
void batch_builder_reset(struct batch_builder *b); /* empty again, memory kept */
/* Offset deltas are 0, 1, 2, ... in the order of the calls. */
void batch_builder_add(struct batch_builder *b, int64_t timestamp, struct kstr key, struct kstr value,
                       const struct record_header *headers, int32_t n_headers);
/* Bytes of the batch so far, before compression. */
size_t batch_builder_size(const struct batch_builder *b);

struct batch_producer {
    int64_t id; /* -1 none */
    int16_t epoch;
    int32_t base_sequence;
    bool transactional;
};
/* Closes the batch (compressing it) and appends it whole to ret; at least one record must be in it. The
 * builder is reset. attributes: extra BATCH_ATTR_ bits. 0 or codec_compress's error. */
int batch_builder_finish(struct batch_builder *b, enum codec codec, int level,
                         const struct batch_producer *producer, int16_t attributes, struct bytebuf *ret);

#endif
