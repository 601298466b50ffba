/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One log directory (log.dirs): its lock, its identity (meta.properties), its clean-shutdown
 * marker, and whether it has failed. Thread-safe.
 */
#ifndef KLOG_STORE_DATADIR_H
#define KLOG_STORE_DATADIR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/uuid.h"

struct datadir;
struct store_io; /* lib/store/io.h: all disk access; NULL = the real one */

struct datadir_identity {
    char cluster_id[64]; /* empty: take the directory's, or make one */
    int32_t broker_id;   /* -1: take the directory's */
};

/* Creates the directory if needed, takes a kernel lock on it (-EBUSY: another daemon has it; gone with the
 * process), reads or writes meta.properties (-ESTALE: other cluster or broker, nothing touched), reads and
 * durably removes the clean marker (S7). err gets one line that says what, where, what to do. Blocks. */
int datadir_open(const char *path, const struct store_io *io, struct datadir_identity *identity,
                 struct datadir **ret, char *err, size_t err_size);
/* clean: writes the marker, fsyncs; only when every log in it was closed clean. Blocks. */
void datadir_close(struct datadir *dd, bool clean);

/* Descriptors that stay open at rest over all its logs. At first 1000, at most a third of RLIMIT_NOFILE; a
 * broker with several directories divides that among them. */
void datadir_set_file_limit(struct datadir *dd, int limit);

const char *datadir_path(const struct datadir *dd);
int datadir_fd(const struct datadir *dd);
const struct uuid *datadir_id(const struct datadir *dd);
bool datadir_was_clean(const struct datadir *dd);
/* S8: after a failed fsync or write nothing in this directory is acknowledged any more. */
void datadir_fail(struct datadir *dd, int eno, const char *what);
bool datadir_failed(const struct datadir *dd);
/* Calls cb for each partition directory found ("orders-0"), with the topic id of its partition.metadata (zero
 * if unreadable). Leftovers of deletions are removed. */
int datadir_list(struct datadir *dd,
                 void (*cb)(void *arg, const char *topic, int32_t partition, const struct uuid *topic_id),
                 void *arg);
/* Keeps some space back for emptying the disk when it is full (lib/store/reserve.h). Blocks. */
void datadir_keep_reserve(struct datadir *dd);
/* The disk is full, and what was kept back is in use: appends are refused until there is room. */
bool datadir_is_full(struct datadir *dd);
void datadir_space(const struct datadir *dd, int64_t *ret_total, int64_t *ret_free);

#endif
