/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group and its clients in one seeded world: they join, sync, heartbeat, repeat requests, leave, die and
 * return; records are written late or not at all; time passes. After each step G1 to G5 hold. Then the world
 * becomes quiet, and the group must settle: everybody alive is in, in one generation, each part of the work
 * with one of them.
 *
 * Every deadline shall strike while every kind of request is parked: in every third world the log is slow, so that
 * records stay on their way over several deadlines; the clients' time-outs differ; some are deaf for a while to
 * what they were answered, or die before they have heard it. The last test counts that all this has happened.
 *
 * KLOG_SEED=n runs one seed; KLOG_SEEDS=n runs that many (default 10000).
 */
#include "unit.h"

#include "tests/unit/daemon/group/fake_group.h"
#include "lib/base/attr.h"
#include "lib/base/mem.h"

enum { CLIENTS = 6, STEPS = 150, HEARTBEAT_MS = 3000, SETTLE_MS = 900000 };

enum doing { AWAY, JOINING, SYNCING, WORKING };

struct client {
    enum doing doing;
    char instance[8]; /* "" dynamic */
    char id[FAKE_ID_MAX];
    int32_t generation;
    struct ticket *ticket;
    bool leads;
    char assignment[FAKE_ASSIGNMENT_MAX];
    bool old; /* JoinGroup v3: no round trip for the id, no skipping */
    bool deaf;
    int32_t session_ms, rebalance_ms;
    const char *metadata;
};

struct world {
    struct fake *f;
    uint64_t rng;
    struct client clients[CLIENTS];
    int32_t generation; /* G4: the highest seen */
    bool slow_log;
};

/* How often a deadline struck while such a request was parked: over all worlds. */
enum parked { PARKED_JOIN, PARKED_SYNC, PARKED_RETURN, PARKED_KINDS };
enum deadline { DUE_SESSION, DUE_REBALANCE, DUE_SYNC, DUE_PENDING, DEADLINES };
static int struck[DEADLINES][PARKED_KINDS];

static uint32_t roll(struct world *w, uint32_t n)
{
    w->rng ^= w->rng << 13;
    w->rng ^= w->rng >> 7;
    w->rng ^= w->rng << 17;
    return (uint32_t)(w->rng >> 32) % n;
}

static const char *instance_of(const struct client *c)
{
    return c->instance[0] != '\0' ? c->instance : NULL;
}

static void client_join(struct world *w, struct client *c)
{
    c->doing = JOINING;
    c->leads = false;
    c->ticket = fake_join(w->f, (struct fake_join){
                                    .id = c->id,
                                    .instance = instance_of(c),
                                    .protocols = "range,rr",
                                    .metadata = c->metadata,
                                    .session_ms = c->session_ms,
                                    .rebalance_ms = c->rebalance_ms,
                                    .id_required = !c->old,
                                    .can_skip = !c->old,
                                });
}

static void client_go_away(struct client *c)
{
    c->doing = AWAY;
    c->ticket = NULL;
    c->id[0] = '\0';
    c->generation = -1;
    c->assignment[0] = '\0';
}

static void client_rejoin(struct world *w, struct client *c, enum kerr why)
{
    if (why == KERR_FENCED_INSTANCE_ID) { /* someone else has its name */
        client_go_away(c);
        return;
    }
    if (why == KERR_UNKNOWN_MEMBER_ID)
        c->id[0] = '\0';
    client_join(w, c);
}

static void client_sync(struct world *w, struct client *c)
{
    char list[FAKE_MEMBERS_MAX * (FAKE_ID_MAX + 16)] = "";

    for (int32_t i = 0; c->leads && i < c->ticket->n_members; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s=%d/%d,", c->ticket->members[i],
                 c->generation, i);
    c->doing = SYNCING;
    c->ticket = fake_sync_as(w->f, c->id, instance_of(c), c->generation, "consumer", c->ticket->protocol,
                             c->leads ? list : NULL);
}

static void client_joined(struct world *w, struct client *c)
{
    struct ticket *t = c->ticket;

    if (t->err == KERR_MEMBER_ID_REQUIRED) {
        snprintf(c->id, sizeof c->id, "%s", t->member_id);
        client_join(w, c);
        return;
    }
    if (t->err != KERR_NONE) {
        client_rejoin(w, c, t->err);
        return;
    }
    assert_true(t->generation >= c->generation); /* G4, as its member sees it */
    snprintf(c->id, sizeof c->id, "%s", t->member_id);
    c->generation = t->generation;
    c->leads = strcmp(t->leader, t->member_id) == 0 && !t->skip_assignment;
    assert_true(!c->leads || t->n_members > 0);
    client_sync(w, c);
}

static void client_synced(struct world *w, struct client *c)
{
    int generation;

    if (c->ticket->err != KERR_NONE) {
        client_rejoin(w, c, c->ticket->err);
        return;
    }
    snprintf(c->assignment, sizeof c->assignment, "%s", c->ticket->assignment);
    if (sscanf(c->assignment, "%d/", &generation) == 1)
        assert_int_equal(generation, c->generation);
    c->doing = WORKING;
    c->ticket = NULL;
}

