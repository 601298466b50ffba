/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread. A round looks at every compacted partition, closes active segments that have become old, and
 * cleans the most urgent one; then the next round begins at once. When nothing is urgent the thread sleeps
 * for log.cleaner.backoff.ms. How far a log is clean is remembered here and in two files of its log
 * directory.
 *
 * Everything belongs to the thread, but what mu guards; `now` is changed from outside. A partition is held by reference only during its
 * pass, which ends soon after the partition is deleted or the broker stops.
 */
#include "daemon/upkeep/cleaner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <uthash.h>

#include "daemon/config/broker_config.h"
#include "daemon/config/ranks.h"
#include "daemon/replica/partition.h"
#include "daemon/storage/logdirs.h"
#include "daemon/upkeep/cleaner_choice.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/thread.h"
#include "lib/store/clean.h"
#include "lib/store/clean_marks.h"

enum {
    LOOK_EVERY_BYTES = 64 * 1024, /* of a pass: whether to stop, and whether it is too fast */
    RETRY_MIN_MS = 1000,
    RETRY_MAX_MS = 3600000,
};

struct known_log {
    char name[TOPIC_NAME_MAX + 16]; /* "orders-0" */
    char topic[TOPIC_NAME_MAX + 1];
    int32_t partition;
    int dir;
    struct uuid topic_id;  /* whose all of this is; zero: a file did not say, and then it counts for nothing */
    int64_t first_dirty;   /* everything below is clean */
    int64_t horizon_ms;    /* HORIZON_... */
    bool unfinished;       /* the last pass did not get as far as it wanted */
    int64_t not_before_ms; /* it failed: left alone until then, monotonic */
    int64_t retry_ms;      /* how long it is left alone */
    bool seen;             /* in this round */
    UT_hash_handle hh;
};

/* log.cleaner.X */
struct settings {
    int64_t map_bytes, backoff_ms;
    double bytes_per_second;
};

struct cleaner {
    const struct world *world;
    struct logdirs *dirs;
    struct partitions *partitions;
    struct thread *thread;
    struct lock mu;
    struct cond wake;
    bool stopping;       /* guarded by mu */
    struct settings now; /* guarded by mu */
    struct known_log *logs;
    int64_t idle_from_ms; /* since when nothing was urgent */
    /* the pass */
    struct partition *at;
    int64_t began_ms, unlooked_bytes;
    int64_t paced_from_ms, paced_bytes; /* at paced_speed, that is since the pass began or the speed changed */
    double paced_speed;
};

/* ---- what is remembered ---- */

static struct known_log *log_get(struct cleaner *c, const char *topic, int32_t partition, int dir)
{
    char name[TOPIC_NAME_MAX + 16];
    struct known_log *k;

    int n = snprintf(name, sizeof name, "%s-%" PRId32, topic, partition);
    KCHECK(n > 0 && (size_t)n < sizeof name);
    HASH_FIND(hh, c->logs, name, (size_t)n, k);
    if (k != NULL)
        return k;
    k = xcalloc(1, sizeof *k);
    memcpy(k->name, name, (size_t)n + 1);
    snprintf(k->topic, sizeof k->topic, "%s", topic);
    k->partition = partition;
    k->dir = dir;
    k->horizon_ms = HORIZON_NONE;
    HASH_ADD_KEYPTR(hh, c->logs, k->name, (size_t)n, k);
    return k;
}

static void log_reset(struct known_log *k, const struct uuid *topic_id)
{
    k->topic_id = *topic_id;
    k->first_dirty = k->not_before_ms = k->retry_ms = 0;
    k->horizon_ms = HORIZON_NONE;
    k->unfinished = false;
}

struct reading {
    struct cleaner *cleaner;
    int dir;
};

static bool is_name(const char *topic)
{
    return topic[0] != '\0' && strlen(topic) <= TOPIC_NAME_MAX;
}

static void take_offset(void *arg, const struct clean_mark *m)
{
    struct reading *r = arg;
    if (!is_name(m->topic))
        return;
    struct known_log *k = log_get(r->cleaner, m->topic, m->partition, r->dir);
    k->first_dirty = m->value;
    k->horizon_ms = HORIZON_UNKNOWN; /* unless the other file knows */
}

static void take_horizon(void *arg, const struct clean_mark *m)
{
    struct reading *r = arg;
    if (!is_name(m->topic))
        return;
    struct known_log *k = log_get(r->cleaner, m->topic, m->partition, r->dir);
    k->topic_id = m->topic_id;
    k->horizon_ms = m->value == INT64_MAX ? HORIZON_NONE : m->value;
}

