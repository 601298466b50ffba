/* SPDX-License-Identifier: Apache-2.0 */
/* A member's way through its states, against a make-believe coordinator that answers as a script says. */
#include "unit.h"
#include "world.h"

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/client/member.h"
#include "tests/lib/fakebroker.h"

struct commit {
    struct member_commit mc;
    int told, rc;
    enum kerr err;
};

struct fixture {
    struct loop *lp;
    struct fake_cluster fc;
    struct fake_group *g;
    struct client *c;
    struct member *m;
    /* what the owner was told */
    int n_assigned, n_revoked, n_lost, n_ended;
    char parts[128]; /* "t/0@-1 t/1@5" */
    int ended_rc;
    enum kerr ended_err;
    /* what the owner does */
    bool keeps;             /* does not answer `revoked` */
    struct commit *revoked; /* commits this first */
    int64_t heartbeat_ms;
};

static void on_assigned(struct member *m, const struct position *parts, size_t n)
{
    struct fixture *f = member_user(m);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    f->n_assigned++;
    for (size_t i = 0; i < n; i++)
        bytebuf_printf(&b, "%s%s/%d@%lld", i > 0 ? " " : "", parts[i].topic, parts[i].partition,
                       (long long)parts[i].offset);
    snprintf(f->parts, sizeof f->parts, "%s", bytebuf_cstr(&b));
}

static void on_committed(struct member_commit *mc, int rc, enum kerr err)
{
    struct commit *k = mc->user;
    k->told++;
    k->rc = rc;
    k->err = err;
    assert_int_equal(mc->position.err, err);
}

static void commit(struct fixture *f, struct commit *k, int32_t partition, int64_t offset)
{
    *k = (struct commit){
        .mc = { .position = { .topic = "t", .partition = partition, .offset = offset, .leader_epoch = -1 },
                .cb = on_committed,
                .user = k },
    };
    member_commit(f->m, &k->mc);
    assert_int_equal(k->told, 0);
}

static void on_revoked(struct member *m, bool lost)
{
    struct fixture *f = member_user(m);
    f->n_revoked++;
    f->n_lost += lost;
    if (f->revoked != NULL)
        commit(f, f->revoked, 0, 77);
    if (!f->keeps)
        member_released(m);
}

static void on_ended(struct member *m, int rc, enum kerr err)
{
    struct fixture *f = member_user(m);
    f->n_ended++;
    f->ended_rc = rc;
    f->ended_err = err;
}

static const struct member_ops owner = { .assigned = on_assigned, .revoked = on_revoked, .ended = on_ended };

static void member_make(struct fixture *f, const char *instance_id, int32_t session_timeout_ms)
{
    static const char *const topics[] = { "t", "u" };
    struct member_config cfg = {
        .group = "g",
        .topics = topics,
        .n_topics = 2,
        .instance_id = instance_id,
        .session_timeout_ms = session_timeout_ms,
        .heartbeat_ms = (int32_t)f->heartbeat_ms,
        .retry_backoff_ms = 1,
        .metadata_ms = 5,
    };
    f->m = member_new(f->c, &cfg, &owner, f);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    char brokers[128];
    f->lp = loop_new(test_world());
    f->g = &f->fc.group;
    fake_cluster_init(&f->fc, f->lp, 2);
    fake_topic_add(&f->fc, "t", 2, 1);
    f->heartbeat_ms = 3;
    f->g->gives_ids = true;
    struct client_config cfg = {
        .brokers = fake_addresses(&f->fc, brokers, sizeof brokers),
        .client_id = "test",
        .retry_backoff_ms = 2,
        .request_timeout_ms = 5000,
    };
    f->c = client_new(f->lp, NULL, &cfg);
    assert_non_null(f->c);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    member_free(f->m);
    client_free(f->c);
    fake_cluster_done(&f->fc);
    loop_run_once(f->lp, 0);
    loop_free(f->lp);
    free(f);
    return 0;
}

#define RUN_UNTIL(f, condition)         \
    do {                                \
        while (!(condition))            \
            loop_run_once((f)->lp, -1); \
    } while (0)

