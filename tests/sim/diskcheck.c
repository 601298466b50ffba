/* SPDX-License-Identifier: Apache-2.0 */
/* See diskcheck.h. */
#include "tests/sim/diskcheck.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { NEVER_SEEN_MAX = 100000 /* records on a disk that nobody has read */ };

/* ---- one batch ---- */
static const char *what_is_missing(struct play *p, const struct truth_topic *t, int partition)
{
    char dir[128];
    if (!diskread_find(p->disk, p->swarm.n_dirs, t->name, partition, false, dir, sizeof dir))
        return "there is no directory";
    if (!diskread_find(p->disk, p->swarm.n_dirs, t->name, partition, true, dir, sizeof dir))
        return "its directory's name is not synced";
    return "its bytes or its file's name are not synced";
}

static bool is_on_disk(struct play *p, const struct truth_topic *t, const struct truth_batch *b, int64_t base)
{
    struct sim_batch_head h;
    struct sim_records it;
    struct sim_record r;
    char dir[128];
    CLEANUP(bytebuf_done) struct bytebuf bytes = { 0 };
    if (!diskread_find(p->disk, p->swarm.n_dirs, t->name, b->partition, true, dir, sizeof dir) ||
        !diskread_batch(p->disk, dir, base, &p->hints[b->topic][b->partition], &bytes) ||
        sim_batch_head(bytes.p, bytes.n, &h) != NULL)
        return false;
    sim_records_start(&it, bytes.p, &h);
    return sim_records_next(&it, &r) == 1 && r.client == b->spec.client && r.batch == b->spec.batch && h.count == b->spec.count;
}

/* In a file with a rotten place. */
static bool is_near_rot(struct play *p, const struct truth_topic *t, int partition, int64_t base)
{
    const struct truth_partition *part = &t->parts[partition];
    char dir[128];
    return part->rotten_to > 0 &&
           (!diskread_find(p->disk, p->swarm.n_dirs, t->name, partition, true, dir, sizeof dir) ||
            diskread_segment(p->disk, dir, base) <= diskread_segment(p->disk, dir, part->rotten_to - 1));
}

void diskcheck_acked(struct play *p, const struct truth_batch *b, int64_t base)
{
    const struct truth_topic *t = &p->truth.topics[b->topic];
    const struct truth_partition *part = &t->parts[b->partition];
    if (t->delete_asked || t->retains || t->compacts || t->is_lazy || base < part->start_asked || is_near_rot(p, t, b->partition, base))
        return; /* it may have been deleted meanwhile, or not be found behind what has rotted */
    if (!is_on_disk(p, t, b, base))
        sim_fail(p->sim, "S4", "%s-%d: the batch at %lld (%d.%d) is acknowledged, but not on the disk (%s)", t->name, b->partition,
                 (long long)base, b->spec.client, b->spec.batch, what_is_missing(p, t, b->partition));
}

/* ---- all of it ---- */
struct reading {
    struct play *play;
    int topic, partition;
    int64_t first, next;
    bool *there; /* by offset */
    int64_t n_there;
};

static bool take_batch(void *arg, const uint8_t *bytes, const struct sim_batch_head *h)
{
    struct reading *r = arg;
    const struct truth_topic *t = &r->play->truth.topics[r->topic];
    if (r->first < 0)
        r->first = r->next = h->base_offset;
    if (h->base_offset > r->next && !t->compacts)
        sim_fail(r->play->sim, "C1", "%s-%d: offsets %lld to %lld are not on the disk", t->name, r->partition,
                 (long long)r->next, (long long)h->base_offset - 1);
    r->next = h->base_offset + h->last_offset_delta + 1;
    /* what was deleted may still stand in the first segment */
    if (r->next > t->parts[r->partition].start)
        truth_read(&r->play->truth, r->topic, r->partition, bytes, (size_t)h->size, -1, 0);
    struct sim_records it;
    struct sim_record rec;
    sim_records_start(&it, bytes, h);
    while (sim_records_next(&it, &rec) == 1)
        if (rec.offset < r->n_there)
            r->there[rec.offset] = true;
    return true;
}

/* C13: of each key the newest record is there. */
static void check_compacted(const struct reading *r)
{
    const struct truth_topic *t = &r->play->truth.topics[r->topic];
    const struct truth_partition *part = &t->parts[r->partition];
    int64_t newest[64];
    memset(newest, 0xff, sizeof newest);
    for (int64_t o = part->start_asked; o < part->n; o++)
        if (part->at[o].client >= 0 && part->at[o].key >= 0)
            newest[part->at[o].key % 64] = o;
    for (int k = 0; k < 64; k++)
        if (newest[k] >= 0 && !r->there[newest[k]])
            sim_fail(r->play->sim, "C13", "%s-%d: the newest record of key k%d, at %lld, is gone", t->name, r->partition, k,
                     (long long)newest[k]);
}

static void check_partition(struct play *p, int topic, int partition)
{
    const struct truth_topic *t = &p->truth.topics[topic];
    const struct truth_partition *part = &t->parts[partition];
    struct reading r = { .play = p, .topic = topic, .partition = partition, .first = -1, .n_there = part->n + NEVER_SEEN_MAX };
    char dir[128];
    int64_t at = 0;
    if (!diskread_find(p->disk, p->swarm.n_dirs, t->name, partition, false, dir, sizeof dir))
        sim_fail(p->sim, "C1", "%s-%d is not on the disk", t->name, partition);
    r.there = xcalloc((size_t)r.n_there, sizeof *r.there);
    const char *wrong = diskread_log(p->disk, dir, false, false, 0, take_batch, &r, &at);
    if (wrong != NULL)
        sim_fail(p->sim, "C1", "%s/%020" PRId64 ".log: behind offset %" PRId64 ": %s", dir, at, r.next, wrong);
    if (r.next < part->committed && part->start_asked < part->committed && !t->retains)
        sim_fail(p->sim, "C1", "%s-%d ends at %" PRId64 " on the disk, but all below %" PRId64 " was committed", t->name,
                 partition, r.next, part->committed);
    if (r.first > part->start_asked && !t->retains && !t->compacts)
        sim_fail(p->sim, "C1", "%s-%d begins at %" PRId64 " on the disk, but deletion was asked for up to %" PRId64 " only", t->name,
                 partition, r.first, part->start_asked);
    if (t->compacts && !t->retains)
        check_compacted(&r);
    free(r.there);
}

void diskcheck(struct play *p)
{
    struct truth *t = &p->truth;
    for (int i = 0; i < t->n_topics; i++) {
        if (t->topics[i].internal || t->topics[i].delete_asked || !t->topics[i].is_known)
            continue;
        for (int k = 0; k < t->topics[i].n_partitions; k++)
            if (t->topics[i].parts[k].rotten_to == 0) /* else a reader has looked at it */
                check_partition(p, i, k);
    }
}