static bool client_listens(struct world *w, struct client *c)
{
    if (c->deaf || c->ticket == NULL || c->ticket->answers == 0)
        return false;
    if (c->doing == JOINING)
        client_joined(w, c);
    else
        client_synced(w, c);
    return true;
}

static void clients_listen(struct world *w)
{
    bool any = true;

    for (int round = 0; any; round++) {
        any = false;
        assert_true(round < 1000);
        for (int i = 0; i < CLIENTS; i++)
            any |= client_listens(w, &w->clients[i]);
    }
}

static void client_heartbeats(struct world *w, struct client *c)
{
    if (c->doing != WORKING)
        return;
    enum kerr err = group_heartbeat(w->f->g, c->id, instance_of(c), c->generation, w->f->now_ms);
    fake_check(w->f);
    if (err != KERR_NONE)
        client_rejoin(w, c, err);
}

static void client_commits(struct world *w, struct client *c)
{
    if (c->doing == WORKING)
        group_may_commit(w->f->g, c->id, instance_of(c), c->generation, w->f->now_ms);
}

static void client_leaves(struct world *w, struct client *c)
{
    if (c->id[0] != '\0')
        group_leave(w->f->g, c->id, instance_of(c), w->f->now_ms);
    fake_check(w->f);
    client_go_away(c);
}

static void some_records_end(struct world *w)
{
    struct fake *f = w->f;

    while (f->n_writing > 0 && (w->slow_log ? roll(w, 12) == 0 : roll(w, 4) != 0)) {
        int64_t seq = f->writing[0];
        memmove(f->writing, f->writing + 1, sizeof f->writing[0] * (size_t)--f->n_writing);
        group_persisted(f->g, seq, roll(w, 8) == 0 ? KERR_COORDINATOR_NOT_AVAILABLE : KERR_NONE, f->now_ms);
        fake_check(f);
    }
}

static void client_acts(struct world *w, struct client *c)
{
    switch (roll(w, 12)) {
    case 0:
        client_go_away(c); /* killed */
        break;
    case 1:
        client_leaves(w, c);
        break;
    case 2:
        if (c->doing == JOINING) /* repeats, having lost patience */
            client_join(w, c);
        break;
    case 3:
        if (c->doing == WORKING) { /* its subscription changed */
            c->metadata = roll(w, 2) == 0 ? "m" : "n";
            client_join(w, c);
        }
        break;
    case 4:
    case 5:
        client_commits(w, c);
        break;
    case 6:
    case 7:
        client_heartbeats(w, c);
        break;
    default:
        if (c->doing == AWAY)
            client_join(w, c);
    }
}

static void world_check(struct world *w)
{
    fake_check(w->f);
    assert_true(w->f->g->generation >= w->generation); /* G4 */
    w->generation = w->f->g->generation;
}

static bool is_parked(const struct group *g, enum parked what)
{
    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next)
        if (what == PARKED_SYNC     ? m->parked_sync != NULL
            : what == PARKED_RETURN ? m->return_seq != 0
                                    : m->parked_join != NULL && m->return_seq == 0)
            return true;
    return false;
}

static bool is_due(const struct group *g, enum deadline what, int64_t now_ms)
{
    if (what == DUE_REBALANCE)
        return g->state == GROUP_PREPARING && g->rebalance_due_ms != 0 && g->rebalance_due_ms <= now_ms;
    if (what == DUE_SYNC && (g->sync_due_ms == 0 || g->sync_due_ms > now_ms))
        return false;
    if (what == DUE_PENDING) {
        for (const struct group_pending *p = g->pending; p != NULL; p = p->hh.next)
            if (p->due_ms <= now_ms)
                return true;
        return false;
    }
    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next)
        if (what == DUE_SYNC ? m->awaits_sync
                             : m->session_due_ms <= now_ms && m->parked_join == NULL && m->parked_sync == NULL)
            return true;
    return false;
}

static void count_strikes(const struct fake *f)
{
    for (int due = 0; due < DEADLINES; due++)
        for (int what = 0; what < PARKED_KINDS; what++)
            struck[due][what] += is_due(f->g, (enum deadline)due, f->now_ms) && is_parked(f->g, (enum parked)what);
}

static void step(struct world *w)
{
    if (roll(w, 3) == 0)
        fake_sleep(w->f, roll(w, w->slow_log ? 4 : 10) == 0 ? roll(w, 40000) : roll(w, 3000));
    w->clients[roll(w, CLIENTS)].deaf = roll(w, 4) == 0;
    client_acts(w, &w->clients[roll(w, CLIENTS)]);
    some_records_end(w);
    if (roll(w, 4) != 0)
        clients_listen(w);
    if (w->f->n_writing > 32)
        fake_written(w->f, KERR_NONE);
    world_check(w);
}