static void run_until_assigned(struct fixture *f, int n)
{
    RUN_UNTIL(f, f->n_assigned >= n || f->n_ended > 0);
    assert_int_equal(f->n_assigned, n);
    assert_int_equal(f->n_ended, 0);
}

static void start(struct fixture *f)
{
    member_make(f, NULL, 0);
    member_join(f->m);
    assert_int_equal(f->n_assigned, 0);
    run_until_assigned(f, 1);
}

static void run_until_heartbeats(struct fixture *f, int more)
{
    int n = f->fc.requests[API_HEARTBEAT] + more;
    RUN_UNTIL(f, f->fc.requests[API_HEARTBEAT] >= n);
}

static void position(struct fixture *f, int32_t partition, int64_t offset)
{
    struct fake_position *p = &f->g->positions[f->g->n_positions++];
    *p = (struct fake_position){ .topic = "t", .partition = partition, .offset = offset };
}

/* ---- joining ---- */
static void a_member_gets_an_id_joins_and_is_told_its_partitions(void **state)
{
    struct fixture *f = *state;
    position(f, 1, 42);
    start(f);
    assert_string_equal(f->parts, "t/0@-1 t/1@42");
    assert_string_equal(member_id(f->m), "test-1");
    assert_int_equal(member_generation(f->m), 1);
    assert_true(member_leads(f->m));
    assert_int_equal(f->fc.requests[API_JOIN_GROUP], 2);
    assert_int_equal(f->fc.last_version[API_JOIN_GROUP], 9);
    assert_int_equal(f->fc.last_version[API_SYNC_GROUP], 5);
    assert_string_equal(f->g->offered, "range,roundrobin,RoundRobinAssigner");
    assert_string_equal(f->g->subscribed, "t,u");
    assert_int_equal(f->g->session_timeout_ms, 45000);
    assert_int_equal(f->g->rebalance_timeout_ms, 300000);
    assert_string_equal(f->g->instance_id, "");
    run_until_heartbeats(f, 3);
    assert_int_equal(f->n_revoked, 0);
}

static void an_old_coordinator_is_spoken_to_in_its_versions(void **state)
{
    struct fixture *f = *state;
    f->fc.max_version[API_JOIN_GROUP] = 1;
    f->fc.max_version[API_SYNC_GROUP] = 1;
    f->fc.max_version[API_HEARTBEAT] = 1;
    f->fc.max_version[API_OFFSET_COMMIT] = 2;
    f->fc.max_version[API_OFFSET_FETCH] = 1;
    start(f);
    assert_int_equal(f->fc.requests[API_JOIN_GROUP], 1);
    assert_string_equal(f->parts, "t/0@-1 t/1@-1");
    run_until_heartbeats(f, 1);
    struct commit k;
    commit(f, &k, 0, 5);
    RUN_UNTIL(f, k.told == 1);
    assert_int_equal(k.rc, 0);
}

static void a_leader_shares_out_to_all_members(void **state)
{
    struct fixture *f = *state;
    f->g->peers[0] = (struct fake_peer){ .id = "a-first", .topic = "t" };
    f->g->peers[1] = (struct fake_peer){ .id = "z-last", .topic = "more" };
    f->g->peers[2] = (struct fake_peer){ .id = "bad" }; /* a subscription that cannot be read */
    f->g->n_peers = 3;
    fake_topic_add(&f->fc, "more", 3, 2);
    start(f);
    assert_string_equal(f->g->peers[0].got, "t/0");
    assert_string_equal(f->g->got, "t/1");
    assert_string_equal(f->g->peers[1].got, "more/0,more/1,more/2");
    assert_string_equal(f->g->peers[2].got, "");
    assert_string_equal(f->parts, "t/1@-1");
}

static void a_leader_uses_the_assignor_that_was_chosen(void **state)
{
    struct fixture *f = *state;
    f->g->protocol = "RoundRobinAssigner";
    f->g->peers[0] = (struct fake_peer){ .id = "z-last", .topic = "t" };
    f->g->n_peers = 1;
    fake_topic_add(&f->fc, "u", 2, 2);
    start(f);
    assert_string_equal(f->g->got, "t/0,u/0,u/1");
    assert_string_equal(f->g->peers[0].got, "t/1");
}

