/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See register_files.h. Layout, all integers big-endian:
 *
 * journal:   48 bytes: "KLOGREGJ", u32 format (2), u32 crc32c of the rest, 16 bytes id of the store, i64 sequence of the
 *            last change before the first frame, i64 0; then frames
 * frame:     u32 magic "KRGF", u32 length of the entries, u32 crc32c of what follows, i64 sequence, entries. The CRC
 *            goes on from the journal's, so that a frame of another journal is not sound in this one
 * snapshot:  40 bytes: "KLOGREGS", u32 format (2), u32 crc32c of what follows, 16 bytes id of the store, i64 sequence of
 *            the last change in it, entries
 * entry:     u8 1 (put), i64 version, u16 path length, path, u32 value length, value; u8 2 (drop), u16 path length, path
 *
 * Format 1 had neither id nor base, heads of 16 and 24 bytes, and CRCs of frames that began with 0.
 * A journal may begin before its snapshot (a crash between the two writes of a compaction): frames the snapshot has are
 * passed over.
 */
#include "lib/store/register_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/crc32c.h"
#include "lib/base/varint.h"

#define FRAME_MAGIC UINT32_C(0x4b524746)

enum {
    V1_JOURNAL_HEAD_BYTES = 16,
    V1_SNAPSHOT_HEAD_BYTES = 24,
    CRC_FROM = 16, /* of both files */
    FRAME_CRC_FROM = 12,
    ENTRY_PUT = 1,
    ENTRY_DROP = 2,
};

/* ---- entries ---- */

static void add_path(struct bytebuf *b, const char *path)
{
    size_t n = strlen(path);

    KCHECK(n <= REGISTER_PATH_MAX);
    put_be16(bytebuf_extend(b, 2), (uint16_t)n);
    bytebuf_add(b, path, n);
}

void register_add_put(struct bytebuf *b, const char *path, struct slice value, int64_t version)
{
    *bytebuf_extend(b, 1) = ENTRY_PUT;
    put_be64(bytebuf_extend(b, 8), (uint64_t)version);
    add_path(b, path);
    put_be32(bytebuf_extend(b, 4), (uint32_t)value.n);
    bytebuf_add(b, value.p, value.n);
}

void register_add_drop(struct bytebuf *b, const char *path)
{
    *bytebuf_extend(b, 1) = ENTRY_DROP;
    add_path(b, path);
}

/* A cursor that fails once and stays failed. */
struct cursor {
    const uint8_t *p, *end;
    bool bad;
};

static const uint8_t *take_bytes(struct cursor *c, size_t n)
{
    const uint8_t *p = c->p;

    if (c->bad || (size_t)(c->end - p) < n) {
        c->bad = true;
        return NULL;
    }
    c->p += n;
    return p;
}

