/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One segment: a .log file, which is the truth, and its caches .index, .timeindex and .text. A segment knows
 * how a batch changes its indexes and how they are rebuilt; it takes no lock. Its numbers are guarded by the
 * log's mu; those of a sealed segment are read from the .text header when first needed (`known`).
 */
#ifndef KLOG_STORE_SEGMENT_H
#define KLOG_STORE_SEGMENT_H

#include <stdatomic.h>

#include "lib/record/batch.h"
#include "lib/record/iter.h"
#include "lib/store/entries.h"
#include "lib/store/logscan.h"

enum segment_file { SEGMENT_LOG, SEGMENT_INDEX, SEGMENT_TIMEINDEX, SEGMENT_TEXT, SEGMENT_FILES };
extern const char *const segment_suffix[SEGMENT_FILES]; /* ".log", ... */
struct segment;

/* .index: u32 last offset of a batch, relative to the segment's base; u32 position of that batch (Kafka's).
 */
#define INDEX_ENTRY_BYTES 8
#define INDEX_OFFSET      ((struct entry_key){ 0, 4 })
#define INDEX_POSITION    ((struct entry_key){ 4, 4 })
/* .timeindex: i64 greatest timestamp so far; u32 relative last offset of the batch that has it (Kafka's). */
#define TIME_ENTRY_BYTES 12
#define TIME_TIMESTAMP   ((struct entry_key){ 0, 8 })
#define TIME_OFFSET      ((struct entry_key){ 8, 4 })
/* .text: u32 relative base offset of a batch, u32 its position, i64 bytes of text before it in the segment, u32 heads
 * of the batches between the entry before and this one, u32 CRC-32C. */
#define TEXT_ENTRY_BYTES  24
#define TEXT_ENTRY_BYTES_V1 20
#define TEXT_HEADER_BYTES 96
#define TEXT_OFFSET       ((struct entry_key){ 0, 4 })
#define TEXT_POSITION     ((struct entry_key){ 4, 4 })
#define TEXT_TEXT         ((struct entry_key){ 8, 8 })
bool text_entry_ok(const uint8_t *entry);
uint32_t text_entry_heads(const uint8_t *entry);
/* The heads of a run of batches: a checksum over the fields that say where each is and what it is, of which its own
 * checksum covers only some. 0 before the first. */
#define HEADS_UNKNOWN UINT32_MAX /* damage is among them: nothing is claimed */
uint32_t heads_add(uint32_t heads, const struct batch_header *h);
/* Inside the segment: an entry for the batch about to be added. */
void index_add(struct segment *s, int64_t last_offset);
void timeindex_add(struct segment *s);
bool text_add(struct segment *s, int64_t base_offset); /* false: there was no room */

/* What is known about the bytes of a segment from its front up to some batch border. */
struct segment_sum {
    int64_t size;                    /* bytes of .log */
    int64_t end_offset;              /* next offset */
    int64_t text_bytes;              /* of the plain view */
    int64_t max_timestamp;           /* over its batches, -1 none */
    int64_t max_timestamp_offset;    /* last offset of the first batch that has it */
    int64_t first_timestamp;         /* max timestamp of the first batch, for segment.ms; -1 none */
    int64_t since_index;             /* bytes since the last index entry */
    int64_t indexed_timestamp;       /* of the last entry of .timeindex, -1 none */
    int32_t index_n, time_n, text_n; /* entries of the indexes */
    uint32_t heads;                  /* of the batches since the last entry of .text */
    uint32_t all_heads;              /* of all batches, in the newest segment; HEADS_UNKNOWN in a sealed one */
};

#define CHECKED_RANGES 8

struct checked { /* positions [from, to) of a .log, batch borders */
    int64_t from, to;
};

