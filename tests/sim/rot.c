/* SPDX-License-Identifier: Apache-2.0 */
/* See rot.h. */
#include "tests/sim/rot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/varint.h"
#include "tests/sim/marks.h"

enum { PLACES_MAX = 256, HOW_OFFSET = 3, HOW_BENEATH = 4 };

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

/* What no checksum covers: one of the bits of an offset that there may be. */
static bool turn_offset(struct play *p, struct rnd *r, const struct place *pl)
{
    uint8_t byte;
    int64_t at = pl->at + rnd_range(r, 5, 7);
    if (simdisk_peek(p->disk, pl->path, false, &byte, 1, at) != 1)
        return false;
    byte ^= (uint8_t)(1u << rnd_below(r, 8));
    return simdisk_poke(p->disk, pl->path, &byte, 1, at);
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
        /* Who runs trusts what it wrote itself: what its checksums cover is for readers to see. */
        int64_t at = pl->at + rnd_range(r, how == HOW_BENEATH ? SIM_BATCH_HEAD : 0, pl->n - 1), sector = at / SIMDISK_SECTOR * SIMDISK_SECTOR;
        struct range hit = { .path = pl->path, .from = how == 0 || how == HOW_BENEATH ? at : sector, .to = how == 0 || how == HOW_BENEATH ? at + 1 : sector + SIMDISK_SECTOR, .first = -1 };
        if (how == HOW_OFFSET) {
            hit.from = pl->at;
            hit.to = pl->at + 1;
        }
        char *dir = xstrndup(pl->path, (size_t)(strrchr(pl->path, '/') - pl->path));
        uint8_t bytes[SIMDISK_SECTOR];
        diskread_places(p->disk, dir, note_range, &hit);
        free(dir);
        if (hit.has_last || hit.first < 0) {
            done = false;
        } else if (how == 0 || how == HOW_BENEATH) {
            done = simdisk_peek(p->disk, pl->path, false, bytes, 1, at) == 1;
            bytes[0] ^= (uint8_t)(1u << rnd_below(r, 8));
            done = done && simdisk_poke(p->disk, pl->path, bytes, 1, at);
            MARK_IF(done && how == 0, "rot: a bit of a log turned");
            MARK_IF(done && how != 0, "rot: a bit of a log turned beneath the broker");
        } else if (how == 1) {
            done = simdisk_spoil(p->disk, pl->path, at);
            MARK_IF(done, "rot: a sector of a log cannot be read");
        } else if (how == HOW_OFFSET) {
            done = turn_offset(p, r, pl);
            MARK_IF(done, "rot: the offset of a batch turned");
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
static const char *const made_anew[] = { ".index",     ".timeindex",         ".text",
                                         ".producers", "partition.flushed",  "partition.checkpoint",
                                         "leader-epoch-checkpoint", "partition.metadata" };

static bool is_called(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

static bool is_made_anew(const char *name, const char *kind)
{
    for (size_t i = 0; kind == NULL && i < ARRAY_LEN(made_anew); i++)
        if (is_called(name, made_anew[i]))
            return true;
    return kind != NULL && is_called(name, kind);
}

struct files {
    char path[160];
    int n;
    struct rnd *rnd;
    const char *kind; /* NULL: any */
};

static void note_file(void *arg, const char *path)
{
    struct files *f = arg;
    if (is_made_anew(path, f->kind) && rnd_one_in(f->rnd, (uint64_t)++f->n))
        snprintf(f->path, sizeof f->path, "%s", path);
}

static void rot_other(struct play *p, struct rnd *r, const char *kind)
{
    struct files f = { .rnd = r, .kind = kind };
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

/* ---- in the registers, and in what says whose the directory is ---- */
/* Of the journal's last change nobody can tell whether it was cut off or has rotted: it stays as it is. */
enum { LAST_CHANGE_MAX = 4096 };

static bool rot_registers(struct play *p, struct rnd *r)
{
    static const char *const names[] = { "registers.journal", "registers.snapshot", "meta.properties" };
    const char *name = names[rnd_below(r, ARRAY_LEN(names))];
    struct rot_kept *k = &p->registers_rot;
    rot_taken_back(p); /* one at a time */
    snprintf(k->path, sizeof k->path, "/data%d/%s", (int)rnd_below(r, (uint64_t)p->swarm.n_dirs), name);
    int64_t size = simdisk_size(p->disk, k->path, false);
    size -= name == names[0] ? LAST_CHANGE_MAX : 0;
    if (size <= 0)
        return false;
    k->at = rnd_range(r, 0, size - 1);
    if (simdisk_peek(p->disk, k->path, false, &k->was, 1, k->at) != 1)
        return false;
    k->is = k->was ^ (uint8_t)(1u << rnd_below(r, 8));
    k->turned = simdisk_poke(p->disk, k->path, &k->is, 1, k->at);
    MARK_IF(k->turned && name != names[2], "rot: a bit turned in the registers");
    MARK_IF(k->turned && name == names[2], "rot: a bit turned in meta.properties");
    sim_note(p->sim, "rot", -2, size, k->at);
    sim_say(p->sim, "rot in %s at %lld", k->path, (long long)k->at);
    return k->turned;
}

bool rot_taken_back(struct play *p)
{
    struct rot_kept *k = &p->registers_rot;
    uint8_t byte;
    bool there = k->turned && simdisk_peek(p->disk, k->path, false, &byte, 1, k->at) == 1 && byte == k->is;
    k->turned = false;
    return there && simdisk_poke(p->disk, k->path, &k->was, 1, k->at);
}

void rot_beneath(struct play *p, int64_t a)
{
    struct rnd r = rnd_of(sim_seed(p->sim), RND_ROT, (uint64_t)a);
    if (rot_log(p, &r, HOW_BENEATH))
        p->disk_lied = p->needs_start = true;
}

void rot(struct play *p, int64_t a, int64_t b)
{
    struct rnd r = rnd_of(sim_seed(p->sim), RND_ROT, (uint64_t)a);
    p->disk_lied = true;
    bool done = b == ROT_OFFSET ? rot_log(p, &r, HOW_OFFSET) : b == ROT_REGISTERS ? rot_registers(p, &r) : b % 2 == 0 && rot_log(p, &r, (int)(b / 2 % 3));
    if (!done)
        rot_other(p, &r, b < 8 ? NULL : made_anew[a % (int64_t)ARRAY_LEN(made_anew)]);
}
