/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sparse index file: fixed-size entries after an optional header, every key of them rising. The newest
 * entries wait in memory and are written 64 at a time, so that an append seldom pays for them. Such files
 * are caches: what is found is checked against the log by whoever asked, never trusted.
 *
 * Writers are serialised by the log's append_mu; n, n_file and tail are guarded by its mu.
 */
#ifndef KLOG_STORE_ENTRIES_H
#define KLOG_STORE_ENTRIES_H


#include "lib/store/segfile.h"

#define ENTRIES_TAIL    64
#define ENTRY_BYTES_MAX 24

struct entry_key { /* a big-endian number inside an entry */
    int8_t at;
    int8_t width; /* 4 or 8 */
};

struct entries {
    struct segfile *file;
    int32_t header_bytes;
    int32_t entry_bytes;
    int32_t n;      /* all entries */
    int32_t n_file; /* those in the file */
    uint8_t *tail;  /* the others, oldest first; NULL when there never were any */
};

void entries_init(struct entries *e, struct segfile *file, int32_t header_bytes, int32_t entry_bytes);
void entries_done(struct entries *e);
void entries_set_count(struct entries *e, int32_t n); /* forgets the tail; the file holds n */
/* Adds one entry of e->entry_bytes; dropped when the tail is full, which only makes the index sparser. */
void entries_add(struct entries *e, const uint8_t *entry);
bool entries_tail_full(const struct entries *e);
/* Writes the tail out. mu may be NULL while nobody else knows the log. 0 or -errno (the tail stays). */
int entries_write(struct entries *e, struct lock *mu);
/* The last entry; false when there is none. Takes no lock, reads the file. */
int entries_get(struct entries *e, int32_t i, uint8_t *ret);

/* Greatest entry with key <= target: 1 and ret (and its number), 0 when there is none, -errno (-ENODATA: the
 * file is shorter than it should be). Takes mu for the tail only. */
int entries_floor(struct entries *e, struct lock *mu, struct entry_key key, int64_t target, uint8_t *ret,
                  int32_t *ret_i);
/* Entry i: 1 and ret, 0 when there is none, -errno as above. Takes mu for the tail only. */
int entries_at(struct entries *e, struct lock *mu, int32_t i, uint8_t *ret);
int64_t entry_key_get(const uint8_t *entry, struct entry_key key);

#endif
