/* SPDX-License-Identifier: Apache-2.0 */
/* Calls, routing and metadata against make-believe brokers. */
#include "unit.h"
#include "world.h"

#include "lib/base/attr.h"
#include "lib/client/client.h"
#include "lib/client/fetch.h"
#include "lib/client/sync.h"
#include "lib/record/build.h"
#include "tests/lib/fakebroker.h"

struct fixture {
    struct loop *lp;
    struct fake_cluster fc;
    struct client *c;
    struct arena a;
    char brokers[128];
};

static void client_start(struct fixture *f, int64_t request_timeout_ms)
{
    struct client_config cfg = {
        .brokers = f->brokers,
        .client_id = "test",
        .retry_backoff_ms = 2,
        .request_timeout_ms = request_timeout_ms,
    };
    f->c = client_new(f->lp, NULL, &cfg);
    assert_non_null(f->c);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->lp = loop_new(test_world());
    fake_cluster_init(&f->fc, f->lp, 3);
    fake_addresses(&f->fc, f->brokers, sizeof f->brokers);
    fake_topic_add(&f->fc, "t", 2, 2);
    arena_init(&f->a);
    client_start(f, 5000);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    client_free(f->c);
    fake_cluster_done(&f->fc);
    loop_run_once(f->lp, 0);
    arena_done(&f->a);
    loop_free(f->lp);
    free(f);
    return 0;
}

/* ---- calls that say what became of them ---- */
struct told {
    struct client_call call;
    struct list_offsets_request body;
    struct list_offsets_request_topics topic;
    struct list_offsets_request_partitions part;
    int n, rc;
    enum kerr err;
    int16_t version;
    enum kerr judged; /* what judge says, once */
};

static void on_told(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    (void)response;
    struct told *w = call->user;
    w->n++;
    w->rc = rc;
    w->err = err;
    w->version = version;
}

static enum kerr judge_once(struct client_call *call, int16_t version, const void *response)
{
    (void)version;
    (void)response;
    struct told *w = call->user;
    enum kerr err = w->judged;
    w->judged = KERR_NONE;
    return err;
}

/* A call that the fake brokers answer with an empty response. */
static void told_init(struct fixture *f, struct told *w, enum client_target target)
{
    memset(w, 0, sizeof *w);
    wire_defaults(&wire_list_offsets_request, &w->body);
    w->call = (struct client_call){
        .target = target,
        .topic = "t",
        .partition = 1,
        .request = &wire_list_offsets_request,
        .body = &w->body,
        .max_version = -1,
        .deadline_ms = loop_now_ms(f->lp) + 5000,
        .judge = judge_once,
        .cb = on_told,
        .user = w,
    };
}

static void run_until_told(struct fixture *f, struct told *w)
{
    while (w->n == 0)
        loop_run_once(f->lp, -1);
    assert_int_equal(w->n, 1);
}

static void run_until_requests(struct fixture *f, int16_t api, int n)
{
    while (f->fc.requests[api] < n)
        loop_run_once(f->lp, -1);
}

/* ---- bootstrap ---- */
static void a_list_that_is_no_list_of_addresses_is_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {
        "", ",", "host:", "host:0", "host:65536", "host:12x", "[::1", ":9092"
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct client_config cfg = { .brokers = bad[i], .client_id = "test" };
        errno = 0;
        assert_null(client_new(f->lp, NULL, &cfg));
        assert_int_equal(errno, EINVAL);
    }
}

static void the_next_address_is_tried_when_one_is_dead(void **state)
{
    struct fixture *f = *state;
    fake_broker_stop(&f->fc.brokers[0]);
    fake_broker_stop(&f->fc.brokers[1]);
    struct told w;
    told_init(f, &w, TARGET_ANY);
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
    assert_int_equal(f->fc.brokers[2].n_accepted, 1);
}

static void a_cluster_that_comes_back_is_found_again(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++)
        fake_broker_stop(&f->fc.brokers[i]);
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    client_call(f->c, &w.call);
    for (int i = 0; i < 20; i++)
        loop_run_once(f->lp, 5);
    assert_int_equal(w.n, 0);
    for (int i = 0; i < 3; i++)
        fake_broker_start(&f->fc.brokers[i]);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
}

