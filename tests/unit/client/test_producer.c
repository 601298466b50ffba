/* SPDX-License-Identifier: Apache-2.0 */
/* The producer against make-believe brokers that check sequence numbers as real ones do. */
#include "unit.h"
#include "world.h"

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/client/client.h"
#include "lib/client/producer.h"
#include "tests/lib/fakebroker.h"

enum { SENDS_MAX = 3000 };

struct sent {
    struct producer_send s;
    struct producer_record r;
    char value[32];
    int n, rc;
    enum kerr err;
    int64_t offset;
    int32_t n_committed;
    char text[64];
};

struct fixture {
    struct loop *lp;
    struct fake_cluster fc;
    struct fake_log *log;
    struct client *c;
    struct producer *p;
    struct sent sent[SENDS_MAX];
    int n_sent, n_told;
    char brokers[128];
};

static struct fixture *told_fixture; /* for the callback */

static void client_start(struct fixture *f, int64_t request_timeout_ms)
{
    struct client_config cfg = {
        .brokers = f->brokers,
        .client_id = "test",
        .retry_backoff_ms = 2,
        .request_timeout_ms = request_timeout_ms,
    };
    f->c = client_new(f->lp, NULL, &cfg);
}

static void producer_start(struct fixture *f, const struct producer_config *cfg)
{
    producer_free(f->p);
    f->p = producer_new(f->c, cfg);
}

static const struct producer_config usual = { .acks = -1, .batch_size = 16384, .delivery_timeout_ms = 5000 };

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->lp = loop_new(test_world());
    fake_cluster_init(&f->fc, f->lp, 2);
    fake_addresses(&f->fc, f->brokers, sizeof f->brokers);
    f->log = &fake_topic_add(&f->fc, "t", 2, 1)->logs[0];
    client_start(f, 5000);
    producer_start(f, &usual);
    told_fixture = f;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(producer_pending_bytes(f->p), 0);
    producer_free(f->p);
    client_free(f->c);
    fake_cluster_done(&f->fc);
    loop_run_once(f->lp, 0);
    loop_free(f->lp);
    free(f);
    return 0;
}

static void on_sent(struct producer_send *s, int rc, enum kerr err, int64_t offset, int32_t n_committed,
                    const char *text)
{
    struct sent *w = s->user;
    w->n++;
    w->rc = rc;
    w->err = err;
    w->offset = offset;
    w->n_committed = n_committed;
    snprintf(w->text, sizeof w->text, "%s", text);
    told_fixture->n_told++;
}

static struct sent *send_value(struct fixture *f, const char *value)
{
    assert_true(f->n_sent < SENDS_MAX);
    struct sent *w = &f->sent[f->n_sent++];
    snprintf(w->value, sizeof w->value, "%s", value);
    w->r = (struct producer_record){ .timestamp = 1, .key = KSTR_NULL, .value = kstr_of(w->value) };
    w->s = (struct producer_send){ .topic = "t", .records = &w->r, .n_records = 1, .cb = on_sent, .user = w };
    producer_send(f->p, &w->s);
    return w;
}

static struct sent *send_number(struct fixture *f, int i)
{
    char value[32];
    snprintf(value, sizeof value, "%d", i);
    return send_value(f, value);
}

/* One send of n records with values of `size` bytes; the first byte tells which. */
static struct sent *send_many(struct fixture *f, int n, int size, const char *first_bytes)
{
    struct sent *w = &f->sent[f->n_sent++];
    struct producer_record *r = xcalloc((size_t)n, sizeof *r);
    char *bytes = xcalloc((size_t)n, (size_t)size);
    memset(bytes, 'x', (size_t)n * (size_t)size);
    for (int i = 0; i < n; i++) {
        bytes[i * size] = first_bytes[i];
        r[i] = (struct producer_record){ .timestamp = 1, .key = KSTR_NULL };
        r[i].value = kstr_bytes(bytes + i * size, (size_t)size);
    }
    w->s = (struct producer_send){ .topic = "t", .records = r, .n_records = n, .cb = on_sent, .user = w };
    producer_send(f->p, &w->s);
    free(r);
    free(bytes);
    return w;
}

