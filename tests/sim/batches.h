/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record batches as the simulator's clients write and its checkers read them: a writer and a reader of their own, which share
 * nothing with lib/record. Not compressed.
 *
 * Each record says in its value which one it is: "CLIENT.BATCH.INDEX:" and filler, so that a record found anywhere can be told
 * from all others. CLIENT and BATCH count from 0.
 */
#ifndef KLOG_SIM_BATCHES_H
#define KLOG_SIM_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

enum { SIM_BATCH_HEAD = 61 };

struct sim_batch_head {
    int64_t base_offset;
    int32_t size; /* whole, in bytes */
    int32_t leader_epoch;
    uint32_t crc;
    int16_t attributes;
    int32_t last_offset_delta;
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    int32_t count;
};

struct sim_batch_spec {
    int32_t client, batch; /* whose, and his how many-th */
    int32_t count, value_bytes;
    int32_t n_keys; /* keys "k0" .. ; 0: none */
    uint64_t keys;  /* chooses them */
    int64_t timestamp_ms;
    int64_t producer_id; /* -1: none */
    int16_t producer_epoch;
    int32_t base_sequence;
};
void sim_batch_write(const struct sim_batch_spec *spec, struct bytebuf *ret);

/* The key of record i, or -1. */
int32_t sim_batch_key(const struct sim_batch_spec *spec, int32_t i);

/* 0, or a line that says what is wrong with it (*ret is then filled as far as that goes). n: bytes at p, at least. */
const char *sim_batch_head(const uint8_t *p, size_t n, struct sim_batch_head *ret);

struct sim_record {
    int64_t offset;
    int32_t client, batch, index; /* client -1: not one of ours */
    int32_t key;                  /* -1 */
    bool is_null;                 /* a tombstone */
};
struct sim_records {
    const uint8_t *p, *end;
    struct sim_batch_head head;
    int32_t next;
};
/* Of a batch whose head was read. */
void sim_records_start(struct sim_records *it, const uint8_t *p, const struct sim_batch_head *head);
/* 1, 0 at the end, -1: not a record. */
int sim_records_next(struct sim_records *it, struct sim_record *ret);

uint32_t sim_crc32c(const uint8_t *p, size_t n);

#endif