static void a_deadline_ends_a_call_that_reaches_nobody(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++)
        fake_broker_stop(&f->fc.brokers[i]);
    struct told w;
    told_init(f, &w, TARGET_ANY);
    w.call.deadline_ms = loop_now_ms(f->lp) + 30;
    client_call(f->c, &w.call);
    assert_false(client_call_was_sent(&w.call));
    run_until_told(f, &w);
    assert_int_equal(w.rc, -ETIMEDOUT);
    assert_int_equal(w.err, KERR_NONE);
}

/* ---- versions ---- */
static void the_newest_version_both_know_is_spoken(void **state)
{
    struct fixture *f = *state;
    struct told w;
    told_init(f, &w, TARGET_ANY);
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.version, wire_list_offsets_request.max_version);
    assert_string_equal(f->fc.software, "klog");
    assert_true(client_has_api(f->c, API_PRODUCE));
    assert_false(client_has_api(f->c, 9999));

    told_init(f, &w, TARGET_ANY);
    w.call.max_version = 3;
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.version, 3);
}

static void a_broker_of_old_is_asked_for_its_versions_again(void **state)
{
    struct fixture *f = *state;
    f->fc.api_versions_max = 0;
    struct told w;
    told_init(f, &w, TARGET_ANY);
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
    assert_int_equal(f->fc.requests[API_API_VERSIONS], 2);
    assert_int_equal(f->fc.last_version[API_API_VERSIONS], 0);
}

static void a_call_that_the_broker_does_not_know_is_told_so(void **state)
{
    struct fixture *f = *state;
    f->fc.no_produce = true;
    struct produce_request body;
    wire_defaults(&wire_produce_request, &body);
    struct told w;
    told_init(f, &w, TARGET_ANY);
    w.call.request = &wire_produce_request;
    w.call.body = &body;
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, -EPROTONOSUPPORT);
}

/* ---- leaders ---- */
static void a_call_goes_to_the_leader(void **state)
{
    struct fixture *f = *state;
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
    assert_int_equal(f->fc.brokers[1].n_accepted, 1);
    assert_int_equal(f->fc.requests[API_METADATA], 1);
    const struct client_topic *t = client_topic(f->c, "t");
    assert_int_equal(t->n_partitions, 2);
    assert_int_equal(t->partitions[1].leader, 2);
    assert_int_equal(client_n_brokers(f->c), 3);
    assert_int_equal(client_controller(f->c), 1);
    assert_string_equal(client_cluster_id(f->c), "fake");

    told_init(f, &w, TARGET_LEADER);
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(f->fc.requests[API_METADATA], 1);
}

static void a_hundred_calls_share_one_metadata_request_and_one_connection(void **state)
{
    struct fixture *f = *state;
    struct told w[100];
    for (int i = 0; i < 100; i++) {
        told_init(f, &w[i], TARGET_LEADER);
        client_call(f->c, &w[i].call);
    }
    for (int i = 0; i < 100; i++)
        run_until_told(f, &w[i]);
    assert_int_equal(f->fc.requests[API_METADATA], 1);
    assert_int_equal(f->fc.brokers[1].n_accepted, 1);
    assert_int_equal(f->fc.requests[API_LIST_OFFSETS], 100);
}

static void a_refusal_by_the_old_leader_leads_to_the_new_one(void **state)
{
    struct fixture *f = *state;
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    client_call(f->c, &w.call);
    run_until_told(f, &w);

    f->fc.topics[0].leaders[1] = 3;
    told_init(f, &w, TARGET_LEADER);
    w.judged = KERR_NOT_LEADER_OR_FOLLOWER;
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
    assert_int_equal(f->fc.requests[API_METADATA], 2);
    assert_true(f->fc.brokers[2].n_accepted >= 1);
    assert_int_equal(client_topic(f->c, "t")->partitions[1].leader, 3);
}

static void the_deadline_tells_the_last_error_that_would_pass(void **state)
{
    struct fixture *f = *state;
    f->fc.topics[0].leaders[1] = -1;
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    w.call.deadline_ms = loop_now_ms(f->lp) + 500;
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, -ETIMEDOUT);
    assert_int_equal(w.err, KERR_LEADER_NOT_AVAILABLE);
    assert_true(f->fc.requests[API_METADATA] > 1);
}

static void a_leader_elected_meanwhile_is_found(void **state)
{
    struct fixture *f = *state;
    f->fc.topics[0].leaders[1] = -1;
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    client_call(f->c, &w.call);
    run_until_requests(f, API_METADATA, 3);
    f->fc.topics[0].leaders[1] = 1;
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
}

