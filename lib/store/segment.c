/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment in memory: its files, which are opened when they are needed, and what an appended batch adds to its sums and
 * indexes. References keep it while somebody reads it, also after the log has let go of it; its files are unlinked by name.
 * It takes no lock: the log's mu guards its numbers.
 */
#include "lib/store/segment.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "lib/base/check.h"
#include "lib/base/crc32c.h"
#include "lib/base/mem.h"

const char *const segment_suffix[SEGMENT_FILES] = { ".log", ".index", ".timeindex", ".text" };

void segment_path(char *ret, size_t size, const char *dir, int64_t base, const char *suffix)
{
    int n = snprintf(ret, size, "%s/%020" PRId64 "%s", dir, base, suffix);
    KCHECK(n > 0 && (size_t)n < size);
}

static struct segfile *file_of(struct filecache *c, const char *dir, int64_t base, enum segment_file which)
{
    char path[PATH_MAX];

    segment_path(path, sizeof path, dir, base, segment_suffix[which]);
    return segfile_new(c, path);
}

struct segment_sum segment_sum_empty(int64_t base)
{
    return (struct segment_sum){
        .end_offset = base,
        .max_timestamp = -1,
        .max_timestamp_offset = -1,
        .first_timestamp = -1,
        .indexed_timestamp = -1,
    };
}

struct segment *segment_new(struct filecache *c, const char *dir, uint32_t identity, int64_t base)
{
    struct segment *s = xcalloc(1, sizeof *s);

    atomic_init(&s->refs, 1);
    s->base = base;
    s->identity = identity;
    s->log = file_of(c, dir, base, SEGMENT_LOG);
    entries_init(&s->index, file_of(c, dir, base, SEGMENT_INDEX), 0, INDEX_ENTRY_BYTES);
    entries_init(&s->time, file_of(c, dir, base, SEGMENT_TIMEINDEX), 0, TIME_ENTRY_BYTES);
    entries_init(&s->text, file_of(c, dir, base, SEGMENT_TEXT), TEXT_HEADER_BYTES, TEXT_ENTRY_BYTES);
    s->sum = segment_sum_empty(base);
    return s;
}

struct segment *segment_ref(struct segment *s)
{
    int before = atomic_fetch_add(&s->refs, 1);
    KCHECK(before > 0);
    return s;
}

void segment_unref(struct segment *s)
{
    if (s == NULL || atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    segfile_unref(s->log);
    entries_done(&s->index);
    entries_done(&s->time);
    entries_done(&s->text);
    free(s);
}

struct segment_sum segment_sum(const struct segment *s)
{
    struct segment_sum sum = s->sum;

    sum.index_n = s->index.n;
    sum.time_n = s->time.n;
    sum.text_n = s->text.n;
    return sum;
}

void segment_reset(struct segment *s, const struct segment_sum *sum)
{
    s->sum = *sum;
    entries_set_count(&s->index, sum->index_n);
    entries_set_count(&s->time, sum->time_n);
    entries_set_count(&s->text, sum->text_n);
}

uint32_t heads_add(uint32_t heads, const struct batch_header *h)
{
    uint8_t p[20];

    if (heads == HEADS_UNKNOWN)
        return heads;
    put_be64(p, (uint64_t)h->base_offset);
    put_be32(p + 8, (uint32_t)h->length);
    put_be32(p + 12, h->crc);
    put_be32(p + 16, (uint32_t)h->last_offset_delta);
    heads = crc32c(heads, p, sizeof p);
    return heads == HEADS_UNKNOWN ? 0 : heads;
}

bool segment_tails_full(const struct segment *s)
{
    return entries_tail_full(&s->index) || entries_tail_full(&s->time) || entries_tail_full(&s->text);
}

int segment_write_tails(struct segment *s, struct lock *mu)
{
    int a = entries_write(&s->index, mu);
    int b = entries_write(&s->time, mu);
    int c = entries_write(&s->text, mu);

    return a < 0 ? a : b < 0 ? b : c;
}

int segment_trim_files(struct segment *s)
{
    struct entries *all[] = { &s->index, &s->time, &s->text };

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        int64_t want = all[i]->header_bytes + (int64_t)all[i]->n_file * all[i]->entry_bytes;
        int64_t size = segfile_size(all[i]->file);
        int rc = size > want                   ? segfile_truncate(all[i]->file, want)
                 : size < 0 && size != -ENOENT ? (int)size
                                               : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Kafka's rule: an entry for a batch when more than the interval lies between it and the last one. */
void segment_add(struct segment *s, const struct batch_header *h, int64_t text_bytes,
                 int32_t index_interval_bytes)
{
    struct segment_sum *sum = &s->sum;
    int64_t last = batch_last_offset(h);

    KCHECK(h->base_offset >= sum->end_offset);
    KCHECK(last - s->base <= INT32_MAX);
    if (sum->size == 0)
        sum->first_timestamp = h->max_timestamp;
    if (h->max_timestamp > sum->max_timestamp) {
        sum->max_timestamp = h->max_timestamp;
        sum->max_timestamp_offset = last;
    }
    if (sum->since_index > index_interval_bytes) {
        index_add(s, last);
        timeindex_add(s);
        if (text_add(s, h->base_offset))
            sum->heads = 0;
        sum->since_index = 0;
    }
    sum->heads = heads_add(sum->heads, h);
    sum->all_heads = heads_add(sum->all_heads, h);
    sum->size += batch_size(h);
    sum->since_index += batch_size(h);
    sum->text_bytes += text_bytes;
    sum->end_offset = last + 1;
}

void segment_add_last_time(struct segment *s)
{
    if (s->sum.size > 0)
        timeindex_add(s);
}

int segment_walk(struct segment *s, int64_t size, int64_t limit_offset, bool check_crc, segment_walk_fn *each, void *arg)
{
    struct logscan scan;
    struct scan_item it;
    int rc = segfile_pin(s->log, false);

    if (rc < 0)
        return rc;
    logscan_init(&scan, segfile_io(s->log), segfile_fd(s->log), 0, size, s->base);
    scan.limit_offset = limit_offset;
    scan.check_crc = check_crc;
    while ((rc = logscan_next(&scan, &it)) == 0 && it.what != SCAN_END && (rc = each(arg, &scan, &it)) == 0)
        continue;
    logscan_done(&scan);
    segfile_unpin(s->log);
    return rc == 1 ? 0 : rc;
}

int segment_unlink(struct segment *s)
{
    segfile_unlink(s->index.file);
    segfile_unlink(s->time.file);
    segfile_unlink(s->text.file);
    return segfile_unlink(s->log);
}
