/* SPDX-License-Identifier: Apache-2.0 */
/* Produce, Fetch and the rest over a real socket to a real broker with policy async; each test has its own
 * topic. */
#include "rig.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/crc32c.h"
#include "lib/base/mem.h"

static struct rig g;
static const char *const async[] = { "flush.policy", "async", NULL };

/* What every test needs: a topic of its name, a connection, an arena, a batch of three records. */
struct scene {
    const char *topic;
    int fd;
    struct arena a;
    struct bytebuf batch;
};

static struct scene scene_open(const char *topic)
{
    struct scene s = { .topic = topic };
    rig_create_topic(&g, topic, 1, NULL);
    s.fd = peer_open(&g);
    arena_init(&s.a);
    make_batch(&s.batch, topic, 3, clock_wall_ms());
    return s;
}

static void scene_close(struct scene *s)
{
    close(s->fd);
    bytebuf_done(&s->batch);
    arena_done(&s->a);
}

static int produce_error(struct scene *s, int version)
{
    return peer_produce(s->fd, version, s->topic, 1, &s->batch, &s->a)->error_code;
}

static bool stays_silent(int fd, int ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return poll(&p, 1, ms) == 0;
}

static bool is_closed(int fd)
{
    char c;
    return recv(fd, &c, 1, 0) <= 0;
}

/* ---- produce ---- */
static void a_batch_comes_back_as_it_was_sent(void **state)
{
    (void)state;
    struct scene s = scene_open("verbatim");
    struct produce_response_partition_responses *p = peer_produce(s.fd, 9, s.topic, -1, &s.batch, &s.a);
    assert_int_equal(p->error_code, 0);
    assert_int_equal(p->base_offset, 0);
    assert_int_equal(p->log_append_time_ms, -1);
    assert_int_equal(p->log_start_offset, 0);
    p = peer_produce(s.fd, 9, s.topic, 1, &s.batch, &s.a);
    assert_int_equal(p->base_offset, 3);

    for (int version = 4; version <= 12; version++) {
        struct fetch_response_partitions *f = peer_fetch(s.fd, version, fetch_one(&s.a, s.topic, 3, 0), &s.a);
        assert_int_equal(f->error_code, 0);
        assert_int_equal(f->high_watermark, 6);
        assert_int_equal(f->last_stable_offset, 6);
        assert_int_equal(f->records.n, s.batch.n);
        struct batch_header h;
        batch_header_read(f->records.p, &h);
        assert_int_equal(h.base_offset, 3);
        assert_true(h.leader_epoch >= 0);
        assert_memory_equal(f->records.p + BATCH_MAGIC, s.batch.p + BATCH_MAGIC, s.batch.n - BATCH_MAGIC);
    }
    scene_close(&s);
}

static void each_acks_is_answered_as_it_asks(void **state)
{
    (void)state;
    struct scene s = scene_open("acks");
    assert_int_equal(peer_produce(s.fd, 3, s.topic, 2, &s.batch, &s.a)->error_code,
                     KERR_INVALID_REQUIRED_ACKS);
    assert_int_equal(peer_offset(s.fd, s.topic, -1), 0);
    peer_produce(s.fd, 3, s.topic, 0, &s.batch, &s.a);
    assert_int_equal(peer_offset(s.fd, s.topic, -1), 3); /* the next answer is already the next request's */
    scene_close(&s);
}

static void nobody_reads_what_is_not_committed(void **state)
{
    (void)state;
    static const char *const never[] = {
        "flush.policy", "interval", "flush.ms", "9223372036854775807", "flush.messages", "1000000000", NULL
    };
    struct scene s = { .topic = "uncommitted" };
    rig_create_topic(&g, s.topic, 1, never);
    s.fd = peer_open(&g);
    arena_init(&s.a);
    make_batch(&s.batch, s.topic, 3, clock_wall_ms());
    peer_produce(s.fd, 3, s.topic, 0, &s.batch, &s.a); /* in the log, and not flushed */
    struct partition *pt = rig_partition(&g, s.topic, 0);
    struct partition_view v;
    struct fetch_response_partitions *f = peer_fetch(s.fd, 12, fetch_one(&s.a, s.topic, 0, 0), &s.a);
    partition_view(pt, &v);
    assert_int_equal(v.leo, 3);
    partition_unref(pt);
    assert_int_equal(f->error_code, 0);
    assert_int_equal(f->high_watermark, 0);
    assert_true(f->records.n <= 0);
    assert_int_equal(peer_offset(s.fd, s.topic, -1), 0);
    scene_close(&s);
}

static void acks_zero_tells_an_error_by_closing(void **state)
{
    (void)state;
    struct scene s = scene_open("acks0");
    peer_produce(s.fd, 3, "no.such.topic", 0, &s.batch, &s.a);
    assert_true(is_closed(s.fd));
    scene_close(&s);
}