static void a_topic_that_does_not_exist_is_enoent(void **state)
{
    struct fixture *f = *state;
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    w.call.topic = "nope";
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, -ENOENT);
    assert_int_equal(w.err, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_null(client_topic(f->c, "nope"));

    told_init(f, &w, TARGET_LEADER);
    w.call.partition = 2;
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, -ENOENT);
}

static void a_topic_made_after_it_was_missed_is_found(void **state)
{
    struct fixture *f = *state;
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    w.call.topic = "u";
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, -ENOENT);
    fake_topic_add(&f->fc, "u", 2, 1);
    told_init(f, &w, TARGET_LEADER);
    w.call.topic = "u";
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
}

static void the_controller_is_looked_up(void **state)
{
    struct fixture *f = *state;
    f->fc.controller = 3;
    struct told w;
    told_init(f, &w, TARGET_CONTROLLER);
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
    assert_true(f->fc.brokers[2].n_accepted >= 1);
}

static void the_coordinator_is_looked_up_once(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_FIND_COORDINATOR, FAKE_ERROR, KERR_COORDINATOR_NOT_AVAILABLE);
    for (int i = 0; i < 2; i++) {
        struct told w;
        told_init(f, &w, TARGET_COORDINATOR);
        client_call(f->c, &w.call);
        run_until_told(f, &w);
        assert_int_equal(w.rc, 0);
    }
    assert_int_equal(f->fc.requests[API_FIND_COORDINATOR], 2); /* one of them was refused */
    assert_int_equal(f->fc.brokers[2].n_accepted, 1);
}

static void a_coordinator_that_moved_is_looked_up_again(void **state)
{
    struct fixture *f = *state;
    struct told w;
    told_init(f, &w, TARGET_COORDINATOR);
    w.judged = KERR_NOT_COORDINATOR;
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
    assert_int_equal(f->fc.requests[API_FIND_COORDINATOR], 2);
}

/* ---- broken connections ---- */
static void a_call_whose_connection_broke_is_tried_again(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_DROP, 0);
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
    assert_int_equal(f->fc.requests[API_LIST_OFFSETS], 2);
}

static void a_once_call_whose_connection_broke_is_not(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_DROP, 0);
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    w.call.once = true;
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, -EPIPE);
    assert_int_equal(f->fc.requests[API_LIST_OFFSETS], 1);
}

static void a_once_call_waits_for_a_broker_that_is_down(void **state)
{
    struct fixture *f = *state;
    fake_broker_stop(&f->fc.brokers[1]);
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    w.call.once = true;
    client_call(f->c, &w.call);
    run_until_requests(f, API_METADATA, 3);
    assert_int_equal(w.n, 0);
    fake_broker_start(&f->fc.brokers[1]);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
}

static void a_broker_that_never_answers_loses_its_connection(void **state)
{
    struct fixture *f = *state;
    client_free(f->c);
    client_start(f, 30);
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_DEAF, 0);
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
    assert_int_equal(f->fc.requests[API_LIST_OFFSETS], 2);
}

/* As one whose machine has lost its power, or that stands still: nothing says that the connection is dead. */
static void a_silent_leader_that_is_in_the_cluster_no_more_is_left(void **state)
{
    struct fixture *f = *state;
    client_free(f->c);
    client_start(f, 600000);
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_DEAF, 0);
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    w.call.deadline_ms = loop_now_ms(f->lp) + 600000;
    client_call(f->c, &w.call);
    run_until_requests(f, API_LIST_OFFSETS, 1);
    f->fc.brokers[1].left = true;
    f->fc.topics[0].leaders[1] = 3;
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
    assert_int_equal(f->fc.requests[API_LIST_OFFSETS], 2);
    assert_int_equal(client_topic(f->c, "t")->partitions[1].leader, 3);
}

static void a_silent_leader_that_is_in_the_cluster_is_waited_for(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_HOLD, 0);
    struct told w;
    told_init(f, &w, TARGET_LEADER);
    client_call(f->c, &w.call);
    run_until_requests(f, API_LIST_OFFSETS, 1);
    run_until_requests(f, API_METADATA, f->fc.requests[API_METADATA] + 1); /* others are asked about it */
    assert_int_equal(w.n, 0);
    int accepted = f->fc.brokers[1].n_accepted;
    fake_release(&f->fc);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
    assert_int_equal(f->fc.requests[API_LIST_OFFSETS], 1);
    assert_int_equal(f->fc.brokers[1].n_accepted, accepted);
}