static void run_until_told(struct fixture *f, int n)
{
    while (f->n_told < n)
        loop_run_once(f->lp, -1);
    assert_int_equal(f->n_told, n);
}

static void run_until_requests(struct fixture *f, int16_t api, int n)
{
    while (f->fc.requests[api] < n)
        loop_run_once(f->lp, -1);
}

/* The log holds the numbers 0 .. n-1 once each, in order, and each send was told its own offset. */
static void expect_numbers(struct fixture *f, int n)
{
    assert_int_equal(f->log->n, n);
    for (int i = 0; i < n; i++) {
        char value[32];
        snprintf(value, sizeof value, "%d", i);
        assert_string_equal(f->log->values[i], value);
        assert_int_equal(f->sent[i].n, 1);
        assert_int_equal(f->sent[i].rc, 0);
        assert_int_equal(f->sent[i].n_committed, 1);
        if (f->sent[i].offset != -1)
            assert_int_equal(f->sent[i].offset, i);
    }
}

/* ---- the good way ---- */
static void a_send_is_told_its_offset(void **state)
{
    struct fixture *f = *state;
    struct sent *w = send_value(f, "hello");
    assert_int_equal(w->n, 0);
    run_until_told(f, 1);
    assert_int_equal(w->rc, 0);
    assert_int_equal(w->offset, 0);
    assert_string_equal(f->log->values[0], "hello");
    assert_int_equal(f->log->pid, 1000);
}

static void sends_of_one_round_share_a_batch_and_have_their_own_offsets(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++)
        send_number(f, i);
    run_until_told(f, 100);
    expect_numbers(f, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(f->sent[i].offset, i);
    assert_int_equal(f->fc.requests[API_PRODUCE], 1);
}

static void a_send_goes_out_in_its_round_when_the_connection_stands(void **state)
{
    struct fixture *f = *state;
    send_number(f, 0);
    run_until_told(f, 1);
    send_number(f, 1);
    loop_run_once(f->lp, 0); /* sent */
    loop_run_once(f->lp, 0); /* the broker's answer */
    loop_run_once(f->lp, 0);
    assert_int_equal(f->sent[1].n, 1);
}

static void linger_gathers_sends_of_many_rounds(void **state)
{
    struct fixture *f = *state;
    struct producer_config cfg = usual;
    cfg.linger_ms = 30;
    producer_start(f, &cfg);
    for (int i = 0; i < 10; i++) {
        send_number(f, i);
        loop_run_once(f->lp, 0);
    }
    run_until_told(f, 10);
    expect_numbers(f, 10);
    assert_int_equal(f->fc.requests[API_PRODUCE], 1);
}

static void a_flush_does_not_linger(void **state)
{
    struct fixture *f = *state;
    struct producer_config cfg = usual;
    cfg.linger_ms = 3600 * 1000;
    cfg.delivery_timeout_ms = 7200 * 1000;
    producer_start(f, &cfg);
    send_number(f, 0);
    loop_run_once(f->lp, 0);
    struct sent *w = &f->sent[f->n_sent++];
    w->r = (struct producer_record){ .timestamp = 1, .key = KSTR_NULL, .value = kstr_of("1") };
    w->s = (struct producer_send){
        .topic = "t", .records = &w->r, .n_records = 1, .flush = true, .cb = on_sent, .user = w
    };
    producer_send(f->p, &w->s);
    run_until_told(f, 2);
    expect_numbers(f, 2);
}

static void a_hurried_send_lingers_no_longer(void **state)
{
    struct fixture *f = *state;
    struct producer_config cfg = usual;
    cfg.linger_ms = 3600 * 1000;
    cfg.delivery_timeout_ms = 7200 * 1000;
    producer_start(f, &cfg);
    send_number(f, 0);
    loop_run_once(f->lp, 0);
    producer_hurry(f->p, &f->sent[0].s);
    run_until_told(f, 1);
    expect_numbers(f, 1);
}

