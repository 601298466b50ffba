/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offline check of a data directory: what it found and how much it read. Nothing is ever written. One
 * thread.
 *
 * A finding is an error when bytes that ought to be right are not, and a warning when the next start of the
 * broker puts it right without losing an acknowledged record (a torn tail or a lagging cache after an unclean
 * stop).
 */
#ifndef KLOG_SRC_VERIFY_H
#define KLOG_SRC_VERIFY_H

#include "lib/base/uuid.h"
#include "lib/store/epochs.h"
#include "src/offline.h"
#include "src/progress.h"

enum finding { FINDING_ERROR, FINDING_WARNING };

struct verify {
    const struct args *args;
    bool json, quick; /* quick: checksums and order only, no record is decoded */
    /* what the checkpoint of the partition being checked says; -1: nothing */
    int64_t flush_segment, flush_position;
    uint32_t flush_heads;
    int64_t mark_segment, mark_position; /* and partition.flushed; -1: nothing */
    uint32_t mark_heads;                 /* of all batches of that segment before it */
    uint32_t identity; /* of the partition being checked; 0 unknown */
    bool clean;       /* the directory says it was stopped cleanly */
    int64_t clean_note; /* ... and then this is the last change of its registers, -1 not said */
    struct progress progress;
    int64_t partitions, segments, batches, records, bytes;
    int64_t errors, warnings;
};

/* Prints a finding: in `path` (a file or a directory), at byte `at` unless -1. */
void verify_report(struct verify *v, enum finding f, const char *path, int64_t at, const char *fmt, ...)
    PRINTF_LIKE(5, 6);

/* A partition's directory and what was found in it. */
struct verify_dir {
    char *path;
    char *topic;
    int32_t partition;
    struct uuid topic_id; /* zero when it has none */
    int64_t end_offset;   /* -1: it has no segment, or was not read */
    int32_t epoch;        /* the latest leader epoch, -1 none */
};
void verify_partition(struct verify *v, struct verify_dir *d);

/* verify_registers.c: the registers of a data directory, if it has them (the one that log.dirs names first does), and
 * what they and the partitions say of each other. */
struct meta_properties;
void verify_registers(struct verify *v, const char *path, const struct meta_properties *meta,
                      const struct verify_dir *dirs, size_t n);
/* The cleaner's marks against the logs' ends; what a deletion or a start set aside and left. */
void verify_leftovers(struct verify *v, const char *path, const struct verify_dir *dirs, size_t n);
/* Bytes of all .log files below a partition's directory, for the progress bar. */
int64_t verify_partition_bytes(const char *dir);

/* What one segment hands to the next. */
struct segment_facts {
    int64_t base, end_offset;
    int64_t limit_offset; /* where the next segment begins; INT64_MAX for the last */
    int64_t text_base;  /* -1 unknown: its text index has no readable header */
    int64_t text_bytes; /* -1 unknown: not all records were decoded */
    bool last;          /* the partition's newest segment */
};
/* Walks the .log with its three indexes alongside. ret->base, limit_offset and last are given. */
void verify_segment(struct verify *v, const char *dir, const struct epochs *epochs,
                    struct segment_facts *ret);

#endif
