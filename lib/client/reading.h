/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading what a path asks for (lib/view), without positions: one partition, or several as one stream, each record as a line in
 * the view's form. Behind `all` on the mount and klog cat. On its client's loop. Rules:
 *   C1  Within a partition records come in the order of their offsets, each once.
 *   C2  Up to the ends that were seen at the beginning, records of several partitions are merged by their times: the next one is
 *       the youngest of what each partition has next. Beyond, who follows gets them as they arrive.
 *   C3  What stands before damage comes first, then the error, in a single partition; a merge cannot go on without one of its
 *       partitions.
 *   C4  Retention that is faster than the reader is stepped over. A reading belongs to the topic's id where it has one.
 */
#ifndef KLOG_CLIENT_READING_H
#define KLOG_CLIENT_READING_H

#include "lib/base/buf.h"
#include "lib/client/client.h"
#include "lib/view/view.h"

struct reading;

struct reading_config {
    const char *topic;
    struct uuid topic_id; /* zero: whatever topic has the name */
    const int32_t *partitions;
    size_t n_partitions;
    struct view view; /* the form; RANGE, which is of each partition; follow */
    int64_t now_ms;   /* since 1970: what times of a RANGE are counted from */
    int64_t timeout_ms; /* of each request */
    /* There is more, or an end, after reading_next had said READING_WAIT. */
    void (*ready)(void *arg);
    void *arg;
};

/* The config is copied, but for the client. */
struct reading *reading_new(struct client *c, const struct reading_config *cfg);
void reading_free(struct reading *r); /* NULL is fine; ready is not called any more */

enum { READING_END = 0, READING_MORE = 1, READING_WAIT = 2 };
/* Appends `want` bytes of lines to out, or more up to a line's end, as far as they are here. READING_MORE: some
 * were; READING_WAIT: none is here yet; READING_END; or -errno: -EIO damage, -ENOENT the topic is gone, -ETIMEDOUT, ...
 * *ret_partition then: of which partition. */
int reading_next(struct reading *r, size_t want, struct bytebuf *out, int32_t *ret_partition);
/* Everything up to the ends seen at the beginning was handed out. */
bool reading_is_live(const struct reading *r);
/* Are there records before the first that it read, so that a RANGE that begins earlier would have more? Known once it has given
 * something, or its end. */
bool reading_has_before(const struct reading *r);

#endif