static void at_most_five_batches_are_in_flight_and_in_order(void **state)
{
    struct fixture *f = *state;
    send_number(f, 0);
    run_until_told(f, 1); /* now the broker knows the producer */
    for (int i = 0; i < 5; i++)
        fake_script(&f->fc, API_PRODUCE, FAKE_HOLD, 0);
    for (int i = 0; i < 8; i++) {
        send_number(f, 1 + i);
        if (i < 5)
            run_until_requests(f, API_PRODUCE, 1 + i + 1);
        else
            loop_run_once(f->lp, 0);
    }
    for (int i = 0; i < 5; i++)
        loop_run_once(f->lp, 0);
    assert_int_equal(f->fc.requests[API_PRODUCE], 6);
    assert_int_equal(f->n_told, 1);
    fake_release(&f->fc);
    run_until_told(f, 9);
    expect_numbers(f, 9);
    assert_int_equal(f->fc.requests[API_PRODUCE], 7); /* the three that waited went together */
}

/* A broker takes any number from a producer that it does not know: the second batch, were it there before the first was sent
 * again, would stand before it. */
static void until_the_broker_knows_the_producer_one_batch_is_in_flight(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_PRODUCE, FAKE_ERROR, KERR_NOT_LEADER_OR_FOLLOWER);
    for (int i = 0; i < 3; i++) {
        send_number(f, i);
        loop_run_once(f->lp, 0);
        loop_run_once(f->lp, 0);
    }
    run_until_told(f, 3);
    expect_numbers(f, 3);
}

static void every_codec_is_written(void **state)
{
    struct fixture *f = *state;
    static const enum codec codecs[] = { CODEC_GZIP, CODEC_LZ4 };
    for (size_t i = 0; i < ARRAY_LEN(codecs); i++) {
        struct producer_config cfg = usual;
        cfg.compression = codecs[i];
        producer_start(f, &cfg);
        send_number(f, (int)i);
        run_until_told(f, (int)i + 1);
    }
    expect_numbers(f, 2);
}

static void acks_1_and_0_have_no_producer_id(void **state)
{
    struct fixture *f = *state;
    for (int16_t acks = 0; acks <= 1; acks++) {
        struct producer_config cfg = usual;
        cfg.acks = acks;
        producer_start(f, &cfg);
        send_number(f, acks);
        run_until_told(f, acks + 1);
        run_until_requests(f, API_PRODUCE, acks + 1);
    }
    expect_numbers(f, 2);
    assert_int_equal(f->sent[0].offset, -1);
    assert_int_equal(f->sent[1].offset, 1);
    assert_int_equal(f->fc.requests[API_INIT_PRODUCER_ID], 0);
}

static void a_send_larger_than_a_batch_goes_in_several_and_in_order(void **state)
{
    struct fixture *f = *state;
    struct sent *w = send_many(f, 8, 5000, "abcdefgh");
    run_until_told(f, 1);
    assert_int_equal(w->rc, 0);
    assert_int_equal(w->offset, 0);
    assert_int_equal(w->n_committed, 8);
    assert_int_equal(f->log->n, 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(f->log->values[i][0], "abcdefgh"[i]);
    assert_int_equal(f->fc.requests[API_PRODUCE], 3);
}

/* ---- retries ---- */
static void a_lost_answer_does_not_write_twice(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_PRODUCE, FAKE_DO_AND_DROP, 0);
    send_number(f, 0);
    run_until_told(f, 1);
    expect_numbers(f, 1);
    assert_int_equal(f->sent[0].offset, 0);
    assert_int_equal(f->fc.requests[API_PRODUCE], 2);
}

static void a_lost_request_is_written_once(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_PRODUCE, FAKE_DROP, 0);
    send_number(f, 0);
    run_until_told(f, 1);
    expect_numbers(f, 1);
}

static void five_in_flight_survive_a_broken_connection_in_order(void **state)
{
    struct fixture *f = *state;
    send_number(f, 0);
    run_until_told(f, 1);
    fake_script(&f->fc, API_PRODUCE, FAKE_HOLD, 0);
    fake_script(&f->fc, API_PRODUCE, FAKE_HOLD, 0);
    fake_script(&f->fc, API_PRODUCE, FAKE_DEAF, 0);
    fake_script(&f->fc, API_PRODUCE, FAKE_DEAF, 0);
    fake_script(&f->fc, API_PRODUCE, FAKE_DEAF, 0);
    for (int i = 1; i < 6; i++) {
        send_number(f, i);
        run_until_requests(f, API_PRODUCE, i + 1);
    }
    for (int i = 6; i < 10; i++)
        send_number(f, i);
    fake_broker_kick(&f->fc.brokers[0]); /* two are in the log, three are not, four wait */
    run_until_told(f, 10);
    expect_numbers(f, 10);
}

