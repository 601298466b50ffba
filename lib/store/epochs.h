/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader epochs and the offsets at which they began (KIP-101), with Kafka's file leader-epoch-checkpoint.
 * Pure; the log's mu guards it.
 */
#ifndef KLOG_STORE_EPOCHS_H
#define KLOG_STORE_EPOCHS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"

#define EPOCHS_FILE "leader-epoch-checkpoint"

struct epoch_entry {
    int32_t epoch;
    int64_t start;
};

struct epochs {
    struct epoch_entry *v; /* epochs and starts both rise strictly */
    int32_t n, cap;
};

void epochs_done(struct epochs *e);
int32_t epochs_latest(const struct epochs *e); /* -1 none */
/* `epoch` begins at start. False when nothing changes: the epoch is known already. An epoch that got no
 * record gives way to the next. */
bool epochs_assign(struct epochs *e, int32_t epoch, int64_t start);
void epochs_copy(const struct epochs *from, struct epochs *ret); /* ret: empty */
bool epochs_truncate_end(struct epochs *e, int64_t end); /* the log now ends there; true: changed */
bool epochs_truncate_start(struct epochs *e, int64_t start);
/* Largest epoch <= asked and where it ends; of one older than all that are kept, itself and where the first of these
 * begins; -1, -1 of one newer than the latest (R12). */
void epochs_end(const struct epochs *e, int32_t epoch, int64_t log_end, int32_t *ret_epoch, int64_t *ret_end);
int32_t epochs_at(const struct epochs *e, int64_t offset); /* -1 unknown */
void epochs_encode(const struct epochs *e, struct bytebuf *ret);
bool epochs_decode(struct slice s, struct epochs *ret); /* false: not such a file; ret is then empty */

#endif
