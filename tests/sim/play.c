/* SPDX-License-Identifier: Apache-2.0 */
/* One run: its world, its faults, and its end; see play.h. */
#include "tests/sim/play.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "tests/sim/diskcheck.h"
#include "tests/sim/libclient.h"
#include "tests/sim/marks.h"
#include "tests/sim/rot.h"
#include "tests/sim/simbroker.h"

enum {
    HEALED_S = 30,      /* after the faults: all must go on in this time */
    DRAIN_S = 40,       /* what is under way must be answered */
    START_S = 30,       /* a start, once all is healed */
    STOP_S = 60,        /* a stop */
    RESTART_SOON_MS = 100,
    SEED_FULL_CAPACITY = 64 << 20,
};

/* ---- the swarm ---- */
static void swarm_draw(struct swarm *sw, uint64_t seed)
{
    struct rnd r = rnd_of(seed, RND_SWARM, 0);
    *sw = (struct swarm){
        .faults_ms = rnd_log(&r, 500, 30000),
        .n_producers = (int)rnd_range(&r, 1, 4),
        .n_consumers = (int)rnd_range(&r, 1, 3),
        .n_members = rnd_one_in(&r, 2) ? (int)rnd_range(&r, 1, 4) : 0,
        .n_admins = rnd_one_in(&r, 8) ? 2 : 1,
        .n_rude = rnd_one_in(&r, 4),
        .n_dirs = rnd_one_in(&r, 4) ? 2 : 1,
        .n_loops = (int)rnd_range(&r, 1, 3),
        .n_workers = (int)rnd_range(&r, 1, 4),
        .segment_bytes = rnd_log(&r, 1024, 64 * 1024),
        .index_interval_bytes = rnd_log(&r, 64, 4096),
        .journal = rnd_one_in(&r, 2),
        .slowness = rnd_one_in(&r, 2) ? rnd_log(&r, 1000, 50000) : 1000,
        .write_back = rnd_one_in(&r, 2) ? (uint32_t)rnd_log(&r, 100, 100000) : 0,
        .part = rnd_one_in(&r, 4) ? (uint32_t)rnd_log(&r, 100, 100000) : 0,
        .compaction = rnd_one_in(&r, 3),
        .retention = rnd_one_in(&r, 3),
        .lazy = !rnd_one_in(&r, 3),
        .registers_compact_min = rnd_log(&r, 2048, 64 * 1024),
        .changes_settings = rnd_one_in(&r, 3),
        .has_lib = rnd_one_in(&r, 2),
    };
    if (sw->changes_settings) {
        sw->changes_policy = rnd_one_in(&r, 3);
        sw->last_dir_from = (int)rnd_log(&r, 1, 8);
        sw->n_dirs++;
    }
}

static void disk_make(struct play *p, uint64_t seed)
{
    struct simdisk_config cfg = { .seed = seed, .capacity = SEED_FULL_CAPACITY, .journal = p->swarm.journal };
    struct simdisk_chances chances = { .write_back = p->swarm.write_back, .part = p->swarm.part };
    p->disk = simdisk_new(&cfg);
    simdisk_set_chances(p->disk, &chances);
    simdisk_set_slowness(p->disk, p->swarm.slowness);
}

/* ---- lives of the broker ---- */
/* What could not be opened at the start, for want of space or descriptors, stays away until the next. */
static void note_shortage(struct play *p)
{
    p->needs_start |= sim_step_is_set(&p->full_ends) || sim_step_is_set(&p->fds_end);
}

static void on_restart(struct sim_step *st)
{
    struct play *p = container_of(st, struct play, restart);
    KCHECK(!p->host.process.is_up);
    p->n_lives++;
    note_shortage(p);
    simhost_start(&p->host, simbroker_main);
}

static bool note_end(void *arg, const uint8_t *p, const struct sim_batch_head *h)
{
    int64_t *end = arg;
    (void)p;
    *end = h->base_offset + h->last_offset_delta + 1;
    return true;
}