static void a_refusal_in_the_middle_keeps_the_order(void **state)
{
    struct fixture *f = *state;
    send_number(f, 0);
    run_until_told(f, 1);
    fake_script(&f->fc, API_PRODUCE, FAKE_ERROR, KERR_NOT_ENOUGH_REPLICAS);
    for (int i = 1; i < 6; i++) {
        send_number(f, i);
        loop_run_once(f->lp, 0);
    }
    run_until_told(f, 6);
    expect_numbers(f, 6);
    assert_int_equal(f->log->epoch, 0);
}

/* A disk that failed in the sync behind the append: the batch may be in the log, and nothing is numbered anew before that is
 * settled. */
static void an_error_of_the_disk_leaves_the_doubt(void **state)
{
    struct fixture *f = *state;
    send_number(f, 0);
    run_until_told(f, 1);
    fake_script(&f->fc, API_PRODUCE, FAKE_DO_AND_FAIL, KERR_KAFKA_STORAGE_ERROR);
    fake_script(&f->fc, API_PRODUCE, FAKE_ERROR, KERR_UNKNOWN_PRODUCER_ID); /* a new epoch, and new numbers */
    for (int i = 1; i < 3; i++) {
        send_number(f, i);
        run_until_requests(f, API_PRODUCE, 1 + i);
    }
    run_until_told(f, 3);
    assert_int_equal(f->log->n, 3);
}

static void a_new_leader_gets_the_batch(void **state)
{
    struct fixture *f = *state;
    send_number(f, 0);
    run_until_told(f, 1);
    f->fc.topics[0].leaders[0] = 2;
    send_number(f, 1);
    run_until_told(f, 2);
    expect_numbers(f, 2);
}

/* Brokers that fail in every way, over and over: each record once, in order. */
static void storms_write_each_record_once(void **state)
{
    struct fixture *f = *state;
    struct producer_config cfg = usual;
    cfg.delivery_timeout_ms = 120 * 1000;
    producer_start(f, &cfg);
    uint64_t seed = 42;
    for (int round = 0; round < 300; round++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned r = (unsigned)(seed >> 40);
        static const enum kerr errs[] = { KERR_NOT_LEADER_OR_FOLLOWER, KERR_NOT_ENOUGH_REPLICAS,
                                          KERR_KAFKA_STORAGE_ERROR };
        if (f->fc.n_steps < 8 && r % 3 == 0)
            fake_script(&f->fc, API_PRODUCE, (enum fake_do)(r / 3 % 3), errs[r / 9 % 3]);
        if (r % 17 == 0)
            fake_broker_kick(&f->fc.brokers[0]);
        if (r % 31 == 0)
            f->fc.topics[0].leaders[0] = 3 - f->fc.topics[0].leaders[0];
        for (unsigned i = 0; i < r % 5; i++)
            send_number(f, f->n_sent);
        loop_run_once(f->lp, 0);
    }
    run_until_told(f, f->n_sent);
    expect_numbers(f, f->n_sent);
}

/* ---- the producer's identity ---- */
static void a_broker_that_lost_the_producer_gets_a_new_epoch(void **state)
{
    struct fixture *f = *state;
    send_number(f, 0);
    run_until_told(f, 1);
    f->log->next_sequence = 77; /* as if it remembered something else */
    f->log->n_window = 0;
    send_number(f, 1);
    run_until_told(f, 2);
    expect_numbers(f, 2);
    assert_int_equal(f->log->pid, 1000);
    assert_int_equal(f->log->epoch, 1);
    assert_int_equal(f->log->next_sequence, 1);
}

static void an_unknown_producer_id_gets_a_new_epoch(void **state)
{
    struct fixture *f = *state;
    send_number(f, 0);
    run_until_told(f, 1);
    fake_script(&f->fc, API_PRODUCE, FAKE_ERROR, KERR_UNKNOWN_PRODUCER_ID);
    send_number(f, 1);
    run_until_told(f, 2);
    expect_numbers(f, 2);
    assert_int_equal(f->log->epoch, 1);
}

