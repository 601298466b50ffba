/* SPDX-License-Identifier: Apache-2.0 */
/* Several brokers: their world, their faults, and the end; see fleet.h. */
#include "tests/sim/fleet.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker.h"
#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "tests/sim/fleet_int.h"
#include "tests/sim/marks.h"

enum {
    RESTART_SOON_MS = 100,
    HEALED_S = 60, /* and twice the session's and the lag's time: all is led and in sync */
    SERVED_S = 30, /* each client has what it asks for */
    DRAIN_S = 40,
    STOP_S = 90,
    DISK_CAPACITY = 64 << 20,
};

static const char *bug_name;

/* What KLOG_BUG asks in this program's build of the state machines (core_replica.c and its neighbours). */
bool bug_is(const char *name);
bool bug_is(const char *name)
{
    return bug_name != NULL && strcmp(bug_name, name) == 0;
}

bool fleet_switch_off(const char *bug)
{
    static const char *const known[] = { "R1", "R1-damage", "R2", "R3", "R4", "R5", "R6", "R8", "R9", "R9-table", "R10", "R11",
                                         "R12", "R15" };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i], bug) == 0)
            bug_name = known[i];
    return bug_name != NULL;
}

/* ---- the swarm ---- */
static void swarm_draw(struct fleet_swarm *sw, uint64_t seed)
{
    struct rnd r = rnd_of(seed, RND_SWARM, 0);
    *sw = (struct fleet_swarm){
        .n_brokers = rnd_one_in(&r, 2) ? 3 : (int)rnd_range(&r, 1, FLEET_BROKERS),
        .faults_ms = rnd_log(&r, 2000, 30000),
        .n_producers = (int)rnd_range(&r, 1, 3),
        .n_consumers = (int)rnd_range(&r, 1, 2),
        .n_groups = (int)rnd_range(&r, 0, 1),
        .n_admins = 1,
        .n_topics = (int)rnd_range(&r, 1, 3),
        .deletes = rnd_one_in(&r, 4),
        .moves = rnd_one_in(&r, 3),
        .session_ms = rnd_log(&r, 500, 6000),
        .lag_ms = rnd_log(&r, 500, 6000),
        .fetch_wait_ms = rnd_log(&r, 50, 500),
        .fetch_bytes = rnd_one_in(&r, 2) ? rnd_log(&r, 1024, 1 << 20) : 1 << 20,
        .n_loops = (int)rnd_range(&r, 1, 2),
        .n_fetchers = (int)rnd_range(&r, 1, 2),
        .segment_bytes = rnd_log(&r, 1024, 64 * 1024),
        .async = rnd_one_in(&r, 6),
        .interval = rnd_one_in(&r, 6),
        .journal = rnd_one_in(&r, 2),
        .slowness = rnd_one_in(&r, 2) ? rnd_log(&r, 1000, 20000) : 1000,
        .write_back = rnd_one_in(&r, 2) ? (uint32_t)rnd_log(&r, 100, 100000) : 0,
        .part = rnd_one_in(&r, 4) ? (uint32_t)rnd_log(&r, 100, 100000) : 0,
        .loss_ppm = rnd_one_in(&r, 2) ? (uint32_t)rnd_log(&r, 100, 50000) : 0,
        .expiry_ppm = rnd_one_in(&r, 4) ? (uint32_t)rnd_log(&r, 100, 10000) : 0,
        .delay_ms = rnd_log(&r, 1, 50),
        .lag_registers_ms = rnd_log(&r, 1, 2000),
        .jitter_ms = rnd_one_in(&r, 2) ? rnd_log(&r, 10, 500) : 0,
    };
    for (int i = 0; i < 4; i++) {
        int rf = rnd_one_in(&r, 8) ? 1 : (int)rnd_range(&r, 2, 4);
        sw->rf[i] = MIN(sw->n_brokers, rf);
        sw->min_isr[i] = (int)rnd_range(&r, 1, sw->rf[i]);
        sw->n_partitions[i] = (int)rnd_range(&r, 1, 2);
    }
    sw->gone = sw->n_brokers >= 3 && rnd_one_in(&r, 4) ? (int)rnd_range(&r, 0, sw->n_brokers - 1) : -1;
}

