/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who reads what in a consumer group: the leader's sharing out of partitions, and the bytes in which members
 * tell their topics and are told their partitions. Names and results are Kafka's own assignors', so that a
 * group may have members of any client, whoever leads it. Pure; any thread.
 */
#ifndef KLOG_CLIENT_ASSIGN_H
#define KLOG_CLIENT_ASSIGN_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"

/* In the order in which they are offered. kafkajs knows round robin by a name of its own only. */
enum assignor { ASSIGN_RANGE, ASSIGN_ROUNDROBIN, ASSIGN_ROUNDROBIN_KAFKAJS, ASSIGNORS };
const char *assignor_name(enum assignor as); /* "range" */
int assignor_of(struct kstr name);           /* -1: none of ours */

struct assign_topic {
    struct kstr name;
    int32_t n_partitions; /* 0 where there is no such topic */
};

struct assign_part {
    struct kstr topic;
    int32_t partition;
};

struct assign_member {
    struct kstr id, instance_id; /* instance_id null: a dynamic member */
    const struct kstr *topics;   /* it subscribes to; in any order */
    int32_t n_topics;
    /* set by assign() */
    struct assign_part *parts; /* in order of topic and partition */
    size_t n_parts;
};

/* Gives each partition of each topic to exactly one of the members that subscribe to the topic, if any does.
 * The order of members and topics does not matter. Results are in the arena. */
void assign(enum assignor as, struct arena *a, struct assign_member *members, size_t n_members,
            const struct assign_topic *topics, size_t n_topics);

/* ---- the bytes (protocol type "consumer") ---- */
void assign_write_subscription(const struct kstr *topics, size_t n, struct bytebuf *ret);
void assign_write_parts(const struct assign_part *parts, size_t n, struct bytebuf *ret);
/* What later versions add at the end does not matter. Results are in the arena, strings point into bytes. 0
 * or -EBADMSG. */
int assign_read_subscription(struct kstr bytes, struct arena *a, struct kstr **ret, int32_t *ret_n);
int assign_read_parts(struct kstr bytes, struct arena *a, struct assign_part **ret, size_t *ret_n);

#endif