static void what_is_no_single_good_batch_is_refused_and_not_stored(void **state)
{
    (void)state;
    struct scene s = scene_open("shapes");
    struct bytebuf none = { 0 }, two = { 0 }, shorter = { 0 };
    bytebuf_add(&two, s.batch.p, s.batch.n);
    bytebuf_add(&two, s.batch.p, s.batch.n);
    bytebuf_add(&shorter, s.batch.p, s.batch.n - 1);
    assert_int_equal(peer_produce(s.fd, 3, s.topic, 1, &none, &s.a)->error_code, KERR_INVALID_RECORD);
    assert_int_equal(peer_produce(s.fd, 3, s.topic, 1, &two, &s.a)->error_code, KERR_INVALID_RECORD);
    assert_int_equal(peer_produce(s.fd, 3, s.topic, 1, &shorter, &s.a)->error_code, KERR_CORRUPT_MESSAGE);
    assert_int_equal(produce_error(&s, 2), KERR_UNSUPPORTED_FOR_MESSAGE_FORMAT);
    s.batch.p[BATCH_MAGIC] = 1;
    assert_int_equal(produce_error(&s, 3), KERR_INVALID_RECORD);
    s.batch.p[BATCH_MAGIC] = 2;
    s.batch.p[BATCH_CRC] ^= 1;
    assert_int_equal(produce_error(&s, 3), KERR_CORRUPT_MESSAGE);
    s.batch.p[BATCH_CRC] ^= 1;
    assert_int_equal(peer_offset(s.fd, s.topic, -1), 0);
    assert_int_equal(produce_error(&s, 3), 0);
    bytebuf_done(&two);
    bytebuf_done(&shorter);
    scene_close(&s);
}

static void every_refused_record_is_named(void **state)
{
    (void)state;
    const char *const compact[] = { "cleanup.policy", "compact", NULL };
    struct scene s = scene_open("other");
    rig_create_topic(&g, "compacted", 1, compact);
    struct produce_response_partition_responses *p = peer_produce(s.fd, 8, "compacted", 1, &s.batch, &s.a);
    assert_int_equal(p->error_code, KERR_INVALID_RECORD);
    assert_int_equal(p->n_record_errors, 3);
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(p->record_errors[i].batch_index, i);
    assert_false(kstr_is_null(p->error_message));
    scene_close(&s);
}

static void a_batch_over_the_topics_limit_is_too_large(void **state)
{
    (void)state;
    const char *const small[] = { "max.message.bytes", "100", NULL };
    struct scene s = scene_open("large");
    rig_create_topic(&g, "small", 1, small);
    s.topic = "small";
    assert_true(s.batch.n > 100);
    assert_int_equal(produce_error(&s, 7), KERR_MESSAGE_TOO_LARGE);
    scene_close(&s);
}

static void min_isr_above_the_replicas_refuses_acks_all_alone(void **state)
{
    (void)state;
    const char *const two[] = { "min.insync.replicas", "2", NULL };
    struct scene s = scene_open("isr");
    rig_create_topic(&g, "isr2", 1, two);
    assert_int_equal(peer_produce(s.fd, 7, "isr2", -1, &s.batch, &s.a)->error_code, KERR_NOT_ENOUGH_REPLICAS);
    assert_int_equal(peer_produce(s.fd, 7, "isr2", 1, &s.batch, &s.a)->error_code, 0);
    assert_int_equal(peer_fetch(s.fd, 11, fetch_one(&s.a, "isr2", 0, 0), &s.a)->high_watermark, 3);
    scene_close(&s);
}

static void log_append_time_is_the_brokers(void **state)
{
    (void)state;
    const char *const broker_time[] = { "message.timestamp.type", "LogAppendTime", NULL };
    struct scene s = scene_open("times");
    rig_create_topic(&g, "lat", 1, broker_time);
    int64_t before = clock_wall_ms();
    struct produce_response_partition_responses *p = peer_produce(s.fd, 7, "lat", 1, &s.batch, &s.a);
    assert_int_equal(p->error_code, 0);
    assert_true(p->log_append_time_ms >= before && p->log_append_time_ms <= clock_wall_ms());
    struct fetch_response_partitions *f = peer_fetch(s.fd, 11, fetch_one(&s.a, "lat", 0, 0), &s.a);
    struct batch_header h;
    assert_int_equal(batch_check(slice_of(f->records.p, (size_t)f->records.n), INT32_MAX, &h), 0);
    assert_int_equal(h.max_timestamp, p->log_append_time_ms);
    assert_true(h.attributes & BATCH_ATTR_LOG_APPEND_TIME);
    scene_close(&s);
}

