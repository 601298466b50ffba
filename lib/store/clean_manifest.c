/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `cleaning` is there while a pass changes the log's files (S13). It names the exchange under way,
 * so that a start after a crash can finish it: by the time it says so, the new files are durable. And it says
 * from where the text positions below have to be counted again, since a pass moves them one exchange at a
 * time and writes them to the headers once, at its end.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/crc32c.h"
#include "lib/base/mem.h"
#include "lib/store/clean_int.h"

/* docs/DISK-FORMAT.md. Never renumber: a new layout is a new version. */
enum {
    CLEANING_MAGIC = 0,
    CLEANING_VERSION = 8,
    CLEANING_CRC = 12, /* of all that follows */
    CLEANING_ANCHOR = 16,
    CLEANING_ANCHOR_TEXT = 24,
    CLEANING_BASE = 32,
    CLEANING_N_OLDS = 40,
    CLEANING_IDENTITY = 44, /* version 1: 0 */
    CLEANING_SIZE = 48,
    CLEANING_OLDS = 56, /* 8 bytes each */
};
#define MAGIC        "klogclng"
#define FORMAT       2
#define MANIFEST_MAX (16 << 20)
#define OLDS_MAX     ((MANIFEST_MAX - CLEANING_OLDS) / 8)

static void encode(const struct clean_manifest *m, uint32_t identity, struct bytebuf *ret)
{
    size_t n = CLEANING_OLDS + 8 * (size_t)m->n_olds;
    uint8_t *p = bytebuf_extend(ret, n);

    memset(p, 0, n);
    memcpy(p + CLEANING_MAGIC, MAGIC, 8);
    put_be32(p + CLEANING_VERSION, FORMAT);
    put_be64(p + CLEANING_ANCHOR, (uint64_t)m->anchor);
    put_be64(p + CLEANING_ANCHOR_TEXT, (uint64_t)m->anchor_text);
    put_be64(p + CLEANING_BASE, (uint64_t)m->base);
    put_be32(p + CLEANING_N_OLDS, m->n_olds);
    put_be32(p + CLEANING_IDENTITY, identity);
    put_be64(p + CLEANING_SIZE, (uint64_t)m->size);
    for (uint32_t i = 0; i < m->n_olds; i++)
        put_be64(p + CLEANING_OLDS + 8 * i, (uint64_t)m->olds[i]);
    put_be32(p + CLEANING_CRC, crc32c(0, p + CLEANING_ANCHOR, n - CLEANING_ANCHOR));
}

static bool is_manifest(struct slice s)
{
    return s.n >= CLEANING_OLDS && memcmp(s.p, MAGIC, 8) == 0 && get_be32(s.p + CLEANING_VERSION) >= 1 &&
           get_be32(s.p + CLEANING_VERSION) <= FORMAT &&
           get_be32(s.p + CLEANING_CRC) == crc32c(0, s.p + CLEANING_ANCHOR, s.n - CLEANING_ANCHOR) &&
           s.n == CLEANING_OLDS + 8 * (size_t)get_be32(s.p + CLEANING_N_OLDS);
}

bool clean_manifest_decode(struct slice s, uint32_t *ret_identity)
{
    if (!is_manifest(s))
        return false;
    *ret_identity = get_be32(s.p + CLEANING_VERSION) == 1 ? 0 : get_be32(s.p + CLEANING_IDENTITY);
    return true;
}

int clean_manifest_write(struct plog *l, const struct clean_manifest *m)
{
    struct bytebuf b = { 0 };
    char path[PATH_MAX];

    KCHECK(m->n_olds <= OLDS_MAX);
    encode(m, l->identity, &b);
    plog_path(l, CLEAN_MANIFEST, path, sizeof path);
    int rc = io_replace_file(l->io, l->dirfd, l->name, path, b.p, b.n);
    bytebuf_done(&b);
    return rc;
}

int clean_manifest_remove(struct plog *l)
{
    char path[PATH_MAX];

    plog_path(l, CLEAN_MANIFEST, path, sizeof path);
    int rc = l->io->unlinkat(l->io, l->dirfd, path, 0);
    return rc < 0 && rc != -ENOENT ? rc : io_sync_dir(l->io, l->dirfd, l->name);
}

/* ---- at the start ---- */

static int rename_cleaned(struct plog *l, int64_t base)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < SEGMENT_FILES; i++) {
        char from[PATH_MAX], to[PATH_MAX], suffix[32];
        snprintf(suffix, sizeof suffix, "%s" CLEANED_SUFFIX, segment_suffix[i]);
        segment_path(from, sizeof from, l->name, base, suffix);
        segment_path(to, sizeof to, l->name, base, segment_suffix[i]);
        rc = l->io->renameat(l->io, l->dirfd, from, l->dirfd, to);
        if (rc == -ENOENT) /* it had got there */
            rc = 0;
    }
    return rc < 0 ? rc : io_sync_dir(l->io, l->dirfd, l->name);
}