void fleet_plan_of(uint64_t seed, struct plan *ret)
{
    struct fleet_swarm sw;
    swarm_draw(&sw, seed);
    fleet_plan_draw(ret, seed, &sw);
}

/* ---- one broker's life ---- */
static void set(struct broker_config *cfg, const char *key, const char *value)
{
    char err[256];
    if (broker_config_set(cfg, key, value, err, sizeof err) < 0) {
        printf("%s=%s: %s\n", key, value, err);
        KCHECK(false);
    }
}

static void set_number(struct broker_config *cfg, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    set(cfg, key, text);
}

static void configure(struct broker_config *cfg, const struct fleet_broker *fb)
{
    const struct fleet_swarm *sw = &fb->fleet->swarm;
    char listener[64];
    snprintf(listener, sizeof listener, "PLAINTEXT://10.0.0.%d:%d", fb->index + 1, FLEET_PORT);
    broker_config_init(cfg);
    set(cfg, "log.dirs", "/data0");
    set(cfg, "listeners", listener);
    set(cfg, "log.level", "debug");
    set_number(cfg, "broker.id", fb->index + 1);
    set(cfg, "zookeeper.connect", "10.0.0.16:2181"); /* in whose place the simulated registers are opened */
    set_number(cfg, "zookeeper.session.timeout.ms", sw->session_ms);
    set_number(cfg, "replica.lag.time.max.ms", sw->lag_ms);
    set_number(cfg, "replica.fetch.wait.max.ms", MIN(sw->fetch_wait_ms, sw->lag_ms));
    set_number(cfg, "replica.fetch.max.bytes", sw->fetch_bytes);
    set_number(cfg, "num.replica.fetchers", sw->n_fetchers);
    set_number(cfg, "num.network.threads", sw->n_loops);
    set_number(cfg, "num.io.threads", 2);
    set(cfg, "auto.create.topics.enable", "false");
    set(cfg, "offsets.topic.num.partitions", "1");
    set_number(cfg, "offsets.topic.replication.factor", MIN(3, sw->n_brokers));
    set_number(cfg, "offsets.topic.segment.bytes", sw->segment_bytes);
    set(cfg, "log.retention.check.interval.ms", "5000");
    set(cfg, "log.cleaner.backoff.ms", "5000");
    set(cfg, "log.cleaner.dedupe.buffer.size", "1048576");
    set(cfg, "socket.request.max.bytes", "1048576");
    set(cfg, "leader.imbalance.check.interval.seconds", "5");
    set(cfg, "flush.policy", sw->async ? "async" : sw->interval ? "interval" : "commit");
    if (sw->interval)
        set(cfg, "log.flush.interval.ms", "50");
}

static int open_registers(void *arg, struct loop *lp, struct registers **ret, char *err, size_t err_size)
{
    struct fleet_broker *fb = arg;
    (void)err;
    (void)err_size;
    simregisters_open(fb->fleet->registers, lp, fb->index + 1, ret);
    return 0;
}

static void broker_main(struct simhost *h)
{
    struct fleet_broker *fb = container_of(h, struct fleet_broker, host);
    struct fleet *f = fb->fleet;
    struct broker *b = xcalloc(1, sizeof *b);
    char err[512] = "";
    b->world = &h->world;
    b->open_registers = open_registers;
    b->open_registers_arg = fb;
    configure(&b->config, fb);
    fb->main = fiber_now();
    fb->stop = false;
    int rc = broker_start(b, err, sizeof err);
    if (rc < 0) {
        sim_note(f->sim, "start failed", fb->index, rc, 0);
        sim_say(f->sim, "broker %d: start failed: %s", fb->index + 1, err);
        MARK("fleet: a start failed");
        fb->stopped_clean = false;
        return;
    }
    sim_note(f->sim, "serving", fb->index, h->process.life, 0);
    fb->broker = b;
    while (!fb->stop)
        fiber_wait(INT64_MAX, "the order to stop");
    sim_note(f->sim, "stopping", fb->index, 0, 0);
    fb->stopped_clean = broker_stop(b);
    fb->broker = NULL;
    broker_config_done(&b->config);
    free(b);
}

