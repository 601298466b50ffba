/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compacts the logs of topics with cleanup.policy=compact, one after the other, on a thread of its own:
 * always the one with the largest dirty part. A log that cannot be cleaned is left alone for a while, and
 * others go on.
 */
#ifndef KLOG_DAEMON_CLEANER_H
#define KLOG_DAEMON_CLEANER_H

struct broker;
struct cleaner;

/* After the cluster: reads the checkpoints, starts the thread. NULL when log.cleaner.enable is false. */
struct cleaner *cleaner_new(struct broker *b);
void cleaner_free(struct cleaner *c); /* stops in the middle of a pass, joins the thread; NULL is fine */

#endif