/* What a power cut may have taken of lazy topics: what is behind the last sound batch of each log. */
static void note_losses(struct play *p)
{
    for (int i = 0; i < p->truth.n_topics; i++) {
        const struct truth_topic *t = &p->truth.topics[i];
        for (int k = 0; k < t->n_partitions && t->is_lazy && !t->is_deleted; k++) {
            char dir[128];
            int64_t end = 0, at;
            if (diskread_find(p->disk, p->swarm.n_dirs, t->name, k, false, dir, sizeof dir))
                MARK_IF(diskread_log(p->disk, dir, false, false, 0, note_end, &end, &at) != NULL, "a power cut tore a lazy log");
            MARK_IF(end < t->parts[k].committed, "a power cut took what was acknowledged by a lazy topic");
            truth_lost(&p->truth, i, k, end);
        }
    }
}

static void on_host_ended(struct simhost *h)
{
    struct play *p = h->user;
    bool healed = p->phase != PLAY_FAULTS;
    p->stopped_clean = h->how == HOST_RETURNED && p->stopped_clean;
    p->n_crashes += h->how == HOST_KILLED || h->how == HOST_DIED;
    p->n_power_cuts += h->how == HOST_POWER_CUT;
    MARK_IF(h->how == HOST_DIED, "the last log directory failed");
    MARK_IF(h->how == HOST_KILLED && p->broker == NULL && !p->is_stopping, "killed in a start");
    MARK_IF(h->how == HOST_POWER_CUT && p->broker == NULL && !p->is_stopping, "power cut in a start");
    MARK_IF(h->how != HOST_RETURNED && p->is_stopping, "killed in a stop");
    p->is_stopping = false;
    p->broker = NULL;
    if (h->how == HOST_POWER_CUT) {
        note_losses(p);
        p->truth.positions_may_go |= p->was_lazy;
    }
    if (p->phase == PLAY_OVER)
        return;
    if (healed && h->how == HOST_DIED && !p->needs_start)
        sim_fail(p->sim, "C12", "the broker ended itself with status %d, and nothing was wrong", h->die_status);
    int64_t down = healed ? RESTART_SOON_MS : MAX((int64_t)1, p->plan.down_ms[p->n_ends % PLAN_MAX]);
    p->n_ends++;
    if (p->rot_due != NULL)
        rot(p, p->rot_due->a, p->rot_due->b);
    p->rot_due = NULL;
    sim_in(p->sim, &p->restart, down * SIM_MS);
}

/* S7: whoever serves says to no later start that all is clean, not even after a power cut. */
static void check_marker(struct play *p)
{
    char path[64];
    for (int i = 0; i < p->swarm.n_dirs; i++) {
        snprintf(path, sizeof path, "/data%d/clean-shutdown", i);
        if (simdisk_size(p->disk, path, false) >= 0 || simdisk_size(p->disk, path, true) >= 0)
            sim_fail(p->sim, "S7", "%s is there while the broker serves", path);
    }
}

void play_serving(struct play *p)
{
    check_marker(p);
    note_shortage(p);
    sim_note(p->sim, "serving", p->host.process.life, 0, 0);
}

void play_start_failed(struct play *p, int rc, const char *why)
{
    p->n_failed_starts++;
    p->stopped_clean = false;
    MARK("a start failed");
    if (rot_taken_back(p)) {
        MARK("rot: the registers, or meta.properties, were refused");
        return;
    }
    if (p->phase != PLAY_FAULTS && !p->needs_start)
        sim_fail(p->sim, "START", "nothing is wrong, and the broker does not start: %s (%d)", why, rc);
}

void play_stopped(struct play *p, bool clean)
{
    p->broker = NULL;
    p->stopped_clean = clean;
    p->n_clean_stops += clean;
    MARK_IF(!clean, "a stop was not clean");
}

/* ---- faults ---- */
static bool is_up(const struct play *p)
{
    return p->host.process.is_up;
}

static void crash_at(struct play *p, const struct fault *f, bool disk, enum simhost_end how)
{
    p->host.how = how;
    if (disk)
        simdisk_stop_in(p->disk, f->a);
    else
        p->host.calls_to_crash = f->a;
}

