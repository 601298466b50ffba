/* SPDX-License-Identifier: Apache-2.0 */
/* See logplay.h. */
#include "tests/sim/logplay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"
#include "lib/record/batch.h"
#include "lib/store/plog.h"
#include "tests/sim/marks.h"

enum {
    BATCHES_MAX = 2000,
    PRODUCERS = 3,
    COPIED_MAX = 4, /* batches of one piece */
    LIFE_S = 600, /* none takes longer */
    CUT_MAX = 2 * BATCHES_MAX,
    CAPACITY = 16 << 20,
};

#define DIR "/data0/log-0"

struct stored {
    int64_t base, next;
    uint32_t crc;
    int32_t leader_epoch;
    int producer;
    int32_t first_seq, next_seq;
};

struct logplay {
    struct sim *sim;
    struct simnet *nw;
    struct simdisk *disk;
    struct simhost host;
    struct rnd rnd;
    struct plog_config cfg;
    struct uuid topic_id;

    /* what is true */
    struct stored v[BATCHES_MAX + COPIED_MAX]; /* the log; behind it those that were being appended when the process ended */
    int n, n_maybe;
    /* What a truncation was about to cut when the process was killed, and the log was opened without; and what was refused, and
     * cut off again, when it was in the file already. As long as nothing was synced since, a power cut may bring it back. */
    struct stored cut[CUT_MAX];
    int n_cut, n_cut_before; /* before: the flush that goes on began */
    int64_t promised;    /* flushed: below it nothing is ever lost */
    int64_t start;       /* below it all was deleted */
    int64_t start_asked; /* or may have been */
    int64_t cut_to;      /* a truncation that has not said 0; -1: none */
    int64_t anew;        /* a beginning elsewhere that has not said 0; -1: none */
    int64_t begun;       /* a segment was begun there, and what was to come into it is not there */
    bool copies;         /* batches come as a leader's, with offsets missing, and the log may begin anew elsewhere */
    bool power_went;     /* since the log was open last */
    int32_t n_sent;

    /* the life */
    struct datadir *dd;
    struct plog *l;
    int32_t leader_epoch;
    bool stops, is_last, truncates, restarts;
    struct fiber *owner;
    bool is_over; /* nothing more can be said of it */
    int64_t n_lives, n_crashes, n_power_cuts, acked;
    bool prints_lines;
};

/* ---- the truth ---- */
static int64_t end_of(const struct logplay *p)
{
    return MAX(MAX(p->start, p->begun), p->n == 0 ? 0 : p->v[p->n - 1].next);
}

/* The last batch of that producer, which may have been deleted; NULL: it has none. */
static const struct stored *last_of(const struct logplay *p, int producer)
{
    for (int i = p->n - 1; i >= 0; i--)
        if (p->v[i].producer == producer)
            return &p->v[i];
    return NULL;
}

static void may_come_back(struct logplay *p, const struct stored *s, int n)
{
    n = MIN(n, CUT_MAX - p->n_cut);
    memcpy(p->cut + p->n_cut, s, (size_t)n * sizeof *s);
    p->n_cut += n;
}

/* The first n of them are cut off on the disk, too. */
static void stays_away(struct logplay *p, int n)
{
    memmove(p->cut, p->cut + n, (size_t)(p->n_cut - n) * sizeof p->cut[0]);
    p->n_cut -= n;
    p->n_cut_before = 0;
}

/* ---- what is in the files ---- */
struct looking {
    struct logplay *p;
    int at;          /* in v; -1: before the first */
    int64_t next;    /* offset */
    int64_t limit;   /* it ends there */
    bool may_be_cut; /* it has just been opened */
    int n_known;     /* of v, with the one that may be there */
};

/* A batch that was cut off and has come back takes its place among the others. */
static bool came_back(struct looking *k, int i, const struct sim_batch_head *h)
{
    struct logplay *p = k->p;
    for (int c = 0; c < p->n_cut && k->may_be_cut; c++) {
        if (p->cut[c].base != h->base_offset || p->cut[c].crc != h->crc)
            continue;
        p->v[i] = p->cut[c];
        p->n = k->n_known = i + 1;
        p->n_maybe = 0;
        MARK("log: what was being cut came back");
        return true;
    }
    return false;
}

