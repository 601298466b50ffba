/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See register_journal.h. Layout, all integers big-endian:
 *
 * journal:   16 bytes: "KLOGREGJ", u32 format (1), u32 0; then frames
 * frame:     u32 magic "KRGF", u32 length of the entries, u32 crc32c of what follows, i64 sequence, entries
 * snapshot:  "KLOGREGS", u32 format (1), u32 crc32c of what follows, i64 sequence of the last frame in it,
 * entries entry:     u8 1 (put), i64 version, u16 path length, path, u32 value length, value u8 2 (drop), u16
 * path length, path
 *
 * Never renumber; another layout gets another format number. A journal may begin before its snapshot
 * (a crash between the two writes of a compaction): frames the snapshot has are passed over.
 */
#include "daemon/meta/register_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/crc32c.h"
#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"

#define JOURNAL_NAME  "registers.journal"
#define SNAPSHOT_NAME "registers.snapshot"
#define FORMAT        1
#define FRAME_MAGIC   UINT32_C(0x4b524746)

enum {
    HEADER_BYTES = 16,
    FRAME_HEAD_BYTES = 20, /* up to the entries */
    FRAME_CRC_FROM = 12,
    SNAPSHOT_HEAD_BYTES = 24,
    SNAPSHOT_CRC_FROM = 16,
    ENTRY_PUT = 1,
    ENTRY_DROP = 2,
};
#define FILE_BYTES_MAX    (INT64_C(1) << 30)
#define COMPACT_BYTES_MIN (INT64_C(4) << 20)
#define ROOM_BYTES        (INT64_C(256) << 10)

/* ---- entries ---- */

static void add_u16(struct bytebuf *b, uint16_t v)
{
    put_be16(bytebuf_extend(b, 2), v);
}

static void add_u32(struct bytebuf *b, uint32_t v)
{
    put_be32(bytebuf_extend(b, 4), v);
}

static void add_u64(struct bytebuf *b, uint64_t v)
{
    put_be64(bytebuf_extend(b, 8), v);
}

static void add_path(struct bytebuf *b, const char *path)
{
    size_t n = strlen(path);

    KCHECK(n <= REGISTER_PATH_MAX);
    add_u16(b, (uint16_t)n);
    bytebuf_add(b, path, n);
}

