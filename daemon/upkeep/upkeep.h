/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to be done now and then: retention, rolling of old segments, forgetting of silent producers, and
 * checkpoints of what nobody flushes. Timers on a loop, the work on a worker; one round of each at a time.
 */
#ifndef KLOG_DAEMON_UPKEEP_H
#define KLOG_DAEMON_UPKEEP_H

struct broker_config;
struct loop;
struct partitions;
struct upkeep;
struct workers;
struct world;

/* Starts the timers, on lp. */
struct upkeep *upkeep_new(const struct world *w, struct loop *lp, struct workers *workers, struct partitions *ps,
                          const struct broker_config *cfg);
void upkeep_stop(struct upkeep *u);          /* no new round begins; one that runs goes on */
void upkeep_free(struct upkeep *u);          /* after workers and loops have ended */

#endif