static void a_follower_takes_what_it_is_given_sorted_and_once(void **state)
{
    struct fixture *f = *state;
    f->g->leader = "somebody-else";
    f->g->assignment = "u/1,t/1,t/0,t/1";
    position(f, 1, 3);
    start(f);
    assert_string_equal(f->parts, "t/0@-1 t/1@3 u/1@-1");
    assert_false(member_leads(f->m));
}

static void a_member_may_be_given_nothing(void **state)
{
    struct fixture *f = *state;
    f->g->leader = "somebody-else";
    f->g->assignment = "";
    start(f);
    assert_string_equal(f->parts, "");
    run_until_heartbeats(f, 2);
}

static void a_static_leader_that_returns_does_not_assign(void **state)
{
    struct fixture *f = *state;
    f->g->skip_assignment = true;
    f->g->assignment = "t/0";
    member_make(f, "i-1", 0);
    member_join(f->m);
    run_until_assigned(f, 1);
    assert_string_equal(f->g->instance_id, "i-1");
    assert_string_equal(f->g->got, "");
    assert_string_equal(f->parts, "t/0@-1");
}

/* ---- errors on the way in ---- */
static void what_passes_while_joining_is_waited_for(void **state)
{
    static const enum kerr passing[] = { KERR_COORDINATOR_LOAD_IN_PROGRESS, KERR_COORDINATOR_NOT_AVAILABLE,
                                         KERR_NOT_COORDINATOR };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(passing); i++) {
        fake_script(&f->fc, API_FIND_COORDINATOR, FAKE_ERROR, KERR_COORDINATOR_NOT_AVAILABLE);
        fake_script(&f->fc, API_JOIN_GROUP, FAKE_ERROR, passing[i]);
        fake_script(&f->fc, API_SYNC_GROUP, FAKE_ERROR, passing[i]);
        fake_script(&f->fc, API_OFFSET_FETCH, FAKE_ERROR, passing[i]);
    }
    fake_script(&f->fc, API_JOIN_GROUP, FAKE_DROP, KERR_NONE);
    fake_script(&f->fc, API_SYNC_GROUP, FAKE_DO_AND_DROP, KERR_NONE);
    start(f);
    assert_string_equal(f->parts, "t/0@-1 t/1@-1");
    assert_int_equal(f->fc.requests[API_SYNC_GROUP], 5);
    assert_int_equal(f->g->generation, 1);
}

static void an_id_that_is_not_known_any_more_is_dropped(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_JOIN_GROUP, FAKE_ERROR, KERR_UNKNOWN_MEMBER_ID);
    start(f);
    assert_int_equal(f->fc.requests[API_JOIN_GROUP], 3);
    assert_string_equal(member_id(f->m), "test-1");
}

static void a_rebalance_while_joining_or_syncing_means_joining_again(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_JOIN_GROUP, FAKE_ERROR, KERR_REBALANCE_IN_PROGRESS);
    fake_script(&f->fc, API_SYNC_GROUP, FAKE_ERROR, KERR_REBALANCE_IN_PROGRESS);
    start(f);
    assert_int_equal(member_generation(f->m), 2);
    assert_int_equal(f->g->ids, 1);
}

static void a_generation_that_ends_while_syncing_keeps_the_id(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_SYNC_GROUP, FAKE_ERROR, KERR_ILLEGAL_GENERATION);
    start(f);
    assert_int_equal(member_generation(f->m), 2);
    assert_int_equal(f->g->ids, 1);
}

static void being_forgotten_while_syncing_means_a_new_id(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_SYNC_GROUP, FAKE_ERROR, KERR_UNKNOWN_MEMBER_ID);
    start(f);
    assert_int_equal(member_generation(f->m), 2);
    assert_int_equal(f->g->ids, 2);
}