static void disk_fails(struct play *p, const struct fault *f)
{
    static const enum simdisk_op ops[] = { SIMDISK_WRITE, SIMDISK_SYNC, SIMDISK_CREATE, SIMDISK_READ, SIMDISK_TRUNCATE,
                                           SIMDISK_RENAME, SIMDISK_UNLINK, SIMDISK_ALLOCATE, SIMDISK_OPEN };
    enum simdisk_op op = f->kind == FAULT_SYNC ? SIMDISK_SYNC : ops[(uint64_t)f->b % ARRAY_LEN(ops)];
    struct simdisk_fault one = { .ops = 1u << op, .at = f->a, .n = 1, .eno = EIO, .part = op == SIMDISK_WRITE };
    simdisk_plan(p->disk, &one, 1);
    p->needs_start = p->disk_lied = true;
}

static void do_fault(struct play *p, const struct fault *f)
{
    sim_note(p->sim, fault_names[f->kind], f->a, f->b, f->c);
    marks_fault(f->kind);
    if ((f->kind == FAULT_FULL || f->kind == FAULT_FDS) && p->broker == NULL)
        p->needs_start = true; /* it is starting, or stopping */
    switch (f->kind) {
    case FAULT_KILL:
        simhost_end(&p->host, HOST_KILLED);
        break;
    case FAULT_CUT:
        simhost_end(&p->host, HOST_POWER_CUT);
        break;
    case FAULT_KILL_AT_DISK:
    case FAULT_CUT_AT_DISK:
        crash_at(p, f, true, f->kind == FAULT_CUT_AT_DISK ? HOST_POWER_CUT : HOST_KILLED);
        break;
    case FAULT_KILL_AT_NET:
    case FAULT_CUT_AT_NET:
        crash_at(p, f, false, f->kind == FAULT_CUT_AT_NET ? HOST_POWER_CUT : HOST_KILLED);
        break;
    case FAULT_STOP:
        p->is_stopping |= p->broker != NULL;
        simbroker_ask_stop(p);
        break;
    case FAULT_PAUSE:
        simhost_pause(&p->host, f->a * SIM_MS);
        p->paused_until_ns = MAX(p->paused_until_ns, sim_now(p->sim) + f->a * SIM_MS);
        break;
    case FAULT_CLOCK:
        simclock_set(&p->host.clock, f->a);
        break;
    case FAULT_CLOG:
        simnet_clog(p->nw, (int)f->a, (int)f->b, f->c * SIM_MS);
        break;
    case FAULT_CONNECTION:
        simnet_cut_one(p->nw, PLAY_BROKER_HOST);
        break;
    case FAULT_REFUSE:
        simnet_refuse(p->nw, PLAY_BROKER_HOST, f->a * SIM_MS);
        break;
    case FAULT_FULL:
        simdisk_set_capacity(p->disk, simdisk_used(p->disk) + f->a);
        p->full_until_ns = INT64_MAX;
        sim_in(p->sim, &p->full_ends, f->b * SIM_MS);
        break;
    case FAULT_SYNC:
    case FAULT_EIO:
        disk_fails(p, f);
        break;
    case FAULT_FDS:
        simdisk_set_fd_limit(p->disk, simdisk_descriptors(p->disk) + (int)f->a);
        sim_in(p->sim, &p->fds_end, f->b * SIM_MS);
        break;
    case FAULT_SLOW:
        simdisk_set_slowness(p->disk, f->a);
        sim_in(p->sim, &p->slow_ends, f->b * SIM_MS);
        break;
    case FAULT_ROT:
        if (f->c != 0 && p->broker != NULL) {
            rot_beneath(p, f->a);
            break;
        }
        p->rot_due = f;
        p->needs_start = true;
        simhost_end(&p->host, HOST_KILLED);
        break;
    case FAULT_PART: /* a broker alone has none of these */
    case FAULT_AWAY:
    case FAULT_EXPIRE:
    case FAULT_STORE:
    case FAULT_AMBUSH:
    case FAULT_KINDS:
        break;
    }
}

static void on_next_fault(struct sim_step *st)
{
    struct play *p = container_of(st, struct play, next_fault);
    const struct fault *f = &p->plan.faults[p->n_faults++];
    if (p->n_faults < p->plan.n)
        sim_at(p->sim, st, p->plan.faults[p->n_faults].at_ms * SIM_MS);
    if (is_up(p) || f->kind == FAULT_CLOG || f->kind == FAULT_REFUSE)
        do_fault(p, f);
}