static void ask_stop(struct fleet_broker *fb)
{
    if (fb->broker == NULL || fb->stop)
        return;
    fb->stop = true;
    fiber_wake(fb->main);
}

static void on_restart(struct sim_step *st)
{
    struct fleet_broker *fb = container_of(st, struct fleet_broker, restart);
    fb->fleet->n_lives++;
    simhost_start(&fb->host, broker_main);
}

static bool is_gone(const struct fleet_broker *fb)
{
    return fb->fleet->phase != PLAY_FAULTS && fb->fleet->swarm.gone == fb->index;
}

static void on_host_ended(struct simhost *h)
{
    struct fleet_broker *fb = container_of(h, struct fleet_broker, host);
    struct fleet *f = fb->fleet;
    f->n_crashes += h->how == HOST_KILLED || h->how == HOST_DIED;
    f->n_power_cuts += h->how == HOST_POWER_CUT;
    MARK_IF(h->how != HOST_RETURNED && fb->broker == NULL && !fb->stop, "fleet: ended in a start");
    MARK_IF(h->how != HOST_RETURNED && fb->stop, "fleet: ended in a stop");
    simregisters_died(f->registers, fb->index + 1);
    fb->broker = NULL;
    if (h->how == HOST_DIED && f->phase != PLAY_FAULTS)
        sim_fail(f->sim, "C12", "broker %d ended itself with status %d, and nothing is wrong", fb->index + 1, h->die_status);
    if (f->phase == PLAY_OVER || is_gone(fb))
        return;
    int64_t down = f->plan.down_ms[(fb->index * 13 + fb->n_ends++) % PLAN_MAX];
    sim_in(f->sim, &fb->restart, (f->phase == PLAY_FAULTS ? MAX((int64_t)1, down) : RESTART_SOON_MS) * SIM_MS);
}

/* ---- faults ---- */
static void on_full_ends(struct sim_step *st)
{
    simdisk_set_capacity(container_of(st, struct fleet_broker, full_ends)->disk, DISK_CAPACITY);
}

static void on_slow_ends(struct sim_step *st)
{
    const struct fleet_broker *fb = container_of(st, struct fleet_broker, slow_ends);
    simdisk_set_slowness(fb->disk, fb->fleet->swarm.slowness);
}

static void crash_at(struct fleet_broker *fb, const struct fault *ft, bool disk, enum simhost_end how)
{
    fb->host.how = how;
    if (disk)
        simdisk_stop_in(fb->disk, ft->a);
    else
        fb->host.calls_to_crash = ft->a;
}

static void part(struct fleet *f, const struct fault *ft)
{
    for (int i = 0; i < f->swarm.n_brokers; i++)
        for (int k = 0; k < f->swarm.n_brokers; k++)
            if ((ft->a >> i & 1) != 0 && (ft->a >> k & 1) == 0) {
                if (ft->b != 2)
                    simnet_clog(f->nw, i, k, ft->c * SIM_MS);
                if (ft->b != 1)
                    simnet_clog(f->nw, k, i, ft->c * SIM_MS);
            }
}

static struct fleet_broker *by_id(struct fleet *f, int id)
{
    return id >= 1 && id <= f->swarm.n_brokers ? &f->b[id - 1] : NULL;
}