/* ---- fetch ---- */
static void fetch_tells_the_ends_also_when_it_has_nothing(void **state)
{
    (void)state;
    struct scene s = scene_open("empty");
    struct fetch_response_partitions *f = peer_fetch(s.fd, 11, fetch_one(&s.a, s.topic, 0, 0), &s.a);
    assert_int_equal(f->error_code, 0);
    assert_int_equal(f->high_watermark, 0);
    assert_int_equal(f->last_stable_offset, 0);
    assert_int_equal(f->log_start_offset, 0);
    assert_int_equal(f->records.n, 0); /* never null: old clients take -1 for a size */
    assert_int_equal(f->n_aborted_transactions, -1);
    struct fetch_request *q = fetch_one(&s.a, s.topic, 0, 0);
    q->isolation_level = 1;
    assert_int_equal(peer_fetch(s.fd, 11, q, &s.a)->n_aborted_transactions, 0);
    scene_close(&s);
}

static void an_offset_outside_the_log_is_told_with_its_ends(void **state)
{
    (void)state;
    struct scene s = scene_open("range");
    peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a);
    struct fetch_response_partitions *f = peer_fetch(s.fd, 11, fetch_one(&s.a, s.topic, 4, 5000), &s.a);
    assert_int_equal(f->error_code, KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(f->high_watermark, 3);
    assert_int_equal(f->log_start_offset, 0);
    assert_int_equal(f->records.n, 0);
    f = peer_fetch(s.fd, 11, fetch_one(&s.a, s.topic, 3, 0), &s.a);
    assert_int_equal(f->error_code, 0);
    f = peer_fetch(s.fd, 11, fetch_one(&s.a, "no.such.topic", 0, 5000), &s.a);
    assert_int_equal(f->error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(f->records.n, 0);
    scene_close(&s);
}

static void an_offset_inside_a_batch_gets_the_whole_batch(void **state)
{
    (void)state;
    struct scene s = scene_open("inside");
    peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a);
    struct fetch_response_partitions *f = peer_fetch(s.fd, 11, fetch_one(&s.a, s.topic, 2, 0), &s.a);
    assert_int_equal(f->records.n, s.batch.n);
    assert_int_equal(get_be64(f->records.p), 0);
    scene_close(&s);
}

static void the_first_batch_comes_whole_whatever_the_limits(void **state)
{
    (void)state;
    struct scene s = scene_open("limits");
    for (int i = 0; i < 3; i++)
        peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a);
    struct fetch_request *q = fetch_one(&s.a, s.topic, 0, 0);
    q->max_bytes = 1;
    q->topics[0].partitions[0].partition_max_bytes = 1;
    assert_int_equal(peer_fetch(s.fd, 11, q, &s.a)->records.n, s.batch.n);
    q->max_bytes = 1000000;
    q->topics[0].partitions[0].partition_max_bytes = (int32_t)(2 * s.batch.n + 5);
    assert_int_equal(peer_fetch(s.fd, 11, q, &s.a)->records.n, 2 * s.batch.n);
    scene_close(&s);
}

static void only_the_first_partition_with_data_may_pass_the_limit(void **state)
{
    (void)state;
    struct scene s = scene_open("first");
    rig_create_topic(&g, "pair", 3, NULL);
    for (int i = 1; i <= 2; i++) {
        struct produce_request_partition_data part = { .index = i,
                                                       .records = { s.batch.p, (int32_t)s.batch.n, NULL } };
        struct produce_request_topic_data data = { .name = kstr_of("pair"), .partition_data = &part, .n_partition_data = 1 };
        struct produce_request q = { .transactional_id = KSTR_NULL,
                                     .acks = 1,
                                     .timeout_ms = 1000,
                                     .topic_data = &data,
                                     .n_topic_data = 1 };
        peer_ask(s.fd, &wire_produce_request, &wire_produce_response, 7, &q, &s.a);
    }
    struct fetch_request *q = fetch_one(&s.a, "pair", 0, 0);
    struct fetch_request_partitions parts[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = q->topics[0].partitions[0];
        parts[i].partition = i;
    }
    q->topics[0].partitions = parts;
    q->topics[0].n_partitions = 3;
    q->max_bytes = 10;
    struct fetch_response *rsp = peer_ask(s.fd, &wire_fetch_request, &wire_fetch_response, 11, q, &s.a);
    assert_int_equal(rsp->responses[0].partitions[0].records.n, 0);
    assert_int_equal(rsp->responses[0].partitions[1].records.n, s.batch.n);
    assert_int_equal(rsp->responses[0].partitions[2].records.n, 0);
    assert_int_equal(rsp->responses[0].partitions[2].high_watermark, 3);
    scene_close(&s);
}

static void leader_epochs_are_fenced_both_ways(void **state)
{
    (void)state;
    struct scene s = scene_open("epochs");
    struct partition *pt = rig_partition(&g, s.topic, 0);
    struct partition_view v;
    partition_view(pt, &v);
    partition_unref(pt);
    struct fetch_request *q = fetch_one(&s.a, s.topic, 0, 0);
    q->topics[0].partitions[0].current_leader_epoch = v.leader_epoch;
    assert_int_equal(peer_fetch(s.fd, 12, q, &s.a)->error_code, 0);
    q->topics[0].partitions[0].current_leader_epoch = v.leader_epoch + 1;
    assert_int_equal(peer_fetch(s.fd, 12, q, &s.a)->error_code, KERR_UNKNOWN_LEADER_EPOCH);
    if (v.leader_epoch > 0) {
        q->topics[0].partitions[0].current_leader_epoch = v.leader_epoch - 1;
        assert_int_equal(peer_fetch(s.fd, 12, q, &s.a)->error_code, KERR_FENCED_LEADER_EPOCH);
    }
    scene_close(&s);
}

