/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks one partition's directory: its segments in order and what they hand to each other, and the files
 * that stand for the whole partition (checkpoint, leader epochs, producer snapshots, topic id).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "lib/store/checkpoint.h"
#include "lib/store/clean.h"
#include "lib/store/flush_mark.h"
#include "lib/store/metafiles.h"
#include "lib/store/producers.h"
#include "lib/store/start_mark.h"
#include "src/verify.h"

struct offsets {
    int64_t *v;
    size_t n;
};

static int offset_compare(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

    return (a > b) - (a < b);
}

/* Base offsets of the files with this suffix, ascending. 0 or -errno. */
static int offsets_list(const char *dir, const char *suffix, struct offsets *ret)
{
    DIR *d = opendir(dir);
    const struct dirent *de;

    *ret = (struct offsets){ 0 };
    if (d == NULL)
        return -errno;
    while ((de = readdir(d)) != NULL) {
        const char *found;
        int64_t base;
        if (!segment_name_parse(de->d_name, &base, &found) || strcmp(found, suffix) != 0)
            continue;
        ret->v = xreallocarray(ret->v, ret->n + 1, sizeof *ret->v);
        ret->v[ret->n++] = base;
    }
    closedir(d);
    if (ret->n > 0)
        qsort(ret->v, ret->n, sizeof *ret->v, offset_compare);
    return 0;
}

int64_t verify_partition_bytes(const char *dir)
{
    struct offsets logs;
    int64_t total = 0;

    if (offsets_list(dir, ".log", &logs) < 0)
        return 0;
    for (size_t i = 0; i < logs.n; i++) {
        CLEANUP(freep) char *path = xasprintf("%s/%020" PRId64 ".log", dir, logs.v[i]);
        struct stat st;
        if (stat(path, &st) == 0)
            total += st.st_size;
    }
    free(logs.v);
    return total;
}

/* ---- files of the whole partition ---- */
/* Reads DIR/name: 1, 0 when it is not there, -1 after reporting why it cannot be read. */
static int small_read(struct verify *v, const char *path, struct bytebuf *ret)
{
    int rc = fs_read_file(AT_FDCWD, path, OFFLINE_FILE_MAX, ret);

    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        verify_report(v, FINDING_ERROR, path, -1, "%s", strerror(-rc));
    return rc < 0 ? -1 : 1;
}

static void epochs_check(struct verify *v, const char *dir, struct epochs *ret)
{
    CLEANUP(freep) char *path = xasprintf("%s/" EPOCHS_FILE, dir);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };

    if (small_read(v, path, &b) == 1 && !epochs_decode(slice_of(b.p, b.n), ret))
        verify_report(v, FINDING_ERROR, path, -1, "it does not hold rising epochs and offsets");
}

static void topic_id_check(struct verify *v, const char *dir, struct uuid *ret)
{
    CLEANUP(freep) char *path = xasprintf("%s/" PARTITION_FILE, dir);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    int rc = small_read(v, path, &b);

    *ret = (struct uuid){ 0 };
    if (rc == 0)
        verify_report(v, FINDING_ERROR, path, -1, "it is missing");
    else if (rc == 1 && b.n > SMALL_FILE_MAX)
        verify_report(v, FINDING_ERROR, path, -1, "it has %zu bytes: klogd takes it for damaged", b.n);
    else if (rc == 1 && (rc = partition_metadata_decode(slice_of(b.p, b.n), ret)) < 0)
        verify_report(v, FINDING_ERROR, path, -1, "%s",
                      rc == -EPROTO ? "it is of another version" : "it holds no topic id, or its checksum is wrong");
}

/* For the newest segment, which has no summary yet. */
static void checkpoint_read(struct verify *v, const char *dir)
{
    CLEANUP(freep) char *path = xasprintf("%s/" CHECKPOINT_FILE, dir);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct checkpoint c;

    v->flush_segment = v->flush_position = -1;
    if (fs_read_file(AT_FDCWD, path, OFFLINE_FILE_MAX, &b) < 0 || !checkpoint_decode(slice_of(b.p, b.n), &c) ||
        c.identity == 0 || c.identity != v->identity)
        return;
    v->flush_segment = c.flushed.segment;
    v->flush_position = c.flushed.sum.size;
    v->flush_heads = c.flushed.sum.heads;
}