static void refusals_for_good_end_it(void **state)
{
    static const struct {
        int16_t api;
        enum kerr err;
    } cases[] = {
        { API_FIND_COORDINATOR, KERR_GROUP_AUTHORIZATION_FAILED },
        { API_JOIN_GROUP, KERR_INVALID_GROUP_ID },
        { API_JOIN_GROUP, KERR_INVALID_SESSION_TIMEOUT },
        { API_JOIN_GROUP, KERR_INCONSISTENT_GROUP_PROTOCOL },
        { API_JOIN_GROUP, KERR_GROUP_MAX_SIZE_REACHED },
        { API_JOIN_GROUP, KERR_GROUP_AUTHORIZATION_FAILED },
        { API_JOIN_GROUP, KERR_FENCED_INSTANCE_ID },
        { API_SYNC_GROUP, KERR_FENCED_INSTANCE_ID },
        { API_SYNC_GROUP, KERR_INCONSISTENT_GROUP_PROTOCOL },
        { API_OFFSET_FETCH, KERR_GROUP_AUTHORIZATION_FAILED },
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        fake_script(&f->fc, cases[i].api, FAKE_ERROR, cases[i].err);
        member_make(f, NULL, 0);
        member_join(f->m);
        RUN_UNTIL(f, f->n_ended == 1);
        assert_int_equal(f->ended_rc, -kerr_errno(cases[i].err));
        assert_int_equal(f->ended_err, cases[i].err);
        assert_int_equal(f->n_assigned, 0);
        assert_int_equal(f->fc.n_steps, 0);
        member_free(f->m);
        f->m = NULL;
        f->n_ended = 0;
    }
}

static void a_protocol_that_was_never_offered_ends_it(void **state)
{
    struct fixture *f = *state;
    f->g->protocol = "sticky";
    member_make(f, NULL, 0);
    member_join(f->m);
    RUN_UNTIL(f, f->n_ended == 1);
    assert_int_equal(f->ended_err, KERR_INCONSISTENT_GROUP_PROTOCOL);
}

/* ---- rebalances ---- */
static void a_rebalance_takes_all_back_after_the_last_commit(void **state)
{
    struct fixture *f = *state;
    struct commit k;
    start(f);
    f->revoked = &k;
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_ERROR, KERR_NOT_COORDINATOR);
    f->g->rebalances = true;
    run_until_assigned(f, 2);
    assert_int_equal(f->n_revoked, 1);
    assert_int_equal(f->n_lost, 0);
    assert_int_equal(k.told, 1);
    assert_int_equal(k.rc, 0);
    assert_string_equal(f->parts, "t/0@77 t/1@-1");
    assert_int_equal(member_generation(f->m), 2);
    assert_string_equal(member_id(f->m), "test-1");
}

static void heartbeats_go_on_while_the_owner_finishes(void **state)
{
    struct fixture *f = *state;
    struct commit k;
    start(f);
    f->keeps = true;
    f->g->rebalances = true;
    RUN_UNTIL(f, f->n_revoked == 1);
    run_until_heartbeats(f, 3);
    assert_int_equal(f->fc.requests[API_JOIN_GROUP], 2);
    commit(f, &k, 1, 9);
    member_released(f->m);
    run_until_assigned(f, 2);
    assert_int_equal(k.rc, 0);
    assert_string_equal(f->parts, "t/0@-1 t/1@9");
    assert_int_equal(f->n_revoked, 1);
}

static void new_partitions_are_noticed_by_the_leader(void **state)
{
    struct fixture *f = *state;
    start(f);
    f->fc.topics[0].n_partitions = 3;
    f->fc.topics[0].leaders[2] = 1;
    run_until_assigned(f, 2);
    assert_string_equal(f->parts, "t/0@-1 t/1@-1 t/2@-1");
    assert_int_equal(f->n_revoked, 1);
    assert_int_equal(f->n_lost, 0);
}

static void a_topic_that_comes_later_is_noticed(void **state)
{
    struct fixture *f = *state;
    start(f);
    int asked = f->fc.requests[API_METADATA];
    RUN_UNTIL(f, f->fc.requests[API_METADATA] > asked + 1);
    assert_int_equal(f->n_revoked, 0);
    fake_topic_add(&f->fc, "u", 1, 2);
    run_until_assigned(f, 2);
    assert_string_equal(f->parts, "t/0@-1 t/1@-1 u/0@-1");
}