static uint64_t take_number(struct cursor *c, size_t n)
{
    const uint8_t *p = take_bytes(c, n);
    uint64_t v = 0;

    for (size_t i = 0; p != NULL && i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static bool take_path(struct cursor *c, char ret[REGISTER_PATH_MAX + 1])
{
    size_t n = take_number(c, 2);
    const uint8_t *p = n <= REGISTER_PATH_MAX ? take_bytes(c, n) : NULL;

    if (p == NULL || memchr(p, 0, n) != NULL)
        return false;
    memcpy(ret, p, n);
    ret[n] = '\0';
    return true;
}

static int entry_load(struct cursor *c, const struct register_sink *sink)
{
    char path[REGISTER_PATH_MAX + 1];
    uint64_t kind = take_number(c, 1);
    int64_t version = kind == ENTRY_PUT ? (int64_t)take_number(c, 8) : 0;

    if (!take_path(c, path) || version < 0 || version > REGISTER_VERSION_MAX)
        return -EBADMSG;
    if (kind == ENTRY_DROP)
        return sink->drop(sink->arg, path);

    size_t n = take_number(c, 4);
    const uint8_t *value = n <= REGISTER_VALUE_MAX ? take_bytes(c, n) : NULL;
    if (kind != ENTRY_PUT || value == NULL)
        return -EBADMSG;
    return sink->put(sink->arg, path, slice_of(value, n), version);
}

static int entries_load(const uint8_t *p, size_t n, const struct register_sink *sink)
{
    struct cursor c = { p, p + n, false };
    int rc = 0;

    while (c.p < c.end && rc == 0)
        rc = entry_load(&c, sink);
    return rc;
}

/* ---- what is wrong with them ---- */

#define ADVICE                                                                                                   \
    "klogd does not guess at what topics exist: put back a copy of " REGISTERS_JOURNAL " and " REGISTERS_SNAPSHOT \
    " of one moment"

static int damaged(const char *file, int64_t at, const char *what, char *err, size_t err_size)
{
    snprintf(err, err_size, "%s is damaged at byte %" PRId64 ": %s; " ADVICE, file, at, what);
    return -EBADMSG;
}

static int unfit(const char *what, char *err, size_t err_size)
{
    snprintf(err, err_size, "%s; " ADVICE, what);
    return -EBADMSG;
}

/* The format of a file that begins with this magic; 0 of none, -1 of one that this version does not know. */
static int format_of(struct slice s, const char *magic)
{
    if (s.n < CRC_FROM || memcmp(s.p, magic, 8) != 0)
        return 0;
    uint32_t format = get_be32(s.p + 8);
    return format >= 1 && format <= REGISTERS_FORMAT ? (int)format : -1;
}

static int not_known(const char *file, int format, char *err, size_t err_size)
{
    if (format == 0)
        return damaged(file, 0, "it does not begin as one of klog's", err, err_size);
    snprintf(err, err_size, "%s is of a format that this klogd does not know (it knows up to %d): start a newer one",
             file, REGISTERS_FORMAT);
    return -EBADMSG;
}

/* ---- the snapshot ---- */

int register_snapshot_decode(struct slice s, const struct register_sink *sink, struct register_files *f, char *err,
                             size_t err_size)
{
    int format = format_of(s, "KLOGREGS");
    size_t head = format == 1 ? V1_SNAPSHOT_HEAD_BYTES : REGISTERS_SNAPSHOT_HEAD_BYTES;

    if (format <= 0)
        return not_known(REGISTERS_SNAPSHOT, format, err, err_size);
    if (s.n < head)
        return damaged(REGISTERS_SNAPSHOT, (int64_t)s.n, "it is cut off", err, err_size);
    if (get_be32(s.p + 12) != crc32c(0, s.p + CRC_FROM, s.n - CRC_FROM))
        return damaged(REGISTERS_SNAPSHOT, 12, "the checksum is wrong", err, err_size);
    f->sequence = (int64_t)get_be64(s.p + head - 8);
    if (f->sequence < 0 || f->sequence > REGISTER_VERSION_MAX)
        return damaged(REGISTERS_SNAPSHOT, (int64_t)head - 8, "its sequence cannot be", err, err_size);
    if (format > 1)
        memcpy(f->id.b, s.p + CRC_FROM, sizeof f->id.b);
    if (entries_load(s.p + head, s.n - head, sink) < 0)
        return damaged(REGISTERS_SNAPSHOT, (int64_t)head, "an entry is malformed", err, err_size);
    f->have_snapshot = true;
    f->snapshot_bytes = (int64_t)s.n;
    return 0;
}

/* ---- the journal ---- */

/* The length of the sound frame at p, or 0. */
static size_t frame_check(const uint8_t *p, size_t n, uint32_t seed)
{
    if (n < REGISTERS_FRAME_HEAD_BYTES || get_be32(p) != FRAME_MAGIC)
        return 0;
    size_t whole = REGISTERS_FRAME_HEAD_BYTES + (size_t)get_be32(p + 4);
    if (whole > n || get_be32(p + 8) != crc32c(seed, p + FRAME_CRC_FROM, whole - FRAME_CRC_FROM))
        return 0;
    return whole;
}

/* Is there a sound frame anywhere in p, newer than `after`? */
static bool frame_is_behind(const uint8_t *p, size_t n, uint32_t seed, int64_t after)
{
    static const uint8_t magic[4] = { 'K', 'R', 'G', 'F' };
    const uint8_t *end = p + n;

    while ((p = memmem(p, (size_t)(end - p), magic, sizeof magic)) != NULL) {
        if (frame_check(p, (size_t)(end - p), seed) > 0 && (int64_t)get_be64(p + FRAME_CRC_FROM) > after)
            return true;
        p++;
    }
    return false;
}

/* base: the sequence before the first frame; -1 unknown (format 1). *ret_last: of the last frame, or base. */
static int frames_load(struct slice s, size_t at, int64_t base, const struct register_sink *sink,
                       struct register_files *f, int64_t *ret_last, char *err, size_t err_size)
{
    size_t whole;
    int64_t previous = base;

    f->last = (int64_t)at;
    for (; (whole = frame_check(s.p + at, s.n - at, f->seed)) > 0; at += whole) {
        int64_t sequence = (int64_t)get_be64(s.p + at + FRAME_CRC_FROM);
        f->last = (int64_t)at;
        if (sequence < 0 || sequence > REGISTER_VERSION_MAX || (previous >= 0 && sequence != previous + 1) ||
            sequence > f->sequence + 1)
            return damaged(REGISTERS_JOURNAL, (int64_t)at, "changes before this one are missing", err, err_size);
        previous = sequence;
        if (sequence <= f->sequence)
            continue; /* the snapshot has it */
        if (sink->change != NULL)
            sink->change(sink->arg, sequence);
        if (entries_load(s.p + at + REGISTERS_FRAME_HEAD_BYTES, whole - REGISTERS_FRAME_HEAD_BYTES, sink) < 0)
            return damaged(REGISTERS_JOURNAL, (int64_t)at, "an entry is malformed", err, err_size);
        f->sequence = sequence;
    }
    if (at < s.n && frame_is_behind(s.p + at + 1, s.n - at - 1, f->seed, f->sequence))
        return damaged(REGISTERS_JOURNAL, (int64_t)at, "the checksum is wrong, and sound changes follow", err,
                       err_size);
    f->end = (int64_t)at;
    f->torn_bytes = (int64_t)(s.n - at);
    *ret_last = previous;
    return 0;
}

/* What the journal's head says; *ret_base: see frames_load(). */
static int head_load(struct slice s, struct register_files *f, int64_t *ret_base, char *err, size_t err_size)
{
    struct uuid id;

    if (s.n < REGISTERS_JOURNAL_HEAD_BYTES ||
        get_be32(s.p + 12) != crc32c(0, s.p + CRC_FROM, REGISTERS_JOURNAL_HEAD_BYTES - CRC_FROM))
        return damaged(REGISTERS_JOURNAL, 0, "its head is cut off or its checksum is wrong", err, err_size);
    memcpy(id.b, s.p + CRC_FROM, sizeof id.b);
    *ret_base = (int64_t)get_be64(s.p + CRC_FROM + sizeof id.b);
    f->seed = get_be32(s.p + 12);
    if (*ret_base < 0 || *ret_base > REGISTER_VERSION_MAX)
        return damaged(REGISTERS_JOURNAL, CRC_FROM, "its sequence cannot be", err, err_size);
    if (f->have_snapshot && !uuid_eq(&f->id, &id))
        return unfit(REGISTERS_JOURNAL " and " REGISTERS_SNAPSHOT " are not of one store", err, err_size);
    if (*ret_base > 0 && !f->have_snapshot)
        return unfit(REGISTERS_SNAPSHOT " is missing beside its journal", err, err_size);
    if (*ret_base > f->sequence)
        return unfit(REGISTERS_SNAPSHOT " is an older copy: changes between it and its journal are missing", err,
                     err_size);
    f->id = id;
    return 0;
}

int register_journal_decode(struct slice s, int64_t clean_sequence, const struct register_sink *sink,
                            struct register_files *f, char *err, size_t err_size)
{
    int64_t base = -1, last;
    int64_t snapshot_sequence = f->sequence;
    size_t head = V1_JOURNAL_HEAD_BYTES;
    int rc = 0;

    f->format = format_of(s, "KLOGREGJ");
    if (f->format <= 0)
        return not_known(REGISTERS_JOURNAL, f->format, err, err_size);
    if (f->format > 1) {
        head = REGISTERS_JOURNAL_HEAD_BYTES;
        rc = head_load(s, f, &base, err, err_size);
    }
    if (rc == 0)
        rc = frames_load(s, head, base, sink, f, &last, err, err_size);
    if (rc < 0)
        return rc;
    f->have_journal = true;
    if (clean_sequence != REGISTERS_NOT_CLEAN && f->torn_bytes > 0)
        return damaged(REGISTERS_JOURNAL, f->end, "it was closed in a clean stop, so what follows was a change", err,
                       err_size);
    /* The snapshot was written after its last change was in the journal. */
    if (f->have_snapshot && last >= 0 && last < snapshot_sequence)
        return unfit(REGISTERS_JOURNAL " ends before its snapshot does: it is an older copy, or was cut off", err,
                     err_size);
    if (clean_sequence > f->sequence) {
        snprintf(err, err_size,
                 REGISTERS_JOURNAL " ends at change %" PRId64 ", but the last clean stop was at change %" PRId64
                                   ": what was acknowledged since is missing; " ADVICE,
                 f->sequence, clean_sequence);
        return -EBADMSG;
    }
    return 0;
}

/* As behind a snapshot that ends where it begins. */
int register_journal_decode_alone(struct slice s, const struct register_sink *sink, struct register_files *ret, char *err,
                                  size_t err_size)
{
    int format = format_of(s, "KLOGREGJ");

    *ret = (struct register_files){ 0 };
    if (format == 1 && s.n >= V1_JOURNAL_HEAD_BYTES + REGISTERS_FRAME_HEAD_BYTES) {
        ret->sequence = (int64_t)get_be64(s.p + V1_JOURNAL_HEAD_BYTES + FRAME_CRC_FROM) - 1;
    } else if (format > 1 && s.n >= REGISTERS_JOURNAL_HEAD_BYTES) {
        ret->have_snapshot = true;
        memcpy(ret->id.b, s.p + CRC_FROM, sizeof ret->id.b);
        ret->sequence = (int64_t)get_be64(s.p + CRC_FROM + sizeof ret->id.b);
    }
    return register_journal_decode(s, REGISTERS_NOT_CLEAN, sink, ret, err, err_size);
}

/* ---- both ---- */

static int failed(const char *file, int rc, char *err, size_t err_size)
{
    snprintf(err, err_size, "cannot read %s: %s", file, strerror(-rc));
    return rc;
}

int register_files_read(const struct store_io *io, int dirfd, int64_t clean_sequence, const struct register_sink *sink,
                        struct register_files *ret, char *err, size_t err_size)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };

    *ret = (struct register_files){ 0 };
    int rc = io_read_file(io, dirfd, REGISTERS_SNAPSHOT, REGISTER_FILE_MAX, &b);
    if (rc < 0 && rc != -ENOENT)
        return failed(REGISTERS_SNAPSHOT, rc, err, err_size);
    if (rc == 0)
        rc = register_snapshot_decode(slice_of(b.p, b.n), sink, ret, err, err_size);
    if (rc < 0 && rc != -ENOENT)
        return rc;

    rc = io_read_file(io, dirfd, REGISTERS_JOURNAL, REGISTER_FILE_MAX, &ret->journal);
    if (rc == -ENOENT && ret->have_snapshot)
        return damaged(REGISTERS_JOURNAL, 0, "it is missing beside its snapshot", err, err_size);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return failed(REGISTERS_JOURNAL, rc, err, err_size);
    return register_journal_decode(slice_of(ret->journal.p, ret->journal.n), clean_sequence, sink, ret, err, err_size);
}

