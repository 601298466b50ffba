/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compacts the logs of topics with cleanup.policy=compact, one after the other, on a thread of its own:
 * always the one with the largest dirty part. A log that cannot be cleaned is left alone for a while, and
 * others go on.
 */
#ifndef KLOG_DAEMON_CLEANER_H
#define KLOG_DAEMON_CLEANER_H

struct broker_config;
struct cleaner;
struct logdirs;
struct partitions;
struct world;

/* With the settings as they are now: reads the checkpoints, starts the thread. NULL when log.cleaner.enable is false; the
 * others take NULL. */
struct cleaner *cleaner_new(const struct world *w, struct logdirs *dirs, struct partitions *ps, const struct broker_config *now);
/* The log.cleaner.* keys of the broker from now on: a pass goes on at the new speed, the next has the new memory, and who
 * sleeps wakes when it is time now. Any thread. */
void cleaner_configure(struct cleaner *c, const struct broker_config *now);
void cleaner_stop(struct cleaner *c); /* in the middle of a pass; joins the thread */
void cleaner_free(struct cleaner *c); /* after cleaner_stop */

#endif
