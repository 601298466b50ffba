/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record batch, magic 2, as bytes (Kafka protocol guide, "Record Batch"). A batch is stored and
 * served exactly as it was sent; only base offset and partition leader epoch, which lie outside
 * the checksum, are patched. Functions are pure: no I/O, no clock, any thread.
 */
#ifndef KLOG_RECORD_BATCH_H
#define KLOG_RECORD_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/attr.h"
#include "lib/base/kerr.h"
#include "lib/base/slice.h"
#include "lib/base/varint.h"

/* Byte offsets of the fields. Never renumber: they are the format. */
enum {
    BATCH_BASE_OFFSET = 0,
    BATCH_LENGTH = 8, /* bytes after this field: whole size - 12 */
    BATCH_LEADER_EPOCH = 12,
    BATCH_MAGIC = 16,
    BATCH_CRC = 17, /* CRC-32C of everything from BATCH_ATTRIBUTES on */
    BATCH_ATTRIBUTES = 21,
    BATCH_LAST_OFFSET_DELTA = 23,
    BATCH_BASE_TIMESTAMP = 27,
    BATCH_MAX_TIMESTAMP = 35,
    BATCH_PRODUCER_ID = 43,
    BATCH_PRODUCER_EPOCH = 51,
    BATCH_BASE_SEQUENCE = 53,
    BATCH_COUNT = 57,
    BATCH_OVERHEAD = 61,
    BATCH_LOG_OVERHEAD = 12, /* base offset + length */
};

enum codec { CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD };

enum {
    BATCH_ATTR_CODEC = 0x07,
    BATCH_ATTR_LOG_APPEND_TIME = 0x08,
    BATCH_ATTR_TRANSACTIONAL = 0x10,
    BATCH_ATTR_CONTROL = 0x20,
    BATCH_ATTR_DELETE_HORIZON = 0x40,
};

struct batch_header {
    int64_t base_offset;
    int32_t length;
    int32_t leader_epoch;
    int8_t magic;
    uint32_t crc;
    int16_t attributes;
    int32_t last_offset_delta;
    int64_t base_timestamp, max_timestamp; /* ms, -1 none */
    int64_t producer_id;                   /* -1 none */
    int16_t producer_epoch;
    int32_t base_sequence;
    int32_t count;
};

/* Reads the header; p must hold BATCH_OVERHEAD bytes. Nothing is judged. */
void batch_header_read(const uint8_t *p, struct batch_header *ret);
void batch_header_write(uint8_t *p, const struct batch_header *h); /* all 61 bytes, crc as given */

static inline int64_t batch_size(const struct batch_header *h) /* whole, in bytes */
{
    return (int64_t)h->length + BATCH_LOG_OVERHEAD;
}
static inline int64_t batch_last_offset(const struct batch_header *h)
{
    return h->base_offset + h->last_offset_delta;
}
static inline enum codec batch_codec(const struct batch_header *h)
{
    return (enum codec)(h->attributes & BATCH_ATTR_CODEC);
}
static inline bool batch_is_control(const struct batch_header *h)
{
    return (h->attributes & BATCH_ATTR_CONTROL) != 0;
}
static inline bool batch_is_transactional(const struct batch_header *h)
{
    return (h->attributes & BATCH_ATTR_TRANSACTIONAL) != 0;
}
/* Sequence after `seq` by n, wrapping 2^31-1 -> 0 (KIP-98). */
int32_t batch_sequence_add(int32_t seq, int32_t n);

/* The two patches the checksum does not cover. */
static inline void batch_set_base_offset(uint8_t *batch, int64_t offset)
{
    put_be64(batch + BATCH_BASE_OFFSET, (uint64_t)offset);
}
static inline void batch_set_leader_epoch(uint8_t *batch, int32_t epoch)
{
    put_be32(batch + BATCH_LEADER_EPOCH, (uint32_t)epoch);
}
/* The checksum that a batch of n bytes (at least BATCH_OVERHEAD) ought to carry. */
uint32_t batch_crc(const uint8_t *batch, size_t n);
/* Sets LogAppendTime and max timestamp, and the checksum anew over the whole batch (n bytes). */
void batch_set_log_append_time(uint8_t *batch, size_t n, int64_t now_ms);

/* Is there a whole batch with a good checksum at the front of s (rule S1)?  0 and *ret, or -EAGAIN when
 * s is too short to hold it (`length` says how much it wants), or -EBADMSG: not a batch, or damaged.
 * size_max bounds what `length` may claim. */
int batch_check(struct slice s, int64_t size_max, struct batch_header *ret);

/* What a produced batch has to satisfy, and what was learnt on the way (protocol.md section 3). */
struct batch_rules {
    int32_t max_message_bytes; /* of the whole batch as sent */
    int64_t segment_bytes;
    int64_t now_ms;
    int64_t timestamp_before_max_ms; /* message.timestamp.before.max.ms */
    int64_t timestamp_after_max_ms;
    int64_t decompressed_max; /* bytes; more gives MESSAGE_TOO_LARGE */
    bool log_append_time;     /* message.timestamp.type: CreateTime is then not judged */
    bool need_key;            /* compacted topic: a record without a key is INVALID_RECORD */
    bool zstd_allowed;        /* Produce >= 7 */
    bool allow_control;       /* only for batches klog itself writes or replicates */
};

struct batch_info {
    struct batch_header h;
    int64_t text_bytes;         /* the plain view: sum over records of value size + 1; 0 for control */
    int64_t decompressed_bytes; /* of the records section */
    int64_t max_timestamp;      /* over the records */
    int32_t bad_index;          /* record that was refused, -1 when the batch as a whole */
    const char *bad_text;       /* why, one line, static */
};

/* Judges one batch that fills s exactly. Reads every record (decompressing in a stream, output capped);
 * allocates nothing from a size in the data. A max timestamp in the header that is not the records' is
 * corrected in place, with the checksum (hence not const). */
enum kerr batch_validate(uint8_t *p, size_t n, const struct batch_rules *rules, struct batch_info *ret);

/* Appends to ret the whole batch with its records packed by `codec` (level 0: its default); everything else
 * in the header stays. The batch has been judged. 0, or codec_decompress's and codec_compress's errors. */
struct bytebuf;
int batch_recompress(struct slice batch, enum codec codec, int level, size_t plain_max, struct bytebuf *ret);

/* After batch_validate has refused a record (bad_index >= 0): all records that are refused, in their order,
 * at most max; returns how many. */
struct batch_refusal {
    int32_t index;
    const char *why; /* one line, static */
};
int32_t batch_refused(const uint8_t *p, size_t n, const struct batch_rules *rules, struct batch_refusal *ret,
                      int32_t max);

#endif