static void read_file(struct cleaner *c, int dir, const char *file, clean_mark_fn *take)
{
    struct reading r = { c, dir };
    struct datadir *dd = logdirs_at(c->dirs, dir);
    int rc = clean_marks_read(dd, file, take, &r);

    if (rc < 0)
        log_warn("%s/%s cannot be read: %s; logs are cleaned from their front again", datadir_path(dd), file,
                 rc == -EBADMSG ? "it is damaged" : strerror(-rc));
}

static int64_t offset_of(const struct known_log *k)
{
    return k->first_dirty;
}

static int64_t horizon_of(const struct known_log *k)
{
    return k->horizon_ms == HORIZON_NONE ? INT64_MAX : k->horizon_ms;
}

static int write_file(struct cleaner *c, int dir, const char *file, enum clean_marks_form form,
                      int64_t (*value)(const struct known_log *k))
{
    struct datadir *dd = logdirs_at(c->dirs, dir);
    CLEANUP(freep) struct clean_mark *marks = xcalloc(HASH_COUNT(c->logs) + 1, sizeof *marks);
    struct known_log *k, *tmp;
    size_t n = 0;

    HASH_ITER (hh, c->logs, k, tmp) {
        if (k->dir == dir)
            marks[n++] = (struct clean_mark){ k->topic, k->partition, value(k), k->topic_id };
    }
    int rc = clean_marks_write(dd, file, marks, n, form);
    if (rc < 0)
        log_warn("%s/%s cannot be written: %s; after a restart some cleaning is done again", datadir_path(dd),
                 file, strerror(-rc));
    return rc;
}

/* The second says whose the first is, so it is written only when the first was: a mark of a topic that is gone never
 * gets the id of the one made anew. */
static void save(struct cleaner *c, int dir)
{
    struct datadir *dd = logdirs_at(c->dirs, dir);

    if (datadir_failed(dd) || datadir_is_full(dd))
        return;
    if (write_file(c, dir, CLEAN_OFFSETS_FILE, CLEAN_MARKS_KAFKA, offset_of) == 0)
        write_file(c, dir, CLEAN_HORIZONS_FILE, CLEAN_MARKS_WITH_ID, horizon_of);
}

/* ---- choosing ---- */

struct round {
    struct cleaner *cleaner;
    struct partition *best; /* a reference */
    struct known_log *best_log;
    double urgency;
};

static struct topic_config *config_of(struct partition *pt)
{
    lock_take(&pt->mu);
    struct topic_config *cfg = topic_config_ref(pt->config);
    lock_release(&pt->mu);
    return cfg;
}

static int64_t limit_of(const struct partition_view *v)
{
    return MIN(v->hw, v->lso);
}

/* What was closed is cleaned once it is on disk, which the flusher sees to. */
static void roll_if_old(struct partition *pt, const struct topic_config *cfg, int64_t now_ms)
{
    if (plog_roll_if_older(pt->log, MIN(cfg->plog.segment_ms, cfg->max_compaction_lag_ms), now_ms) > 0)
        partition_flush_soon(pt);
}

static void note_failure(struct cleaner *c, struct partition *pt, struct known_log *k, int rc)
{
    if (partition_note_error(pt, -rc))
        return;
    k->retry_ms = MIN(MAX(k->retry_ms * 2, RETRY_MIN_MS), RETRY_MAX_MS);
    k->not_before_ms = world_mono_ms(c->world) + k->retry_ms;
    log_warn("%s: cleaning failed: %s; it is tried again in %" PRId64 " s, others go on", plog_name(pt->log),
             rc == -EBADMSG ? "the log is damaged" : strerror(-rc), k->retry_ms / 1000);
}

static double look_at(struct cleaner *c, struct partition *pt, struct known_log *k,
                      const struct topic_config *cfg, const struct partition_view *v)
{
    int64_t now_ms = world_wall_ms(c->world);
    struct clean_look look;

    roll_if_old(pt, cfg, now_ms);
    int rc = plog_clean_look(pt->log, k->first_dirty, limit_of(v), cfg->min_compaction_lag_ms, now_ms, &look);
    if (rc < 0) {
        note_failure(c, pt, k, rc);
        return 0;
    }
    return cleaner_urgency(cfg, &look, k->unfinished, k->horizon_ms, now_ms);
}

