/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log cleaner (cleanup.policy=compact): of each key only the newest record stays. Offsets never change.
 * Records are taken out of sealed segments below a limit; small segments that are left are joined. Readers,
 * appends and flushes go on meanwhile; retention and truncation wait for single exchanges of segments only.
 *
 * What stays: the newest record of each key; a tombstone until delete_retention_ms after it was first cleaned
 * (the batch then says when, KIP-534); control batches; an empty batch where the last one of an idempotent
 * producer was, and at the end of a segment. Records without a key go.
 *
 * One thread a log at a time; it blocks.
 */
#ifndef KLOG_STORE_CLEAN_H
#define KLOG_STORE_CLEAN_H

#include "lib/store/plog.h"

#define CLEAN_MANIFEST      "cleaning" /* file of a partition while a pass changes it */
#define CLEAN_MAP_BYTES_MIN 1024

/* Is it such a file, and whose; 0: of version 1, which did not say. */
bool clean_manifest_decode(struct slice s, uint32_t *ret_identity);

/* Where a log is clean and where it is not; for choosing. */
struct clean_look {
    int64_t first_dirty; /* the one asked about, put inside the log */
    int64_t end;         /* a pass could go up to here */
    int64_t clean_bytes, dirty_bytes;
    int64_t oldest_ms; /* timestamp of the first dirty batch, -1 none */
};
/* limit: the last stable offset, nothing at or above is touched; min_lag_ms: nor records younger than that.
 * 0 or -errno. */
int plog_clean_look(struct plog *l, int64_t first_dirty, int64_t limit, int64_t min_lag_ms, int64_t now_ms,
                    struct clean_look *ret);

/* Closes the active segment if its first append is longer ago than that, so that a log which nobody writes to
 * gets clean. 1 if it did, 0, or -errno. */
int plog_roll_if_older(struct plog *l, int64_t age_ms, int64_t now_ms);

struct clean_options {
    int64_t first_dirty; /* everything below was cleaned before */
    int64_t limit;       /* as above */
    int64_t min_lag_ms;
    int64_t now_ms;
    int64_t delete_retention_ms;
    size_t map_bytes; /* of the map of keys; when they do not fit, a pass gets less far */
    /* Called after so many bytes were read or written; may sleep. False: stop. */
    bool (*go_on)(void *arg, int64_t bytes);
    void *arg;
};

struct clean_result {
    int64_t first_dirty;     /* from now on */
    int64_t next_horizon_ms; /* when the first of the tombstones that are left may go; -1: there is none */
    int64_t bytes_before, bytes_after;
    int64_t records_before, records_after;
    int64_t keyless; /* records dropped because they had no key */
    int segments_before, segments_after;
    bool map_full; /* more is dirty than fitted */
};
/* One pass over everything below the end that its map of keys reaches. 0; -ECANCELED: go_on said so, or
 * retention or truncation were faster; other -errno. What was exchanged by then stays; the first dirty offset
 * does not move. */
int plog_clean(struct plog *l, const struct clean_options *o, struct clean_result *ret);

#endif
