/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread. It waits for somebody who wants care for a log, or for the next piece of the pass over all of them. A pass is a list
 * of names, taken when it begins; no partition is held between two pieces, so that a deletion never waits for the pace.
 *
 * When a pass has ended stands in a file of each log directory, so that restarts neither begin anew nor put it off for ever. A
 * pass that a stop cut off begins again.
 */
#include "daemon/upkeep/scrubber.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/broker_config.h"
#include "daemon/replica/partition.h"
#include "daemon/storage/logdirs.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/thread.h"
#include "lib/store/datadir.h"
#include "lib/store/io.h"
#include "lib/store/plog_scrub.h"

#define SCRUBBED_FILE "scrub-checkpoint" /* "1\n", and when the last pass ended in ms of wall-clock time */

enum {
    PIECE_MS = 100,            /* of the pace: a piece is what may be read in that time, */
    PIECE_BYTES_MIN = 65536,   /* but no less, */
    PIECE_BYTES_MAX = 4194304, /* and no more, so that a stop does not wait */
    FIRST_MS = 600000,         /* a directory that was never read: after the bustle of the start */
    AGAIN_MS = 1000,           /* what could not be mended */
};

struct target {
    struct uuid topic_id;
    int32_t partition;
};

struct scrubber {
    const struct world *world;
    struct logdirs *dirs;
    struct partitions *partitions;
    const struct broker_config *config;
    struct thread *thread;
    /* the thread's */
    bool mend_again;    /* something could not be mended */
    int64_t next_ms;    /* the next piece, or pass; monotonic */
    struct target *targets; /* of the pass */
    size_t n_targets, at;
    struct scrub_cursor cursor; /* in the log of targets[at] */
    bool in_log;
    int64_t began_ms, bytes, damaged;
};

/* ---- care ---- */
static void check(struct partition *pt, int64_t offset)
{
    struct scrub_cursor c;
    struct scrub_found found = { .damage_at = -1 };

    scrub_begin(pt->log, &c, offset, true);
    while (!c.done && found.damage_at < 0)
        if (plog_scrub(pt->log, &c, PIECE_BYTES_MAX, &found) < 0)
            return; /* whoever suspects does so again */
    if (found.damage_at >= 0)
        partition_found_damage(pt, found.damage_at, found.eno);
    else
        partition_is_sound(pt, offset);
}

static void care_for(void *arg, struct partition *pt)
{
    struct scrubber *s = arg;

    if (pt->log == NULL)
        return;
    int64_t offset = partition_take_suspect(pt);
    if (offset >= 0)
        check(pt, offset);
    s->mend_again |= partition_mend(pt) < 0;
}

/* ---- when ---- */
static int64_t last_pass_ms(const struct scrubber *s, int dir)
{
    struct datadir *dd = logdirs_at(s->dirs, dir);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    int64_t at = -1;
    int version = 0;

    if (io_read_file(datadir_io(dd), datadir_fd(dd), SCRUBBED_FILE, 100, &b) < 0)
        return -1;
    *(char *)bytebuf_room(&b, 1) = '\0';
    return sscanf((const char *)b.p, "%d\n%" SCNd64, &version, &at) == 2 && version == 1 ? at : -1;
}

/* The directory that has waited longest decides: all are read in one pass. */
static void plan_next(struct scrubber *s)
{
    int64_t interval = s->config->log_scrub_interval_ms, now = world_wall_ms(s->world), wait = interval;

    for (int i = 0; i < logdirs_count(s->dirs); i++) {
        int64_t last = datadir_failed(logdirs_at(s->dirs, i)) ? now : last_pass_ms(s, i);
        int64_t due = last < 0 || last > now ? FIRST_MS : time_add(last, interval) - now;
        wait = MIN(wait, MAX(due, MIN(FIRST_MS, interval)));
    }
    s->next_ms = interval < 0 ? INT64_MAX : time_add(world_mono_ms(s->world), wait);
}

static void note_end(const struct scrubber *s)
{
    char text[64];
    int n = snprintf(text, sizeof text, "1\n%" PRId64 "\n", world_wall_ms(s->world));

    for (int i = 0; i < logdirs_count(s->dirs); i++) {
        struct datadir *dd = logdirs_at(s->dirs, i);
        int rc = datadir_failed(dd) ? 0 : io_replace_file(datadir_io(dd), datadir_fd(dd), ".", SCRUBBED_FILE, text, (size_t)n);
        if (rc < 0)
            log_warn("%s: cannot write %s: %s; the next start reads all logs again", datadir_path(dd), SCRUBBED_FILE, strerror(-rc));
    }
}

/* ---- a pass ---- */
static void add_target(void *arg, struct partition *pt)
{
    struct scrubber *s = arg;

    s->targets = xreallocarray(s->targets, s->n_targets + 1, sizeof *s->targets);
    s->targets[s->n_targets++] = (struct target){ pt->topic_id, pt->id };
}