static void add_put(struct bytebuf *b, const char *path, struct slice value, int64_t version)
{
    *bytebuf_extend(b, 1) = ENTRY_PUT;
    add_u64(b, (uint64_t)version);
    add_path(b, path);
    add_u32(b, (uint32_t)value.n);
    bytebuf_add(b, value.p, value.n);
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

static int entry_load(struct cursor *c, struct register_tree *t)
{
    char path[REGISTER_PATH_MAX + 1];
    uint64_t kind = take_number(c, 1);
    int64_t version = kind == ENTRY_PUT ? (int64_t)take_number(c, 8) : 0;

    if (!take_path(c, path))
        return -EBADMSG;
    if (kind == ENTRY_DROP)
        return register_tree_drop(t, path);

    size_t n = take_number(c, 4);
    const uint8_t *value = take_bytes(c, n);
    if (kind != ENTRY_PUT || value == NULL)
        return -EBADMSG;
    return register_tree_put(t, path, slice_of(value, n), version);
}

static int entries_load(const uint8_t *p, size_t n, struct register_tree *t)
{
    struct cursor c = { p, p + n, false };
    int rc = 0;

    while (c.p < c.end && rc == 0)
        rc = entry_load(&c, t);
    return rc;
}

/* ---- opening ---- */

static int damaged(const char *file, int64_t at, const char *what, char *err, size_t err_size)
{
    snprintf(err, err_size,
             "%s is damaged at byte %lld: %s; klogd does not guess at what topics exist: "
             "put back a copy of registers.journal and registers.snapshot",
             file, (long long)at, what);
    return -EBADMSG;
}

static int failed(const char *file, int rc, char *err, size_t err_size)
{
    snprintf(err, err_size, "cannot read %s: %s", file, strerror(-rc));
    return rc;
}

static int snapshot_load(struct register_journal *j, struct register_tree *t, bool *ret_found, char *err,
                         size_t err_size)
{
    struct bytebuf b = { 0 };
    int rc = fs_read_file(j->dirfd, SNAPSHOT_NAME, FILE_BYTES_MAX, &b);

    *ret_found = rc == 0;
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return failed(SNAPSHOT_NAME, rc, err, err_size);

    if (b.n < SNAPSHOT_HEAD_BYTES || memcmp(b.p, "KLOGREGS", 8) != 0 || get_be32(b.p + 8) != FORMAT)
        rc = damaged(SNAPSHOT_NAME, 0, "it does not begin as a snapshot of format 1", err, err_size);
    else if (get_be32(b.p + 12) != crc32c(0, b.p + SNAPSHOT_CRC_FROM, b.n - SNAPSHOT_CRC_FROM))
        rc = damaged(SNAPSHOT_NAME, 12, "the checksum is wrong", err, err_size);
    else if (entries_load(b.p + SNAPSHOT_HEAD_BYTES, b.n - SNAPSHOT_HEAD_BYTES, t) < 0)
        rc = damaged(SNAPSHOT_NAME, SNAPSHOT_HEAD_BYTES, "an entry is malformed", err, err_size);
    else
        j->sequence = (int64_t)get_be64(b.p + 16);
    j->snapshot_bytes = (int64_t)b.n;
    bytebuf_done(&b);
    return rc;
}

/* The length of the sound frame at p, or 0. */
static size_t frame_check(const uint8_t *p, size_t n)
{
    if (n < FRAME_HEAD_BYTES || get_be32(p) != FRAME_MAGIC)
        return 0;
    size_t whole = FRAME_HEAD_BYTES + (size_t)get_be32(p + 4);
    if (whole > n || get_be32(p + 8) != crc32c(0, p + FRAME_CRC_FROM, whole - FRAME_CRC_FROM))
        return 0;
    return whole;
}

/* Is there a sound frame anywhere in p, newer than `after`? */
static bool frame_is_behind(const uint8_t *p, size_t n, int64_t after)
{
    static const uint8_t magic[4] = { 'K', 'R', 'G', 'F' };
    const uint8_t *end = p + n;

    while ((p = memmem(p, (size_t)(end - p), magic, sizeof magic)) != NULL) {
        if (frame_check(p, (size_t)(end - p)) > 0 && (int64_t)get_be64(p + FRAME_CRC_FROM) > after)
            return true;
        p++;
    }
    return false;
}

/* Applies the frames of b; leaves j->end behind the last sound one, *ret_last at its front. */
static int frames_load(struct register_journal *j, const struct bytebuf *b, struct register_tree *t,
                       size_t *ret_last, char *err, size_t err_size)
{
    size_t at = HEADER_BYTES, whole = 0;
    int64_t previous = -1;

    for (; (whole = frame_check(b->p + at, b->n - at)) > 0; at += whole) {
        int64_t sequence = (int64_t)get_be64(b->p + at + FRAME_CRC_FROM);
        *ret_last = at;
        if (previous >= 0 ? sequence != previous + 1 : sequence > j->sequence + 1)
            return damaged(JOURNAL_NAME, (int64_t)at, "changes before this one are missing", err, err_size);
        previous = sequence;
        if (sequence <= j->sequence)
            continue; /* the snapshot has it */
        if (entries_load(b->p + at + FRAME_HEAD_BYTES, whole - FRAME_HEAD_BYTES, t) < 0)
            return damaged(JOURNAL_NAME, (int64_t)at, "an entry is malformed", err, err_size);
        j->sequence = sequence;
    }
    if (at < b->n && frame_is_behind(b->p + at + 1, b->n - at - 1, j->sequence))
        return damaged(JOURNAL_NAME, (int64_t)at, "the checksum is wrong, and sound changes follow", err,
                       err_size);
    j->end = (int64_t)at;
    j->cut_bytes = (int64_t)(b->n - at);
    return 0;
}

/* Behind the end, where no reader sees it. No file system must be able to. */
static void keep_room(struct register_journal *j)
{
    if (j->room_end - j->end >= ROOM_BYTES / 2)
        return;
    if (fallocate(j->fd, FALLOC_FL_KEEP_SIZE, j->end, ROOM_BYTES) == 0)
        j->room_end = j->end + ROOM_BYTES;
}

static int journal_make(struct register_journal *j)
{
    uint8_t head[HEADER_BYTES] = "KLOGREGJ";

    put_be32(head + 8, FORMAT);
    int rc = fs_replace_file(j->dirfd, JOURNAL_NAME, head, sizeof head);
    if (rc < 0)
        return rc;

    int fd = openat(j->dirfd, JOURNAL_NAME, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (j->fd >= 0)
        close(j->fd);
    j->fd = fd;
    j->end = HEADER_BYTES;
    j->room_end = 0;
    keep_room(j);
    return 0;
}

/* A torn tail was never acknowledged: it goes, durably, before anything is written behind it. The last frame
 * is written again (S9): it may have been in the page cache only, and it counts from now on. */
static int journal_cut(struct register_journal *j, const struct bytebuf *b, size_t last)
{
    j->fd = openat(j->dirfd, JOURNAL_NAME, O_RDWR | O_CLOEXEC);
    if (j->fd < 0)
        return -errno;
    if (j->cut_bytes > 0 && ftruncate(j->fd, j->end) < 0)
        return -errno;

    int rc = fs_pwrite_all(j->fd, b->p + last, (size_t)j->end - last, (off_t)last);
    if (rc < 0)
        return rc;
    keep_room(j);
    return fsync(j->fd) < 0 ? -errno : 0;
}

static int journal_load(struct register_journal *j, struct register_tree *t, bool have_snapshot, char *err,
                        size_t err_size)
{
    struct bytebuf b = { 0 };
    size_t last = HEADER_BYTES;
    int rc = fs_read_file(j->dirfd, JOURNAL_NAME, FILE_BYTES_MAX, &b);

    if (rc == -ENOENT && have_snapshot)
        return damaged(JOURNAL_NAME, 0, "it is missing beside its snapshot", err, err_size);
    if (rc == -ENOENT) {
        rc = journal_make(j);
        return rc < 0 ? failed(JOURNAL_NAME, rc, err, err_size) : 0;
    }
    if (rc < 0)
        return failed(JOURNAL_NAME, rc, err, err_size);

    if (b.n < HEADER_BYTES || memcmp(b.p, "KLOGREGJ", 8) != 0 || get_be32(b.p + 8) != FORMAT)
        rc = damaged(JOURNAL_NAME, 0, "it does not begin as a journal of format 1", err, err_size);
    else
        rc = frames_load(j, &b, t, &last, err, err_size);
    if (rc == 0 && (rc = journal_cut(j, &b, last)) < 0)
        failed(JOURNAL_NAME, rc, err, err_size);
    bytebuf_done(&b);
    return rc;
}

static void frame_begin(struct register_journal *j)
{
    j->frame.n = 0;
    memset(bytebuf_extend(&j->frame, FRAME_HEAD_BYTES), 0, FRAME_HEAD_BYTES);
}

int register_journal_open(struct register_journal *j, int dirfd, struct register_tree *t, char *err,
                          size_t err_size)
{
    bool have_snapshot;

    *j = (struct register_journal){ .dirfd = dirfd, .fd = -1 };
    int rc = snapshot_load(j, t, &have_snapshot, err, err_size);
    if (rc == 0)
        rc = journal_load(j, t, have_snapshot, err, err_size);
    if (rc < 0) {
        register_journal_close(j);
        return rc;
    }
    frame_begin(j);
    return 0;
}

void register_journal_close(struct register_journal *j)
{
    closep(&j->fd);
    j->fd = -1;
    bytebuf_done(&j->frame);
}

/* ---- writing ---- */

void register_journal_put(struct register_journal *j, const char *path, struct slice value, int64_t version)
{
    add_put(&j->frame, path, value, version);
}

void register_journal_drop(struct register_journal *j, const char *path)
{
    *bytebuf_extend(&j->frame, 1) = ENTRY_DROP;
    add_path(&j->frame, path);
}

static void frame_seal(struct register_journal *j)
{
    uint8_t *p = j->frame.p;

    put_be32(p, FRAME_MAGIC);
    put_be32(p + 4, (uint32_t)(j->frame.n - FRAME_HEAD_BYTES));
    put_be64(p + FRAME_CRC_FROM, (uint64_t)(j->sequence + 1));
    put_be32(p + 8, crc32c(0, p + FRAME_CRC_FROM, j->frame.n - FRAME_CRC_FROM));
}

int register_journal_commit(struct register_journal *j)
{
    if (j->frame.n == FRAME_HEAD_BYTES)
        return 0; /* only ephemeral registers and checks */
    KCHECK(j->frame.n <= FILE_BYTES_MAX);

    frame_seal(j);
    int rc = fs_pwrite_all(j->fd, j->frame.p, j->frame.n, j->end);
    if (rc == -ENOSPC || rc == -EDQUOT) {
        j->room_end = 0;
        if (ftruncate(j->fd, j->end) < 0)
            rc = -errno; /* half a frame stays: the caller must stop */
    } else if (rc == 0 && fdatasync(j->fd) < 0) {
        rc = -errno == -ENOSPC || -errno == -EDQUOT ? -EIO : -errno; /* S8: what the disk has is unknown */
    }
    if (rc == 0) {
        j->end += (int64_t)j->frame.n;
        j->sequence++;
        keep_room(j);
    }
    frame_begin(j);
    return rc;
}

static void snapshot_add(void *arg, const char *path, struct slice value, int64_t version)
{
    add_put(arg, path, value, version);
}

int register_journal_compact_if_due(struct register_journal *j, struct register_tree *t)
{
    if (j->end < COMPACT_BYTES_MIN || j->end < 2 * j->snapshot_bytes)
        return 0;

    struct bytebuf b = { 0 };
    bytebuf_room(&b, t->bytes + t->n_nodes * 16 + SNAPSHOT_HEAD_BYTES);
    bytebuf_add(&b, "KLOGREGS", 8);
    add_u32(&b, FORMAT);
    add_u32(&b, 0);
    add_u64(&b, (uint64_t)j->sequence);
    register_tree_each(t, snapshot_add, &b);
    put_be32(b.p + 12, crc32c(0, b.p + SNAPSHOT_CRC_FROM, b.n - SNAPSHOT_CRC_FROM));

    int rc = fs_replace_file(j->dirfd, SNAPSHOT_NAME, b.p, b.n);
    if (rc == 0) {
        j->snapshot_bytes = (int64_t)b.n;
        rc = journal_make(j);
    }
    bytebuf_done(&b);
    return rc;
}