static bool look_at_batch(void *arg, const uint8_t *bytes, const struct sim_batch_head *h)
{
    struct looking *k = arg;
    struct logplay *p = k->p;
    (void)bytes;
    int i = k->at + 1;
    if (h->base_offset >= k->limit)
        return false;
    for (; k->at < 0 && i < k->n_known && p->v[i].base < h->base_offset; i++) /* what was deleted */
        if (p->v[i].next > p->start_asked)
            sim_fail(p->sim, "S13", "the log begins at %lld; deletion was asked for up to %lld", (long long)h->base_offset,
                     (long long)p->start_asked);
    bool fits = i < k->n_known && p->v[i].base == h->base_offset && p->v[i].crc == h->crc;
    if (!fits && came_back(k, i, h))
        fits = true;
    if (!fits && (i == k->n_known || p->v[i].base != h->base_offset))
        sim_fail(p->sim, "C4", "the file has a batch at %lld; there is none (after %lld)", (long long)h->base_offset,
                 (long long)k->next);
    const struct stored *s = &p->v[i];
    if (s->crc != h->crc || s->next != h->base_offset + h->last_offset_delta + 1)
        sim_fail(p->sim, "C4", "the batch at %lld is not the one that was appended there", (long long)h->base_offset);
    if (s->leader_epoch != h->leader_epoch)
        sim_fail(p->sim, "R12", "the batch at %lld has leader epoch %d, and was given %d", (long long)h->base_offset,
                 h->leader_epoch, s->leader_epoch);
    k->at = i;
    k->next = s->next;
    return true;
}

/* Reads the files, up to that offset. Returns the one behind the last batch that is there, -1: there is none. */
static int64_t look(struct logplay *p, bool durable, int64_t limit, bool may_be_cut)
{
    struct looking k = {
        .p = p, .at = -1, .next = -1, .n_known = p->n + p->n_maybe, .limit = limit, .may_be_cut = may_be_cut
    };
    int64_t at;
    const char *wrong = diskread_log(p->disk, DIR, durable, p->copies, 0, look_at_batch, &k, &at);
    if (wrong != NULL && may_be_cut && p->promised == 0) { /* never flushed: it cannot be told from one that has lost its mark (S10) */
        p->is_over = true;
        return -1;
    }
    if (wrong != NULL && !durable)
        sim_fail(p->sim, "C4", "%020" PRId64 ".log, behind offset %lld: %s", at, (long long)k.next, wrong);
    return k.next;
}

/* S4: what is said to be flushed, as far as there are batches. */
static void check_durable(struct logplay *p, int64_t flushed)
{
    int64_t last = 0;
    for (int i = 0; i < p->n + p->n_maybe && p->v[i].next <= flushed; i++)
        last = p->v[i].next;
    flushed = last;
    if (flushed > MAX(p->start, p->start_asked) && look(p, true, flushed, false) < flushed)
        sim_fail(p->sim, "S4", "all below %lld is called flushed, and the disk has less", (long long)flushed);
}

/* Between two calls of the owner. */
static void check_files(struct logplay *p)
{
    int64_t end = look(p, false, INT64_MAX, false);
    if (p->n > 0 && end != p->v[p->n - 1].next && (end >= 0 || p->start_asked < end_of(p)))
        sim_fail(p->sim, "S2", "the files end at %lld, the log at %lld", (long long)end, (long long)end_of(p));
}

/* R12: of each batch its leader epoch is known. */
static void check_epochs_known(struct logplay *p)
{
    for (int i = 0; i < p->n; i++) {
        int32_t known = p->v[i].base < MAX(p->start, p->start_asked) ? p->v[i].leader_epoch : plog_epoch_at(p->l, p->v[i].base);
        if (known != p->v[i].leader_epoch)
            sim_fail(p->sim, "R12", "offset %lld is said to be of epoch %d, and is of %d", (long long)p->v[i].base, known,
                     p->v[i].leader_epoch);
    }
}

/* ---- S11: claims on the disk, when bytes have just gone ---- */
static void check_mark(struct logplay *p)
{
    uint8_t b[48];
    if (simdisk_peek(p->disk, DIR "/partition.flushed", true, b, sizeof b, 0) != sizeof b)
        return;
    int64_t flushed = (int64_t)get_be64(b + 16);
    if (flushed > p->cut_to)
        sim_fail(p->sim, "S11", "the log is cut to %lld, and the disk's partition.flushed says %lld", (long long)p->cut_to,
                 (long long)flushed);
}

static void check_epochs(struct logplay *p)
{
    char text[4096];
    int64_t n = simdisk_peek(p->disk, DIR "/leader-epoch-checkpoint", true, text, sizeof text - 1, 0);
    if (n <= 0)
        return;
    text[n] = '\0';
    char *line = strchr(text, '\n'); /* version */
    line = line == NULL ? NULL : strchr(line + 1, '\n'); /* number */
    for (; line != NULL && line[1] != '\0'; line = strchr(line + 1, '\n')) {
        int epoch;
        long long from;
        if (sscanf(line + 1, "%d %lld", &epoch, &from) == 2 && from > p->cut_to)
            sim_fail(p->sim, "S11", "the log is cut to %lld, and on the disk epoch %d begins at %lld", (long long)p->cut_to, epoch,
                     from);
    }
}