static void sessions_are_refused_without_harm(void **state)
{
    (void)state;
    struct scene s = scene_open("sessions");
    struct fetch_request *q = fetch_one(&s.a, s.topic, 0, 0);
    q->session_epoch = 0; /* asks for a session: gets data, and id 0 */
    assert_int_equal(peer_fetch(s.fd, 11, q, &s.a)->error_code, 0);
    q->session_id = 99;
    q->session_epoch = 1;
    struct fetch_response *rsp = peer_ask(s.fd, &wire_fetch_request, &wire_fetch_response, 11, q, &s.a);
    assert_int_equal(rsp->error_code, KERR_FETCH_SESSION_ID_NOT_FOUND);
    assert_int_equal(rsp->n_responses, 0);
    scene_close(&s);
}

static void produce_goes_by_id_from_version_13(void **state)
{
    (void)state;
    struct scene s = scene_open("byid");
    struct partition *pt = rig_partition(&g, s.topic, 0);
    struct produce_request_partition_data part = { .records = { s.batch.p, (int32_t)s.batch.n, NULL } };
    struct produce_request_topic_data data = {
        .name = kstr_of(s.topic), .topic_id = pt->topic_id, .partition_data = &part, .n_partition_data = 1
    };
    struct produce_request q = {
        .transactional_id = KSTR_NULL, .acks = 1, .timeout_ms = 1000, .topic_data = &data, .n_topic_data = 1
    };
    static const struct {
        int version, flip;
        enum kerr err;
    } table[] = { { 12, 0, KERR_NONE }, { 13, 0, KERR_NONE }, { 13, 0x55, KERR_UNKNOWN_TOPIC_ID } };
    for (size_t i = 0; i < 3; i++) {
        data.topic_id.b[3] ^= (uint8_t)table[i].flip;
        struct produce_response *rsp =
            peer_ask(s.fd, &wire_produce_request, &wire_produce_response, table[i].version, &q, &s.a);
        assert_int_equal(rsp->n_responses, 1);
        assert_int_equal(rsp->responses[0].partition_responses[0].error_code, table[i].err);
        if (table[i].version == 13)
            assert_true(uuid_eq(&rsp->responses[0].topic_id, &data.topic_id));
    }
    data.topic_id = (struct uuid){ { 0 } };
    struct produce_response *rsp =
        peer_ask(s.fd, &wire_produce_request, &wire_produce_response, 13, &q, &s.a);
    assert_int_equal(rsp->responses[0].partition_responses[0].error_code, KERR_UNKNOWN_TOPIC_ID);
    data.topic_id = pt->topic_id;
    part.index = 7;
    rsp = peer_ask(s.fd, &wire_produce_request, &wire_produce_response, 13, &q, &s.a);
    assert_int_equal(rsp->responses[0].partition_responses[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    struct partition_view v;
    partition_view(pt, &v);
    assert_int_equal(v.leo, 6);
    partition_unref(pt);
    scene_close(&s);
}

static void topics_go_by_id_from_version_13(void **state)
{
    (void)state;
    struct scene s = scene_open("ids");
    peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a);
    struct partition *pt = rig_partition(&g, s.topic, 0);
    struct fetch_request *q = fetch_one(&s.a, s.topic, 0, 0);
    q->topics[0].topic_id = pt->topic_id;
    partition_unref(pt);
    for (int version = 13; version <= 16; version++) {
        struct fetch_response_partitions *f = peer_fetch(s.fd, version, q, &s.a);
        assert_int_equal(f->error_code, 0);
        assert_int_equal(f->records.n, s.batch.n);
    }
    q->topics[0].topic_id.b[3] ^= 0x55;
    assert_int_equal(peer_fetch(s.fd, 13, q, &s.a)->error_code, KERR_UNKNOWN_TOPIC_ID);
    q->topics[0].topic_id = (struct uuid){ { 0 } };
    assert_int_equal(peer_fetch(s.fd, 13, q, &s.a)->error_code, KERR_UNKNOWN_TOPIC_ID);
    scene_close(&s);
}

/* ---- waiting ---- */
static void a_waiting_fetch_hears_of_a_record_at_once(void **state)
{
    (void)state;
    struct scene s = scene_open("wake");
    int other = peer_open(&g);
    peer_send(s.fd, &wire_fetch_request, 11, 5, fetch_one(&s.a, s.topic, 0, 15000));
    assert_true(stays_silent(s.fd, 50));
    int64_t before = clock_mono_ms();
    peer_produce(other, 7, s.topic, 1, &s.batch, &s.a);
    struct fetch_response *rsp = peer_reply(s.fd, &wire_fetch_response, 11, 5, &s.a);
    assert_true(clock_mono_ms() - before < 5000);
    assert_int_equal(rsp->responses[0].partitions[0].records.n, s.batch.n);
    assert_int_equal(rsp->responses[0].partitions[0].high_watermark, 3);
    close(other);
    scene_close(&s);
}

static void a_waiting_fetch_waits_for_min_bytes(void **state)
{
    (void)state;
    struct scene s = scene_open("minbytes");
    int other = peer_open(&g);
    struct fetch_request *q = fetch_one(&s.a, s.topic, 0, 15000);
    q->min_bytes = (int32_t)(2 * s.batch.n);
    peer_send(s.fd, &wire_fetch_request, 11, 5, q);
    peer_produce(other, 7, s.topic, 1, &s.batch, &s.a);
    assert_true(stays_silent(s.fd, 50));
    peer_produce(other, 7, s.topic, 1, &s.batch, &s.a);
    struct fetch_response *rsp = peer_reply(s.fd, &wire_fetch_response, 11, 5, &s.a);
    assert_int_equal(rsp->responses[0].partitions[0].records.n, 2 * s.batch.n);
    close(other);
    scene_close(&s);
}

static void a_fetch_that_waited_in_vain_answers_with_what_there_is(void **state)
{
    (void)state;
    struct scene s = scene_open("vain");
    peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a);
    struct fetch_request *q = fetch_one(&s.a, s.topic, 0, 60);
    q->min_bytes = 1000000;
    int64_t before = clock_mono_ms();
    struct fetch_response_partitions *f = peer_fetch(s.fd, 11, q, &s.a);
    assert_true(clock_mono_ms() - before >= 55);
    assert_int_equal(f->records.n, s.batch.n);
    scene_close(&s);
}