static void on_full_ends(struct sim_step *st)
{
    struct play *p = container_of(st, struct play, full_ends);
    simdisk_set_capacity(p->disk, SEED_FULL_CAPACITY);
    p->full_until_ns = MIN(p->full_until_ns, sim_now(p->sim) + SIM_S);
}

static void on_fds_end(struct sim_step *st)
{
    struct play *p = container_of(st, struct play, fds_end);
    simdisk_set_fd_limit(p->disk, (int)p->host.fd_limit);
}

static void on_slow_ends(struct sim_step *st)
{
    const struct play *p = container_of(st, struct play, slow_ends);
    simdisk_set_slowness(p->disk, p->swarm.slowness);
}

/* Nothing is wrong any more. A log directory that failed needs a new start. */
static void heal(struct play *p)
{
    sim_note(p->sim, "healed", 0, 0, 0);
    p->phase = PLAY_HEALED;
    sim_cancel(p->sim, &p->next_fault);
    sim_cancel(p->sim, &p->full_ends);
    sim_cancel(p->sim, &p->fds_end);
    sim_cancel(p->sim, &p->slow_ends);
    on_full_ends(&p->full_ends);
    on_fds_end(&p->fds_end);
    simdisk_rescue(p->disk);
    simdisk_set_slowness(p->disk, 1000);
    simdisk_plan(p->disk, NULL, 0);
    simdisk_stop_in(p->disk, -1);
    p->host.calls_to_crash = -1;
    p->host.how = HOST_KILLED;
    p->host.exec.fibers.stopped_until_ns = MIN(p->host.exec.fibers.stopped_until_ns, sim_now(p->sim));
    for (int h = 1; h < SIM_HOSTS; h++) {
        simnet_clog(p->nw, 0, h, 0);
        simnet_clog(p->nw, h, 0, 0);
    }
    simnet_refuse(p->nw, PLAY_BROKER_HOST, 0);
    if (is_up(p) && p->needs_start)
        simhost_end(&p->host, HOST_KILLED);
    else if (!is_up(p))
        sim_in(p->sim, &p->restart, 0);
    p->needs_start = false;
}

/* ---- what is looked at ---- */
void play_mark_error(struct play *p, int16_t api, int16_t err)
{
    (void)p;
    marks_error(api, err);
}

/* ---- what the broker does to its disk ---- */
static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

/* S2: a log is written where it ends, and nowhere else. Who writes in another place has left something behind. */
static void on_rewrote(struct simhost *h, const char *path, int64_t at)
{
    const struct play *p = h->user;
    if (ends_with(path, ".log"))
        sim_fail(p->sim, "S2", "%s: a write at %" PRId64 " changes what stood there, or leaves a hole", path, at);
}

/* S6: what takes the place of a small file is on the disk before. */
static void on_renamed(struct simhost *h, const char *from, const char *to, bool unsynced)
{
    const struct play *p = h->user;
    MARK_IF(ends_with(to, "registers.snapshot"), "the registers began a new journal");
    if (unsynced && ends_with(from, ".tmp"))
        sim_fail(p->sim, "S6", "%s becomes %s with bytes that are not synced", from, to);
}

/* ---- phases ---- */
static void run_until(struct play *p, int64_t until_ns, bool (*reached)(const struct play *p))
{
    while (reached == NULL || !reached(p))
        if (!sim_go_on(p->sim, until_ns))
            return;
}

static bool has_ended(const struct play *p)
{
    return !p->host.process.is_up;
}

static bool serves(const struct play *p)
{
    return p->broker != NULL;
}

/* Each client has had an answer since. */
static void check_alive(struct play *p)
{
    for (int i = 0; i < p->n_clients; i++) {
        const struct rawclient *c = p->clients[i];
        if (!c->gets_nothing && c->n_answers == p->answers[i]) {
            fibers_print(&p->host.exec.fibers);
            sim_fail(p->sim, "C12", "%s %d has had no answer for %d s, and nothing is wrong", c->kind->name, c->number, HEALED_S);
        }
    }
}