static void on_blow(struct sim_step *st)
{
    struct fleet *f = container_of(st, struct fleet, blow);
    struct fleet_broker *leader = by_id(f, f->struck_leader), *other = by_id(f, f->struck_other);
    const struct fault *ft = &f->struck;
    if (f->phase != PLAY_FAULTS)
        return;
    sim_note(f->sim, "ambush", ft->b, f->struck_leader, f->struck_other);
    MARK_IF(ft->b == FLEET_KILL_LEADER && leader != NULL, "fleet: a leader was killed in an ambush");
    MARK_IF(ft->b == FLEET_KILL_OTHER && other != NULL, "fleet: the other was killed in an ambush");
    MARK_IF(ft->b == FLEET_BLIND_LEADER && leader != NULL, "fleet: a leader lost the registers in an ambush");
    MARK_IF(ft->b == FLEET_PART_LEADER && leader != NULL && other != NULL, "fleet: a leader was parted in an ambush");
    if (ft->b == FLEET_KILL_LEADER && leader != NULL)
        simhost_end(&leader->host, HOST_KILLED);
    if (ft->b == FLEET_KILL_OTHER && other != NULL)
        simhost_end(&other->host, HOST_KILLED);
    if ((ft->b == FLEET_BLIND_LEADER || ft->b == FLEET_BLIND_AND_PART) && leader != NULL)
        simregisters_cut(f->registers, f->struck_leader, ft->c);
    if ((ft->b == FLEET_PART_LEADER || ft->b == FLEET_BLIND_AND_PART) && leader != NULL && other != NULL) {
        simnet_clog(f->nw, leader->index, other->index, ft->c * SIM_MS);
        simnet_clog(f->nw, other->index, leader->index, ft->c * SIM_MS);
    }
}

/* Dealt a little later, not in the middle of what happens. */
void fleet_happens(struct fleet *f, enum fleet_event ev, int leader, int other)
{
    for (int i = 0; i < f->n_ambushes && !sim_step_is_set(&f->blow); i++) {
        if (f->ambushes[i].a != (int64_t)ev)
            continue;
        f->struck = f->ambushes[i];
        f->ambushes[i] = f->ambushes[--f->n_ambushes];
        f->struck_leader = leader;
        f->struck_other = other;
        sim_in(f->sim, &f->blow, rnd_range(&f->jitters, 0, 3000) * SIM_US);
    }
}

static void do_fault(struct fleet *f, const struct fault *ft)
{
    struct fleet_broker *fb = &f->b[ft->c >= 0 && ft->c < f->swarm.n_brokers ? ft->c : 0];
    sim_note(f->sim, fault_names[ft->kind], ft->a, ft->b, ft->c);
    marks_fault(ft->kind);
    switch (ft->kind) {
    case FAULT_KILL:
        simhost_end(&fb->host, HOST_KILLED);
        break;
    case FAULT_CUT:
        simhost_end(&fb->host, HOST_POWER_CUT);
        break;
    case FAULT_KILL_AT_DISK:
    case FAULT_CUT_AT_DISK:
        crash_at(fb, ft, true, ft->kind == FAULT_CUT_AT_DISK ? HOST_POWER_CUT : HOST_KILLED);
        break;
    case FAULT_KILL_AT_NET:
    case FAULT_CUT_AT_NET:
        crash_at(fb, ft, false, ft->kind == FAULT_CUT_AT_NET ? HOST_POWER_CUT : HOST_KILLED);
        break;
    case FAULT_STOP:
        ask_stop(fb);
        break;
    case FAULT_PAUSE:
        simhost_pause(&fb->host, ft->a * SIM_MS);
        break;
    case FAULT_CLOCK:
        simclock_set(&fb->host.clock, ft->a);
        break;
    case FAULT_CLOG:
        simnet_clog(f->nw, (int)ft->a, (int)ft->b, ft->c * SIM_MS);
        break;
    case FAULT_CONNECTION:
        simnet_cut_one(f->nw, fb->index);
        break;
    case FAULT_REFUSE:
        simnet_refuse(f->nw, fb->index, ft->a * SIM_MS);
        break;
    case FAULT_FULL:
        fb->needs_start = true;
        simdisk_set_capacity(fb->disk, simdisk_used(fb->disk) + ft->a);
        sim_in(f->sim, &fb->full_ends, ft->b * SIM_MS);
        break;
    case FAULT_SLOW:
        simdisk_set_slowness(fb->disk, ft->a);
        sim_in(f->sim, &fb->slow_ends, ft->b * SIM_MS);
        break;
    case FAULT_PART:
        part(f, ft);
        break;
    case FAULT_AWAY:
        simregisters_cut(f->registers, fb->index + 1, ft->a);
        break;
    case FAULT_EXPIRE:
        simregisters_expire(f->registers, fb->index + 1);
        break;
    case FAULT_STORE:
        simregisters_cut(f->registers, -1, ft->a);
        break;
    case FAULT_AMBUSH:
        if (f->n_ambushes < (int)ARRAY_LEN(f->ambushes))
            f->ambushes[f->n_ambushes++] = *ft;
        break;
    default: /* fleet_has_fault() */
        break;
    }
}