static void answers_keep_the_order_of_the_requests(void **state)
{
    (void)state;
    struct scene s = scene_open("order");
    struct api_versions_request versions = { kstr_of("rig"), kstr_of("1") };
    peer_send(s.fd, &wire_fetch_request, 11, 11, fetch_one(&s.a, s.topic, 0, 300));
    peer_send(s.fd, &wire_api_versions_request, 0, 1, &versions);
    peer_reply(s.fd, &wire_fetch_response, 11, 11, &s.a);
    peer_reply(s.fd, &wire_api_versions_response, 0, 1, &s.a);
    scene_close(&s);
}

static void a_thousand_pipelined_produces_are_answered_in_order(void **state)
{
    (void)state;
    struct scene s = scene_open("pipeline");
    struct produce_request_partition_data part = { .records = { s.batch.p, (int32_t)s.batch.n, NULL } };
    struct produce_request_topic_data data = { .name = kstr_of(s.topic), .partition_data = &part, .n_partition_data = 1 };
    struct produce_request q = {
        .transactional_id = KSTR_NULL, .acks = -1, .timeout_ms = 1000, .topic_data = &data, .n_topic_data = 1
    };
    for (int i = 0; i < 1000; i++)
        peer_send(s.fd, &wire_produce_request, 7, i, &q);
    for (int i = 0; i < 1000; i++) {
        struct produce_response *rsp = peer_reply(s.fd, &wire_produce_response, 7, i, &s.a);
        assert_int_equal(rsp->responses[0].partition_responses[0].base_offset, 3 * i);
    }
    scene_close(&s);
}

