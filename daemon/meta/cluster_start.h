/* SPDX-License-Identifier: Apache-2.0 */
/* The first round of the cluster, on the thread that starts the broker. Blocks. */
#ifndef KLOG_DAEMON_CLUSTER_START_H
#define KLOG_DAEMON_CLUSTER_START_H

#include "daemon/meta/cluster_int.h"

struct cluster_starter {
    struct cluster *cluster;
    char **names;             /* topics, as in the register */
    struct topic_load *loads; /* same index; moved into the slots */
    int n;
    char **broken; /* topics whose registers cannot be read: not served, and their logs are left alone; sorted */
    int n_broken;
};
/* Base registers, identity, registration (replication.md 1.5), first image without topics. */
int cluster_start_registers(struct cluster_starter *st, char *err, size_t err_size);
/* Reads the topics, begins new epochs (R1), clears away logs of no topic, opens the others, publishes them.
 */
int cluster_start_topics(struct cluster_starter *st, char *err, size_t err_size);
void cluster_watch(struct cluster *c); /* cluster.c; from here on changes are noted */
void cluster_starter_done(struct cluster_starter *st);

/* cluster_orphans.c: partition directories that belong to no topic of the registers. What a deletion left is
 * removed; another log is kept under another name ("orders-0.ID-stray"), since only the registers say that it is not
 * needed; what is no log is left alone. */
int cluster_clear_orphans(struct cluster_starter *st, char *err, size_t err_size);

#endif
