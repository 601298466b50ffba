/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to be done now and then: retention, rolling of old segments, forgetting of silent producers, and
 * checkpoints of what nobody flushes. Timers on loops[0], the work on a worker; one round of each at a time.
 */
#ifndef KLOG_DAEMON_UPKEEP_H
#define KLOG_DAEMON_UPKEEP_H

struct broker;
struct upkeep;

struct upkeep *upkeep_new(struct broker *b); /* starts the timers */
void upkeep_stop(struct upkeep *u);          /* no new round begins; one that runs goes on */
void upkeep_free(struct upkeep *u);          /* after workers and loops have ended */

#endif