static bool is_of_a_process(enum fault_kind k)
{
    return k != FAULT_AMBUSH && k != FAULT_CLOG && k != FAULT_PART && k != FAULT_REFUSE && k != FAULT_STORE;
}

/* Some way between two brokers is slow for a moment, again and again. */
static void on_jitter(struct sim_step *st)
{
    struct fleet *f = container_of(st, struct fleet, jitter);
    uint64_t n = (uint64_t)f->swarm.n_brokers;
    int from = (int)rnd_below(&f->jitters, n), to = (int)rnd_below(&f->jitters, n);
    if (f->phase != PLAY_FAULTS)
        return;
    simnet_clog(f->nw, from, to, rnd_log(&f->jitters, 1, 2 * f->swarm.jitter_ms) * SIM_MS);
    sim_in(f->sim, st, rnd_range(&f->jitters, 1, f->swarm.jitter_ms) * SIM_MS);
}

static void on_next_fault(struct sim_step *st)
{
    struct fleet *f = container_of(st, struct fleet, next_fault);
    const struct fault *ft = &f->plan.faults[f->n_faults++];
    if (f->n_faults < f->plan.n)
        sim_at(f->sim, st, f->plan.faults[f->n_faults].at_ms * SIM_MS);
    if (!is_of_a_process(ft->kind) || (ft->c < f->swarm.n_brokers && f->b[ft->c].host.process.is_up))
        do_fault(f, ft);
}

static void heal_broker(struct fleet_broker *fb)
{
    struct fleet *f = fb->fleet;
    sim_cancel(f->sim, &fb->full_ends);
    sim_cancel(f->sim, &fb->slow_ends);
    on_full_ends(&fb->full_ends);
    simdisk_set_slowness(fb->disk, 1000);
    simdisk_stop_in(fb->disk, -1);
    fb->host.calls_to_crash = -1;
    fb->host.how = HOST_KILLED;
    fb->host.exec.fibers.stopped_until_ns = MIN(fb->host.exec.fibers.stopped_until_ns, sim_now(f->sim));
    simnet_refuse(f->nw, fb->index, 0);
    if (is_gone(fb)) {
        sim_cancel(f->sim, &fb->restart);
        simhost_end(&fb->host, HOST_KILLED);
        MARK("fleet: a broker never came back");
    } else if (!fb->host.process.is_up) {
        sim_in(f->sim, &fb->restart, 0);
    } else if (fb->needs_start) {
        simhost_end(&fb->host, HOST_KILLED);
    }
}

static void heal(struct fleet *f)
{
    sim_note(f->sim, "healed", 0, 0, 0);
    f->phase = PLAY_HEALED;
    sim_cancel(f->sim, &f->next_fault);
    sim_cancel(f->sim, &f->jitter);
    sim_cancel(f->sim, &f->blow);
    simregisters_calm(f->registers);
    for (int i = 0; i < SIM_HOSTS; i++)
        for (int k = 0; k < SIM_HOSTS; k++)
            simnet_clog(f->nw, i, k, 0);
    for (int i = 0; i < f->swarm.n_brokers; i++)
        heal_broker(&f->b[i]);
}