static void pass_begin(struct scrubber *s)
{
    partitions_each(s->partitions, add_target, s);
    s->at = 0;
    s->in_log = false;
    s->bytes = s->damaged = 0;
    s->began_ms = world_mono_ms(s->world);
    log_debug("reading all logs for damage: %zu partitions", s->n_targets);
}

static void pass_end(struct scrubber *s)
{
    log_info("all logs were read for damage: %zu partitions, %" PRId64 " bytes in %" PRId64 " s, %" PRId64 " damaged places",
             s->n_targets, s->bytes, (world_mono_ms(s->world) - s->began_ms) / 1000, s->damaged);
    free(s->targets);
    s->targets = NULL;
    s->n_targets = 0;
    note_end(s);
    plan_next(s);
}

/* What a follower's log holds may be cut, copied, mended at this moment; a damaged one is known to be. */
static bool is_to_be_read(struct partition *pt)
{
    struct partition_view v;

    partition_view(pt, &v);
    return pt->log != NULL && v.err != KERR_UNKNOWN_TOPIC_OR_PARTITION && v.err != KERR_KAFKA_STORAGE_ERROR;
}

static int64_t piece_bytes(const struct scrubber *s)
{
    double bytes = s->config->log_scrub_io_max_bytes_per_second * PIECE_MS / 1000;
    return (int64_t)MIN(MAX(bytes, PIECE_BYTES_MIN), PIECE_BYTES_MAX);
}

static void tell(struct scrubber *s, struct partition *pt, const struct scrub_found *f)
{
    s->damaged++;
    log_warn("%s: damage in %020" PRId64 ".log at %" PRId64 ", %" PRId64 " bytes, from offset %" PRId64 " on: %s", plog_name(pt->log),
             f->segment, f->at, f->n, f->damage_at, f->eno == EBADMSG ? "checksums differ" : strerror(f->eno));
    partition_found_damage(pt, f->damage_at, f->eno);
}

/* How many bytes were read; 0 in the end of each log. */
static int64_t read_piece(struct scrubber *s, struct partition *pt)
{
    struct scrub_found found = { .damage_at = -1 };

    if (!s->in_log)
        scrub_begin(pt->log, &s->cursor, 0, false);
    s->in_log = true;
    int rc = plog_scrub(pt->log, &s->cursor, piece_bytes(s), &found);
    if (rc == 0 && found.damage_at >= 0)
        tell(s, pt, &found);
    s->in_log = rc == 0 && !s->cursor.done;
    s->bytes += found.bytes;
    return found.bytes;
}

static void pass_go_on(struct scrubber *s)
{
    const struct target *t = &s->targets[s->at];
    struct partition *pt = partitions_get_by_id(s->partitions, &t->topic_id, t->partition);
    int64_t bytes = 0;

    if (pt != NULL && is_to_be_read(pt))
        bytes = read_piece(s, pt);
    else
        s->in_log = false;
    partition_unref(pt);
    s->at += !s->in_log;
    double ms = (double)bytes * 1000 / s->config->log_scrub_io_max_bytes_per_second;
    s->next_ms = time_add(world_mono_ms(s->world), ms < 1e15 ? (int64_t)ms : INT64_MAX);
}

static void on_time(struct scrubber *s)
{
    if (world_mono_ms(s->world) < s->next_ms)
        return;
    if (s->targets == NULL)
        pass_begin(s);
    if (s->at < s->n_targets)
        pass_go_on(s);
    else
        pass_end(s);
}

static int64_t wait_until_ms(const struct scrubber *s)
{
    return s->mend_again ? MIN(s->next_ms, time_add(world_mono_ms(s->world), AGAIN_MS)) : s->next_ms;
}

static void scrubber_main(void *arg)
{
    struct scrubber *s = arg;

    plan_next(s);
    for (bool wanted = true; partitions_wait_for_care(s->partitions, wait_until_ms(s), &wanted);) {
        if (wanted || s->mend_again) {
            s->mend_again = false;
            partitions_each(s->partitions, care_for, s);
        }
        on_time(s);
    }
}

struct scrubber *scrubber_new(const struct world *w, struct logdirs *dirs, struct partitions *ps, const struct broker_config *cfg)
{
    struct scrubber *s = xcalloc(1, sizeof *s);

    s->world = w;
    s->dirs = dirs;
    s->partitions = ps;
    s->config = cfg;
    s->thread = thread_start(w->exec, scrubber_main, s, "klogd-scrub");
    KCHECK(s->thread != NULL);
    return s;
}

void scrubber_stop(struct scrubber *s)
{
    if (s == NULL)
        return;
    partitions_end_care(s->partitions);
    thread_join(s->world->exec, s->thread);
}

void scrubber_free(struct scrubber *s)
{
    if (s == NULL)
        return;
    free(s->targets);
    free(s);
}
