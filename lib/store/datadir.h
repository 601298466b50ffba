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
struct store_io;
struct world;

struct datadir_identity {
    char cluster_id[64]; /* empty: take the directory's, or make one */
    int32_t broker_id;   /* -1: take the directory's */
};

/* Creates the directory if needed, takes a kernel lock on it (-EBUSY: another daemon has it; gone with the
 * process), reads meta.properties (-ESTALE: other cluster or broker; -EBADMSG: unreadable, or missing beside
 * data; nothing is touched then), or writes it if there is nothing else yet; reads and durably removes the clean marker (S7). err gets one line that says what, where, what to do. w has a disk, and
 * outlives the directory. Blocks. */
int datadir_open(const char *path, const struct world *w, struct datadir_identity *identity, struct datadir **ret, char *err,
                 size_t err_size);
/* clean: writes the marker, fsyncs; only when every log in it was closed clean. Blocks. */
void datadir_close(struct datadir *dd, bool clean);

/* Descriptors that stay open at rest over all its logs. At first 1000, at most a third of RLIMIT_NOFILE; a
 * broker with several directories divides that among them. most: with so many open no segment is begun (-EMFILE) until a flush has
 * been; without a limit at first. */
void datadir_set_file_limit(struct datadir *dd, int limit, int most);

const char *datadir_path(const struct datadir *dd);
int datadir_fd(const struct datadir *dd);
const struct uuid *datadir_id(const struct datadir *dd);
bool datadir_was_clean(const struct datadir *dd);
/* S8: after a failed fsync or write nothing in this directory is acknowledged any more. */
void datadir_fail(struct datadir *dd, int eno, const char *what);
bool datadir_failed(const struct datadir *dd);
/* ---- the directories in it (datadir_dirs.c); all block ---- */
struct partition_dir {
    bool is_there; /* there is a directory DIR/TOPIC-N */
    bool is_ours;  /* ... with a file of a log in it */
    int id_rc;     /* of its partition.metadata: 0, -ENOENT; -EBADMSG damaged; -EPROTO of another version; -errno */
    struct uuid topic_id; /* zero unless id_rc is 0 */
};
/* 0, also when it is not there; -errno. */
int datadir_find(struct datadir *dd, const char *topic, int32_t partition, struct partition_dir *ret);
/* True: DIR/TOPIC-N is as a log is made, and no record was ever written to it. False also when that cannot be told. */
bool datadir_is_unwritten(struct datadir *dd, const char *topic, int32_t partition);
/* Calls cb for each directory whose name is a partition's ("orders-0"). */
int datadir_list(struct datadir *dd,
                 void (*cb)(void *arg, const char *topic, int32_t partition, const struct partition_dir *p),
                 void *arg);
/* Removes what a crash left half done: TOPIC-N.HEX-delete, and klog's own NAME.tmp. What only looks like one of
 * them stays, with a line in the log. */
int datadir_clear_leftovers(struct datadir *dd);
/* Removes DIR/TOPIC-N and whatever is in it; follows no links. 0 also when it is not there. What an error or a crash leaves of
 * it has the name TOPIC-N.HEX-delete, durably, and datadir_clear_leftovers() removes it. */
int datadir_remove(struct datadir *dd, const char *name);
/* -ENOTEMPTY: something is in it, and it stays. */
int datadir_remove_empty(struct datadir *dd, const char *name);
/* Renames DIR/TOPIC-N to ret, "TOPIC-N.ID-stray" or with a number behind it, durably. */
int datadir_set_aside(struct datadir *dd, const char *topic, int32_t partition, const struct uuid *topic_id,
                      char ret[256]);
/* 1 when there is anything of a daemon's own in it but its identity: partitions, registers, checkpoints. -errno. */
int datadir_holds_data(struct datadir *dd);
/* Is there a file of this name in it? */
bool datadir_has_file(const struct datadir *dd, const char *name);

/* What the daemon found in the clean marker, or wants to find in the next one; -1 nothing. */
int64_t datadir_clean_note(const struct datadir *dd);
void datadir_set_clean_note(struct datadir *dd, int64_t note);
const struct world *datadir_world(const struct datadir *dd);
const struct store_io *datadir_io(const struct datadir *dd);
/* Keeps some space back for emptying the disk when it is full (lib/store/reserve.h). Blocks. */
void datadir_keep_reserve(struct datadir *dd);
/* The disk is full, and what was kept back is in use: appends are refused until there is room. */
bool datadir_is_full(struct datadir *dd);
void datadir_space(const struct datadir *dd, int64_t *ret_total, int64_t *ret_free);

#endif
