/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies what other brokers lead: for each partition that this broker follows it fetches from the leader, cuts where the
 * logs part, appends, waits for the flush that the topic's policy asks for, and fetches on; where it goes on tells the
 * leader what it has.
 *
 * `num.replica.fetchers` threads, each with a loop of its own, share the partitions; appending is done there, and what waits
 * for the disk on a small pool. Nothing of it runs on a reactor that serves clients.
 */
#ifndef KLOG_DAEMON_FOLLOW_H
#define KLOG_DAEMON_FOLLOW_H

#include <stdint.h>

struct broker_config;
struct follow;
struct partition;
struct throttle;
struct world;

struct follow_deps {
    const struct world *world;
    const struct broker_config *config; /* immutable, outlives it */
    int32_t me;                         /* this broker's id */
    struct throttle *throttle;          /* of followers' throttled replicas */
    int64_t (*broker_epoch)(void *arg); /* of its registration now; any thread */
    void *arg;
};
struct follow_leader {
    int32_t id;
    const char *host; /* copied */
    int32_t port;
};

/* NULL and errno: the system has no more threads or descriptors. */
struct follow *follow_new(const struct follow_deps *deps);
/* No call comes after it, and no partition is held or changed any more when it returns; not from a loop. NULL is fine. */
void follow_stop(struct follow *f);
/* Once nobody tells partitions anything any more (the flusher). NULL is fine. */
void follow_free(struct follow *f);

/* From now on fetch this partition from that broker. Called after partition_set_state() was told a state in which this
 * broker follows; again whenever leader, address or epoch are others: then it asks at once. Any thread; calls about one
 * partition take effect in their order. */
void follow_partition(struct follow *f, struct partition *pt, const struct follow_leader *leader);
/* It follows no more: it leads, is damaged, or is about to be removed. The reference that was kept is given back soon,
 * without waiting for anybody; one that is retired is let go of without being told, a moment later. Any thread; of one that is not followed it changes nothing. */
void follow_stop_partition(struct follow *f, struct partition *pt);

#endif