static void consider(struct round *r, struct partition *pt, const struct topic_config *cfg)
{
    struct partition_view v;
    struct known_log *k = log_get(r->cleaner, pt->topic, pt->id, pt->dir);

    if (!uuid_eq(&k->topic_id, &pt->topic_id))
        log_reset(k, &pt->topic_id);
    k->dir = pt->dir;
    k->seen = true;
    partition_view(pt, &v);
    if (k->first_dirty > v.leo) /* the log lost its tail; what is written there now is not clean */
        log_reset(k, &pt->topic_id);
    if (!partition_view_is_settled(&v) || k->not_before_ms > world_mono_ms(r->cleaner->world))
        return;
    double urgency = look_at(r->cleaner, pt, k, cfg, &v);
    if (urgency <= r->urgency)
        return;
    partition_unref(r->best);
    r->best = partition_ref(pt);
    r->best_log = k;
    r->urgency = urgency;
}

static bool is_stopping(struct cleaner *c)
{
    lock_take(&c->mu);
    bool stopping = c->stopping;
    lock_release(&c->mu);
    return stopping;
}

static void consider_partition(void *arg, struct partition *pt)
{
    struct round *r = arg;

    if (pt->log == NULL || pt->dir < 0 || is_stopping(r->cleaner))
        return;
    struct topic_config *cfg = config_of(pt);
    if (cfg->compact)
        consider(r, pt, cfg);
    topic_config_unref(cfg);
}

/* Topics that were deleted, or are compacted no longer. */
static void forget_unseen(struct cleaner *c)
{
    struct known_log *k, *tmp;
    CLEANUP(freep) bool *changed = xcalloc((size_t)logdirs_count(c->dirs) + 1, sizeof *changed);

    if (is_stopping(c))
        return; /* the round was cut short */
    HASH_ITER (hh, c->logs, k, tmp) {
        if (k->seen) {
            k->seen = false;
            continue;
        }
        changed[k->dir] = true;
        HASH_DEL(c->logs, k);
        free(k);
    }
    for (int i = 0; i < logdirs_count(c->dirs); i++)
        if (changed[i])
            save(c, i);
}

/* ---- a pass ---- */

static bool is_deleted(struct partition *pt)
{
    lock_take(&pt->mu);
    bool deleted = pt->deleted;
    lock_release(&pt->mu);
    return deleted;
}

/* Until the time that due() names, which is asked again when the settings have changed. */
static void wait_until(struct cleaner *c, int64_t (*due)(struct cleaner *c))
{
    for (int64_t until_ms; !c->stopping && world_mono_ms(c->world) < (until_ms = due(c));) {
        cond_wait_until(&c->wake, &c->mu, until_ms);
    }
}

static void pace_anew(struct cleaner *c)
{
    lock_assert_held(&c->mu);
    c->paced_from_ms = world_mono_ms(c->world);
    c->paced_bytes = 0;
    c->paced_speed = c->now.bytes_per_second;
}

/* log.cleaner.io.max.bytes.per.second: as much as has been read and written may take that long. */
static int64_t due_by_speed(struct cleaner *c)
{
    if (c->paced_speed != c->now.bytes_per_second)
        pace_anew(c);
    double due_ms = (double)c->paced_bytes * 1000 / c->paced_speed;
    return due_ms < 1 ? 0 : time_add(c->paced_from_ms, due_ms < 1e18 ? (int64_t)due_ms : INT64_MAX);
}

static bool go_on(void *arg, int64_t bytes)
{
    struct cleaner *c = arg;

    c->unlooked_bytes += bytes;
    if (c->unlooked_bytes < LOOK_EVERY_BYTES)
        return true;
    c->paced_bytes += c->unlooked_bytes;
    c->unlooked_bytes = 0;
    lock_take(&c->mu);
    wait_until(c, due_by_speed);
    bool stopping = c->stopping;
    lock_release(&c->mu);
    return !stopping && !is_deleted(c->at);
}

static void say(struct cleaner *c, struct partition *pt, const struct clean_result *r)
{
    if (r->records_before == r->records_after && r->segments_before == r->segments_after) {
        log_debug("%s: clean up to offset %" PRId64 ", nothing to remove", plog_name(pt->log),
                  r->first_dirty);
        return;
    }
    log_info("%s: cleaned up to offset %" PRId64 "%s: %" PRId64 " of %" PRId64 " records, %" PRId64
             " of %" PRId64 " bytes, %d of %d segments stay; %" PRId64 " ms",
             plog_name(pt->log), r->first_dirty, r->map_full ? " (the map of keys was full)" : "",
             r->records_after, r->records_before, r->bytes_after, r->bytes_before, r->segments_after,
             r->segments_before, world_mono_ms(c->world) - c->began_ms);
    if (r->keyless > 0)
        log_warn("%s: cleaning dropped %" PRId64 " records without a key", plog_name(pt->log), r->keyless);
}

