/* SPDX-License-Identifier: Apache-2.0 */
/* See rot.h. */
#include "tests/sim/rot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/varint.h"
#include "tests/sim/marks.h"

enum { PLACES_MAX = 256 };

struct place { /* a batch that stands in a .log, synced */
    int topic, partition;
    char path[160];
    int64_t at, n, first, next; /* bytes; offsets */
};

struct places {
    struct play *play;
    struct place v[PLACES_MAX];
    int n, topic, partition;
    int64_t n_seen, flushed;
    struct rnd rnd;
};

/* ---- in a log ---- */
static bool may_rot(const struct truth_topic *t, int partition)
{
    return !t->internal && !t->delete_asked && !t->is_lazy && !t->compacts && !t->retains && t->parts[partition].rotten_to == 0;
}

static void note_place(void *arg, const char *path, int64_t at, const struct sim_batch_head *h, bool is_last)
{
    struct places *ps = arg;
    struct place one = { .topic = ps->topic,
                         .partition = ps->partition,
                         .at = at,
                         .n = h->size,
                         .first = h->base_offset,
                         .next = h->base_offset + h->last_offset_delta + 1 };
    snprintf(one.path, sizeof one.path, "%s", path);
    if (is_last || one.next > ps->flushed)
        return;
    int i = ps->n < PLACES_MAX ? ps->n++ : (int)rnd_below(&ps->rnd, (uint64_t)++ps->n_seen); /* some of many */
    if (i < PLACES_MAX)
        ps->v[i] = one;
}

/* What partition.flushed says on the disk: behind it rot looks like what was never flushed. */
static int64_t flush_point(struct simdisk *d, const char *dir)
{
    char path[160];
    uint8_t b[24];
    snprintf(path, sizeof path, "%s/partition.flushed", dir);
    bool there = simdisk_peek(d, path, true, b, sizeof b, 0) == sizeof b && memcmp(b, "klogflsh", 8) == 0;
    return there ? (int64_t)get_be64(b + 16) : 0;
}

static void find_places(struct places *ps)
{
    struct play *p = ps->play;
    char dir[128];
    for (int i = 0; i < p->truth.n_topics; i++) {
        const struct truth_topic *t = &p->truth.topics[i];
        for (int k = 0; k < t->n_partitions; k++) {
            if (!may_rot(t, k) || !diskread_find(p->disk, p->swarm.n_dirs, t->name, k, true, dir, sizeof dir))
                continue;
            ps->topic = i;
            ps->partition = k;
            ps->flushed = flush_point(p->disk, dir);
            diskread_places(p->disk, dir, note_place, ps);
        }
    }
}

/* The offsets of what stands in the bytes from .. to of that file; false: the last batch of the log is among them. */
struct range {
    const char *path;
    int64_t from, to, first, next;
    bool has_last;
};

static void note_range(void *arg, const char *path, int64_t at, const struct sim_batch_head *h, bool is_last)
{
    struct range *r = arg;
    if (strcmp(path, r->path) != 0 || at >= r->to || at + h->size <= r->from)
        return;
    r->first = r->first < 0 ? h->base_offset : r->first;
    r->next = h->base_offset + h->last_offset_delta + 1;
    r->has_last |= is_last;
}

static bool rot_log(struct play *p, struct rnd *r, int how)
{
    struct places *ps = xcalloc(1, sizeof *ps);
    bool done = false;
    ps->play = p;
    ps->rnd = *r;
    find_places(ps);
    if (ps->n > 0) {
        const struct place *pl = &ps->v[rnd_below(r, (uint64_t)ps->n)];
        int64_t at = pl->at + rnd_range(r, 0, pl->n - 1), sector = at / SIMDISK_SECTOR * SIMDISK_SECTOR;
        struct range hit = { .path = pl->path, .from = how == 0 ? at : sector, .to = how == 0 ? at + 1 : sector + SIMDISK_SECTOR, .first = -1 };
        char *dir = xstrndup(pl->path, (size_t)(strrchr(pl->path, '/') - pl->path));
        uint8_t bytes[SIMDISK_SECTOR];
        diskread_places(p->disk, dir, note_range, &hit);
        free(dir);
        if (hit.has_last || hit.first < 0) {
            done = false;
        } else if (how == 0) {
            done = simdisk_peek(p->disk, pl->path, false, bytes, 1, at) == 1;
            bytes[0] ^= (uint8_t)(1u << rnd_below(r, 8));
            done = done && simdisk_poke(p->disk, pl->path, bytes, 1, at);
            MARK_IF(done, "rot: a bit of a log turned");
        } else if (how == 1) {
            done = simdisk_spoil(p->disk, pl->path, at);
            MARK_IF(done, "rot: a sector of a log cannot be read");
        } else if (sector > 0) {
            done = simdisk_peek(p->disk, pl->path, false, bytes, sizeof bytes, sector - SIMDISK_SECTOR) == sizeof bytes &&
                   simdisk_poke(p->disk, pl->path, bytes, sizeof bytes, sector);
            MARK_IF(done, "rot: a sector of a log has what stands in another");
        }
        if (done) {
            sim_note(p->sim, "rot", pl->topic, pl->partition, hit.first);
            sim_say(p->sim, "rot in %s at %lld: offsets %lld to %lld", pl->path, (long long)at, (long long)hit.first,
                    (long long)hit.next - 1);
            truth_rotten(&p->truth, pl->topic, pl->partition, hit.first, hit.next, how == 1);
        }
    }
    free(ps);
    return done;
}

/* ---- in what is made from it ---- */
static bool is_made_anew(const char *name)
{
    static const char *const ends[] = { ".index",     ".timeindex",         ".text",
                                        ".producers", "partition.flushed",  "partition.checkpoint",
                                        "leader-epoch-checkpoint", "partition.metadata" };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t n = strlen(name), k = strlen(ends[i]);
        if (n >= k && strcmp(name + n - k, ends[i]) == 0)
            return true;
    }
    return false;
}

struct files {
    char path[160];
    int n;
    struct rnd *rnd;
};

static void note_file(void *arg, const char *path)
{
    struct files *f = arg;
    if (is_made_anew(path) && rnd_one_in(f->rnd, (uint64_t)++f->n))
        snprintf(f->path, sizeof f->path, "%s", path);
}

static void rot_other(struct play *p, struct rnd *r)
{
    struct files f = { .rnd = r };
    uint8_t byte;
    diskread_files(p->disk, p->swarm.n_dirs, note_file, &f);
    int64_t size = f.n > 0 ? simdisk_size(p->disk, f.path, false) : 0;
    if (size <= 0)
        return;
    int64_t at = rnd_range(r, 0, size - 1);
    if (simdisk_peek(p->disk, f.path, false, &byte, 1, at) != 1)
        return;
    byte ^= (uint8_t)(1u << rnd_below(r, 8));
    MARK_IF(simdisk_poke(p->disk, f.path, &byte, 1, at), "rot: a bit turned in a file beside a log");
    sim_note(p->sim, "rot", -1, size, at);
    sim_say(p->sim, "rot in %s at %lld", f.path, (long long)at);
}

void rot(struct play *p, int64_t a, int64_t b)
{
    struct rnd r = rnd_of(sim_seed(p->sim), RND_ROT, (uint64_t)a);
    p->disk_lied = true;
    if (b % 2 != 0 || !rot_log(p, &r, (int)(b / 2 % 3)))
        rot_other(p, &r);
}
