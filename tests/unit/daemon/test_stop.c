/* SPDX-License-Identifier: Apache-2.0 */
/* Flush policies, stopping and starting again, and disks that fail: each test has a broker of its own. */
#include "rig.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"

static void commit_acknowledges_and_shows_what_is_flushed(void **state)
{
    (void)state;
    struct rig g;
    struct arena a;
    struct bytebuf batch = { 0 };
    arena_init(&a);
    rig_start(&g, NULL);
    rig_create_topic(&g, "t", 1, NULL);
    make_batch(&batch, "v", 5, clock_wall_ms());
    int fd = peer_open(&g);
    for (int16_t acks = -1; acks <= 1; acks += 2) {
        struct produce_response_partition_responses *p = peer_produce(fd, 9, "t", acks, &batch, &a);
        assert_int_equal(p->error_code, 0);
        struct partition *pt = rig_partition(&g, "t", 0);
        struct partition_view v;
        partition_view(pt, &v);
        partition_unref(pt);
        assert_int_equal(v.leo, p->base_offset + 5);
        assert_int_equal(v.fleo, v.leo);
        assert_int_equal(v.hw, v.leo);
    }
    close(fd);
    bytebuf_done(&batch);
    arena_done(&a);
    rig_done(&g);
}

static void interval_hides_records_until_enough_have_come(void **state)
{
    (void)state;
    static const char *const entries[] = { "flush.policy", "interval", "flush.messages", "6", "flush.ms",
                                           "600000",       NULL };
    struct rig g;
    struct arena a;
    struct bytebuf batch = { 0 };
    arena_init(&a);
    rig_start(&g, NULL);
    rig_create_topic(&g, "t", 1, entries);
    make_batch(&batch, "v", 3, clock_wall_ms());
    int fd = peer_open(&g), reader = peer_open(&g);
    peer_produce(fd, 9, "t", 0, &batch, &a);
    assert_int_equal(peer_offset(fd, "t", -1), 0);
    assert_int_equal(peer_fetch(reader, 11, fetch_one(&a, "t", 0, 50), &a)->records.n, 0);
    assert_int_equal(peer_produce(fd, 9, "t", -1, &batch, &a)->base_offset, 3);
    assert_int_equal(peer_fetch(reader, 11, fetch_one(&a, "t", 0, 0), &a)->high_watermark, 6);
    close(fd);
    close(reader);
    bytebuf_done(&batch);
    arena_done(&a);
    rig_done(&g);
}

static void interval_shows_records_after_its_time(void **state)
{
    (void)state;
    static const char *const entries[] = {
        "flush.policy", "interval", "flush.messages", "1000000", "flush.ms", "80", NULL
    };
    struct rig g;
    struct arena a;
    struct bytebuf batch = { 0 };
    arena_init(&a);
    rig_start(&g, NULL);
    rig_create_topic(&g, "t", 1, entries);
    make_batch(&batch, "v", 3, clock_wall_ms());
    int fd = peer_open(&g);
    int64_t before = clock_mono_ms();
    assert_int_equal(peer_produce(fd, 9, "t", -1, &batch, &a)->error_code, 0);
    assert_true(clock_mono_ms() - before >= 75);
    assert_int_equal(peer_offset(fd, "t", -1), 3);
    close(fd);
    bytebuf_done(&batch);
    arena_done(&a);
    rig_done(&g);
}

static void a_produce_that_is_not_committed_in_time_says_so(void **state)
{
    (void)state;
    static const char *const entries[] = {
        "flush.policy", "interval", "flush.messages", "1000000", "flush.ms", "600000", NULL
    };
    struct rig g;
    struct arena a;
    struct bytebuf batch = { 0 };
    arena_init(&a);
    rig_start(&g, NULL);
    rig_create_topic(&g, "t", 1, entries);
    make_batch(&batch, "v", 3, clock_wall_ms());
    struct produce_request_partition_data part = { .records = { batch.p, (int32_t)batch.n, NULL } };
    struct produce_request_topic_data data = { .name = kstr_of("t"), .partition_data = &part, .n_partition_data = 1 };
    struct produce_request q = {
        .transactional_id = KSTR_NULL, .acks = -1, .timeout_ms = 60, .topic_data = &data, .n_topic_data = 1
    };
    int fd = peer_open(&g);
    struct produce_response *rsp = peer_ask(fd, &wire_produce_request, &wire_produce_response, 9, &q, &a);
    assert_int_equal(rsp->responses[0].partition_responses[0].error_code, KERR_REQUEST_TIMED_OUT);
    assert_int_equal(rsp->responses[0].partition_responses[0].base_offset, -1);
    close(fd);
    bytebuf_done(&batch);
    arena_done(&a);
    rig_done(&g);
}