struct segment {
    atomic_int refs;
    int64_t base;        /* first offset, set once */
    uint32_t identity;   /* of the log it belongs to, set once */
    struct segfile *log; /* set once */
    struct entries index, time, text;
    struct segment_sum sum; /* entry counts live in the three above; filled in by segment_sum */
    int64_t text_base;      /* text position of its first byte */
    int64_t flushed;        /* bytes known to be on disk */
    bool known;             /* sum (but for size and end_offset) and text_base are right */
    bool may_be_longer;     /* on the disk: a truncation that was killed had cut it, and nobody has synced it since */
    uint8_t rebuilds;       /* of its index files since it was opened */
    /* segcheck.c: what was found of the file when it was first read */
    int64_t trusted;        /* from this position on this process wrote or checked every batch itself */
    struct checked good[CHECKED_RANGES], bad[CHECKED_RANGES];
    int n_good, n_bad;
    bool foreign;           /* the .log is another file: nothing of it is read. Guarded by the log's mu */
    bool gone;              /* no longer of the log: its files are not made anew */
};

struct segment *segment_new(struct filecache *c, const char *dir, uint32_t identity, int64_t base);
struct segment *segment_ref(struct segment *s);
void segment_unref(struct segment *s);
/* Writes the path of one file of the segment `base`. */
void segment_path(char *ret, size_t size, const char *dir, int64_t base, const char *suffix);

/* The sum with the entry counts of this moment. */
struct segment_sum segment_sum(const struct segment *s);
/* Back to an earlier sum; the index files are taken to hold that many entries. */
void segment_reset(struct segment *s, const struct segment_sum *sum);
struct segment_sum segment_sum_empty(int64_t base);
/* Takes a batch of n bytes at position s->sum.size in: indexes and sum. text_bytes as batch_info has it. */
void segment_add(struct segment *s, const struct batch_header *h, int64_t text_bytes,
                 int32_t index_interval_bytes);
/* The last entry of .timeindex, which a sealed segment needs: its greatest timestamp. */
void segment_add_last_time(struct segment *s);
bool segment_tails_full(const struct segment *s);
/* Writes the tails of the three indexes; the first error is returned, the others are still tried. */
int segment_write_tails(struct segment *s, struct lock *mu);
/* Cuts the index files to the entries counted. */
int segment_trim_files(struct segment *s);

/* Tells each item of the .log's first `size` bytes, in order, but its end; `each` answers 0, 1 to stop, or -errno. No offset
 * reaches limit_offset. 0 or -errno. Blocks. */
typedef int segment_walk_fn(void *arg, struct logscan *scan, const struct scan_item *it);
int segment_walk(struct segment *s, int64_t size, int64_t limit_offset, bool check_crc, segment_walk_fn *each, void *arg);

/* Removes its files, the log last: index files without one are never looked at. 0 or -errno of the log's. */
int segment_unlink(struct segment *s);

/* The .text header: text_base, and of a sealed segment everything in the sum. */
int segment_write_header(struct segment *s, bool sealed);
struct text_header {
    int32_t version;   /* 2; 1 has no identity, and entries without heads: only the header is of use */
    uint32_t identity;
    bool sealed;
    int64_t base, text_base;
    struct segment_sum sum;
};
void text_header_encode(uint8_t *ret, const struct text_header *h);
bool text_header_decode(const uint8_t *p, int64_t n, struct text_header *ret);
/* Reads and checks it; false when it cannot be used. */
/* (another log's is of no use) */
bool segment_read_header(struct segment *s, struct text_header *ret);

/* Bytes the plain view has of one whole batch: the sum over its records of value and newline. Control batches
 * have none, and what cannot be decoded counts as none. */
int64_t batch_text_bytes(struct record_iter *it, struct slice batch);

/* Scans the .log from front to `size` and fills sum and the three index files anew, on a segment that nobody
 * else uses. limit_offset: where the next segment begins, INT64_MAX when there is none. text_bytes: how much
 * text it has, when that is known from its neighbours, else -1; it settles what damage had. 0, 1 when there is some, or -errno. Blocks.
 */
int segment_rebuild(struct segment *s, int64_t size, int64_t limit_offset, int32_t index_interval_bytes,
                    int64_t text_bytes);
/* Text that damage is taken to have: as much as can still be decoded, and one byte at least, so that it has a position
 * at which it is told. */
int64_t damage_text_bytes(struct record_iter *iter, const struct logscan *scan, const struct scan_item *it);

#endif