static void an_unknown_producer_id_after_a_lost_answer_is_an_error_not_a_copy(void **state)
{
    struct fixture *f = *state;
    send_number(f, 0);
    run_until_told(f, 1);
    fake_script(&f->fc, API_PRODUCE, FAKE_DO_AND_DROP, 0);
    fake_script(&f->fc, API_PRODUCE, FAKE_ERROR, KERR_UNKNOWN_PRODUCER_ID);
    struct sent *w = send_number(f, 1);
    run_until_told(f, 2);
    assert_int_equal(w->rc, -EIO);
    assert_int_equal(w->err, KERR_UNKNOWN_PRODUCER_ID);
    assert_int_equal(f->log->n, 2);
    send_number(f, 2);
    run_until_told(f, 3);
    assert_int_equal(f->log->n, 3);
    assert_int_equal(f->log->epoch, 1);
}

/* Numbers of a batch that may be in the log are not given to another: the broker would take that one for the first. */
static void a_refusal_after_a_lost_answer_leaves_the_doubt(void **state)
{
    struct fixture *f = *state;
    struct producer_config cfg = usual;
    cfg.delivery_timeout_ms = 380; /* amid the wait after the seventh refusal */
    producer_start(f, &cfg);
    send_number(f, 0);
    run_until_told(f, 1);
    fake_script(&f->fc, API_PRODUCE, FAKE_DO_AND_DROP, 0);
    for (int i = 1; i < FAKE_STEPS; i++)
        fake_script(&f->fc, API_PRODUCE, FAKE_ERROR, KERR_NOT_LEADER_OR_FOLLOWER);
    struct sent *w = send_number(f, 1);
    run_until_told(f, 2);
    assert_int_equal(w->rc, -ETIMEDOUT);
    assert_int_equal(f->log->n, 2);
    f->fc.n_steps = 0;
    w = send_value(f, "another");
    run_until_told(f, 3);
    assert_int_equal(w->rc, 0);
    assert_int_equal(f->log->n, 3);
    assert_string_equal(f->log->values[2], "another");
}

static void a_batch_refused_after_a_lost_answer_is_not_cut_up_and_copied(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_PRODUCE, FAKE_DO_AND_DROP, 0);
    fake_script(&f->fc, API_PRODUCE, FAKE_ERROR, KERR_MESSAGE_TOO_LARGE);
    struct sent *w = send_number(f, 0);
    send_number(f, 1);
    run_until_told(f, 2);
    assert_int_equal(w->rc, -EMSGSIZE);
    assert_int_equal(f->log->n, 2);
    w = send_number(f, 2);
    run_until_told(f, 3);
    assert_int_equal(w->rc, 0);
    assert_int_equal(f->log->n, 3);
}

static void a_fenced_producer_takes_a_new_id(void **state)
{
    struct fixture *f = *state;
    send_number(f, 0);
    run_until_told(f, 1);
    fake_script(&f->fc, API_PRODUCE, FAKE_ERROR, KERR_INVALID_PRODUCER_EPOCH);
    send_number(f, 1);
    run_until_told(f, 2);
    expect_numbers(f, 2);
    assert_int_equal(f->log->pid, 1001);
}

static void the_other_partition_goes_on_with_the_old_epoch(void **state)
{
    struct fixture *f = *state;
    struct sent *w = send_number(f, 0);
    run_until_told(f, 1);
    fake_script(&f->fc, API_PRODUCE, FAKE_ERROR, KERR_UNKNOWN_PRODUCER_ID);
    send_number(f, 1);
    run_until_told(f, 2);
    w = &f->sent[f->n_sent++];
    w->r = (struct producer_record){ .timestamp = 1, .key = KSTR_NULL, .value = kstr_of("other") };
    w->s = (struct producer_send){
        .topic = "t", .partition = 1, .records = &w->r, .n_records = 1, .cb = on_sent, .user = w
    };
    producer_send(f->p, &w->s);
    run_until_told(f, 3);
    assert_int_equal(w->rc, 0);
    assert_int_equal(f->fc.topics[0].logs[1].n, 1);
}

