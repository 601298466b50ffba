/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cares for logs, on a thread of its own: checks where a reader met damage, lets damaged replicas come back (S10,
 * daemon/replica/partition_mend.c), and every log.scrub.interval.ms reads all logs slowly for what nobody reads.
 */
#ifndef KLOG_DAEMON_SCRUBBER_H
#define KLOG_DAEMON_SCRUBBER_H

struct broker_config;
struct logdirs;
struct partitions;
struct scrubber;
struct world;

/* cfg is immutable and outlives it. */
struct scrubber *scrubber_new(const struct world *w, struct logdirs *dirs, struct partitions *ps, const struct broker_config *cfg);
void scrubber_stop(struct scrubber *s); /* within a piece, or the check of a segment; joins the thread. NULL is fine. */
void scrubber_free(struct scrubber *s);

#endif