/* ---- losing ---- */
static void an_unknown_id_loses_all_and_joins_anew(void **state)
{
    struct fixture *f = *state;
    start(f);
    fake_script(&f->fc, API_HEARTBEAT, FAKE_ERROR, KERR_UNKNOWN_MEMBER_ID);
    run_until_assigned(f, 2);
    assert_int_equal(f->n_lost, 1);
    assert_string_equal(member_id(f->m), "test-2");
}

static void an_old_generation_loses_all_but_the_id(void **state)
{
    struct fixture *f = *state;
    start(f);
    f->g->generation++;
    run_until_assigned(f, 2);
    assert_int_equal(f->n_lost, 1);
    assert_string_equal(member_id(f->m), "test-1");
}

static void commits_of_what_was_lost_are_refused_here_already(void **state)
{
    struct fixture *f = *state;
    struct commit k;
    start(f);
    f->revoked = &k;
    fake_script(&f->fc, API_HEARTBEAT, FAKE_ERROR, KERR_UNKNOWN_MEMBER_ID);
    run_until_assigned(f, 2);
    assert_int_equal(k.told, 1);
    assert_int_equal(k.rc, -EIO);
    assert_int_equal(k.err, KERR_ILLEGAL_GENERATION);
    assert_int_equal(f->fc.requests[API_OFFSET_COMMIT], 0);
}

static void a_session_that_runs_out_unheard_is_lost(void **state)
{
    struct fixture *f = *state;
    member_make(f, NULL, 60);
    member_join(f->m);
    run_until_assigned(f, 1);
    for (int i = 0; i < FAKE_STEPS; i++)
        fake_script(&f->fc, API_HEARTBEAT, FAKE_DEAF, KERR_NONE);
    RUN_UNTIL(f, f->n_lost == 1);
    assert_int_equal(f->n_revoked, 1);
}

static void what_passes_at_a_heartbeat_is_waited_for(void **state)
{
    struct fixture *f = *state;
    start(f);
    fake_script(&f->fc, API_HEARTBEAT, FAKE_ERROR, KERR_NOT_COORDINATOR);
    fake_script(&f->fc, API_HEARTBEAT, FAKE_ERROR, KERR_COORDINATOR_NOT_AVAILABLE);
    fake_script(&f->fc, API_HEARTBEAT, FAKE_ERROR, KERR_COORDINATOR_LOAD_IN_PROGRESS);
    fake_script(&f->fc, API_HEARTBEAT, FAKE_DROP, KERR_NONE);
    run_until_heartbeats(f, 6);
    assert_int_equal(f->n_revoked, 0);
    assert_int_equal(f->n_ended, 0);
}

static void losing_while_the_owner_finishes_is_not_told_twice(void **state)
{
    struct fixture *f = *state;
    struct commit k;
    start(f);
    f->keeps = true;
    f->g->rebalances = true;
    RUN_UNTIL(f, f->n_revoked == 1);
    fake_script(&f->fc, API_HEARTBEAT, FAKE_ERROR, KERR_UNKNOWN_MEMBER_ID);
    RUN_UNTIL(f, member_generation(f->m) < 0);
    commit(f, &k, 0, 5);
    member_released(f->m);
    run_until_assigned(f, 2);
    assert_int_equal(f->n_revoked, 1);
    assert_int_equal(k.err, KERR_ILLEGAL_GENERATION);
    assert_string_equal(member_id(f->m), "test-2");
}

static void another_of_the_same_instance_ends_it(void **state)
{
    struct fixture *f = *state;
    start(f);
    fake_script(&f->fc, API_HEARTBEAT, FAKE_ERROR, KERR_FENCED_INSTANCE_ID);
    RUN_UNTIL(f, f->n_ended == 1);
    assert_int_equal(f->ended_err, KERR_FENCED_INSTANCE_ID);
    assert_int_equal(f->n_revoked, 0);
}

