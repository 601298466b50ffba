/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For how long brokers are waited for, by everybody together; see missed.c for the rules M1 to M4. Loop's thread.
 */
#ifndef KLOG_FUSE_MISSED_H
#define KLOG_FUSE_MISSED_H

#include <stdbool.h>
#include <stdint.h>

struct mount;

/* When a question or an append that goes out now ends at the latest: a time-out from now, or from when the brokers were first
 * missed. */
int64_t mount_deadline_ms(struct mount *m);
/* How long a write waits that must not block (O_NONBLOCK) and that no broker was sent yet. */
int64_t mount_nonblock_wait_ms(const struct mount *m);
/* Have questions been without an answer for so long that what is known has to do? */
bool mount_misses_brokers(const struct mount *m);

#endif