static void a_refused_producer_id_fails_the_sends(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_INIT_PRODUCER_ID, FAKE_ERROR, KERR_CLUSTER_AUTHORIZATION_FAILED);
    struct sent *w = send_number(f, 0);
    run_until_told(f, 1);
    assert_int_equal(w->rc, -EACCES);
    assert_int_equal(w->err, KERR_CLUSTER_AUTHORIZATION_FAILED);
    send_value(f, "0");
    run_until_told(f, 2);
    assert_int_equal(f->log->n, 1);
}

/* ---- sizes ---- */
static void a_batch_too_large_for_the_topic_is_cut_up(void **state)
{
    struct fixture *f = *state;
    f->fc.max_message_bytes = 300;
    for (int i = 0; i < 200; i++)
        send_number(f, i);
    run_until_told(f, 200);
    expect_numbers(f, 200);
    for (int i = 0; i < 200; i++)
        assert_int_equal(f->sent[i].offset, i);
}

static void a_record_too_large_for_the_topic_fails_alone(void **state)
{
    struct fixture *f = *state;
    f->fc.max_message_bytes = 2000;
    struct sent *a = send_value(f, "a");
    struct sent *big = send_many(f, 1, 3000, "b");
    struct sent *c = send_value(f, "c");
    run_until_told(f, 3);
    assert_int_equal(a->rc, 0);
    assert_int_equal(c->rc, 0);
    assert_int_equal(big->rc, -EMSGSIZE);
    assert_int_equal(big->err, KERR_MESSAGE_TOO_LARGE);
    assert_int_equal(big->n_committed, 0);
    assert_int_equal(f->log->n, 2);
    assert_string_equal(f->log->values[0], "a");
    assert_string_equal(f->log->values[1], "c");
    send_value(f, "d");
    run_until_told(f, 4);
    assert_int_equal(f->log->n, 3);
    assert_int_equal(f->log->epoch, 0); /* numbers were closed up, no new epoch was needed */
}

static void nothing_of_a_send_is_written_after_the_part_that_failed(void **state)
{
    struct fixture *f = *state;
    f->fc.max_message_bytes = 12000;
    struct producer_config cfg = usual;
    cfg.batch_size = 10000;
    producer_start(f, &cfg);
    send_number(f, 0);
    run_until_told(f, 1);
    /* Batches of two records; in flight together: ab, cd, ef, gh. */
    fake_script(&f->fc, API_PRODUCE, FAKE_HOLD, 0);
    fake_script(&f->fc, API_PRODUCE, FAKE_ERROR, KERR_TOPIC_AUTHORIZATION_FAILED);
    struct sent *w = send_many(f, 8, 4500, "abcdefgh");
    struct sent *next = send_value(f, "next");
    run_until_requests(f, API_PRODUCE, 3);
    fake_release(&f->fc);
    run_until_told(f, 3);
    assert_int_equal(w->rc, -EACCES);
    assert_int_equal(w->offset, 1);
    assert_int_equal(w->n_committed, 2);
    assert_int_equal(next->rc, 0);
    assert_int_equal(f->log->n, 4);
    assert_int_equal(f->log->values[2][0], 'b');
    assert_string_equal(f->log->values[3], "next");
    assert_int_equal(next->offset, 3);
}

static void a_bad_record_fails_only_its_own_send(void **state)
{
    struct fixture *f = *state;
    f->fc.bad_value = "3";
    for (int i = 0; i < 6; i++)
        send_number(f, i);
    run_until_told(f, 6);
    assert_int_equal(f->log->n, 5);
    for (int i = 0; i < 6; i++)
        assert_int_equal(f->sent[i].rc, i == 3 ? -EINVAL : 0);
    assert_string_equal(f->sent[3].text, "that record is bad");
    assert_string_equal(f->log->values[2], "2");
    assert_string_equal(f->log->values[3], "4");
    assert_int_equal(f->sent[4].offset, 3);
}

/* ---- time ---- */
static void a_send_to_nobody_times_out(void **state)
{
    struct fixture *f = *state;
    fake_broker_stop(&f->fc.brokers[0]);
    fake_broker_stop(&f->fc.brokers[1]);
    struct producer_config cfg = usual;
    cfg.delivery_timeout_ms = 30;
    producer_start(f, &cfg);
    struct sent *w = send_number(f, 0);
    run_until_told(f, 1);
    assert_int_equal(w->rc, -ETIMEDOUT);
    assert_int_equal(w->n_committed, 0);
}