static bool all_are_alive(const struct play *p)
{
    for (int i = 0; i < p->n_clients; i++)
        if (!p->clients[i]->gets_nothing && p->clients[i]->n_answers == p->answers[i])
            return false;
    return true;
}

static void phase_healed(struct play *p)
{
    heal(p);
    run_until(p, sim_now(p->sim) + START_S * SIM_S, serves);
    if (!serves(p)) {
        fibers_print(&p->host.exec.fibers);
        sim_fail(p->sim, "C12", "the broker has not started within %d s, and nothing is wrong", START_S);
    }
    for (int i = 0; i < p->n_clients; i++)
        p->answers[i] = p->clients[i]->n_answers;
    run_until(p, sim_now(p->sim) + rnd_range(&p->rnd, 1, 5) * SIM_S, NULL);
    run_until(p, sim_now(p->sim) + HEALED_S * SIM_S, all_are_alive);
    check_alive(p);
}

static bool is_drained(const struct play *p)
{
    for (int i = 0; i < p->n_clients; i++)
        if (p->clients[i]->kind == &client_producer && p->clients[i]->n_asked > 0)
            return false;
    return libclient_pending(p->lib) == 0;
}

static bool has_rot(const struct play *p)
{
    for (int i = 0; i < p->truth.n_topics; i++)
        for (int k = 0; k < TRUTH_PARTITIONS; k++)
            if (p->truth.topics[i].parts[k].rotten_to > 0 && !p->truth.topics[i].delete_asked)
                return true;
    return false;
}

static bool has_swept(const struct play *p)
{
    return client_sweeper_is_done(p->sweeper);
}

/* All but what has rotted can be read. */
static void check_rotten(struct play *p)
{
    if (!has_rot(p))
        return;
    p->sweeper = rawclient_new(p, &client_sweeper, PLAY_CLIENTS, 1 + PLAY_CLIENTS % (SIM_HOSTS - 1));
    run_until(p, sim_now(p->sim) + DRAIN_S * SIM_S, has_swept);
    if (!has_swept(p))
        sim_fail(p->sim, "C12", "what stands before and behind rotten places is not given within %d s", DRAIN_S);
    MARK("partitions with rotten places were read");
}

static void phase_end(struct play *p)
{
    p->phase = PLAY_DRAINING;
    for (int i = 0; i < p->n_clients; i++)
        p->clients[i]->stops = true;
    libclient_stop(p->lib);
    run_until(p, sim_now(p->sim) + DRAIN_S * SIM_S, is_drained);
    if (!is_drained(p))
        sim_fail(p->sim, "C12", "batches have had no answer for %d s, and nothing is wrong", DRAIN_S);
    check_rotten(p);
    p->phase = PLAY_OVER;
    simbroker_ask_stop(p);
    run_until(p, sim_now(p->sim) + STOP_S * SIM_S, has_ended);
    if (!has_ended(p)) {
        fibers_print(&p->host.exec.fibers);
        sim_fail(p->sim, "C12", "the broker has not stopped within %d s", STOP_S);
    }
    if (!p->stopped_clean)
        sim_fail(p->sim, "S7", "nothing is wrong, and the stop was not clean");
    diskcheck(p);
}

/* ---- the broker's lines ---- */
/* Without rot and errors of the disk nothing is ever damaged or lost. */
static const char *const never[] = {
    "damage between positions",
    "cannot be read: its records",
    "is malformed",
    "the registers are an older copy",
    "contradicts what was read before",
    "it was closed with",
    "does not hold what was written there",
    "its partitions are offline until klogd is started anew",
};

static void on_line(void *arg, enum log_level level, const char *line)
{
    struct play *p = arg;
    (void)level;
    marks_line(line);
    sim_say(p->sim, "                         | %s", line);
    if (p->prints_lines)
        printf("%12.6f  %s\n", (double)sim_now(p->sim) / 1e9, line);
    p->needs_start |= p->phase == PLAY_FAULTS && strstr(line, "the partition is not served") != NULL; /* until the next start */
    if (strstr(line, "invariant") != NULL)
        sim_fail(p->sim, "KCHECK", "%s", line);
    for (size_t i = 0; i < ARRAY_LEN(never) && !p->disk_lied; i++)
        if (strstr(line, never[i]) != NULL)
            sim_fail(p->sim, "S12", "nothing was damaged, and the broker says: %s", line);
}