static void check_snapshot(void *arg, const char *path)
{
    struct logplay *p = arg;
    const char *name = strrchr(path, '/') + 1;
    long long offset;
    int used = 0;
    if (sscanf(name, "%20lld.producers%n", &offset, &used) != 1 || used == 0 || name[used] != '\0')
        return;
    if (offset > p->cut_to && simdisk_size(p->disk, path, true) >= 0)
        sim_fail(p->sim, "S11", "the log is cut to %lld, and the disk has producers as of %lld", (long long)p->cut_to, offset);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

/* By a truncation, and not by retention, which goes on beside one that waits. */
static void on_shrunk(struct simhost *h, const char *path, bool is_gone)
{
    struct logplay *p = h->user;
    (void)is_gone;
    if (!p->truncates || !ends_with(path, ".log") || fiber_now() != p->owner)
        return;
    check_mark(p);
    check_epochs(p);
    diskread_files(p->disk, 1, check_snapshot, p);
    MARK("log: claims were held against a cut");
}

static void on_rewrote(struct simhost *h, const char *path, int64_t at)
{
    const struct logplay *p = h->user;
    if (ends_with(path, ".log"))
        sim_fail(p->sim, "S2", "%s: a write at %" PRId64 " changes what stood there, or leaves a hole", path, at);
}

static void on_renamed(struct simhost *h, const char *from, const char *to, bool unsynced)
{
    const struct logplay *p = h->user;
    char text[512] = "";
    simdisk_peek(p->disk, to, false, text, sizeof text - 1, 0);
    sim_say(p->sim, "%s is now: %s", to, ends_with(to, "leader-epoch-checkpoint") ? text : "another");
    if (unsynced && ends_with(from, ".tmp"))
        sim_fail(p->sim, "S6", "%s becomes %s with bytes that are not synced", from, to);
}

/* ---- what the owner does ---- */
static void make_batch(struct logplay *p, int producer, int32_t seq, int32_t number, struct bytebuf *ret)
{
    struct rnd r = rnd_of(sim_seed(p->sim), RND_STORE, 1000000 + (uint64_t)number);
    struct sim_batch_spec spec = {
        .client = producer,
        .batch = number,
        .count = (int32_t)rnd_range(&r, 1, 4),
        .value_bytes = (int32_t)rnd_log(&r, 1, 600),
        .timestamp_ms = SIM_WALL_START_MS + number,
        .producer_id = 100 + producer,
        .producer_epoch = 0,
        .base_sequence = seq,
    };
    sim_batch_write(&spec, ret);
}

static struct plog_appended append_bytes(struct logplay *p, struct bytebuf *b)
{
    struct batch_rules rules = { .max_message_bytes = 1 << 20,
                                 .segment_bytes = 1 << 20,
                                 .now_ms = SIM_WALL_START_MS,
                                 .timestamp_before_max_ms = INT64_MAX,
                                 .timestamp_after_max_ms = INT64_MAX,
                                 .decompressed_max = 1 << 24 };
    struct batch_info info;
    struct plog_appended a;
    enum kerr err = batch_validate(b->p, b->n, &rules, &info);
    if (err != KERR_NONE)
        sim_fail(p->sim, "SIM", "a batch is not valid: %s", info.bad_text);
    plog_append(p->l, b->p, b->n, &info, p->leader_epoch, SIM_WALL_START_MS + sim_now(p->sim) / SIM_MS, -1, &a);
    return a;
}

static void append(struct logplay *p)
{
    int producer = (int)rnd_below(&p->rnd, PRODUCERS);
    const struct stored *last = last_of(p, producer);
    int32_t seq = last == NULL ? 0 : last->next_seq;
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct sim_batch_head h;
    make_batch(p, producer, seq, p->n_sent++, &b);
    sim_batch_head(b.p, b.n, &h);
    struct stored *s = &p->v[p->n];
    *s = (struct stored){ .base = end_of(p),
                          .next = end_of(p) + h.count,
                          .crc = h.crc,
                          .leader_epoch = p->leader_epoch,
                          .producer = producer,
                          .first_seq = seq,
                          .next_seq = seq + h.count };
    p->n_maybe = 1;
    struct plog_appended a = append_bytes(p, &b);
    p->n_maybe = 0;
    if (a.err == KERR_KAFKA_STORAGE_ERROR) {
        may_come_back(p, s, 1);
        return;
    }
    if (a.duplicate)
        sim_fail(p->sim, "C2", "a new batch of producer %d, sequence %d, is taken for the one at %lld", producer, seq,
                 (long long)a.base_offset);
    if (a.err != KERR_NONE)
        sim_fail(p->sim, "C5", "producer %d, sequence %d: %s", producer, seq, kerr_name(a.err));
    if (a.base_offset != s->base)
        sim_fail(p->sim, "C4", "a batch is given offset %lld; the log ended at %lld", (long long)a.base_offset,
                 (long long)s->base);
    sim_note(p->sim, "appended", s->base, s->next, s->leader_epoch);
    p->n++;
    p->acked++;
}

/* ---- as a follower ---- */
static void set_place(uint8_t *p, int64_t base, int32_t leader_epoch)
{
    put_be64(p + BATCH_BASE_OFFSET, (uint64_t)base);
    put_be32(p + BATCH_LEADER_EPOCH, (uint32_t)leader_epoch);
}

/* The next batch that the leader has, behind those of v. */
static void make_copied(struct logplay *p, int64_t base, struct stored *s, struct bytebuf *b)
{
    struct sim_batch_head h;
    size_t from = b->n;
    int producer = (int)rnd_below(&p->rnd, PRODUCERS);
    int n = p->n;
    p->n += p->n_maybe; /* its last batch may be in this piece */
    const struct stored *last = last_of(p, producer);
    p->n = n;
    int32_t seq = last == NULL ? 0 : last->next_seq;
    make_batch(p, producer, seq, p->n_sent++, b);
    if (rnd_one_in(&p->rnd, 8))
        p->leader_epoch++;
    set_place(b->p + from, base, p->leader_epoch);
    sim_batch_head(b->p + from, b->n - from, &h);
    *s = (struct stored){ .base = base,
                          .next = base + h.count,
                          .crc = h.crc,
                          .leader_epoch = p->leader_epoch,
                          .producer = producer,
                          .first_seq = seq,
                          .next_seq = seq + h.count };
}

static void append_copies(struct logplay *p)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct plog_copied c;
    int64_t base = end_of(p);
    p->n_maybe = 0;
    for (int n = (int)rnd_range(&p->rnd, 1, COPIED_MAX); n > 0; n--) {
        base += rnd_one_in(&p->rnd, 6) ? rnd_range(&p->rnd, 1, 5) : 0;
        struct stored *s = &p->v[p->n + p->n_maybe];
        make_copied(p, base, s, &b);
        base = s->next;
        p->n_maybe++;
    }
    int rc = plog_append_copy(p->l, slice_of(b.p, b.n), SIM_WALL_START_MS, &c);
    if (rc == -EBADMSG)
        sim_fail(p->sim, "S1", "a good batch is not taken from the leader: %s (at %lld)", c.bad, (long long)c.bad_offset);
    if (rc == 0 && c.appended != p->n_maybe)
        sim_fail(p->sim, "S1", "%d of %d batches of the leader were taken", c.appended, p->n_maybe);
    p->n += c.appended;
    p->acked += c.appended;
    may_come_back(p, p->v + p->n, p->n_maybe - c.appended);
    p->n_maybe = 0;
    if (p->anew >= 0 && rc != -EAGAIN)
        sim_fail(p->sim, "S12", "a log that has half begun anew at %lld takes batches: %d", (long long)p->anew, rc);
    if (c.end_offset > end_of(p) && p->anew < 0)
        p->begun = c.end_offset; /* a segment for what did not come */
    sim_note(p->sim, "copied", c.appended, end_of(p), p->leader_epoch);
    MARK_IF(rc < 0 && c.appended > 0, "copies: a part of what the leader sent was taken");
}