static void what_any_broker_can_answer_is_not_left_to_a_silent_one(void **state)
{
    struct fixture *f = *state;
    client_free(f->c);
    client_start(f, 600000);
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_DEAF, 0);
    struct told w;
    told_init(f, &w, TARGET_ANY);
    w.call.deadline_ms = loop_now_ms(f->lp) + 600000;
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, 0);
    assert_int_equal(f->fc.requests[API_LIST_OFFSETS], 2);
    assert_true(client_call_was_sent(&w.call));
}

/* ---- cancel and deadline ---- */
static void a_cancelled_call_is_not_told(void **state)
{
    struct fixture *f = *state;
    struct told w, next;
    told_init(f, &w, TARGET_LEADER);
    client_call(f->c, &w.call);
    client_cancel(f->c, &w.call);

    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_HOLD, 0);
    told_init(f, &w, TARGET_LEADER);
    client_call(f->c, &w.call);
    run_until_requests(f, API_LIST_OFFSETS, 1);
    assert_true(client_call_was_sent(&w.call));
    client_cancel(f->c, &w.call);

    told_init(f, &next, TARGET_LEADER);
    client_call(f->c, &next.call);
    run_until_requests(f, API_LIST_OFFSETS, 2);
    fake_release(&f->fc);
    run_until_told(f, &next);
    assert_int_equal(next.rc, 0);
    assert_int_equal(w.n, 0);
}

static void an_answer_after_the_deadline_is_dropped(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_HOLD, 0);
    struct told w, next;
    told_init(f, &w, TARGET_LEADER);
    w.call.deadline_ms = loop_now_ms(f->lp) + 40;
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(w.rc, -ETIMEDOUT);
    told_init(f, &next, TARGET_LEADER);
    client_call(f->c, &next.call);
    run_until_requests(f, API_LIST_OFFSETS, 2);
    fake_release(&f->fc);
    run_until_told(f, &next);
    assert_int_equal(next.rc, 0);
    assert_int_equal(w.n, 1);
    assert_int_equal(f->fc.brokers[1].n_accepted, 1);
}

static void the_end_of_the_client_ends_its_calls(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_HOLD, 0);
    struct told w[4];
    for (int i = 0; i < 4; i++) {
        told_init(f, &w[i], TARGET_LEADER);
        w[i].call.parks = i >= 2;
        client_call(f->c, &w[i].call);
    }
    run_until_requests(f, API_LIST_OFFSETS, 2);
    client_free(f->c);
    for (int i = 0; i < 4; i++) {
        if (w[i].n != 1 || w[i].rc != 0)
            assert_int_equal(w[i].rc, -ECANCELED);
        assert_int_equal(w[i].n, 1);
    }
    client_start(f, 5000);
}

/* ---- long polls ---- */
static void a_long_poll_holds_up_nothing(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_HOLD, 0);
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_HOLD, 0);
    struct told parked[2], w;
    for (int i = 0; i < 2; i++) {
        told_init(f, &parked[i], TARGET_LEADER);
        parked[i].call.parks = true;
        client_call(f->c, &parked[i].call);
    }
    run_until_requests(f, API_LIST_OFFSETS, 2);
    told_init(f, &w, TARGET_LEADER);
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(parked[0].n + parked[1].n, 0);
    fake_release(&f->fc);
    run_until_told(f, &parked[0]);
    run_until_told(f, &parked[1]);

    int connections = f->fc.brokers[1].n_accepted;
    told_init(f, &w, TARGET_LEADER);
    w.call.parks = true;
    client_call(f->c, &w.call);
    run_until_told(f, &w);
    assert_int_equal(f->fc.brokers[1].n_accepted, connections); /* an idle one is used again */
}

static void long_polls_above_the_limit_wait_for_their_turn(void **state)
{
    struct fixture *f = *state;
    enum { N = CLIENT_PARKED_MAX + 6 };
    struct told w[N];
    for (int i = 0; i < FAKE_STEPS; i++)
        fake_script(&f->fc, API_LIST_OFFSETS, FAKE_HOLD, 0);
    for (int i = 0; i < N; i++) {
        told_init(f, &w[i], TARGET_LEADER);
        w[i].call.parks = true;
        client_call(f->c, &w[i].call);
    }
    run_until_requests(f, API_LIST_OFFSETS, CLIENT_PARKED_MAX);
    client_cancel(f->c, &w[N - 1].call);
    client_cancel(f->c, &w[0].call); /* makes room for one */
    run_until_requests(f, API_LIST_OFFSETS, CLIENT_PARKED_MAX + 1);
    fake_release(&f->fc);
    for (int i = 1; i < N - 1; i++)
        run_until_told(f, &w[i]);
    assert_int_equal(w[0].n + w[N - 1].n, 0);
}

