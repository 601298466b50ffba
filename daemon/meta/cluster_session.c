/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This broker's registration, and the session that it lives in. Meta loop.
 *
 *           begin             read               written, or found written
 *   OUT ------------> READING -----> WRITING ------------------------------> IN
 *    ^                   ^              |  in use, not known, no answer        |
 *    |                   +--- WAITING <-+                                      |
 *    +---- a session that expired: registers_renew(), and begin once it is there
 *
 * The registration and the new broker epoch are one multi: whoever sees the broker sees its epoch, and its older self can
 * write no more (R2). A multi of which nobody knows whether it happened is found out about by reading (R3): the value of the
 * epoch's register carries a mark of this process.
 *
 * The base goes along: what this broker acknowledged since that epoch its disk has. A start that cannot prove that it kept
 * everything begins a new one; a new session of the same process leaves it as it is, since nothing was lost.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/meta/cluster_int.h"
#include "daemon/replica/partition.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"

enum { RETRY_MS = 100 };

#define B(state) (1u << (ENLIST_##state))
static const uint8_t enlist_next[ENLIST_STATES] = {
    [ENLIST_OUT] = B(READING),
    [ENLIST_READING] = B(WRITING) | B(WAITING) | B(IN) | B(OUT),
    [ENLIST_WRITING] = B(WAITING) | B(IN) | B(OUT),
    [ENLIST_WAITING] = B(READING) | B(OUT),
    [ENLIST_IN] = B(OUT),
};

static void enlist_move(struct cluster *c, enum enlist_state to)
{
    KCHECK((enlist_next[c->enlist.state] & (1u << to)) != 0);
    c->enlist.state = to;
}

static void read_epoch(struct cluster *c);

/* rc 0: it is in. Who started the broker waits for the first one only. */
static void enlist_end(struct cluster *c, int rc)
{
    struct latch *waiter = c->enlist.waiter;

    enlist_move(c, rc == 0 ? ENLIST_IN : ENLIST_OUT);
    c->enlist.rc = rc;
    c->enlist.waiter = NULL;
    if (waiter != NULL)
        latch_open(waiter);
    else if (rc == 0)
        cluster_registered_anew(c);
}

static void try_later(struct cluster *c, int rc)
{
    bool first = c->enlist.waiter != NULL;

    if (first && loop_now_ms(c->deps.loop) >= c->enlist.deadline_ms) {
        enlist_end(c, rc);
        return;
    }
    enlist_move(c, ENLIST_WAITING);
    timer_set_in(c->deps.loop, &c->enlist.timer, RETRY_MS);
}

static void on_timer(struct timer *t)
{
    struct cluster *c = container_of(t, struct cluster, enlist.timer);

    enlist_move(c, ENLIST_READING);
    read_epoch(c);
}

/* Registered, in that epoch and in the session that lives. */
static void enter(struct cluster *c, int64_t epoch)
{
    c->broker_epoch = epoch;
    partitions_set_broker_epoch(c->deps.partitions, epoch);
    enlist_end(c, 0);
}

/* The registers answered; is the attempt still of use? */
static bool is_current(struct cluster *c, enum enlist_state state)
{
    cluster_note_idle(c, -1);
    return !c->stopping && c->enlist.state == state;
}

static void written(void *arg, int rc)
{
    struct cluster *c = arg;
    int64_t epoch = c->enlist.ops.ops[c->enlist.ops.n - 1].new_version;

    ops_done(&c->enlist.ops);
    if (!is_current(c, ENLIST_WRITING))
        return;
    c->enlist.attempted = rc == 0 || rc == -EREMOTEIO;
    c->enlist.displaces = rc == -EEXIST && c->enlist.is_mine;
    if (rc == 0)
        enter(c, epoch);
    else /* in use: perhaps by the session before, which ends by itself */
        try_later(c, rc);
}

/* Nobody else has registered since this process did, so that what is there is its own, of the session before or broken by
 * somebody: it gives way. */
static void displace(struct cluster *c)
{
    if (c->enlist.displaces)
        ops_add(&c->enlist.ops, REGISTER_DELETE, xasprintf("/brokers/ids/%d", c->deps.id), NULL, REGISTER_ANY_VERSION);
}

static void write_both(struct cluster *c, int64_t version, int64_t base)
{
    struct enlisting *e = &c->enlist;
    const char *rack = c->deps.config->broker_rack;
    const struct cluster_broker me = { .id = c->deps.id,
                                       .endpoints = (struct cluster_endpoint *)(uintptr_t)c->deps.endpoints,
                                       .n_endpoints = c->deps.n_endpoints,
                                       .rack = rack[0] == '\0' ? NULL : (char *)(uintptr_t)rack };
    struct epoch_register epoch = { .base = base };

    memcpy(epoch.mark, e->mark, sizeof epoch.mark);
    e->attempted = true;
    enlist_move(c, ENLIST_WRITING);
    cluster_note_idle(c, +1);
    displace(c);
    ops_add(&e->ops, REGISTER_CREATE_EPHEMERAL, xasprintf("/brokers/ids/%d", me.id), broker_register_encode(&me), 0);
    ops_add(&e->ops, REGISTER_SET, xasprintf("/klog/broker_epoch/%d", me.id), epoch_register_encode(&epoch),
            version);
    registers_multi(c->deps.registers, e->ops.ops, e->ops.n, written, c);
}