/* ---- commits ---- */
static void commits_that_gather_go_together_and_in_order(void **state)
{
    struct fixture *f = *state;
    struct commit a, b, c;
    start(f);
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_HOLD, KERR_NONE);
    commit(f, &a, 0, 1);
    RUN_UNTIL(f, f->fc.n_held == 1);
    commit(f, &b, 1, 2);
    commit(f, &c, 0, 3);
    run_until_heartbeats(f, 0);
    loop_run_once(f->lp, 0);
    assert_int_equal(f->fc.requests[API_OFFSET_COMMIT], 1);
    assert_int_equal(a.told + b.told + c.told, 0);
    fake_release(&f->fc);
    RUN_UNTIL(f, c.told == 1);
    assert_int_equal(f->fc.requests[API_OFFSET_COMMIT], 2);
    assert_int_equal(a.rc + b.rc + c.rc, 0);
    assert_int_equal(b.told, 1);
    assert_int_equal(f->g->positions[0].offset, 3);
    assert_int_equal(f->g->positions[1].offset, 2);
}

static void a_commit_is_retried_and_nothing_overtakes_it(void **state)
{
    struct fixture *f = *state;
    struct commit a, b;
    start(f);
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_ERROR, KERR_COORDINATOR_LOAD_IN_PROGRESS);
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_DROP, KERR_NONE);
    commit(f, &a, 0, 1);
    RUN_UNTIL(f, f->fc.requests[API_OFFSET_COMMIT] == 1);
    commit(f, &b, 0, 2);
    RUN_UNTIL(f, b.told == 1);
    assert_int_equal(a.rc, 0);
    assert_int_equal(b.rc, 0);
    assert_int_equal(f->fc.requests[API_OFFSET_COMMIT], 4);
    assert_int_equal(f->g->positions[0].offset, 2);
}

static void each_commit_hears_its_own_error(void **state)
{
    struct fixture *f = *state;
    struct commit a, b;
    start(f);
    commit(f, &a, 0, 1);
    commit(f, &b, 1, 2);
    a.mc.position.metadata = "far too much metadata"; /* nothing is sent before the round's end */
    RUN_UNTIL(f, b.told == 1);
    assert_int_equal(a.told, 1);
    assert_int_equal(a.err, KERR_OFFSET_METADATA_TOO_LARGE);
    assert_int_equal(a.rc, -EMSGSIZE);
    assert_int_equal(b.rc, 0);
    assert_int_equal(f->n_revoked + f->n_ended, 0);
}

static void a_commit_that_finds_the_member_unknown_loses_all(void **state)
{
    static const enum kerr losing[] = { KERR_UNKNOWN_MEMBER_ID, KERR_ILLEGAL_GENERATION };
    struct fixture *f = *state;
    f->heartbeat_ms = 60000;
    start(f);
    for (int i = 0; i < 2; i++) {
        struct commit k;
        fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_ERROR, losing[i]);
        commit(f, &k, 0, 1);
        run_until_assigned(f, 2 + i);
        assert_int_equal(k.err, losing[i]);
        assert_int_equal(k.rc, -EIO);
        assert_int_equal(f->n_lost, 1 + i);
    }
    assert_string_equal(member_id(f->m), "test-2");
}

static void a_commit_during_a_rebalance_is_refused_and_the_member_joins(void **state)
{
    struct fixture *f = *state;
    struct commit k;
    f->heartbeat_ms = 60000;
    start(f);
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_ERROR, KERR_REBALANCE_IN_PROGRESS);
    commit(f, &k, 0, 1);
    run_until_assigned(f, 2);
    assert_int_equal(k.rc, -EAGAIN);
    assert_int_equal(f->n_revoked, 1);
    assert_int_equal(f->n_lost, 0);
}

static void a_fenced_commit_ends_it(void **state)
{
    struct fixture *f = *state;
    struct commit k;
    start(f);
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_ERROR, KERR_FENCED_INSTANCE_ID);
    commit(f, &k, 0, 1);
    RUN_UNTIL(f, f->n_ended == 1);
    assert_int_equal(k.err, KERR_FENCED_INSTANCE_ID);
    assert_int_equal(f->ended_err, KERR_FENCED_INSTANCE_ID);
}

