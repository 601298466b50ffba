/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group and its clients in one seeded world: they join, sync, heartbeat, repeat requests, leave, die and
 * return; records are written late or not at all; time passes. After each step G1 to G5 hold. Then the world
 * becomes quiet, and the group must settle: everybody alive is in, in one generation, each part of the work
 * with one of them.
 *
 * KLOG_SEED=n runs one seed; KLOG_SEEDS=n runs that many (default 3000).
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
    const char *metadata;
};

struct world {
    struct fake *f;
    uint64_t rng;
    struct client clients[CLIENTS];
    int32_t generation; /* G4: the highest seen */
};

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
                                    .session_ms = 10000,
                                    .rebalance_ms = 30000,
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
    if (c->ticket == NULL || c->ticket->answers == 0)
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

    while (f->n_writing > 0 && roll(w, 4) != 0) {
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

static void step(struct world *w)
{
    if (roll(w, 3) == 0)
        fake_sleep(w->f, roll(w, 10) == 0 ? roll(w, 40000) : roll(w, 3000));
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

    w.f = fake_new((int32_t)roll(&w, 2) * 3000);
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &w.clients[i];
        client_go_away(c);
        c->old = roll(&w, 2) == 0;
        c->metadata = "m";
        if (roll(&w, 3) == 0) /* now and then two of one name */
            snprintf(c->instance, sizeof c->instance, "s%u", roll(&w, 4));
    }
    for (int i = 0; i < STEPS; i++)
        step(&w);
    int64_t until = w.f->now_ms + SETTLE_MS;
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
    uint64_t n = one != NULL ? 1 : many != NULL ? strtoull(many, NULL, 10) : 3000;

    for (running_seed = first; running_seed < first + n; running_seed++)
        run_seed(running_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(
        a_quiet_group_settles_whatever_happened_before, tell_seed) };

    return RUN(tests);
}