/* ---- what brokers do to their disks, and say ---- */
static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

static void on_renamed(struct simhost *h, const char *from, const char *to, bool unsynced)
{
    if (unsynced && ends_with(from, ".tmp"))
        sim_fail(h->sim, "S6", "broker %d: %s becomes %s with bytes that are not synced", h->process.host + 1, from, to);
}

/* Nothing rots here, and no disk lies. */
static const char *const never[] = {
    "damage between positions",
    "does not hold what was written there",
    "its partitions are offline until klogd is started anew",
    "is damaged from now on",
};

static void mark_line(const char *line)
{
    MARK_IF(strstr(line, "where it parts from the log of broker") != NULL, "fleet: a follower cut its log");
    MARK_IF(strstr(line, "began anew") != NULL || strstr(line, "begins anew") != NULL, "fleet: a follower began anew");
    MARK_IF(strstr(line, "FENCED_LEADER_EPOCH") != NULL, "fleet: a fetch of an older epoch");
    MARK_IF(strstr(line, "UNKNOWN_LEADER_EPOCH") != NULL, "fleet: a fetch of an epoch that the leader does not know");
    MARK_IF(strstr(line, "STALE_BROKER_EPOCH") != NULL, "fleet: a fetch of an older incarnation");
    MARK_IF(strstr(line, "loaded groups=") != NULL, "fleet: positions were loaded");
}

static void on_line(void *arg, enum log_level level, const char *line)
{
    struct fleet *f = arg;
    const struct fiber *me = fiber_now();
    int who = 0;
    (void)level;
    for (int i = 0; i < f->swarm.n_brokers && me != NULL; i++)
        if (fiber_fibers(me) == &f->b[i].host.exec.fibers)
            who = i + 1;
    mark_line(line);
    const char *leader = strstr(line, "where it parts from the log of broker ");
    if (leader != NULL)
        fleet_happens(f, FLEET_CUTS, atoi(leader + strlen("where it parts from the log of broker ")), who);
    sim_say(f->sim, "                       %d | %s", who, line);
    if (f->prints_lines)
        printf("%12.6f %d %s\n", (double)sim_now(f->sim) / 1e9, who, line);
    if (strstr(line, "invariant") != NULL)
        sim_fail(f->sim, "KCHECK", "broker %d: %s", who, line);
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        if (strstr(line, never[i]) != NULL)
            sim_fail(f->sim, "S12", "nothing was damaged, and broker %d says: %s", who, line);
}

/* ---- phases ---- */
static void run_until(struct fleet *f, int64_t until_ns, bool (*reached)(struct fleet *f))
{
    while (reached == NULL || !reached(f))
        if (!sim_go_on(f->sim, until_ns))
            return;
}

/* Until there is nothing to tell of. Looked at ten times a second only: it reads registers, or disks. */
static bool run_until_none(struct fleet *f, const char *(*wrong)(struct fleet *f), int64_t until_ns)
{
    while (wrong(f) != NULL) {
        if (sim_now(f->sim) >= until_ns)
            return false;
        run_until(f, sim_now(f->sim) + 100 * SIM_MS, NULL);
    }
    return true;
}

static void print_fibers(struct fleet *f)
{
    for (int i = 0; i < f->swarm.n_brokers; i++) {
        printf("broker %d%s\n", i + 1, f->b[i].host.process.is_up ? "" : " is not up");
        if (f->b[i].host.process.is_up)
            fibers_print(&f->b[i].host.exec.fibers);
    }
}

static int64_t healed_ns(const struct fleet *f)
{
    return HEALED_S * SIM_S + 2 * (f->swarm.session_ms + f->swarm.lag_ms) * SIM_MS;
}