/* The leader's log begins behind the end of this one. */
static void begin_anew(struct logplay *p)
{
    int64_t skipped = rnd_range(&p->rnd, 1, 20);
    int64_t base = MAX(p->anew, end_of(p) + skipped);
    bool again = p->anew >= 0;
    p->start_asked = MAX(p->start_asked, base);
    p->restarts = true;
    p->anew = base;
    int rc = plog_restart(p->l, base, base * 100);
    p->restarts = false;
    sim_note(p->sim, "begun anew", base, rc, 0);
    if (rc < 0) {
        if (rc == -EINVAL)
            sim_fail(p->sim, "S12", "a log that ends at %lld may not begin anew at %lld", (long long)end_of(p), (long long)base);
        struct plog_ends e;
        plog_ends(p->l, &e);
        p->anew = e.end_offset > end_of(p) ? e.end_offset : -1; /* else it has not come so far */
        return;
    }
    p->n = 0;
    stays_away(p, p->n_cut);
    p->start = p->promised = base;
    p->cut_to = p->anew = -1;
    MARK_IF(again, "copies: it was begun anew the second time");
    check_files(p);
    MARK("copies: it was begun anew");
}

static void send_again(struct logplay *p)
{
    const struct stored *last = last_of(p, (int)rnd_below(&p->rnd, PRODUCERS));
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    if (last == NULL || last->base < p->start_asked)
        return; /* who has nothing in the log may be forgotten */
    struct stored s = *last;
    make_batch(p, s.producer, s.first_seq, p->n_sent++, &b);
    uint8_t *q = b.p; /* only its sequences count: as many as it had */
    put_be32(q + BATCH_COUNT, (uint32_t)(s.next_seq - s.first_seq));
    put_be32(q + BATCH_LAST_OFFSET_DELTA, (uint32_t)(s.next_seq - s.first_seq - 1));
    struct batch_info info = { 0 };
    struct plog_appended a;
    batch_header_read(b.p, &info.h);
    plog_append(p->l, b.p, b.n, &info, p->leader_epoch, SIM_WALL_START_MS, -1, &a);
    if (a.err == KERR_KAFKA_STORAGE_ERROR)
        return;
    if (!a.duplicate || a.base_offset != s.base)
        sim_fail(p->sim, "C2", "the batch at %lld is sent again and not known (%s)", (long long)s.base, kerr_name(a.err));
    MARK("log: a repeat was known");
}