/* Another process has registered under this number while this one was away. */
static void replaced(struct cluster *c)
{
    log_error("another broker has registered as %d: this one stops; give one of them another broker.id and empty directories",
              c->deps.id);
    enlist_end(c, -EEXIST);
    c->deps.replaced(c->deps.arg);
}

static void epoch_read(void *arg, int rc, struct slice value, int64_t version)
{
    struct cluster *c = arg;
    struct epoch_register r = { 0 };

    if (!is_current(c, ENLIST_READING))
        return;
    if (rc == 0)
        rc = epoch_register_decode(value, &r);
    if (rc == -EBADMSG && !c->enlist.malformed) /* said once, however often it is tried */
        log_error("register /klog/broker_epoch/%d is malformed: %.*s; this broker takes part when somebody has put it right: "
                  "{\"base\":EPOCH} with the register's own version + 1 takes it for one that cannot prove anything",
                  c->deps.id, (int)MIN(value.n, 200U), value.p);
    c->enlist.malformed = rc == -EBADMSG;
    bool mine = rc == 0 && strcmp(r.mark, c->enlist.mark) == 0;
    c->enlist.is_mine = mine;
    if (rc < 0)
        try_later(c, rc);
    else if (mine && c->enlist.attempted && version > c->broker_epoch)
        enter(c, version); /* the answer was lost, the registration was not */
    else if (!mine && c->broker_epoch >= 0 && version != c->broker_epoch)
        replaced(c);
    else
        write_both(c, version, mine || c->broker_epoch >= 0 || c->deps.proven ? r.base : version + 1);
}

static void synced(void *arg, int rc)
{
    struct cluster *c = arg;
    CLEANUP(freep) char *path = xasprintf("/klog/broker_epoch/%d", c->deps.id);

    if (!is_current(c, ENLIST_READING))
        return;
    if (rc < 0) {
        try_later(c, rc);
        return;
    }
    cluster_note_idle(c, +1);
    registers_get(c->deps.registers, path, epoch_read, c);
}

/* What this process wrote last has to be seen, whether it knows of it or not. */
static void read_epoch(struct cluster *c)
{
    cluster_note_idle(c, +1);
    registers_sync(c->deps.registers, synced, c);
}

static void begin(struct cluster *c)
{
    enlist_move(c, ENLIST_READING);
    read_epoch(c);
}

int64_t cluster_registered(const struct cluster *c)
{
    return c->enlist.state == ENLIST_IN ? c->broker_epoch : -1;
}

void cluster_registration_is_gone(struct cluster *c, int64_t epoch)
{
    if (c->stopping || epoch < 0 || cluster_registered(c) != epoch)
        return;
    log_warn("/brokers/ids/%d is gone, or /klog/broker_epoch/%d is not what this broker wrote, though its session lives: registering anew",
             c->deps.id, c->deps.id);
    enlist_move(c, ENLIST_OUT);
    c->enlist.attempted = false; /* others have to see a registration, not only another epoch */
    begin(c);
}

/* ---- sessions ---- */

static void drop_attempt(struct cluster *c)
{
    timer_clear(c->deps.loop, &c->enlist.timer);
    if (c->enlist.state != ENLIST_OUT)
        enlist_move(c, ENLIST_OUT);
}

static void expired(struct cluster *c)
{
    log_warn("registers: the session has expired; registering anew");
    c->enlist.expired = true;
    c->enlist.attempted = false;
    if (c->enlist.waiter == NULL) /* while it starts, the attempt itself goes on */
        drop_attempt(c);
    registers_renew(c->deps.registers);
}

static void connected(struct cluster *c)
{
    if (c->enlist.suspended)
        log_info("registers: reached again");
    if (c->enlist.expired && c->enlist.waiter == NULL && c->enlist.rc == 0)
        begin(c);
    c->enlist.suspended = c->enlist.expired = false;
}

static void on_session(void *arg, enum registers_event ev)
{
    struct cluster *c = arg;

    if (c->stopping)
        return;
    switch (ev) {
    case REGISTERS_CONNECTED:
        connected(c);
        break;
    case REGISTERS_SUSPENDED: /* said once, however often it is tried */
        if (!c->enlist.suspended)
            log_warn("registers: not reached; serving on as things were, without changes of topics and leaders");
        c->enlist.suspended = true;
        break;
    case REGISTERS_EXPIRED:
        expired(c);
        break;
    }
}

struct enlist_call {
    struct cluster *cluster;
    struct latch done;
};

static void start(void *arg)
{
    struct enlist_call *call = arg;
    struct cluster *c = call->cluster;

    c->enlist.waiter = &call->done;
    c->enlist.deadline_ms = loop_now_ms(c->deps.loop) + c->deps.register_within_ms;
    registers_on_session(c->deps.registers, on_session, c);
    begin(c);
}

void cluster_enlist_init(struct cluster *c)
{
    struct uuid mark;

    uuid_random(c->deps.world->random, &mark);
    uuid_text(&mark, c->enlist.mark);
    c->broker_epoch = -1;
    c->enlist.timer.cb = on_timer;
}

int cluster_enlist(struct cluster *c)
{
    struct enlist_call call = { .cluster = c };

    latch_init(&call.done, c->deps.world->exec);
    loop_call(c->deps.loop, start, &call);
    latch_wait(&call.done);
    latch_done(&call.done);
    return c->enlist.rc;
}

void cluster_enlist_stop(struct cluster *c)
{
    registers_on_session(c->deps.registers, NULL, NULL);
    timer_clear(c->deps.loop, &c->enlist.timer);
}