static void a_time_out_tells_the_last_refusal(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < FAKE_STEPS; i++)
        fake_script(&f->fc, API_PRODUCE, FAKE_ERROR, KERR_KAFKA_STORAGE_ERROR);
    struct producer_config cfg = usual;
    cfg.delivery_timeout_ms = 60;
    producer_start(f, &cfg);
    struct sent *w = send_number(f, 0);
    run_until_told(f, 1);
    assert_int_equal(w->rc, -ETIMEDOUT);
    assert_int_equal(w->err, KERR_KAFKA_STORAGE_ERROR);
    assert_string_equal(w->text, "no space");
}

static void a_time_out_in_flight_begins_a_new_epoch(void **state)
{
    struct fixture *f = *state;
    struct producer_config cfg = usual;
    cfg.delivery_timeout_ms = 60;
    producer_start(f, &cfg);
    send_number(f, 0);
    run_until_told(f, 1);
    fake_script(&f->fc, API_PRODUCE, FAKE_DEAF, 0);
    struct sent *lost = send_value(f, "lost");
    run_until_told(f, 2);
    assert_int_equal(lost->rc, -ETIMEDOUT);
    fake_broker_kick(&f->fc.brokers[0]);
    struct sent *w = send_value(f, "1");
    run_until_told(f, 3);
    assert_int_equal(w->rc, 0);
    assert_int_equal(f->log->n, 2);
    assert_string_equal(f->log->values[1], "1");
    assert_int_equal(f->log->epoch, 1);
}

static void a_missing_topic_fails_the_send(void **state)
{
    struct fixture *f = *state;
    struct sent *w = &f->sent[f->n_sent++];
    w->r = (struct producer_record){ .timestamp = 1, .key = KSTR_NULL, .value = kstr_of("x") };
    w->s =
        (struct producer_send){ .topic = "nope", .records = &w->r, .n_records = 1, .cb = on_sent, .user = w };
    producer_send(f->p, &w->s);
    run_until_told(f, 1);
    assert_int_equal(w->rc, -ENOENT);
}

/* A topic deleted and made anew: nothing that was meant for the old one gets into it. */
static void a_topic_of_another_id_fails_the_send(void **state)
{
    struct fixture *f = *state;
    f->fc.topics[0].id.b[0] = 1;
    struct sent *w = &f->sent[f->n_sent++];
    w->r = (struct producer_record){ .timestamp = 1, .key = KSTR_NULL, .value = kstr_of("x") };
    w->s = (struct producer_send){
        .topic = "t", .topic_id = { { 2 } }, .records = &w->r, .n_records = 1, .cb = on_sent, .user = w
    };
    producer_send(f->p, &w->s);
    run_until_told(f, 1);
    assert_int_equal(w->rc, -ENOENT);
    assert_int_equal(w->err, KERR_UNKNOWN_TOPIC_ID);
    assert_int_equal(f->log->n, 0);
    f->n_sent = f->n_told = 0;
    w->n = 0;
    w->s.topic_id.b[0] = 1;
    f->n_sent++;
    producer_send(f->p, &w->s);
    run_until_told(f, 1);
    assert_int_equal(w->rc, 0);
    assert_int_equal(f->log->n, 1);
}

/* ---- withdrawal ---- */
static void an_unsent_send_can_be_withdrawn_from_its_batch(void **state)
{
    struct fixture *f = *state;
    struct sent *w[3] = { send_value(f, "a"), send_value(f, "b"), send_value(f, "c") };
    assert_true(producer_withdraw(f->p, &w[1]->s));
    run_until_told(f, 2);
    assert_int_equal(w[1]->n, 0);
    assert_int_equal(f->log->n, 2);
    assert_string_equal(f->log->values[1], "c");
    assert_int_equal(w[2]->offset, 1);
}