/* The batch that holds `to` goes, and all behind it. */
static void truth_cut(struct logplay *p, int64_t to)
{
    while (p->n > 0 && p->v[p->n - 1].next > to)
        p->n--;
    struct plog_ends e;
    plog_ends(p->l, &e);
    if (e.end_offset > to || (p->n > 0 && e.end_offset < p->v[p->n - 1].next))
        sim_fail(p->sim, "S11", "a log that is cut to %lld ends at %lld", (long long)to, (long long)e.end_offset);
    p->begun = e.end_offset; /* where offsets are missing */
    p->promised = MIN(p->promised, end_of(p));
    MARK_IF(p->anew >= 0, "copies: a beginning elsewhere was taken back");
    p->cut_to = p->anew = -1;
}

static void truncate_log(struct logplay *p)
{
    int64_t end = end_of(p);
    bool again = p->cut_to >= 0;
    if (!again) {
        int64_t anywhere = rnd_range(&p->rnd, MIN(p->start, end), end), back = rnd_range(&p->rnd, 0, 12);
        p->cut_to = rnd_one_in(&p->rnd, 3) ? anywhere : MAX(p->start, end - back);
    }
    MARK_IF(p->cut_to < p->promised, "log: a truncation below the flush point");
    p->truncates = true;
    int rc = plog_truncate(p->l, p->cut_to);
    p->truncates = false;
    sim_note(p->sim, "truncated", p->cut_to, rc, again);
    if (rc == -ERANGE)
        p->cut_to = -1; /* retention was there first */
    else if (rc == 0)
        truth_cut(p, p->cut_to);
    MARK_IF(rc < 0 && rc != -ERANGE, "log: a truncation failed");
    MARK_IF(rc == 0 && again, "log: a truncation was done the second time");
    if (rc != 0)
        return;
    stays_away(p, p->n_cut);
    check_files(p);
    check_epochs_known(p);
}

static void read_some(struct logplay *p)
{
    if (p->n == 0)
        return;
    const struct stored s = p->v[rnd_below(&p->rnd, (uint64_t)p->n)];
    struct plog_span span;
    struct sim_batch_head h;
    if (s.base < p->start_asked || (p->cut_to >= 0 && s.next > p->cut_to))
        return;
    int rc = plog_read(p->l, s.base, end_of(p), 1, true, &span);
    if (rc < 0) {
        if (rc == -EBADMSG || rc == -ERANGE)
            sim_fail(p->sim, "C1", "what is at %lld cannot be read: %d", (long long)s.base, rc);
        return;
    }
    uint8_t *bytes = xmalloc((size_t)span.n);
    size_t n = (size_t)span.n;
    rc = plog_span_read(&span, bytes);
    plog_span_release(&span);
    if (rc == 0 && (sim_batch_head(bytes, n, &h) != NULL || h.base_offset != s.base || h.crc != s.crc))
        sim_fail(p->sim, "C4", "at %lld another batch than the one there is read (%lld, %zu bytes)", (long long)s.base,
                 (long long)h.base_offset, n);
    free(bytes);
    check_epochs_known(p);
}

static void next_epoch(struct logplay *p)
{
    p->leader_epoch++;
    plog_epoch_begin(p->l, p->leader_epoch);
}

static void disk_changes(struct logplay *p)
{
    bool full = !p->is_last && rnd_one_in(&p->rnd, 2);
    simdisk_set_capacity(p->disk, full ? simdisk_used(p->disk) + rnd_log(&p->rnd, 1, 30000) : CAPACITY);
}

static void do_something(struct logplay *p)
{
    int what = (int)rnd_below(&p->rnd, 100);
    if (p->cut_to >= 0 && what < 40)
        truncate_log(p);
    else if (p->anew >= 0 && what < 40)
        begin_anew(p);
    else if (what < 60 && p->copies && rnd_one_in(&p->rnd, 2))
        append_copies(p);
    else if (what < 60)
        append(p);
    else if (what < 66)
        send_again(p);
    else if (what < 74)
        truncate_log(p);
    else if (what < 78)
        next_epoch(p);
    else if (what < 88)
        read_some(p);
    else if (what < 92 && p->cut_to < 0) /* else they may be cut, and memory not yet */
        check_files(p);
    else if (what < 94)
        disk_changes(p);
    else if (what < 95 && p->copies && p->cut_to < 0)
        begin_anew(p);
    else
        fiber_sleep(rnd_log(&p->rnd, SIM_US, 20 * SIM_MS));
}