static void checkpoint_check(struct verify *v, const char *dir, int64_t first, int64_t end)
{
    CLEANUP(freep) char *path = xasprintf("%s/" CHECKPOINT_FILE, dir);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct checkpoint c;

    if (small_read(v, path, &b) != 1)
        return; /* a partition has none until its first flush */
    if (!checkpoint_decode(slice_of(b.p, b.n), &c)) {
        verify_report(v, FINDING_ERROR, path, -1, "it is damaged");
        return;
    }
    if (c.identity != 0 && v->identity != 0 && c.identity != v->identity) {
        verify_report(v, FINDING_ERROR, path, -1, "it is another partition's");
        return;
    }
    if (c.flushed.sum.end_offset > end)
        verify_report(v, FINDING_ERROR, path, -1,
                      "offsets below %" PRId64 " were on disk, but the log ends at %" PRId64,
                      c.flushed.sum.end_offset, end);
    if (c.hw > end)
        verify_report(v, FINDING_ERROR, path, -1,
                      "the high watermark %" PRId64 " is behind the log's end %" PRId64, c.hw, end);
    if (c.start_offset < first || c.start_offset > end)
        verify_report(v, FINDING_ERROR, path, -1, "the start offset %" PRId64 " is outside the log",
                      c.start_offset);
}

/* It stands beside every log that was ever flushed; one of an earlier version has none until then. */
static void mark_read(struct verify *v, const char *dir, struct flush_mark *ret)
{
    CLEANUP(freep) char *path = xasprintf("%s/" MARK_FILE, dir);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };

    *ret = (struct flush_mark){ .offset = -1 };
    v->mark_segment = -1;
    if (small_read(v, path, &b) != 1)
        return;
    if (!mark_decode(slice_of(b.p, b.n), ret)) {
        verify_report(v, FINDING_WARNING, path, -1, "it is damaged: how far the log was on disk is not known");
        return;
    }
    if (v->identity != 0 && ret->identity != v->identity) {
        verify_report(v, FINDING_WARNING, path, -1, "it is another partition's: how far the log was on disk is not known");
        ret->offset = -1;
        return;
    }
    v->mark_segment = ret->segment;
    v->mark_position = ret->position;
    v->mark_heads = ret->all_heads;
}

static void mark_end_check(struct verify *v, const char *dir, const struct flush_mark *m, int64_t end)
{
    CLEANUP(freep) char *path = xasprintf("%s/" MARK_FILE, dir);

    if (m->offset > end)
        verify_report(v, FINDING_ERROR, path, -1,
                      "offsets below %" PRId64 " were on disk, but the log ends at %" PRId64, m->offset, end);
}

/* Calls check for each file of this suffix, rising; end: of the log. */
static void each_named(struct verify *v, const char *dir, const char *suffix, int64_t end,
                       void (*check)(struct verify *v, const char *path, int64_t offset, int64_t end))
{
    struct offsets found;

    if (offsets_list(dir, suffix, &found) < 0)
        return;
    for (size_t i = 0; i < found.n; i++) {
        CLEANUP(freep) char *path = xasprintf("%s/%020" PRId64 "%s", dir, found.v[i], suffix);
        check(v, path, found.v[i], end);
    }
    free(found.v);
}

static void snapshot_check(struct verify *v, const char *path, int64_t of, int64_t end)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct producers ps = { 0 };
    int64_t offset;
    uint32_t identity;

    if (small_read(v, path, &b) != 1)
        return;
    if (!producers_decode(slice_of(b.p, b.n), &ps, &offset, &identity))
        verify_report(v, FINDING_ERROR, path, -1, "it is damaged");
    else if (identity != 0 && v->identity != 0 && identity != v->identity)
        verify_report(v, FINDING_ERROR, path, -1, "it is another partition's");
    else if (offset != of || offset > end)
        verify_report(v, FINDING_ERROR, path, -1, "it is of offset %" PRId64 ", the log ends at %" PRId64, offset, end);
    producers_clear(&ps);
}

/* ---- segments ---- */
static void neighbours_check(struct verify *v, const char *dir, const struct segment_facts *before,
                             const struct segment_facts *after)
{
    CLEANUP(freep) char *path = xasprintf("%s/%020" PRId64 ".log", dir, after->base);

    if (after->base < before->end_offset)
        verify_report(v, FINDING_ERROR, path, -1,
                      "it begins at offset %" PRId64 ", but the segment before ends at %" PRId64, after->base,
                      before->end_offset);
    else if (after->base > before->end_offset)
        verify_report(v, FINDING_ERROR, path, -1, "offsets %" PRId64 "..%" PRId64 " are missing before it",
                      before->end_offset, after->base - 1);
    if (before->text_base >= 0 && before->text_bytes >= 0 && after->text_base >= 0 &&
        after->text_base != before->text_base + before->text_bytes)
        verify_report(v, FINDING_ERROR, path, -1,
                      "its text begins at %" PRId64 ", but the segment before ends at %" PRId64,
                      after->text_base, before->text_base + before->text_bytes);
}