static void a_send_that_waits_for_a_connection_can_be_withdrawn(void **state)
{
    struct fixture *f = *state;
    send_number(f, 0);
    run_until_told(f, 1);
    fake_broker_stop(&f->fc.brokers[0]);
    for (int i = 0; i < 3; i++)
        loop_run_once(f->lp, 1);
    struct sent *gone = send_value(f, "gone");
    for (int i = 0; i < 3; i++)
        loop_run_once(f->lp, 1);
    struct sent *kept = send_value(f, "1");
    for (int i = 0; i < 3; i++)
        loop_run_once(f->lp, 1);
    assert_true(producer_withdraw(f->p, &gone->s));
    fake_broker_start(&f->fc.brokers[0]);
    run_until_told(f, 2);
    assert_int_equal(kept->rc, 0);
    assert_int_equal(gone->n, 0);
    assert_int_equal(f->log->n, 2);
    assert_string_equal(f->log->values[1], "1");
}

static void a_sent_send_cannot_be_withdrawn(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_PRODUCE, FAKE_HOLD, 0);
    struct sent *w = send_number(f, 0);
    run_until_requests(f, API_PRODUCE, 1);
    assert_false(producer_withdraw(f->p, &w->s));
    fake_release(&f->fc);
    run_until_told(f, 1);
    assert_int_equal(w->rc, 0);
    assert_false(producer_withdraw(f->p, &w->s));
}

static void freeing_the_producer_ends_its_sends(void **state)
{
    struct fixture *f = *state;
    fake_script(&f->fc, API_PRODUCE, FAKE_HOLD, 0);
    send_number(f, 0);
    run_until_requests(f, API_PRODUCE, 1);
    send_number(f, 1);
    producer_free(f->p);
    f->p = NULL;
    assert_int_equal(f->n_told, 2);
    assert_int_equal(f->sent[0].rc, -ECANCELED);
    assert_int_equal(f->sent[1].rc, -ECANCELED);
    producer_start(f, &usual);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_send_is_told_its_offset),
        T(sends_of_one_round_share_a_batch_and_have_their_own_offsets),
        T(a_send_goes_out_in_its_round_when_the_connection_stands),
        T(linger_gathers_sends_of_many_rounds),
        T(a_flush_does_not_linger),
        T(a_hurried_send_lingers_no_longer),
        T(at_most_five_batches_are_in_flight_and_in_order),
        T(until_the_broker_knows_the_producer_one_batch_is_in_flight),
        T(every_codec_is_written),
        T(acks_1_and_0_have_no_producer_id),
        T(a_send_larger_than_a_batch_goes_in_several_and_in_order),
        T(a_lost_answer_does_not_write_twice),
        T(a_lost_request_is_written_once),
        T(five_in_flight_survive_a_broken_connection_in_order),
        T(a_refusal_in_the_middle_keeps_the_order),
        T(an_error_of_the_disk_leaves_the_doubt),
        T(a_new_leader_gets_the_batch),
        T(storms_write_each_record_once),
        T(a_broker_that_lost_the_producer_gets_a_new_epoch),
        T(an_unknown_producer_id_gets_a_new_epoch),
        T(an_unknown_producer_id_after_a_lost_answer_is_an_error_not_a_copy),
        T(a_refusal_after_a_lost_answer_leaves_the_doubt),
        T(a_batch_refused_after_a_lost_answer_is_not_cut_up_and_copied),
        T(a_fenced_producer_takes_a_new_id),
        T(the_other_partition_goes_on_with_the_old_epoch),
        T(a_refused_producer_id_fails_the_sends),
        T(a_batch_too_large_for_the_topic_is_cut_up),
        T(a_record_too_large_for_the_topic_fails_alone),
        T(nothing_of_a_send_is_written_after_the_part_that_failed),
        T(a_bad_record_fails_only_its_own_send),
        T(a_send_to_nobody_times_out),
        T(a_time_out_tells_the_last_refusal),
        T(a_time_out_in_flight_begins_a_new_epoch),
        T(a_missing_topic_fails_the_send),
        T(a_topic_of_another_id_fails_the_send),
        T(an_unsent_send_can_be_withdrawn_from_its_batch),
        T(a_send_that_waits_for_a_connection_can_be_withdrawn),
        T(a_sent_send_cannot_be_withdrawn),
        T(freeing_the_producer_ends_its_sends),
    };
    return RUN(tests);
}
