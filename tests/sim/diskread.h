/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads logs from a simulated disk: segments and the batches in them, nothing else, by rules of its own (docs/DISK-FORMAT.md).
 * Shares no code with lib/store or lib/record.
 */
#ifndef KLOG_SIM_DISKREAD_H
#define KLOG_SIM_DISKREAD_H

#include "lib/base/buf.h"
#include "tests/sim/batches.h"
#include "tests/sim/simdisk.h"

/* The directory of a partition, "/data0/t1-2", in whichever of the log directories; false: there is none. */
bool diskread_find(struct simdisk *d, int n_dirs, const char *topic, int partition, bool durable, char *ret, size_t ret_size);

/* The whole log: its .log files one behind the other. Calls batch for each that is sound, in order, until it says no or there
 * is none. Returns NULL, or a line that says what is wrong with the rest (*ret_at: the file's base offset). durable: only what
 * is on the disk for certain. gaps: a file may begin behind where the one before it ends. */
typedef bool diskread_fn(void *arg, const uint8_t *p, const struct sim_batch_head *h);
const char *diskread_log(struct simdisk *d, const char *dir, bool durable, bool gaps, int64_t from, diskread_fn *batch,
                         void *arg, int64_t *ret_at);
/* The batch that begins at that offset, of what is on the disk for certain. hint: where the last one was found, {0} at first. */
struct diskread_hint {
    int64_t segment, at, offset;
};
/* The first offset of the file that is to hold this one, of those whose names are durable; -1. */
int64_t diskread_segment(struct simdisk *d, const char *dir, int64_t offset);
bool diskread_batch(struct simdisk *d, const char *dir, int64_t offset, struct diskread_hint *hint, struct bytebuf *ret);
/* Each sound batch of a log as it is on the disk for certain, and where; until the first place that is not. */
typedef void diskread_place_fn(void *arg, const char *path, int64_t at, const struct sim_batch_head *h, bool is_last);
void diskread_places(struct simdisk *d, const char *dir, diskread_place_fn *f, void *arg);
/* Each file in a directory of a log directory, in some order that a seed decides. */
void diskread_files(struct simdisk *d, int n_dirs, void (*f)(void *arg, const char *path), void *arg);
/* The greatest NNN of an NNN.start in it, or -1. */
int64_t diskread_start(struct simdisk *d, const char *dir);

#endif