static void take_result(struct cleaner *c, struct known_log *k, const struct clean_result *r)
{
    k->first_dirty = r->first_dirty;
    k->horizon_ms = r->next_horizon_ms < 0 ? HORIZON_NONE : MAX(r->next_horizon_ms, 1);
    k->unfinished = r->map_full;
    k->retry_ms = k->not_before_ms = 0;
    save(c, k->dir);
}

static void clean(struct cleaner *c, struct partition *pt, struct known_log *k)
{
    struct topic_config *cfg = config_of(pt);
    struct partition_view v;
    struct clean_result r;

    partition_view(pt, &v);
    c->at = pt;
    c->began_ms = world_mono_ms(c->world);
    c->unlooked_bytes = 0;
    lock_take(&c->mu);
    pace_anew(c);
    size_t map_bytes = (size_t)c->now.map_bytes;
    lock_release(&c->mu);
    struct clean_options o = {
        .first_dirty = k->first_dirty,
        .limit = limit_of(&v),
        .min_lag_ms = cfg->min_compaction_lag_ms,
        .now_ms = world_wall_ms(c->world),
        .delete_retention_ms = cfg->delete_retention_ms,
        .map_bytes = map_bytes,
        .go_on = go_on,
        .arg = c,
    };
    topic_config_unref(cfg);
    int rc = !partition_view_is_settled(&v)                  ? -ECANCELED
             : datadir_is_full(logdirs_at(c->dirs, pt->dir)) ? -ENOSPC /* it needs room first */
                                                             : plog_clean(pt->log, &o, &r);
    if (rc == 0) {
        say(c, pt, &r);
        take_result(c, k, &r);
    } else if (rc != -ECANCELED) {
        note_failure(c, pt, k, rc);
    }
}

/* ---- the thread ---- */

/* False: nothing was urgent. */
static bool run_round(struct cleaner *c)
{
    struct round r = { .cleaner = c };

    partitions_each(c->partitions, consider_partition, &r);
    forget_unseen(c);
    if (r.best == NULL)
        return false;
    clean(c, r.best, r.best_log);
    partition_unref(r.best);
    return true;
}

static int64_t due_by_backoff(struct cleaner *c)
{
    return time_add(c->idle_from_ms, MAX(c->now.backoff_ms, 1));
}

static void cleaner_main(void *arg)
{
    struct cleaner *c = arg;

    while (!is_stopping(c)) {
        if (run_round(c))
            continue;
        c->idle_from_ms = world_mono_ms(c->world);
        lock_take(&c->mu);
        wait_until(c, due_by_backoff);
        lock_release(&c->mu);
    }
}

void cleaner_configure(struct cleaner *c, const struct broker_config *now)
{
    if (c == NULL)
        return;
    lock_take(&c->mu);
    c->now = (struct settings){ now->log_cleaner_dedupe_buffer_size, now->log_cleaner_backoff_ms,
                                now->log_cleaner_io_max_bytes_per_second };
    cond_signal(&c->wake);
    lock_release(&c->mu);
}

struct cleaner *cleaner_new(const struct world *w, struct logdirs *dirs, struct partitions *ps, const struct broker_config *now)
{
    if (!now->log_cleaner_enable)
        return NULL;
    struct cleaner *c = xcalloc(1, sizeof *c);

    c->world = w;
    c->dirs = dirs;
    c->partitions = ps;
    lock_init(&c->mu, LOCK_RANK_CLEANER, "cleaner");
    cond_init(&c->wake, w->exec);
    for (int i = 0; i < logdirs_count(dirs); i++) {
        read_file(c, i, CLEAN_OFFSETS_FILE, take_offset);
        read_file(c, i, CLEAN_HORIZONS_FILE, take_horizon);
    }
    cleaner_configure(c, now);
    c->thread = thread_start(w->exec, cleaner_main, c, "klogd-clean");
    KCHECK(c->thread != NULL);
    return c;
}

void cleaner_stop(struct cleaner *c)
{
    if (c == NULL)
        return;
    lock_take(&c->mu);
    c->stopping = true;
    cond_signal(&c->wake);
    lock_release(&c->mu);
    thread_join(c->world->exec, c->thread);
}

void cleaner_free(struct cleaner *c)
{
    struct known_log *k, *tmp;

    if (c == NULL)
        return;
    HASH_ITER (hh, c->logs, k, tmp) {
        HASH_DEL(c->logs, k);
        free(k);
    }
    cond_done(&c->wake);
    lock_done(&c->mu);
    free(c);
}
