/* SPDX-License-Identifier: Apache-2.0 */
/* A machine and its process; see simhost.h. */
#include "tests/sim/simhost.h"

#include <stdio.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"

static struct simhost *of_process(struct sim_process *p)
{
    return container_of(p, struct simhost, process);
}

/* ---- machine ---- */
static int64_t fd_limit(const struct machine *m)
{
    return container_of(m, struct simhost, machine)->fd_limit;
}

static int64_t fds_open(const struct machine *m)
{
    const struct simhost *h = container_of(m, struct simhost, machine);
    return simdisk_descriptors(h->disk);
}

static int cores(const struct machine *m)
{
    return container_of(m, struct simhost, machine)->cores;
}

static void host_name(const struct machine *m, char *ret, size_t size)
{
    (void)m;
    snprintf(ret, size, "host"); /* of no use: there are no names in the simulated network */
}

static void die(const struct machine *m, int status)
{
    struct simhost *h = container_of((struct machine *)(uintptr_t)m, struct simhost, machine);
    h->die_status = status;
    simhost_end(h, HOST_DIED);
}

static void fill(struct random *r, void *p, size_t n)
{
    struct simhost *h = container_of(r, struct simhost, random);
    uint8_t *to = p;
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)rnd_u64(&h->bytes);
}

/* ---- disk and network ---- */
static int64_t wall_ns(void *arg)
{
    const struct simhost *h = arg;
    return h->clock.clock.wall_ms(&h->clock.clock) * SIM_MS;
}

static void took(void *arg, enum simdisk_op op, int64_t ns)
{
    const struct simhost *h = arg;
    struct fiber *me = fiber_now();
    if (me == NULL || fiber_fibers(me) != &h->exec.fibers)
        return;
    /* What is quick seldom lets others run; what is slow always does. */
    if (op != SIMDISK_SYNC && ns < SIM_MS && rnd_u64(&fiber_fibers(me)->rnd) % 8 != 0)
        return;
    fiber_sleep(ns);
}

static void disk_stopped(void *arg)
{
    struct simhost *h = arg;
    sim_process_ends(&h->process);
}

static void rewrote(void *arg, const char *path, int64_t at)
{
    struct simhost *h = arg;
    if (h->rewrote != NULL)
        h->rewrote(h, path, at);
}

static void renamed(void *arg, const char *from, const char *to, bool unsynced)
{
    struct simhost *h = arg;
    if (h->renamed != NULL)
        h->renamed(h, from, to, unsynced);
}

static void shrunk(void *arg, const char *path, bool is_gone)
{
    struct simhost *h = arg;
    if (h->shrunk != NULL)
        h->shrunk(h, path, is_gone);
}

static bool may_open(void *arg)
{
    return simdisk_take_descriptor(((struct simhost *)arg)->disk);
}

static void was_closed(void *arg)
{
    simdisk_give_descriptor(((struct simhost *)arg)->disk);
}

static void at_net_call(void *arg, const char *what)
{
    struct simhost *h = arg;
    (void)what;
    if (h->calls_to_crash >= 0 && h->calls_to_crash-- == 0)
        sim_process_ends(&h->process);
}

/* ---- lives ---- */
/* Mostly what tears files, since that is where recovery has to judge. */
static enum simdisk_cut draw_cut(struct simhost *h)
{
    static const enum simdisk_cut cuts[] = { SIMDISK_CUT_NONE,    SIMDISK_CUT_ALL,     SIMDISK_CUT_FILES,   SIMDISK_CUT_IN_ORDER,
                                             SIMDISK_CUT_IN_ORDER, SIMDISK_CUT_PAGES,   SIMDISK_CUT_PAGES,   SIMDISK_CUT_SECTORS,
                                             SIMDISK_CUT_SECTORS,  SIMDISK_CUT_SECTORS };
    struct rnd r = rnd_of(sim_seed(h->sim), RND_CUT, (uint64_t)h->process.host * 100000 + (uint64_t)h->process.life);
    return cuts[rnd_below(&r, ARRAY_LEN(cuts))];
}

static void on_process_ended(struct sim_process *p)
{
    struct simhost *h = of_process(p);
    bool power = h->how == HOST_POWER_CUT;
    h->wall_offset_ms = h->clock.wall_offset_ms;
    simdisk_stop(h->disk);
    simnic_ended(&h->nic, power);
    if (power)
        simdisk_power_cut(h->disk, draw_cut(h));
    else
        simdisk_kill(h->disk);
    sim_note(h->sim, "host ended", p->host, h->how, h->die_status);
    h->ended(h);
    fibers_drop(&h->exec.fibers);
}

void simhost_end(struct simhost *h, enum simhost_end how)
{
    if (!h->process.is_up)
        return;
    h->how = how;
    sim_process_ends(&h->process);
}

void simhost_init(struct simhost *h, struct sim *s, struct simnet *nw, struct simdisk *disk, int number)
{
    *h = (struct simhost){
        .process = { .sim = s, .host = number, .life = -1, .ended = on_process_ended },
        .sim = s,
        .nw = nw,
        .disk = disk,
        .machine = { .fd_limit = fd_limit, .fds_open = fds_open, .cores = cores, .host_name = host_name, .die = die },
        .random = { .fill = fill },
        .fd_limit = 1024,
        .cores = 2,
        .calls_to_crash = -1,
        .how = HOST_KILLED,
    };
}

static void host_main(void *arg)
{
    struct simhost *h = arg;
    h->main(h);
    simhost_end(h, HOST_RETURNED);
}

void simhost_start(struct simhost *h, void (*main)(struct simhost *h))
{
    uint64_t which = (uint64_t)h->process.host * 100000 + (uint64_t)++h->process.life;
    uint64_t seed = sim_seed(h->sim);
    struct rnd clock = rnd_of(seed, RND_CLOCK, which);
    KCHECK(!h->process.is_up);
    h->process.is_up = true;
    h->how = HOST_KILLED;
    h->die_status = 0;
    h->calls_to_crash = -1;
    h->bytes = rnd_of(seed, RND_BYTES, which);
    simclock_init(&h->clock, h->sim, &clock, h->wall_offset_ms);
    simexec_init(&h->exec, h->sim, &h->clock, rnd_of(seed, RND_JOBS, which));
    simdisk_set_hooks(h->disk, &(struct simdisk_hooks){ .arg = h,
                                                        .wall_ns = wall_ns,
                                                        .took = took,
                                                        .stopped = disk_stopped,
                                                        .rewrote = rewrote,
                                                        .renamed = renamed,
                                                        .shrunk = shrunk });
    simdisk_set_fd_limit(h->disk, (int)h->fd_limit);
    simnic_init(&h->nic, h->nw, &h->process, &h->exec.fibers, simdisk_io(h->disk));
    h->nic.may_open = may_open;
    h->nic.was_closed = was_closed;
    h->nic.at_call = at_net_call;
    h->nic.arg = h;
    h->world = (struct world){
        .clock = &h->clock.clock,
        .random = &h->random,
        .machine = &h->machine,
        .exec = &h->exec.exec,
        .net = &h->nic.net,
        .io = simdisk_io(h->disk),
    };
    h->main = main;
    simnet_host_up(h->nw, h->process.host);
    sim_note(h->sim, "host starts", h->process.host, h->process.life, 0);
    fiber_detach(fiber_start(&h->exec.fibers, host_main, h, "main"));
}

void simhost_pause(struct simhost *h, int64_t for_ns)
{
    sim_note(h->sim, "host stands still", h->process.host, for_ns / SIM_MS, 0);
    h->exec.fibers.stopped_until_ns = sim_now(h->sim) + for_ns;
}