static void deleting_a_topic_ends_the_wait_for_it(void **state)
{
    (void)state;
    struct scene s = scene_open("deleted");
    peer_send(s.fd, &wire_fetch_request, 11, 5, fetch_one(&s.a, s.topic, 0, 15000));
    assert_true(stays_silent(s.fd, 50));
    rig_delete_topic(&g, s.topic);
    struct fetch_response *rsp = peer_reply(s.fd, &wire_fetch_response, 11, 5, &s.a);
    assert_int_equal(rsp->responses[0].partitions[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    scene_close(&s);
}

static void a_client_that_leaves_while_it_waits_leaves_nothing_behind(void **state)
{
    (void)state;
    struct scene s = scene_open("leaver");
    int other = peer_open(&g);
    peer_send(other, &wire_fetch_request, 11, 5, fetch_one(&s.a, s.topic, 0, 600000));
    assert_true(stays_silent(other, 50));
    close(other);
    struct partition *pt = rig_partition(&g, s.topic, 0);
    for (int i = 0; i < 2000 && atomic_load(&pt->refs) > 2; i++) /* the registry's, and ours */
        poll(NULL, 0, 5);
    assert_int_equal(atomic_load(&pt->refs), 2);
    partition_unref(pt);
    scene_close(&s);
}

/* ---- the rest ---- */
static void an_unknown_version_of_api_versions_is_answered_in_layout_0(void **state)
{
    (void)state;
    struct scene s = scene_open("versions");
    static const uint8_t ask[] = { 0, 0, 0, 11, 0, 18, 0, 99, 0, 0, 0, 7, 0, 1, 'x' };
    static const uint8_t answer[] = { 0, 0, 0, 7, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4 };
    struct bytebuf b;
    int32_t correlation;
    peer_send_bytes(s.fd, ask, sizeof ask);
    assert_true(peer_receive(s.fd, &correlation, &b));
    assert_int_equal(b.n, sizeof answer);
    assert_memory_equal(b.p, answer, sizeof answer);
    bytebuf_done(&b);
    assert_int_equal(peer_offset(s.fd, s.topic, -1), 0); /* the connection goes on */
    scene_close(&s);
}

static bool lists(const struct api_versions_response *rsp, int16_t key)
{
    for (int32_t i = 0; i < rsp->n_api_keys; i++)
        if (rsp->api_keys[i].api_key == key)
            return true;
    return false;
}

static void klogs_own_apis_are_offered_to_klog_alone(void **state)
{
    (void)state;
    struct scene s = scene_open("own");
    struct api_versions_request q = { kstr_of("librdkafka"), kstr_of("2.0.2") };
    struct api_versions_response *rsp =
        peer_ask(s.fd, &wire_api_versions_request, &wire_api_versions_response, 3, &q, &s.a);
    assert_true(lists(rsp, API_PRODUCE));
    assert_false(lists(rsp, API_KLOG_STAT));
    q.client_software_name = kstr_of("klog");
    rsp = peer_ask(s.fd, &wire_api_versions_request, &wire_api_versions_response, 3, &q, &s.a);
    assert_true(lists(rsp, API_KLOG_STAT));
    q.client_software_name = kstr_of("not valid!");
    rsp = peer_ask(s.fd, &wire_api_versions_request, &wire_api_versions_response, 3, &q, &s.a);
    assert_int_equal(rsp->error_code, KERR_INVALID_REQUEST);
    scene_close(&s);
}

static void what_cannot_be_read_closes_that_connection_alone(void **state)
{
    (void)state;
    static const uint8_t bad[][16] = {
        { 0, 0, 0, 11, 0, 77, 0, 0, 0, 0, 0, 7, 0, 1, 'x' }, /* no such API */
        { 0, 0, 0, 11, 0, 1, 0, 99, 0, 0, 0, 7, 0, 1, 'x' }, /* no such version of Fetch */
        { 0, 0, 0, 11, 0, 1, 0, 4, 0, 0, 0, 7, 0, 1, 'x' },  /* a body that is too short */
        { 0, 0, 0, 4, 0, 1, 0, 4 },                          /* a header that is too short */
        { 0xff, 0xff, 0xff, 0xff },
        { 0, 0, 0, 0 },
        { 0x7f, 0xff, 0xff, 0xff },
    };
    struct scene s = scene_open("bad");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int fd = peer_open(&g);
        peer_send_bytes(fd, bad[i], MIN(sizeof bad[i] - 1, 4 + (get_be32(bad[i]) & 15)));
        assert_true(is_closed(fd));
        close(fd);
        assert_int_equal(peer_offset(s.fd, s.topic, -1), 0);
    }
    scene_close(&s);
}

static void offsets_are_found_by_time(void **state)
{
    (void)state;
    struct scene s = scene_open("bytime");
    int64_t t0 = clock_wall_ms() - 10000;
    for (int i = 0; i < 3; i++) {
        struct bytebuf b = { 0 };
        make_batch(&b, "x", 2, t0 + 1000 * i);
        assert_int_equal(peer_produce(s.fd, 7, s.topic, 1, &b, &s.a)->error_code, 0);
        bytebuf_done(&b);
    }
    assert_int_equal(peer_offset(s.fd, s.topic, -1), 6);
    assert_int_equal(peer_offset(s.fd, s.topic, -2), 0);
    assert_int_equal(peer_offset(s.fd, s.topic, -4), 0);
    assert_int_equal(peer_offset(s.fd, s.topic, -5), -1);
    assert_int_equal(peer_offset(s.fd, s.topic, t0), 0);
    assert_int_equal(peer_offset(s.fd, s.topic, t0 + 1), 2);
    assert_int_equal(peer_offset(s.fd, s.topic, t0 + 2000), 4);
    assert_int_equal(peer_offset(s.fd, s.topic, t0 + 2001), -1);
    assert_int_equal(peer_offset(s.fd, s.topic, -6), -1000 - KERR_UNSUPPORTED_VERSION);
    assert_int_equal(peer_offset(s.fd, "no.such", -1), -1000 - KERR_UNKNOWN_TOPIC_OR_PARTITION);
    scene_close(&s);
}

static struct delete_records_response_partitions *delete_before(struct scene *s, int64_t offset)
{
    struct delete_records_request_partitions part = { .offset = offset };
    struct delete_records_request_topics t = { kstr_of(s->topic), &part, 1 };
    struct delete_records_request q = { &t, 1, 5000 };
    struct delete_records_response *rsp =
        peer_ask(s->fd, &wire_delete_records_request, &wire_delete_records_response, 2, &q, &s->a);
    return &rsp->topics[0].partitions[0];
}

static void deleted_records_are_out_of_range(void **state)
{
    (void)state;
    struct scene s = scene_open("purge");
    peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a);
    peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a);
    assert_int_equal(delete_before(&s, 7)->error_code, KERR_OFFSET_OUT_OF_RANGE);
    struct delete_records_response_partitions *d = delete_before(&s, 2);
    assert_int_equal(d->error_code, 0);
    assert_int_equal(d->low_watermark, 2);
    struct fetch_response_partitions *f = peer_fetch(s.fd, 11, fetch_one(&s.a, s.topic, 1, 5000), &s.a);
    assert_int_equal(f->error_code, KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(f->log_start_offset, 2);
    assert_int_equal(delete_before(&s, -1)->low_watermark, 6);
    assert_int_equal(peer_offset(s.fd, s.topic, -2), 6);
    assert_int_equal(peer_offset(s.fd, s.topic, -1), 6);
    scene_close(&s);
}