/* ---- a run ---- */
static void add_clients(struct play *p, const struct client_kind *kind, int n)
{
    for (int i = 0; i < n && p->n_clients < PLAY_CLIENTS; i++) {
        p->clients[p->n_clients] = rawclient_new(p, kind, p->n_clients, 1 + p->n_clients % (SIM_HOSTS - 1));
        p->n_clients++;
    }
}

static void play_begin(struct play *p, uint64_t seed, const struct plan *plan)
{
    const struct swarm *sw = &p->swarm;
    p->rnd = rnd_of(seed, RND_SWARM, 1);
    swarm_draw(&p->swarm, seed);
    if (plan != NULL)
        p->plan = *plan;
    else
        play_plan_of(seed, &p->plan);
    for (int i = 0; i < p->plan.n; i++)
        if (p->plan.faults[i].kind == FAULT_ROT && p->plan.faults[i].b == ROT_OFFSET) /* topics in which records may rot */
            p->swarm.compaction = p->swarm.retention = p->swarm.lazy = false;
    p->nw = simnet_new(p->sim);
    disk_make(p, seed);
    truth_init(&p->truth, p->sim);
    simhost_init(&p->host, p->sim, p->nw, p->disk, PLAY_BROKER_HOST);
    p->host.ended = on_host_ended;
    p->host.rewrote = on_rewrote;
    p->host.renamed = on_renamed;
    p->host.user = p;
    p->restart.run = on_restart;
    p->next_fault.run = on_next_fault;
    p->full_ends.run = on_full_ends;
    p->fds_end.run = on_fds_end;
    p->slow_ends.run = on_slow_ends;
    sim_in(p->sim, &p->restart, 0);
    if (p->plan.n > 0)
        sim_at(p->sim, &p->next_fault, p->plan.faults[0].at_ms * SIM_MS);
    add_clients(p, &client_admin, sw->n_admins);
    add_clients(p, &client_producer, sw->n_producers);
    add_clients(p, &client_consumer, sw->n_consumers);
    add_clients(p, &client_member, sw->n_members);
    add_clients(p, &client_rude, sw->n_rude);
    p->lib = sw->has_lib ? libclient_new(p) : NULL;
}

void play_plan_of(uint64_t seed, struct plan *ret)
{
    struct swarm sw;
    swarm_draw(&sw, seed);
    plan_draw(ret, seed, sw.faults_ms, 8);
}

static void play_free(struct play *p)
{
    for (int i = 0; i < p->n_clients; i++)
        rawclient_free(p->clients[i]);
    rawclient_free(p->sweeper);
    libclient_free(p->lib);
    simnet_free(p->nw);
    simdisk_free(p->disk);
    truth_done(&p->truth);
    sim_free(p->sim);
    free(p);
}

void play_run(uint64_t seed, const struct plan *plan, unsigned prints, struct play_figures *ret)
{
    struct play *p = xcalloc(1, sizeof *p);
    p->sim = sim_new(seed);
    sim_trace(p->sim, (prints & PLAY_TRACE) != 0);
    p->prints_lines = prints == PLAY_LINES;
    log_set_sink(on_line, p);
    play_begin(p, seed, plan);
    run_until(p, p->swarm.faults_ms * SIM_MS, NULL);
    phase_healed(p);
    phase_end(p);
    *ret = (struct play_figures){
        .hash = sim_hash(p->sim),
        .steps = sim_steps(p->sim),
        .events = sim_events(p->sim),
        .sim_ns = sim_now(p->sim),
        .n_lives = p->n_lives,
        .n_crashes = p->n_crashes,
        .n_power_cuts = p->n_power_cuts,
        .acked = p->truth.n_acked,
        .read = p->truth.n_read,
    };
    log_set_sink(NULL, NULL);
    play_free(p);
}