static bool are_served(struct fleet *f)
{
    return fleet_clients_missing(f) == NULL;
}

static void phase_healed(struct fleet *f)
{
    heal(f);
    if (!run_until_none(f, fleet_unsettled, sim_now(f->sim) + healed_ns(f))) {
        print_fibers(f);
        sim_fail(f->sim, "C12", "%lld s after all is healed %s", healed_ns(f) / SIM_S, fleet_unsettled(f));
    }
    fleet_clients_mark(f);
    run_until(f, sim_now(f->sim) + rnd_range(&f->rnd, 1, 3) * SIM_S, NULL);
    run_until(f, sim_now(f->sim) + SERVED_S * SIM_S, are_served);
    if (!are_served(f)) {
        print_fibers(f);
        sim_fail(f->sim, "C12", "%s, for %d s, and nothing is wrong", fleet_clients_missing(f), SERVED_S);
    }
}

static bool are_drained(struct fleet *f)
{
    return fleet_clients_are_done(f);
}

static bool have_ended(struct fleet *f)
{
    for (int i = 0; i < f->swarm.n_brokers; i++)
        if (f->b[i].host.process.is_up)
            return false;
    return true;
}

static void phase_end(struct fleet *f)
{
    f->phase = PLAY_DRAINING;
    fleet_clients_stop(f);
    run_until(f, sim_now(f->sim) + DRAIN_S * SIM_S, are_drained);
    if (!are_drained(f))
        sim_fail(f->sim, "C12", "batches have had no answer for %d s, and nothing is wrong", DRAIN_S);
    run_until(f, sim_now(f->sim) + SIM_S, NULL); /* what was sent with acks=0 arrives */
    if (!run_until_none(f, fleet_uncopied, sim_now(f->sim) + healed_ns(f))) {
        print_fibers(f);
        sim_fail(f->sim, "C12", "with nothing left to do %s", fleet_uncopied(f));
    }
    if (!run_until_none(f, fleet_unsettled, sim_now(f->sim) + healed_ns(f)))
        sim_fail(f->sim, "C12", "with nothing left to do %s", fleet_unsettled(f));
    f->phase = PLAY_OVER;
    for (int i = 0; i < f->swarm.n_brokers; i++)
        ask_stop(&f->b[i]);
    run_until(f, sim_now(f->sim) + STOP_S * SIM_S, have_ended);
    if (!have_ended(f)) {
        print_fibers(f);
        sim_fail(f->sim, "C12", "a broker has not stopped within %d s", STOP_S);
    }
    for (int i = 0; i < f->swarm.n_brokers; i++)
        if (i != f->swarm.gone && !f->b[i].stopped_clean)
            sim_fail(f->sim, "S7", "nothing is wrong, and the stop of broker %d was not clean", i + 1);
    fleet_check_disks(f);
}

/* ---- a run ---- */
static int64_t store_now_ms(void *arg)
{
    const struct fleet *f = arg;
    return sim_now(f->sim) / SIM_MS;
}

static void make_registers(struct fleet *f, uint64_t seed)
{
    const struct fleet_swarm *sw = &f->swarm;
    struct simregisters_config c = {
        .seed = seed,
        .session_timeout_ms = sw->session_ms,
        .delay_max_ms = sw->delay_ms,
        .lag_max_ms = sw->lag_registers_ms,
        .away_max_ms = sw->session_ms * 2,
        .loss_ppm = sw->loss_ppm,
        .expiry_ppm = sw->expiry_ppm,
        .now_ms = store_now_ms,
        .now_arg = f,
    };
    f->registers = simregisters_new(&c);
    fleet_rules_begin(f);
}