static void a_commit_that_may_not_be_made_is_the_owners_matter(void **state)
{
    struct fixture *f = *state;
    struct commit k;
    start(f);
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_ERROR, KERR_TOPIC_AUTHORIZATION_FAILED);
    commit(f, &k, 0, 1);
    RUN_UNTIL(f, k.told == 1);
    assert_int_equal(k.rc, -EACCES);
    run_until_heartbeats(f, 2);
    assert_int_equal(f->n_revoked + f->n_ended, 0);
}

/* ---- leaving ---- */
static void close_now(struct fixture *f)
{
    member_close(f->m, loop_now_ms(f->lp) + 5000);
    assert_int_equal(f->n_ended, 0);
    RUN_UNTIL(f, f->n_ended == 1);
    assert_int_equal(f->ended_rc, 0);
    assert_int_equal(f->ended_err, KERR_NONE);
}

static void leaving_waits_for_the_commits(void **state)
{
    struct fixture *f = *state;
    struct commit k;
    start(f);
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_ERROR, KERR_NOT_COORDINATOR);
    commit(f, &k, 0, 8);
    close_now(f);
    assert_int_equal(k.told, 1);
    assert_int_equal(k.rc, 0);
    assert_int_equal(f->g->n_left, 1);
    assert_int_equal(f->n_revoked, 0);
    assert_int_equal(f->g->positions[0].offset, 8);
}

static void leaving_in_any_state_leaves_no_member_behind(void **state)
{
    /* held back: the answer that the member waits for when it closes */
    static const int16_t apis[] = { API_SYNC_GROUP, API_OFFSET_FETCH };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(apis); i++) {
        fake_script(&f->fc, apis[i], FAKE_HOLD, KERR_NONE);
        member_make(f, NULL, 0);
        member_join(f->m);
        RUN_UNTIL(f, f->fc.n_held == 1);
        member_close(f->m, loop_now_ms(f->lp) + 5000);
        fake_release(&f->fc);
        RUN_UNTIL(f, f->n_ended == 1);
        assert_int_equal(f->g->n_left, 1);
        assert_int_equal(f->n_assigned, 0);
        member_free(f->m);
        f->m = NULL;
        f->n_ended = f->g->n_left = 0;
    }
}

static void leaving_while_joining_uses_the_id_that_comes(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_JOIN_GROUP, FAKE_HOLD, KERR_NONE);
    member_make(f, NULL, 0);
    member_join(f->m);
    RUN_UNTIL(f, f->fc.n_held == 1);
    member_close(f->m, loop_now_ms(f->lp) + 5000);
    fake_release(&f->fc);
    RUN_UNTIL(f, f->n_ended == 1);
    assert_int_equal(f->g->n_left, 1);
    assert_int_equal(f->fc.requests[API_JOIN_GROUP], 1);
}

static void leaving_while_waiting_in_a_join_cancels_it(void **state)
{
    struct fixture *f = *state;
    start(f);
    fake_script(&f->fc, API_JOIN_GROUP, FAKE_DEAF, KERR_NONE);
    f->g->rebalances = true;
    RUN_UNTIL(f, f->fc.requests[API_JOIN_GROUP] == 3);
    close_now(f);
    assert_int_equal(f->g->n_left, 1);
}

static void leaving_while_revoked_counts_as_released(void **state)
{
    struct fixture *f = *state;
    struct commit k;
    start(f);
    f->keeps = true;
    f->g->rebalances = true;
    RUN_UNTIL(f, f->n_revoked == 1);
    commit(f, &k, 0, 8);
    close_now(f);
    assert_int_equal(k.rc, 0);
    assert_int_equal(f->g->n_left, 1);
    assert_int_equal(f->n_assigned, 1);
}

static void leaving_does_not_outlast_its_deadline(void **state)
{
    struct fixture *f = *state;
    struct commit k;
    f->heartbeat_ms = 60000; /* an answer to one would show that the commit's is missing */
    start(f);
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_DEAF, KERR_NONE);
    commit(f, &k, 0, 8);
    member_close(f->m, loop_now_ms(f->lp) + 30);
    RUN_UNTIL(f, f->n_ended == 1);
    assert_int_equal(f->ended_rc, 0);
    assert_int_equal(k.rc, -ECANCELED);
    assert_int_equal(f->g->n_left, 0);
}