/* Returns the end offset. */
static int64_t segments_check(struct verify *v, const char *dir, const struct offsets *logs,
                              const struct epochs *epochs)
{
    struct segment_facts before = { 0 }, facts = { 0 };

    for (size_t i = 0; i < logs->n; i++) {
        facts = (struct segment_facts){ .base = logs->v[i], .last = i + 1 == logs->n };
        facts.limit_offset = facts.last ? INT64_MAX : logs->v[i + 1];
        verify_segment(v, dir, epochs, &facts);
        if (i > 0)
            neighbours_check(v, dir, &before, &facts);
        before = facts;
    }
    return facts.end_offset;
}

/* Does a file say that it is another partition's than this? */
static bool is_anothers(const struct verify *v, uint32_t whose)
{
    return whose != 0 && v->identity != 0 && whose != v->identity;
}

/* Stopped while segments were exchanged: two of them may tell of the same offsets. */
static bool is_being_cleaned(struct verify *v, const char *dir)
{
    CLEANUP(freep) char *path = xasprintf("%s/" CLEAN_MANIFEST, dir);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    uint32_t whose;
    int rc = fs_read_file(AT_FDCWD, path, OFFLINE_FILE_MAX, &b);

    if (rc == -ENOENT)
        return false;
    if (rc == 0 && clean_manifest_decode(slice_of(b.p, b.n), &whose) && is_anothers(v, whose)) {
        verify_report(v, FINDING_ERROR, path, -1, "it is another partition's");
        return false;
    }
    verify_report(v, FINDING_WARNING, path, -1,
                  "compaction was under way; start klogd, which finishes it, then check again");
    return true;
}

/* What its own files say of whose they are; 0 when that is not known. */
static uint32_t identity_of(const char *dir, const struct uuid *topic_id)
{
    const char *dash = strrchr(base_name(dir), '-');
    int64_t number;

    return dash == NULL || uuid_is_zero(topic_id) || !args_int(dash + 1, 0, INT32_MAX, &number)
               ? 0
               : partition_identity(topic_id, (int32_t)number);
}

static bool start_is_anothers(const struct verify *v, const char *path, int64_t offset)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct start_mark m;

    return fs_read_file(AT_FDCWD, path, START_BYTES, &b) == 0 && start_decode(slice_of(b.p, b.n), &m) &&
           (is_anothers(v, m.identity) || m.offset != offset);
}

/* A start that finds one behind the log's end takes it for damage. */
static void start_check(struct verify *v, const char *path, int64_t start, int64_t end)
{
    if (start_is_anothers(v, path, start))
        verify_report(v, FINDING_ERROR, path, -1, "it is another partition's");
    else if (start > end)
        verify_report(v, FINDING_ERROR, path, -1, "the log ends before it, at %" PRId64, end);
}

/* Files that stand beside a segment that is not there. */
static void orphans_check(struct verify *v, const char *dir, const struct offsets *logs)
{
    static const char *const suffixes[] = { ".index", ".timeindex", ".text" };

    for (size_t k = 0; k < ARRAY_LEN(suffixes); k++) {
        struct offsets found;
        if (offsets_list(dir, suffixes[k], &found) < 0)
            continue;
        for (size_t i = 0; i < found.n; i++) {
            if (bsearch(&found.v[i], logs->v, logs->n, sizeof *logs->v, offset_compare) != NULL)
                continue;
            CLEANUP(freep) char *path = xasprintf("%s/%020" PRId64 "%s", dir, found.v[i], suffixes[k]);
            verify_report(v, FINDING_WARNING, path, -1, "it belongs to no segment");
        }
        free(found.v);
    }
}

void verify_partition(struct verify *v, struct verify_dir *d)
{
    CLEANUP(epochs_done) struct epochs epochs = { 0 };
    const char *dir = d->path;
    struct flush_mark mark;
    struct offsets logs;
    int rc = offsets_list(dir, ".log", &logs);

    d->end_offset = d->epoch = -1;
    v->partitions++;
    topic_id_check(v, dir, &d->topic_id);
    v->identity = identity_of(dir, &d->topic_id);
    if (rc < 0 || logs.n == 0) {
        verify_report(v, FINDING_ERROR, dir, -1, "%s", rc < 0 ? strerror(-rc) : "it has no segment");
        return;
    }
    if (is_being_cleaned(v, dir)) {
        free(logs.v);
        return;
    }
    epochs_check(v, dir, &epochs);
    checkpoint_read(v, dir);
    mark_read(v, dir, &mark);
    int64_t end = segments_check(v, dir, &logs, &epochs);
    checkpoint_check(v, dir, logs.v[0], end);
    mark_end_check(v, dir, &mark, end);
    each_named(v, dir, ".producers", end, snapshot_check);
    each_named(v, dir, START_SUFFIX, end, start_check);
    orphans_check(v, dir, &logs);
    d->end_offset = end;
    d->epoch = epochs_latest(&epochs);
    free(logs.v);
}