static void offsets_go_on_after_a_restart(void **state)
{
    (void)state;
    static const char *const async[] = { "flush.policy", "async", NULL };
    struct rig g;
    struct arena a;
    struct bytebuf batch = { 0 };
    arena_init(&a);
    rig_start(&g, async);
    rig_create_topic(&g, "t", 2, NULL);
    make_batch(&batch, "v", 4, clock_wall_ms());
    int32_t epoch = -1;
    for (int round = 0; round < 3; round++) {
        int fd = peer_open(&g);
        assert_int_equal(peer_produce(fd, 9, "t", -1, &batch, &a)->base_offset, 4 * round);
        struct fetch_response_partitions *f = peer_fetch(fd, 11, fetch_one(&a, "t", 0, 0), &a);
        assert_int_equal(f->high_watermark, 4 * (round + 1));
        assert_int_equal(f->records.n, (size_t)(round + 1) * batch.n);
        struct partition *pt = rig_partition(&g, "t", 0);
        struct partition_view v;
        partition_view(pt, &v);
        partition_unref(pt);
        assert_true(v.leader_epoch > epoch); /* R1: a leadership that begins anew has an epoch of its own */
        epoch = v.leader_epoch;
        close(fd);
        rig_restart(&g, async);
    }
    bytebuf_done(&batch);
    arena_done(&a);
    rig_done(&g);
}

static void stopping_answers_those_who_wait(void **state)
{
    (void)state;
    struct rig g;
    struct arena a;
    arena_init(&a);
    rig_start(&g, NULL);
    rig_create_topic(&g, "t", 1, NULL);
    int waiting = peer_open(&g), idle = peer_open(&g);
    peer_offset(waiting, "t", -1);
    peer_offset(idle, "t", -1);
    peer_send(waiting, &wire_fetch_request, 11, 3, fetch_one(&a, "t", 0, 600000));
    struct pollfd p = { .fd = waiting, .events = POLLIN };
    assert_int_equal(poll(&p, 1, 50), 0);
    int64_t before = clock_mono_ms();
    assert_true(rig_stop(&g));
    assert_true(clock_mono_ms() - before < 4000);
    struct fetch_response *rsp = peer_reply(waiting, &wire_fetch_response, 11, 3, &a);
    assert_int_equal(rsp->responses[0].partitions[0].error_code, 0);
    char c;
    assert_int_equal(recv(waiting, &c, 1, 0), 0);
    assert_int_equal(recv(idle, &c, 1, 0), 0);
    close(waiting);
    close(idle);
    arena_done(&a);
    rig_remove(&g);
}

static void a_topic_made_again_begins_at_zero(void **state)
{
    (void)state;
    struct rig g;
    struct arena a;
    struct bytebuf batch = { 0 };
    arena_init(&a);
    rig_start(&g, NULL);
    make_batch(&batch, "v", 4, clock_wall_ms());
    int fd = peer_open(&g);
    for (int round = 0; round < 3; round++) {
        rig_create_topic(&g, "t", 1, NULL);
        assert_int_equal(peer_produce(fd, 9, "t", -1, &batch, &a)->base_offset, 0);
        rig_delete_topic(&g, "t");
        assert_int_equal(peer_produce(fd, 9, "t", -1, &batch, &a)->error_code,
                         KERR_UNKNOWN_TOPIC_OR_PARTITION);
    }
    close(fd);
    bytebuf_done(&batch);
    arena_done(&a);
    rig_done(&g);
}