static bool settled(const struct world *w)
{
    int working = 0;

    for (int i = 0; i < CLIENTS; i++) {
        const struct client *c = &w->clients[i];
        if (c->doing == AWAY)
            continue;
        if (c->doing != WORKING || c->generation != w->f->g->generation ||
            group_member_find(w->f->g, c->id) == NULL)
            return false;
        working++;
    }
    return w->f->g->state == (working > 0 ? GROUP_STABLE : GROUP_EMPTY) &&
           group_n_members(w->f->g) == working && w->f->g->pending == NULL;
}

static void quiet_second(struct world *w)
{
    fake_sleep(w->f, 1000);
    for (int i = 0; i < CLIENTS; i++)
        if (w->f->now_ms / HEARTBEAT_MS != (w->f->now_ms - 1000) / HEARTBEAT_MS)
            client_heartbeats(w, &w->clients[i]);
    fake_written(w->f, KERR_NONE);
    clients_listen(w);
    fake_written(w->f, KERR_NONE);
    clients_listen(w);
    world_check(w);
}

static void assert_work_is_shared(const struct world *w)
{
    for (int i = 0; i < CLIENTS; i++)
        for (int k = 0; k < i; k++)
            if (w->clients[i].doing == WORKING && w->clients[k].doing == WORKING)
                assert_string_not_equal(w->clients[i].assignment, w->clients[k].assignment);
}

static uint64_t running_seed;

/* A failed assertion ends in a jump out of the test: say which world it was. */
static int tell_seed(void **state)
{
    (void)state;
    printf("seed %llu was the last to run\n", (unsigned long long)running_seed);
    return 0;
}

static void run_seed(uint64_t seed)
{
    struct world w = { .rng = seed * 0x9E3779B97F4A7C15u + 1 };

    static const int32_t timeouts[] = { 5000, 10000, 30000 };

    w.f = fake_new((int32_t)roll(&w, 2) * 3000);
    w.f->before_tick = count_strikes;
    w.slow_log = roll(&w, 3) == 0;
    bool static_ones = roll(&w, 3) == 0; /* all but two */
    int32_t rebalance_ms = roll(&w, 2) == 0 ? timeouts[0] : 0; /* else each its own */
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &w.clients[i];
        client_go_away(c);
        c->old = roll(&w, 2) == 0;
        c->metadata = "m";
        c->session_ms = timeouts[roll(&w, ARRAY_LEN(timeouts))];
        c->rebalance_ms = rebalance_ms != 0 ? rebalance_ms : timeouts[roll(&w, ARRAY_LEN(timeouts))];
        if (static_ones && i >= 2)
            snprintf(c->instance, sizeof c->instance, "s%d", i);
        else if (roll(&w, 3) == 0) /* now and then two of one name */
            snprintf(c->instance, sizeof c->instance, "s%u", roll(&w, 4));
    }
    for (int i = 0; i < STEPS; i++)
        step(&w);
    int64_t until = w.f->now_ms + SETTLE_MS;
    for (int i = 0; i < CLIENTS; i++)
        w.clients[i].deaf = false;
    clients_listen(&w);
    for (int i = 0; i < CLIENTS; i++)
        client_heartbeats(&w, &w.clients[i]);
    do
        quiet_second(&w);
    while (!settled(&w) && w.f->now_ms < until);
    assert_true(settled(&w));
    assert_work_is_shared(&w);

    int32_t generation = w.f->g->generation; /* and stays so */
    for (int i = 0; i < 120; i++)
        quiet_second(&w);
    assert_true(settled(&w));
    assert_int_equal(w.f->g->generation, generation);
    fake_free(w.f);
}

static void a_quiet_group_settles_whatever_happened_before(void **state)
{
    (void)state;
    const char *one = getenv("KLOG_SEED"), *many = getenv("KLOG_SEEDS");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t n = one != NULL ? 1 : many != NULL ? strtoull(many, NULL, 10) : 10000 / (uint64_t)test_step();

    for (running_seed = first; running_seed < first + n; running_seed++)
        run_seed(running_seed);
}

/* A deadline that cannot strike beside that request: a sync is parked in COMPLETING only, a rebalance ends in
 * PREPARING; a return waits in STABLE. */
static bool cannot_meet(int due, int what)
{
    return (due == DUE_REBALANCE && what != PARKED_JOIN) || (due == DUE_SYNC && what == PARKED_JOIN);
}

static void every_deadline_struck_beside_every_request(void **state)
{
    (void)state;
    if (test_step() != 1 || getenv("KLOG_SEED") != NULL || getenv("KLOG_SEEDS") != NULL)
        skip();
    for (int due = 0; due < DEADLINES; due++)
        for (int what = 0; what < PARKED_KINDS; what++)
            printf("deadline %d, parked request %d: %d times\n", due, what, struck[due][what]);
    for (int due = 0; due < DEADLINES; due++)
        for (int what = 0; what < PARKED_KINDS; what++)
            assert_int_equal(struck[due][what] > 0, !cannot_meet(due, what));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_quiet_group_settles_whatever_happened_before, tell_seed),
        cmocka_unit_test(every_deadline_struck_beside_every_request),
    };

    return RUN(tests);
}
