/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a broker knows of itself and its cluster at one moment, copied together for those who watch: /metrics and the status
 * page are two ways to print it. Made on the thread of the HTTP server; each lock is held for what one partition or one group
 * takes.
 */
#ifndef KLOG_DAEMON_WATCH_SURVEY_H
#define KLOG_DAEMON_WATCH_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/meta/cluster.h"
#include "daemon/replica/partition.h"
#include "daemon/watch/watch.h"

enum { SURVEY_POSITIONS_MAX = 20000, SURVEY_GROUPS_MAX = 10000 };

struct survey_partition {
    int32_t leader; /* -1: nobody leads it */
    int32_t n_replicas, n_isr, min_isr;
    bool hosted; /* this broker has a replica: what follows is known */
    bool broken; /* its log cannot be used */
    bool leads;
    int64_t start_offset, hw, end_offset, size_bytes;
    struct traffic traffic;
};

struct survey_topic {
    const struct cluster_topic *topic;
    struct survey_partition *partitions; /* topic->n_partitions of them */
    struct traffic traffic;              /* of those on this broker */
    int64_t size_bytes;
    int32_t n_under_replicated, n_offline, n_hosted;
};

struct survey_position {
    char *topic; /* owned */
    int32_t partition;
    int64_t offset;
    int64_t lag; /* -1: this broker does not lead the partition */
};

struct survey_group {
    char *id; /* owned */
    const char *state;
    int32_t n_members;
    struct survey_position *positions;
    size_t n_positions;
};

struct survey {
    struct cluster_image *image;
    struct survey_topic *topics; /* image->n_topics of them, by name */
    struct survey_group *groups;
    size_t n_groups, n_positions;
    size_t groups_left_out, positions_left_out;
    size_t n_partitions, n_hosted, n_led, n_under_replicated, n_under_min_isr, n_broken, n_offline; /* of all topics */
};

void survey_make(const struct watch_sources *src, struct survey *ret);
void survey_done(struct survey *s);

#endif
