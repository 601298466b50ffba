/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which brokers get the replicas of new partitions. Pure; any thread.
 *
 * As in Kafka: the brokers stand in a row, in which racks alternate where every broker has one; leaders go round the row, and
 * the other replicas of a partition to brokers further on, by a distance that grows after each round, so that a
 * broker's load is taken over by all others when it stops. No rack gets a second replica of a partition while another has none.
 */
#ifndef KLOG_DAEMON_PLACEMENT_H
#define KLOG_DAEMON_PLACEMENT_H

#include <stddef.h>
#include <stdint.h>

struct cluster_broker;
struct placement;

/* Of n brokers, n > 0. seed decides where the first leader goes. */
struct placement *placement_new(const struct cluster_broker *brokers, size_t n, uint32_t seed);
/* The n_replicas of partition id, preferred leader first; 1 <= n_replicas <= number of brokers. */
void placement_of(const struct placement *p, int32_t id, int32_t n_replicas, int32_t *ret);
void placement_free(struct placement *p);

#endif