/* Belt and braces: nothing is deleted unless what replaces it is there. */
static bool has_new_log(struct plog *l, const struct clean_manifest *m)
{
    char path[PATH_MAX];
    struct io_stat st;

    if (m->base < 0)
        return false;
    segment_path(path, sizeof path, l->name, m->base, segment_suffix[SEGMENT_LOG]);
    return l->io->statat(l->io, l->dirfd, path, 0, &st) == 0 && st.size == m->size;
}

static int unlink_olds(struct plog *l, const struct clean_manifest *m)
{
    for (uint32_t i = 0; i < m->n_olds; i++) {
        for (int k = SEGMENT_FILES - 1; k >= 0; k--) {
            char path[PATH_MAX];
            if (m->olds[i] == m->base)
                continue;
            segment_path(path, sizeof path, l->name, m->olds[i], segment_suffix[k]);
            int rc = l->io->unlinkat(l->io, l->dirfd, path, 0);
            if (rc < 0 && rc != -ENOENT)
                return rc;
        }
    }
    return io_sync_dir(l->io, l->dirfd, l->name);
}

static bool is_cleaned(const char *name)
{
    size_t n = strlen(name), tail = strlen(CLEANED_SUFFIX);
    return n > tail && strcmp(name + n - tail, CLEANED_SUFFIX) == 0;
}

static int remove_if_cleaned(void *arg, const char *name, enum io_kind kind)
{
    struct plog *l = arg;
    char path[PATH_MAX];

    (void)kind;
    if (!is_cleaned(name))
        return 0;
    plog_path(l, name, path, sizeof path);
    return l->io->unlinkat(l->io, l->dirfd, path, 0);
}

/* New files that no manifest names were not finished. */
static int remove_unfinished(struct plog *l)
{
    return l->io->list(l->io, l->dirfd, l->name, remove_if_cleaned, l);
}

static int finish_exchange(struct plog *l, struct slice s, int64_t *ret_anchor, int64_t *ret_anchor_text)
{
    struct clean_manifest m = { .base = (int64_t)get_be64(s.p + CLEANING_BASE) };
    CLEANUP(freep) int64_t *olds = NULL;
    int rc = 0;

    m.n_olds = get_be32(s.p + CLEANING_N_OLDS);
    olds = xcalloc((size_t)m.n_olds + 1, sizeof *olds);
    for (uint32_t i = 0; i < m.n_olds; i++)
        olds[i] = (int64_t)get_be64(s.p + CLEANING_OLDS + 8 * i);
    m.olds = olds;
    m.size = (int64_t)get_be64(s.p + CLEANING_SIZE);
    if (m.base >= 0)
        rc = rename_cleaned(l, m.base);
    if (rc == 0 && has_new_log(l, &m))
        rc = unlink_olds(l, &m);
    *ret_anchor = (int64_t)get_be64(s.p + CLEANING_ANCHOR);
    *ret_anchor_text = (int64_t)get_be64(s.p + CLEANING_ANCHOR_TEXT);
    return rc;
}

int clean_recover_files(struct plog *l, int64_t *ret_anchor, int64_t *ret_anchor_text, const char **ret_problem)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    char path[PATH_MAX];
    uint32_t identity;

    *ret_anchor = -1;
    *ret_problem = NULL;
    plog_path(l, CLEAN_MANIFEST, path, sizeof path);
    int rc = io_read_file(l->io, l->dirfd, path, MANIFEST_MAX, &b);
    if (rc < 0 && rc != -ENOENT && rc != -EFBIG)
        return rc;
    if (rc == -EFBIG || (rc == 0 && !clean_manifest_decode(slice_of(b.p, b.n), &identity)))
        *ret_problem = "is damaged";
    else if (rc == 0 && identity != 0 && identity != l->identity)
        *ret_problem = "is another partition's";
    else if (rc == 0)
        rc = finish_exchange(l, slice_of(b.p, b.n), ret_anchor, ret_anchor_text);
    if (*ret_problem != NULL)
        rc = clean_manifest_remove(l);
    return rc < 0 && rc != -ENOENT ? rc : remove_unfinished(l);
}

/* From the anchor to the front: each segment's text ends where the next one's begins. A header that says so may be in the
 * page cache only, as the pass left it that was killed. */
static int settle_segment(struct plog *l, struct segment *s, int64_t end)
{
    int rc = plog_load_segment(l, s);

    if (rc == 0 && s->text_base != end - s->sum.text_bytes) {
        s->text_base = MAX(end - s->sum.text_bytes, 0);
        rc = segment_write_header(s, true);
    }
    return rc < 0 ? rc : segfile_sync(s->text.file);
}

int clean_recover_text(struct plog *l, int64_t anchor, int64_t anchor_text)
{
    int64_t end = anchor_text;
    int rc = 0;

    for (int i = l->n_segs - 1; rc == 0 && i >= 0; i--) {
        struct segment *s = l->segs[i];
        if (s->base >= anchor)
            continue;
        rc = settle_segment(l, s, end);
        end = s->text_base;
    }
    return rc < 0 ? rc : clean_manifest_remove(l);
}