/* ---- what others do meanwhile ---- */
static void flusher_main(void *arg)
{
    struct logplay *p = arg;
    struct plog_ends e;
    while (!p->stops && !datadir_failed(p->dd)) {
        struct plog_flush *t = plog_flush_begin(p->l);
        if (t != NULL) {
            p->n_cut_before = p->n_cut;
            int rc = plog_flush_run(t);
            plog_flush_end(p->l, t, rc);
            plog_ends(p->l, &e);
            sim_note(p->sim, "flushed", e.flushed_offset, e.end_offset, rc);
            MARK_IF(p->truncates, "log: a flush ended in a truncation");
            stays_away(p, rc == 0 ? p->n_cut_before : 0);
            p->promised = MAX(p->promised, e.flushed_offset);
            if (!p->truncates && p->cut_to < 0) /* else memory and files need not agree yet */
                check_durable(p, e.flushed_offset);
        }
        fiber_sleep(rnd_log(&p->rnd, SIM_US, 30 * SIM_MS));
    }
}

static void upkeep_main(void *arg)
{
    struct logplay *p = arg;
    struct plog_ends e;
    while (!p->stops && !datadir_failed(p->dd)) {
        plog_ends(p->l, &e);
        int64_t hw = MIN(p->promised, e.flushed_offset);
        int what = (int)rnd_below(&p->rnd, 8);
        if (what == 0 && hw > p->start && !p->truncates) { /* who leads deletes, who follows truncates */
            int64_t to = rnd_range(&p->rnd, p->start, hw);
            p->start_asked = MAX(p->start_asked, to);
            if (plog_delete_before(p->l, to) == 0) /* else a truncation is half done */
                p->start = MAX(p->start, to);
        } else if (what == 1) {
            p->start_asked = MAX(p->start_asked, hw);
            if (plog_retain(p->l, hw, SIM_WALL_START_MS) >= 0) {
                plog_ends(p->l, &e);
                p->start = MAX(p->start, e.start_offset);
            }
        } else {
            plog_checkpoint(p->l, hw, rnd_one_in(&p->rnd, 2));
        }
        fiber_sleep(rnd_log(&p->rnd, SIM_MS, 200 * SIM_MS));
    }
}

/* ---- a life ---- */
/* Was a batch to be put there when the process ended, or the log to begin there? */
static bool is_next(const struct logplay *p, int64_t offset)
{
    for (int i = 0; i < p->n + p->n_maybe; i++)
        if (p->v[i].base == offset)
            return true;
    return offset == p->start_asked;
}

/* Is nothing known of those offsets but that none of them is to come any more? */
static bool none_between(const struct logplay *p, int64_t from, int64_t to)
{
    bool any = to > p->promised;
    for (int i = 0; i < p->n + p->n_maybe; i++)
        any |= p->v[i].base >= from && p->v[i].base < to;
    return !any;
}

/* May a log that takes batches with offsets missing end there, where none ends? end: of the last. */
static bool ends_between(const struct logplay *p, int64_t end, int64_t offset)
{
    return offset <= p->cut_to || offset == p->begun || offset == p->anew || none_between(p, end, offset) || is_next(p, offset);
}

/* Of a log that was never flushed the mark may be gone, too: it cannot be told from one that has lost what it had (S10), and where offsets
 * may be missing a file in front may be empty. end: of what is in the files. */
static bool front_is_lost(const struct logplay *p, int64_t end, int64_t end_offset)
{
    bool lost = false;
    for (int i = 0; i < p->n + p->n_maybe; i++)
        lost |= p->v[i].next > MAX(end, p->start_asked) && p->v[i].next <= end_offset;
    return lost && p->copies && p->power_went && p->promised == 0;
}

static void check_opened(struct logplay *p, const struct plog_recovery *rec)
{
    struct plog_ends e;
    /* What was not flushed and leaves offsets out need not be believed (S1). */
    int64_t must = p->power_went || p->copies ? p->promised : end_of(p);
    if (p->cut_to >= 0)
        must = MIN(must, p->cut_to);
    for (int i = 0; i < p->n; i++) /* the border below */
        if (p->v[i].base < must && must < p->v[i].next)
            must = p->v[i].base;
    int64_t last = p->start;
    for (int i = 0; i < p->n && p->v[i].next <= must; i++)
        last = p->v[i].next;
    must = p->copies ? MIN(must, last) : must; /* offsets that no batch has are not lost */
    plog_ends(p->l, &e);
    int64_t end = look(p, false, INT64_MAX, true);
    p->is_over |= front_is_lost(p, end, e.end_offset);
    if (p->is_over)
        return;
    sim_note(p->sim, "log opened", e.start_offset, e.end_offset, e.flushed_offset);
    bool begun = p->copies && e.end_offset >= end && ends_between(p, end, e.end_offset);
    if (end >= 0 && end != e.end_offset && !begun)
        sim_fail(p->sim, "S1", "the log is said to end at %lld, and its files at %lld", (long long)e.end_offset, (long long)end);
    if (e.end_offset < must)
        sim_fail(p->sim, "S10", "the log ends at %lld; it had all below %lld", (long long)e.end_offset, (long long)must);
    if (e.start_offset < MIN(p->start, e.end_offset) || e.start_offset > MAX(p->start_asked, p->start))
        sim_fail(p->sim, "S13", "the log begins at %lld; deletion was done up to %lld, and asked for up to %lld",
                 (long long)e.start_offset, (long long)p->start, (long long)p->start_asked);
    if (e.flushed_offset != e.end_offset)
        sim_fail(p->sim, "S9", "a start shows all below %lld, and calls %lld flushed", (long long)e.end_offset,
                 (long long)e.flushed_offset);
    /* Offsets that a leader left out where a segment began here are called lost; none of its cleaner's are. */
    bool half_deleted = e.start_offset == e.end_offset && p->start_asked > p->start; /* it met an error, and then its mark came back */
    if (strstr(rec->note, p->copies || half_deleted ? "records that had been on disk" : "LOST") != NULL)
        sim_fail(p->sim, "S10", "nothing was lost, and it is said: %s", rec->note);
    if (p->power_went)
        stays_away(p, p->n_cut);
    else if (p->cut_to >= 0)
        may_come_back(p, p->v, p->n);
    p->n += p->n_maybe;
    p->n_maybe = 0;
    while (p->n > 0 && p->v[p->n - 1].next > e.end_offset)
        p->n--;
    p->promised = p->begun = e.end_offset;
    p->anew = -1;
    p->start = e.start_offset;
    p->cut_to = -1;
    p->power_went = false;
    check_durable(p, e.end_offset);
    check_epochs_known(p);
}