static void a_static_member_does_not_leave(void **state)
{
    struct fixture *f = *state;
    member_make(f, "i-1", 0);
    member_join(f->m);
    run_until_assigned(f, 1);
    close_now(f);
    assert_int_equal(f->g->n_left, 0);
    assert_int_equal(f->fc.requests[API_LEAVE_GROUP], 0);
}

static void one_that_never_joined_ends_at_once(void **state)
{
    struct fixture *f = *state;
    member_make(f, NULL, 0);
    close_now(f);
    assert_int_equal(f->fc.requests[API_LEAVE_GROUP], 0);
}

static void leaving_that_fails_is_an_end_all_the_same(void **state)
{
    struct fixture *f = *state;
    start(f);
    fake_script(&f->fc, API_LEAVE_GROUP, FAKE_ERROR, KERR_UNKNOWN_MEMBER_ID);
    close_now(f);
}

static void freeing_cancels_whatever_is_out(void **state)
{
    struct fixture *f = *state;
    struct commit a, b;
    start(f);
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_DEAF, KERR_NONE);
    commit(f, &a, 0, 8);
    RUN_UNTIL(f, f->fc.requests[API_OFFSET_COMMIT] == 1);
    commit(f, &b, 0, 9);
    member_free(f->m);
    f->m = NULL;
    assert_int_equal(a.rc, -ECANCELED);
    assert_int_equal(b.rc, -ECANCELED);
    assert_int_equal(f->n_ended, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_member_gets_an_id_joins_and_is_told_its_partitions),
        T(an_old_coordinator_is_spoken_to_in_its_versions),
        T(a_leader_shares_out_to_all_members),
        T(a_leader_uses_the_assignor_that_was_chosen),
        T(a_follower_takes_what_it_is_given_sorted_and_once),
        T(a_member_may_be_given_nothing),
        T(a_static_leader_that_returns_does_not_assign),
        T(what_passes_while_joining_is_waited_for),
        T(an_id_that_is_not_known_any_more_is_dropped),
        T(a_rebalance_while_joining_or_syncing_means_joining_again),
        T(a_generation_that_ends_while_syncing_keeps_the_id),
        T(being_forgotten_while_syncing_means_a_new_id),
        T(refusals_for_good_end_it),
        T(a_protocol_that_was_never_offered_ends_it),
        T(a_rebalance_takes_all_back_after_the_last_commit),
        T(heartbeats_go_on_while_the_owner_finishes),
        T(new_partitions_are_noticed_by_the_leader),
        T(a_topic_that_comes_later_is_noticed),
        T(an_unknown_id_loses_all_and_joins_anew),
        T(an_old_generation_loses_all_but_the_id),
        T(commits_of_what_was_lost_are_refused_here_already),
        T(a_session_that_runs_out_unheard_is_lost),
        T(what_passes_at_a_heartbeat_is_waited_for),
        T(losing_while_the_owner_finishes_is_not_told_twice),
        T(another_of_the_same_instance_ends_it),
        T(commits_that_gather_go_together_and_in_order),
        T(a_commit_is_retried_and_nothing_overtakes_it),
        T(each_commit_hears_its_own_error),
        T(a_commit_that_finds_the_member_unknown_loses_all),
        T(a_commit_during_a_rebalance_is_refused_and_the_member_joins),
        T(a_fenced_commit_ends_it),
        T(a_commit_that_may_not_be_made_is_the_owners_matter),
        T(leaving_waits_for_the_commits),
        T(leaving_in_any_state_leaves_no_member_behind),
        T(leaving_while_joining_uses_the_id_that_comes),
        T(leaving_while_waiting_in_a_join_cancels_it),
        T(leaving_while_revoked_counts_as_released),
        T(leaving_does_not_outlast_its_deadline),
        T(a_static_member_does_not_leave),
        T(one_that_never_joined_ends_at_once),
        T(leaving_that_fails_is_an_end_all_the_same),
        T(freeing_cancels_whatever_is_out),
    };
    return RUN(tests);
}