static void make_broker(struct fleet *f, int i, uint64_t seed)
{
    struct fleet_broker *fb = &f->b[i];
    struct simdisk_config cfg = { .seed = seed, .which = (uint64_t)i, .capacity = DISK_CAPACITY, .journal = f->swarm.journal };
    struct simdisk_chances chances = { .write_back = f->swarm.write_back, .part = f->swarm.part };
    fb->fleet = f;
    fb->index = i;
    fb->disk = simdisk_new(&cfg);
    simdisk_set_chances(fb->disk, &chances);
    simdisk_set_slowness(fb->disk, f->swarm.slowness);
    simhost_init(&fb->host, f->sim, f->nw, fb->disk, i);
    fb->host.ended = on_host_ended;
    fb->host.renamed = on_renamed;
    fb->host.user = f;
    fb->restart.run = on_restart;
    fb->full_ends.run = on_full_ends;
    fb->slow_ends.run = on_slow_ends;
    sim_in(f->sim, &fb->restart, rnd_range(&f->rnd, 0, SIM_S));
}

static void fleet_begin(struct fleet *f, uint64_t seed, const struct plan *plan)
{
    f->rnd = rnd_of(seed, RND_SWARM, 1);
    swarm_draw(&f->swarm, seed);
    if (plan != NULL)
        f->plan = *plan;
    else
        fleet_plan_of(seed, &f->plan);
    f->nw = simnet_new(f->sim);
    truth_init(&f->truth, f->sim);
    make_registers(f, seed);
    for (int i = 0; i < f->swarm.n_brokers; i++)
        make_broker(f, i, seed);
    f->next_fault.run = on_next_fault;
    f->jitter.run = on_jitter;
    f->blow.run = on_blow;
    f->jitters = rnd_of(seed, RND_LINK, 1 << 20);
    if (f->swarm.jitter_ms > 0)
        sim_in(f->sim, &f->jitter, SIM_S);
    if (f->plan.n > 0)
        sim_at(f->sim, &f->next_fault, f->plan.faults[0].at_ms * SIM_MS);
    fleet_clients_add(f);
}

static void mark_registers(const struct fleet *f)
{
    struct simregisters_counts c = simregisters_counts(f->registers);
    MARK_IF(c.stale_reads > 0, "fleet: a register was read late");
    MARK_IF(c.lost_done > 0, "fleet: a write had an unknown outcome, and was done");
    MARK_IF(c.lost_late > 0, "fleet: a write had an unknown outcome, and was done later");
    MARK_IF(c.lost_not_done > 0, "fleet: a write had an unknown outcome, and was not done");
    MARK_IF(c.expiries > 0, "fleet: a session expired");
    MARK_IF(c.merged_events > 0, "fleet: several changes were one call of a watch");
}

static void fleet_free(struct fleet *f)
{
    fleet_clients_free(f);
    simnet_free(f->nw);
    simregisters_free(f->registers);
    for (int i = 0; i < f->swarm.n_brokers; i++)
        simdisk_free(f->b[i].disk);
    truth_done(&f->truth);
    sim_free(f->sim);
    free(f);
}

void fleet_run(uint64_t seed, const struct plan *plan, unsigned prints, struct play_figures *ret)
{
    struct fleet *f = xcalloc(1, sizeof *f);
    f->sim = sim_new(seed);
    sim_trace(f->sim, (prints & PLAY_TRACE) != 0);
    f->prints_lines = prints == PLAY_LINES;
    log_set_sink(on_line, f);
    fleet_begin(f, seed, plan);
    run_until(f, f->swarm.faults_ms * SIM_MS, NULL);
    phase_healed(f);
    phase_end(f);
    mark_registers(f);
    *ret = (struct play_figures){
        .hash = sim_hash(f->sim),
        .steps = sim_steps(f->sim),
        .events = sim_events(f->sim),
        .sim_ns = sim_now(f->sim),
        .n_lives = f->n_lives,
        .n_crashes = f->n_crashes,
        .n_power_cuts = f->n_power_cuts,
        .acked = f->truth.n_acked,
        .read = f->truth.n_read,
    };
    log_set_sink(NULL, NULL);
    fleet_free(f);
}