static bool open_it(struct logplay *p)
{
    struct datadir_identity id = { .broker_id = 1 };
    struct plog_recovery rec;
    char err[256];
    if (datadir_open("/data0", &p->host.world, &id, &p->dd, err, sizeof err) < 0)
        return false;
    datadir_keep_reserve(p->dd);
    int rc = plog_open(p->dd, "log", 0, &p->topic_id, &p->cfg, SIM_WALL_START_MS, &p->l, &rec);
    if (rc < 0) {
        sim_note(p->sim, "log not opened", rc, 0, 0);
        datadir_close(p->dd, false);
        return false;
    }
    check_opened(p, &rec);
    return true;
}

static void life_main(struct simhost *h)
{
    struct logplay *p = h->user;
    if (!open_it(p)) {
        if (p->is_last)
            sim_fail(p->sim, "START", "nothing is wrong, and the log cannot be opened");
        return;
    }
    if (p->is_over)
        return;
    next_epoch(p);
    p->owner = fiber_now();
    p->stops = false;
    struct fiber *flusher = fiber_start(&h->exec.fibers, flusher_main, p, "flusher");
    struct fiber *upkeep = fiber_start(&h->exec.fibers, upkeep_main, p, "upkeep");
    for (int64_t n = rnd_log(&p->rnd, 10, 150); n > 0 && !datadir_failed(p->dd) && p->n < BATCHES_MAX - 200; n--)
        do_something(p);
    while (p->is_last && p->cut_to >= 0)
        truncate_log(p);
    while (p->is_last && p->anew >= 0)
        begin_anew(p);
    p->stops = true;
    fiber_join(flusher);
    fiber_join(upkeep);
    bool clean = p->is_last || rnd_one_in(&p->rnd, 2);
    bool well = plog_close(p->l, clean, p->promised) == 0 && clean && !datadir_failed(p->dd);
    datadir_close(p->dd, well);
    if (p->is_last && !well)
        sim_fail(p->sim, "S7", "nothing is wrong, and the log was not closed clean");
    if (well)
        p->promised = end_of(p);
    if (well)
        p->cut_to = -1; /* it had not begun with the files */
}

static void on_ended(struct simhost *h)
{
    struct logplay *p = h->user;
    p->truncates = false;
    p->power_went |= h->how == HOST_POWER_CUT;
    p->n_crashes += h->how == HOST_KILLED;
    p->n_power_cuts += h->how == HOST_POWER_CUT;
    MARK_IF(h->how == HOST_POWER_CUT && p->cut_to >= 0, "log: power cut in a truncation");
    MARK_IF(h->how == HOST_KILLED && p->cut_to >= 0, "log: killed in a truncation");
}

static void disturb(struct logplay *p)
{
    struct rnd *r = &p->rnd;
    struct simdisk_chances c = { .write_back = rnd_one_in(r, 2) ? 50000 : 0, .part = rnd_one_in(r, 4) ? 50000 : 0 };
    if (rnd_one_in(r, 4))
        c.fail[SIMDISK_SYNC] = c.fail[SIMDISK_WRITE] = c.fail[SIMDISK_TRUNCATE] = 3000;
    simdisk_set_chances(p->disk, &c);
    if (!rnd_one_in(r, 4)) {
        p->host.how = rnd_one_in(r, 2) ? HOST_KILLED : HOST_POWER_CUT;
        simdisk_stop_in(p->disk, rnd_one_in(r, 3) ? rnd_range(r, 0, 30) : rnd_range(r, 0, 800));
    }
    if (rnd_one_in(r, 8))
        simdisk_set_fd_limit(p->disk, (int)rnd_range(r, 6, 30));
}

