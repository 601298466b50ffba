/* SPDX-License-Identifier: Apache-2.0 */
/* What partition.c and partition_follow.c share. Under partition.mu. */
#ifndef KLOG_DAEMON_PARTITION_INT_H
#define KLOG_DAEMON_PARTITION_INT_H

#include "daemon/replica/partition.h"

/* It copies what another broker leads. */
bool partition_follows(const struct partition *pt);
/* Tells the watchers whose offset is reached. */
void partition_wake_due(struct partition *pt);
/* Asks for the flush that the topic's policy wants after an append of so many records; returns whether hw moved at once. */
bool partition_flush_start(struct partition *pt, int64_t records, bool rolled);
/* Of several replicas one with damage in its log counts for nothing: partition_mend.c. */
void partition_ail(struct partition *pt);

#endif