static void too_many_connections_are_turned_away(void **state)
{
    (void)state;
    static const char *const few[] = { "max.connections", "2", NULL };
    struct rig g;
    char c;
    rig_start(&g, few);
    rig_create_topic(&g, "t", 1, NULL);
    int one = peer_open(&g), two = peer_open(&g);
    assert_int_equal(peer_offset(one, "t", -1), 0);
    assert_int_equal(peer_offset(two, "t", -1), 0);
    int three = peer_open(&g);
    assert_true(recv(three, &c, 1, 0) <= 0);
    close(three);
    assert_int_equal(peer_offset(one, "t", -1), 0);
    close(one);
    close(two);
    rig_done(&g);
}

static void a_client_that_asks_faster_than_it_is_answered_waits(void **state)
{
    (void)state;
    static const char *const few[] = { "queued.max.requests", "5", NULL };
    struct rig g;
    struct arena a;
    arena_init(&a);
    rig_start(&g, few);
    rig_create_topic(&g, "t", 1, NULL);
    int fd = peer_open(&g), other = peer_open(&g);
    struct api_versions_request versions = { kstr_of("rig"), kstr_of("1") };
    peer_send(fd, &wire_fetch_request, 11, 0, fetch_one(&a, "t", 0, 300));
    for (int i = 1; i <= 500; i++)
        peer_send(fd, &wire_api_versions_request, 3, i, &versions);
    assert_int_equal(peer_offset(other, "t", -1), 0); /* it holds up nobody else */
    peer_reply(fd, &wire_fetch_response, 11, 0, &a);
    for (int i = 1; i <= 500; i++)
        peer_reply(fd, &wire_api_versions_response, 3, i, &a);
    close(fd);
    close(other);
    arena_done(&a);
    rig_done(&g);
}

static void a_taken_port_is_said_in_one_line(void **state)
{
    (void)state;
    struct rig g;
    struct broker second = { .world = &g.world };
    char err[512] = "", listener[64];
    rig_start(&g, NULL);
    broker_config_init(&second.config);
    snprintf(listener, sizeof listener, "PLAINTEXT://127.0.0.1:%d", g.port);
    assert_int_equal(broker_config_set(&second.config, "listeners", listener, err, sizeof err), 0);
    assert_true(broker_start(&second, err, sizeof err) < 0);
    assert_non_null(strstr(err, "127.0.0.1"));
    assert_null(strchr(err, '\n'));
    broker_config_done(&second.config);
    rig_done(&g);
}

static void a_second_broker_on_the_directory_is_refused(void **state)
{
    (void)state;
    struct rig g;
    struct broker second = { .world = &g.world };
    char err[512] = "";
    rig_start(&g, NULL);
    broker_config_init(&second.config);
    assert_int_equal(
        broker_config_set(&second.config, "listeners", "PLAINTEXT://127.0.0.1:0", err, sizeof err), 0);
    assert_int_equal(broker_config_set(&second.config, "log.dirs", g.dirs, err, sizeof err), 0);
    assert_true(broker_start(&second, err, sizeof err) < 0);
    assert_non_null(strstr(err, g.dirs));
    broker_config_done(&second.config);
    int fd = peer_open(&g);
    assert_int_equal(peer_offset(fd, "t", -1), -1000 - KERR_UNKNOWN_TOPIC_OR_PARTITION);
    close(fd);
    rig_done(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commit_acknowledges_and_shows_what_is_flushed),
        cmocka_unit_test(interval_hides_records_until_enough_have_come),
        cmocka_unit_test(interval_shows_records_after_its_time),
        cmocka_unit_test(a_produce_that_is_not_committed_in_time_says_so),
        cmocka_unit_test(offsets_go_on_after_a_restart),
        cmocka_unit_test(stopping_answers_those_who_wait),
        cmocka_unit_test(a_topic_made_again_begins_at_zero),
        cmocka_unit_test(too_many_connections_are_turned_away),
        cmocka_unit_test(a_client_that_asks_faster_than_it_is_answered_waits),
        cmocka_unit_test(a_taken_port_is_said_in_one_line),
        cmocka_unit_test(a_second_broker_on_the_directory_is_refused),
    };
    return RUN(tests);
}