static void an_epochs_end_is_told(void **state)
{
    (void)state;
    struct scene s = scene_open("epochend");
    peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a);
    struct partition *pt = rig_partition(&g, s.topic, 0);
    struct partition_view v;
    partition_view(pt, &v);
    partition_unref(pt);
    struct offset_for_leader_epoch_request_partitions part = { .current_leader_epoch = -1,
                                                               .leader_epoch = v.leader_epoch };
    struct offset_for_leader_epoch_request_topics t = { kstr_of(s.topic), &part, 1 };
    struct offset_for_leader_epoch_request q = { .replica_id = -2, .topics = &t, .n_topics = 1 };
    struct offset_for_leader_epoch_response *rsp = peer_ask(
        s.fd, &wire_offset_for_leader_epoch_request, &wire_offset_for_leader_epoch_response, 4, &q, &s.a);
    assert_int_equal(rsp->topics[0].partitions[0].error_code, 0);
    assert_int_equal(rsp->topics[0].partitions[0].leader_epoch, v.leader_epoch);
    assert_int_equal(rsp->topics[0].partitions[0].end_offset, 3);
    scene_close(&s);
}

static void log_dirs_are_described(void **state)
{
    (void)state;
    struct scene s = scene_open("dirs");
    peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a);
    struct describe_log_dirs_request q = { .n_topics = -1 };
    struct describe_log_dirs_response *rsp =
        peer_ask(s.fd, &wire_describe_log_dirs_request, &wire_describe_log_dirs_response, 4, &q, &s.a);
    assert_int_equal(rsp->n_results, 1);
    assert_int_equal(rsp->results[0].error_code, 0);
    assert_true(rsp->results[0].total_bytes > 0);
    assert_true(rsp->results[0].usable_bytes > 0);
    int64_t size = -1;
    for (int32_t i = 0; i < rsp->results[0].n_topics; i++)
        if (kstr_eqz(rsp->results[0].topics[i].name, s.topic))
            size = rsp->results[0].topics[i].partitions[0].partition_size;
    assert_int_equal(size, s.batch.n);
    scene_close(&s);
}

/* ---- klog's own ---- */
static struct klog_stat_request *stat_one(struct arena *a, const char *topic, int64_t known,
                                          int32_t max_wait_ms)
{
    struct klog_stat_request *q = arena_alloc(a, sizeof *q);
    q->max_wait_ms = max_wait_ms;
    q->topics = arena_array(a, 1, sizeof *q->topics);
    q->n_topics = 1;
    q->topics[0].name = kstr_of(topic);
    q->topics[0].partitions = arena_array(a, 1, sizeof *q->topics[0].partitions);
    q->topics[0].n_partitions = 1;
    q->topics[0].partitions[0].known_end_offset = known;
    return q;
}

