/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a log directory in the text of Kafka's checkpoints: 0, the number of lines, then TOPIC PARTITION
 * NUMBER a line; or, klog's own, 1, the number of lines, then TOPIC PARTITION NUMBER TOPIC-ID. Reading and writing block.
 */
#ifndef KLOG_STORE_CLEAN_MARKS_H
#define KLOG_STORE_CLEAN_MARKS_H

#include "lib/base/buf.h"
#include "lib/base/uuid.h"
#include "lib/store/datadir.h"

#define CLEAN_OFFSETS_FILE  "cleaner-offset-checkpoint"  /* Kafka's: below NUMBER all is clean */
#define CLEAN_HORIZONS_FILE "cleaner-horizon-checkpoint" /* ms: when the next tombstones may go; and of which topic both are */

struct clean_mark {
    const char *topic;
    int32_t partition;
    int64_t value;
    struct uuid topic_id; /* zero: not said */
};

enum clean_marks_form { CLEAN_MARKS_KAFKA, CLEAN_MARKS_WITH_ID };
void clean_marks_encode(const struct clean_mark *v, size_t n, enum clean_marks_form form, struct bytebuf *ret);
typedef void clean_mark_fn(void *arg, const struct clean_mark *m);
/* False: not such a file; cb may have been called for the lines before the bad one. */
bool clean_marks_decode(struct slice s, clean_mark_fn *cb, void *arg);

int clean_marks_write(struct datadir *dd, const char *file, const struct clean_mark *v, size_t n,
                      enum clean_marks_form form);
/* 0, also when there is no file; -EBADMSG: it is damaged; -errno. */
int clean_marks_read(struct datadir *dd, const char *file, clean_mark_fn *cb, void *arg);

#endif