void register_files_done(struct register_files *f)
{
    bytebuf_done(&f->journal);
}

/* ---- making them ---- */

uint32_t register_journal_head(const struct uuid *id, int64_t base_sequence, uint8_t *ret)
{
    memset(ret, 0, REGISTERS_JOURNAL_HEAD_BYTES);
    memcpy(ret, "KLOGREGJ", 8);
    put_be32(ret + 8, REGISTERS_FORMAT);
    memcpy(ret + CRC_FROM, id->b, sizeof id->b);
    put_be64(ret + CRC_FROM + sizeof id->b, (uint64_t)base_sequence);
    uint32_t seed = crc32c(0, ret + CRC_FROM, REGISTERS_JOURNAL_HEAD_BYTES - CRC_FROM);
    put_be32(ret + 12, seed);
    return seed;
}

void register_snapshot_seal(struct bytebuf *b, const struct uuid *id, int64_t sequence)
{
    memcpy(b->p, "KLOGREGS", 8);
    put_be32(b->p + 8, REGISTERS_FORMAT);
    memcpy(b->p + CRC_FROM, id->b, sizeof id->b);
    put_be64(b->p + CRC_FROM + sizeof id->b, (uint64_t)sequence);
    put_be32(b->p + 12, crc32c(0, b->p + CRC_FROM, b->n - CRC_FROM));
}

void register_frame_seal(struct bytebuf *b, uint32_t seed, int64_t sequence)
{
    uint8_t *p = b->p;

    put_be32(p, FRAME_MAGIC);
    put_be32(p + 4, (uint32_t)(b->n - REGISTERS_FRAME_HEAD_BYTES));
    put_be64(p + FRAME_CRC_FROM, (uint64_t)sequence);
    put_be32(p + 8, crc32c(seed, p + FRAME_CRC_FROM, b->n - FRAME_CRC_FROM));
}