static void calm_down(struct logplay *p)
{
    simdisk_stop_in(p->disk, -1);
    simdisk_set_chances(p->disk, &(struct simdisk_chances){ 0 });
    simdisk_set_capacity(p->disk, CAPACITY);
}

struct indexes {
    char path[160];
    int n;
    struct rnd *rnd;
};

static void note_index(void *arg, const char *path)
{
    struct indexes *f = arg;
    bool is_one = ends_with(path, ".index") || ends_with(path, ".timeindex") || ends_with(path, ".text");
    if (is_one && rnd_one_in(f->rnd, (uint64_t)++f->n))
        snprintf(f->path, sizeof f->path, "%s", path);
}

/* A bit of an index turns while nobody looks. */
static void spoil_index(struct logplay *p)
{
    struct indexes f = { .rnd = &p->rnd };
    uint8_t byte;
    diskread_files(p->disk, 1, note_index, &f);
    int64_t size = f.n > 0 ? simdisk_size(p->disk, f.path, false) : 0;
    if (size <= 0)
        return;
    int64_t at = rnd_range(&p->rnd, 0, size - 1);
    if (simdisk_peek(p->disk, f.path, false, &byte, 1, at) != 1)
        return;
    byte ^= (uint8_t)(1u << rnd_below(&p->rnd, 8));
    simdisk_poke(p->disk, f.path, &byte, 1, at);
    sim_say(p->sim, "%s is spoilt at %lld", f.path, (long long)at);
    MARK("log: an index was spoilt");
}

static void live(struct logplay *p)
{
    p->n_lives++;
    simhost_start(&p->host, life_main);
    p->host.how = HOST_KILLED;
    if (!p->is_last)
        disturb(p);
    int64_t until = sim_now(p->sim) + LIFE_S * SIM_S;
    while (p->host.process.is_up)
        if (!sim_go_on(p->sim, until)) {
            fibers_print(&p->host.exec.fibers);
            sim_fail(p->sim, "C12", "a life does not end within %d s", LIFE_S);
        }
    calm_down(p);
}

/* ---- a run ---- */
static void on_line(void *arg, enum log_level level, const char *line)
{
    struct logplay *p = arg;
    (void)level;
    sim_say(p->sim, "                         | %s", line);
    if (p->prints_lines)
        printf("%12.6f  %s\n", (double)sim_now(p->sim) / 1e9, line);
}

static void begin(struct logplay *p, uint64_t seed, bool copies)
{
    struct simdisk_config cfg = { .seed = seed, .capacity = CAPACITY };
    p->rnd = rnd_of(seed, RND_STORE, 0);
    cfg.journal = rnd_one_in(&p->rnd, 2);
    p->nw = simnet_new(p->sim);
    p->disk = simdisk_new(&cfg);
    simhost_init(&p->host, p->sim, p->nw, p->disk, 0);
    p->host.user = p;
    p->host.ended = on_ended;
    p->host.rewrote = on_rewrote;
    p->host.renamed = on_renamed;
    p->host.shrunk = on_shrunk;
    p->cut_to = p->anew = -1;
    p->copies = copies;
    memset(p->topic_id.b, 7, sizeof p->topic_id.b);
    p->cfg = (struct plog_config){
        .segment_bytes = rnd_log(&p->rnd, 1000, 8000),
        .segment_ms = INT64_MAX,
        .index_interval_bytes = (int32_t)rnd_log(&p->rnd, 64, 2000),
        .retention_ms = -1,
        .retention_bytes = rnd_one_in(&p->rnd, 3) ? 9000 : -1,
        .delete_policy = true,
        .producer_expiry_ms = INT64_MAX / 2,
    };
}

void logplay_run(uint64_t seed, bool copies, unsigned prints, struct play_figures *ret)
{
    struct logplay *p = xcalloc(1, sizeof *p);
    p->sim = sim_new(seed);
    sim_trace(p->sim, (prints & PLAY_TRACE) != 0);
    p->prints_lines = prints == PLAY_LINES;
    log_set_sink(on_line, p);
    begin(p, seed, copies);
    for (int lives = (int)rnd_range(&p->rnd, 2, 6); lives > 0 && !p->is_over; lives--) {
        live(p);
        if (rnd_one_in(&p->rnd, 4))
            spoil_index(p);
    }
    p->is_last = true;
    if (!p->is_over)
        live(p);
    if (!p->is_over)
        check_files(p);
    MARK_IF(p->is_over, "log: one that was never flushed has lost its front");
    *ret = (struct play_figures){
        .hash = sim_hash(p->sim),
        .steps = sim_steps(p->sim),
        .events = sim_events(p->sim),
        .sim_ns = sim_now(p->sim),
        .n_lives = p->n_lives,
        .n_crashes = p->n_crashes,
        .n_power_cuts = p->n_power_cuts,
        .acked = p->acked,
    };
    log_set_sink(NULL, NULL);
    simnet_free(p->nw);
    simdisk_free(p->disk);
    sim_free(p->sim);
    free(p);
}