/* ---- refresh ---- */
static void count_topic(void *arg, const struct client_topic *t)
{
    (void)t;
    ++*(int *)arg;
}

static void a_refresh_of_all_forgets_what_is_gone(void **state)
{
    struct fixture *f = *state;
    fake_topic_add(&f->fc, "u", 1, 1);
    int n = 0;
    assert_int_equal(client_each_topic(f->c, count_topic, &n), -1);
    assert_int_equal(client_refresh_sync(f->lp, f->c, NULL, loop_now_ms(f->lp) + 5000), 0);
    assert_true(client_each_topic(f->c, count_topic, &n) >= 0);
    assert_int_equal(n, 2);
    f->fc.n_topics = 1;
    assert_int_equal(client_refresh_sync(f->lp, f->c, NULL, loop_now_ms(f->lp) + 5000), 0);
    assert_null(client_topic(f->c, "u"));
    assert_non_null(client_topic(f->c, "t"));
    f->fc.n_topics = 2;
    assert_int_equal(client_refresh_sync(f->lp, f->c, "u", loop_now_ms(f->lp) + 5000), 0);
    assert_non_null(client_topic(f->c, "u"));
    f->fc.n_topics = 1;
    assert_int_equal(client_refresh_sync(f->lp, f->c, "u", loop_now_ms(f->lp) + 5000), 0);
    assert_null(client_topic(f->c, "u"));
    f->fc.n_topics = 2;
}

/* ---- sync ---- */
static void a_synchronous_call_leaves_its_response_with_the_caller(void **state)
{
    struct fixture *f = *state;
    struct metadata_request body;
    wire_defaults(&wire_metadata_request, &body);
    body.n_topics = -1;
    body.topics = NULL;
    struct client_call call = {
        .target = TARGET_ANY,
        .request = &wire_metadata_request,
        .body = &body,
        .max_version = -1,
        .deadline_ms = loop_now_ms(f->lp) + 5000,
    };
    const void *ret;
    assert_int_equal(client_call_sync(f->lp, f->c, &call, &f->a, NULL, NULL, &ret), 0);
    const struct metadata_response *r = ret;
    assert_int_equal(r->n_topics, 1);
    assert_true(kstr_eqz(r->topics[0].name, "t"));
}

/* ---- fetch ---- */
struct fetched {
    struct client_fetch f;
    int n, rc;
    struct client_fetched r;
};

static void on_fetched(struct client_fetch *f, int rc, const struct client_fetched *ret)
{
    struct fetched *w = f->user;
    w->n++;
    w->rc = rc;
    if (rc == 0) {
        w->r = *ret;
        rcbuf_ref(w->r.frame);
    }
}

static void fetch_init(struct fixture *f, struct fetched *w, int64_t offset, int32_t max_wait_ms)
{
    *w = (struct fetched){ .f = { .topic = "t", .partition = 1, .offset = offset, .max_bytes = 1 << 20 } };
    w->f.max_wait_ms = max_wait_ms;
    w->f.deadline_ms = loop_now_ms(f->lp) + max_wait_ms + 5000;
    w->f.cb = on_fetched;
    w->f.user = w;
}

static void log_fill(struct fake_log *log, int batches)
{
    struct batch_builder b;
    batch_builder_init(&b);
    for (int i = 0; i < batches; i++) {
        struct batch_producer none = { .id = -1, .epoch = -1, .base_sequence = -1 };
        batch_builder_add(&b, 1, KSTR_NULL, kstr_of("value"), NULL, 0);
        assert_int_equal(batch_builder_finish(&b, CODEC_NONE, 0, &none, 0, &log->bytes), 0);
    }
    batch_builder_done(&b);
    log->start = 100 - batches; /* no values are kept: the high watermark is the start */
}