static void stat_tells_where_the_text_ends(void **state)
{
    (void)state;
    struct scene s = scene_open("stat");
    peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a); /* stat-0 \n stat-1 \n stat-2 \n */
    struct klog_stat_response *rsp = peer_ask(s.fd, &wire_klog_stat_request, &wire_klog_stat_response, 0,
                                              stat_one(&s.a, s.topic, -1, 15000), &s.a);
    assert_int_equal(rsp->n_topics, 1);
    struct klog_stat_response_partitions *p = &rsp->topics[0].partitions[0];
    assert_int_equal(p->error_code, 0);
    assert_int_equal(p->start_offset, 0);
    assert_int_equal(p->end_offset, 3);
    assert_int_equal(p->start_text, 0);
    assert_int_equal(p->end_text, 21);
    assert_int_equal(p->size_bytes, s.batch.n);

    peer_send(s.fd, &wire_klog_stat_request, 0, 9, stat_one(&s.a, s.topic, 3, 15000));
    assert_true(stays_silent(s.fd, 50));
    int other = peer_open(&g);
    peer_produce(other, 7, s.topic, 1, &s.batch, &s.a);
    rsp = peer_reply(s.fd, &wire_klog_stat_response, 0, 9, &s.a);
    assert_int_equal(rsp->topics[0].partitions[0].end_offset, 6);
    assert_int_equal(rsp->topics[0].partitions[0].end_text, 42);
    close(other);
    rsp = peer_ask(s.fd, &wire_klog_stat_request, &wire_klog_stat_response, 0, stat_one(&s.a, s.topic, 6, 50),
                   &s.a);
    assert_int_equal(rsp->n_topics, 1); /* in vain: everything as it stands */
    assert_int_equal(rsp->topics[0].partitions[0].end_offset, 6);
    scene_close(&s);
}

static struct klog_find_text_response *find_text(struct scene *s, int8_t by, int64_t value)
{
    struct klog_find_text_request q = { .topic = kstr_of(s->topic), .by = by, .value = value };
    return peer_ask(s->fd, &wire_klog_find_text_request, &wire_klog_find_text_response, 0, &q, &s->a);
}

static void text_is_found_by_position_and_by_offset(void **state)
{
    (void)state;
    struct scene s = scene_open("find");
    peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a);
    peer_produce(s.fd, 7, s.topic, 1, &s.batch, &s.a);
    struct klog_find_text_response *rsp = find_text(&s, 0, 25);
    assert_int_equal(rsp->error_code, 0);
    assert_true(rsp->base_offset <= 3);
    assert_true(rsp->text_position <= 25);
    rsp = find_text(&s, 1, 4);
    assert_int_equal(rsp->error_code, 0);
    assert_int_equal(rsp->text_position, 28);
    assert_int_equal(find_text(&s, 1, 7)->error_code, KERR_OFFSET_OUT_OF_RANGE);
    assert_int_equal(find_text(&s, 0, 5000)->error_code, KERR_POSITION_OUT_OF_RANGE);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_comes_back_as_it_was_sent),
        cmocka_unit_test(each_acks_is_answered_as_it_asks),
        cmocka_unit_test(nobody_reads_what_is_not_committed),
        cmocka_unit_test(acks_zero_tells_an_error_by_closing),
        cmocka_unit_test(what_is_no_single_good_batch_is_refused_and_not_stored),
        cmocka_unit_test(every_refused_record_is_named),
        cmocka_unit_test(a_batch_over_the_topics_limit_is_too_large),
        cmocka_unit_test(min_isr_above_the_replicas_refuses_acks_all_alone),
        cmocka_unit_test(log_append_time_is_the_brokers),
        cmocka_unit_test(fetch_tells_the_ends_also_when_it_has_nothing),
        cmocka_unit_test(an_offset_outside_the_log_is_told_with_its_ends),
        cmocka_unit_test(an_offset_inside_a_batch_gets_the_whole_batch),
        cmocka_unit_test(the_first_batch_comes_whole_whatever_the_limits),
        cmocka_unit_test(only_the_first_partition_with_data_may_pass_the_limit),
        cmocka_unit_test(leader_epochs_are_fenced_both_ways),
        cmocka_unit_test(sessions_are_refused_without_harm),
        cmocka_unit_test(topics_go_by_id_from_version_13),
        cmocka_unit_test(produce_goes_by_id_from_version_13),
        cmocka_unit_test(a_waiting_fetch_hears_of_a_record_at_once),
        cmocka_unit_test(a_waiting_fetch_waits_for_min_bytes),
        cmocka_unit_test(a_fetch_that_waited_in_vain_answers_with_what_there_is),
        cmocka_unit_test(answers_keep_the_order_of_the_requests),
        cmocka_unit_test(a_thousand_pipelined_produces_are_answered_in_order),
        cmocka_unit_test(deleting_a_topic_ends_the_wait_for_it),
        cmocka_unit_test(a_client_that_leaves_while_it_waits_leaves_nothing_behind),
        cmocka_unit_test(an_unknown_version_of_api_versions_is_answered_in_layout_0),
        cmocka_unit_test(klogs_own_apis_are_offered_to_klog_alone),
        cmocka_unit_test(what_cannot_be_read_closes_that_connection_alone),
        cmocka_unit_test(offsets_are_found_by_time),
        cmocka_unit_test(deleted_records_are_out_of_range),
        cmocka_unit_test(an_epochs_end_is_told),
        cmocka_unit_test(log_dirs_are_described),
        cmocka_unit_test(stat_tells_where_the_text_ends),
        cmocka_unit_test(text_is_found_by_position_and_by_offset),
    };
    rig_start(&g, async);
    int rc = RUN(tests);
    rig_done(&g);
    return rc;
}