static void a_fetch_gives_whole_batches_in_place(void **state)
{
    struct fixture *f = *state;
    struct fake_log *log = &f->fc.topics[0].logs[1];
    log_fill(log, 3);
    log->start = 100;
    size_t one = log->bytes.n / 3;
    struct fetched w;
    fetch_init(f, &w, 99, 0);
    w.f.max_bytes = (int32_t)(2 * one + 10);
    client_fetch(f->c, &w.f);
    while (w.n == 0)
        loop_run_once(f->lp, -1);
    assert_int_equal(w.rc, 0);
    assert_int_equal(w.r.err, KERR_NONE);
    assert_int_equal(w.r.batches.n, 2 * one);
    assert_memory_equal(w.r.batches.p, log->bytes.p, 2 * one);
    assert_true(w.r.batches.p >= w.r.frame->p &&
                w.r.batches.p + w.r.batches.n <= w.r.frame->p + w.r.frame->n);
    assert_int_equal(w.r.high_watermark, 100);
    assert_int_equal(w.r.log_start_offset, 100);
    rcbuf_unref(w.r.frame);
}

static void a_fetch_past_the_end_is_told_the_range(void **state)
{
    struct fixture *f = *state;
    f->fc.topics[0].logs[1].start = 7;
    struct fetched w;
    fetch_init(f, &w, 9, 0);
    client_fetch(f->c, &w.f);
    while (w.n == 0)
        loop_run_once(f->lp, -1);
    assert_int_equal(w.r.err, KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(w.r.high_watermark, 7);
    rcbuf_unref(w.r.frame);
}

static void a_fetch_follows_the_leader(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_FETCH, FAKE_ERROR, KERR_NOT_LEADER_OR_FOLLOWER);
    struct fetched w;
    fetch_init(f, &w, 0, 0);
    client_fetch(f->c, &w.f);
    while (w.n == 0)
        loop_run_once(f->lp, -1);
    assert_int_equal(w.rc, 0);
    assert_int_equal(w.r.err, KERR_NONE);
    assert_int_equal(w.r.batches.n, 0);
    assert_int_equal(f->fc.requests[API_FETCH], 2);
    rcbuf_unref(w.r.frame);
}

static void a_fetch_given_up_while_it_waits_is_not_told(void **state)
{
    struct fixture *f = *state;
    struct fetched w;
    fetch_init(f, &w, 0, 60000);
    client_fetch(f->c, &w.f);
    run_until_requests(f, API_FETCH, 1);
    client_fetch_cancel(f->c, &w.f);
    for (int i = 0; i < 3; i++)
        loop_run_once(f->lp, 0);
    assert_int_equal(w.n, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_list_that_is_no_list_of_addresses_is_refused),
        T(the_next_address_is_tried_when_one_is_dead),
        T(a_cluster_that_comes_back_is_found_again),
        T(a_deadline_ends_a_call_that_reaches_nobody),
        T(the_newest_version_both_know_is_spoken),
        T(a_broker_of_old_is_asked_for_its_versions_again),
        T(a_call_that_the_broker_does_not_know_is_told_so),
        T(a_call_goes_to_the_leader),
        T(a_hundred_calls_share_one_metadata_request_and_one_connection),
        T(a_refusal_by_the_old_leader_leads_to_the_new_one),
        T(the_deadline_tells_the_last_error_that_would_pass),
        T(a_leader_elected_meanwhile_is_found),
        T(a_topic_that_does_not_exist_is_enoent),
        T(a_topic_made_after_it_was_missed_is_found),
        T(the_controller_is_looked_up),
        T(the_coordinator_is_looked_up_once),
        T(a_coordinator_that_moved_is_looked_up_again),
        T(a_call_whose_connection_broke_is_tried_again),
        T(a_once_call_whose_connection_broke_is_not),
        T(a_once_call_waits_for_a_broker_that_is_down),
        T(a_broker_that_never_answers_loses_its_connection),
        T(a_silent_leader_that_is_in_the_cluster_no_more_is_left),
        T(a_silent_leader_that_is_in_the_cluster_is_waited_for),
        T(what_any_broker_can_answer_is_not_left_to_a_silent_one),
        T(a_cancelled_call_is_not_told),
        T(an_answer_after_the_deadline_is_dropped),
        T(the_end_of_the_client_ends_its_calls),
        T(a_long_poll_holds_up_nothing),
        T(long_polls_above_the_limit_wait_for_their_turn),
        T(a_refresh_of_all_forgets_what_is_gone),
        T(a_synchronous_call_leaves_its_response_with_the_caller),
        T(a_fetch_gives_whole_batches_in_place),
        T(a_fetch_past_the_end_is_told_the_range),
        T(a_fetch_follows_the_leader),
        T(a_fetch_given_up_while_it_waits_is_not_told),
    };
    return RUN(tests);
}
