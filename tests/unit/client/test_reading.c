/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions as one stream of lines, read from make-believe brokers: rules C1 to C4 of reading.h. */
#include "unit.h"
#include "world.h"

#include <errno.h>

#include "lib/base/attr.h"
#include "lib/client/reading.h"
#include "lib/record/build.h"
#include "tests/lib/fakebroker.h"

struct fixture {
    struct loop *lp;
    struct fake_cluster fc;
    struct fake_topic *t;
    struct client *c;
    struct reading *r;
    struct bytebuf out;
    int32_t partition; /* of an error */
    bool ready;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    char brokers[128];
    f->lp = loop_new(test_world());
    fake_cluster_init(&f->fc, f->lp, 2);
    f->t = fake_topic_add(&f->fc, "t", 3, 1);
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
    reading_free(f->r);
    client_free(f->c);
    fake_cluster_done(&f->fc);
    loop_run_once(f->lp, 0);
    loop_free(f->lp);
    bytebuf_done(&f->out);
    free(f);
    return 0;
}

/* A record, in a batch of its own. */
static void put(struct fixture *f, int partition, int64_t time, const char *value)
{
    static const struct batch_producer none = { .id = -1, .epoch = -1, .base_sequence = -1 };
    struct fake_log *log = &f->t->logs[partition];
    struct batch_builder b;
    size_t at = log->bytes.n;
    if (log->n == log->cap) {
        log->cap = 2 * log->cap + 8;
        log->values = realloc(log->values, (size_t)log->cap * sizeof *log->values);
    }
    log->values[log->n] = strdup(value);
    batch_builder_init(&b);
    batch_builder_add(&b, time, KSTR_NULL, kstr_of(value), NULL, 0);
    assert_int_equal(batch_builder_finish(&b, CODEC_NONE, 0, &none, 0, &log->bytes), 0);
    batch_set_base_offset(log->bytes.p + at, log->start + log->n++);
    batch_builder_done(&b);
}

static void on_ready(void *arg)
{
    struct fixture *f = arg;
    assert_false(f->ready); /* once for each READING_WAIT */
    f->ready = true;
}

/* view: the directories of a path, as "follow/json". */
static void begin(struct fixture *f, const char *views, size_t n_partitions)
{
    static const int32_t partitions[] = { 0, 1, 2 };
    char path[64];
    struct view_path p;
    snprintf(path, sizeof path, "t/%s", views);
    assert_true(view_path_parse(path, &p));
    const struct reading_config cfg = { .topic = "t",
                                        .partitions = partitions,
                                        .n_partitions = n_partitions,
                                        .view = p.view,
                                        .now_ms = 1700000000000,
                                        .timeout_ms = 5000,
                                        .ready = on_ready,
                                        .arg = f };
    f->r = reading_new(f->c, &cfg);
}

static int next(struct fixture *f, size_t want)
{
    int rc;
    f->out.n = 0;
    while ((rc = reading_next(f->r, want, &f->out, &f->partition)) == READING_WAIT) {
        while (!f->ready)
            loop_run_once(f->lp, -1);
        f->ready = false;
    }
    return rc;
}

/* All up to something else than READING_MORE, which is returned. */
static int drain(struct fixture *f, char *got, size_t size)
{
    size_t n = 0;
    int rc;
    while ((rc = next(f, 1)) == READING_MORE) {
        assert_true(n + f->out.n < size);
        memcpy(got + n, f->out.p, f->out.n);
        n += f->out.n;
    }
    got[n] = '\0';
    return rc;
}

static void partitions_are_merged_by_time(void **state)
{
    struct fixture *f = *state;
    char got[256];
    put(f, 0, 10, "a");
    put(f, 0, 40, "d");
    put(f, 1, 20, "b");
    put(f, 1, 30, "c");
    put(f, 1, 15, "late"); /* within a partition offsets decide */
    begin(f, "", 3);
    assert_int_equal(drain(f, got, sizeof got), READING_END);
    assert_string_equal(got, "a\nb\nc\nlate\nd\n");
    assert_true(reading_is_live(f->r));
    assert_false(reading_has_before(f->r));
}

static void a_merge_waits_for_each_partition(void **state)
{
    struct fixture *f = *state;
    char got[256];
    for (int p = 0; p < 3; p++)
        put(f, p, 30 - 10 * p, p == 0 ? "third" : p == 1 ? "second" : "first");
    for (int i = 0; i < 3; i++)
        fake_script(&f->fc, API_FETCH, FAKE_HOLD, KERR_NONE);
    begin(f, "", 3);
    f->out.n = 0;
    while (f->fc.n_held < 3) {
        int rc = reading_next(f->r, 1, &f->out, &f->partition);
        assert_int_equal(rc, READING_WAIT);
        loop_run_once(f->lp, -1);
        f->ready = false;
    }
    fake_release(&f->fc);
    assert_int_equal(drain(f, got, sizeof got), READING_END);
    assert_string_equal(got, "first\nsecond\nthird\n");
}

static void a_range_is_of_each_partition(void **state)
{
    struct fixture *f = *state;
    char got[512];
    for (int i = 0; i < 5; i++) {
        char v[8];
        snprintf(v, sizeof v, "v%d", i);
        put(f, 0, i, v);
        put(f, 1, 100 + i, v);
    }
    begin(f, "1:3/json", 2);
    assert_int_equal(drain(f, got, sizeof got), READING_END);
    assert_string_equal(got, "{\"partition\":0,\"offset\":1,\"timestamp\":1,\"key\":null,\"headers\":[],\"value\":\"v1\"}\n"
                             "{\"partition\":0,\"offset\":2,\"timestamp\":2,\"key\":null,\"headers\":[],\"value\":\"v2\"}\n"
                             "{\"partition\":1,\"offset\":1,\"timestamp\":101,\"key\":null,\"headers\":[],\"value\":\"v1\"}\n"
                             "{\"partition\":1,\"offset\":2,\"timestamp\":102,\"key\":null,\"headers\":[],\"value\":\"v2\"}\n");
    assert_true(reading_has_before(f->r));
}

static void what_stands_before_damage_comes_first(void **state)
{
    struct fixture *f = *state;
    char got[256];
    put(f, 0, 1, "good");
    size_t at = f->t->logs[0].bytes.n;
    put(f, 0, 2, "bad");
    f->t->logs[0].bytes.p[at + BATCH_OVERHEAD + 3] ^= 1;
    begin(f, "", 1);
    assert_int_equal(drain(f, got, sizeof got), -EIO);
    assert_string_equal(got, "good\n");
    assert_int_equal(f->partition, 0);
    f->t->logs[0].bytes.p[at + BATCH_OVERHEAD + 3] ^= 1; /* who asks again has it tried again */
    assert_int_equal(drain(f, got, sizeof got), READING_END);
    assert_string_equal(got, "bad\n");
}

static void retention_is_stepped_over(void **state)
{
    struct fixture *f = *state;
    char got[256];
    f->t->logs[0].start = 40;
    put(f, 0, 1, "forty");
    put(f, 0, 2, "forty-one");
    fake_script(&f->fc, API_FETCH, FAKE_ERROR, KERR_OFFSET_OUT_OF_RANGE);
    begin(f, "", 1);
    assert_int_equal(drain(f, got, sizeof got), READING_END);
    assert_string_equal(got, "forty\nforty-one\n");
    assert_int_equal(f->fc.requests[API_LIST_OFFSETS], 4); /* both ends, and both again */
}

static void who_follows_gets_records_as_they_arrive(void **state)
{
    struct fixture *f = *state;
    put(f, 0, 50, "old");
    begin(f, "follow", 2);
    assert_int_equal(next(f, 100), READING_MORE);
    assert_int_equal(f->out.n, 4);
    f->out.n = 0;
    assert_int_equal(reading_next(f->r, 100, &f->out, &f->partition), READING_WAIT);
    while (f->fc.n_held < 2) /* both wait at their ends */
        loop_run_once(f->lp, -1);
    assert_true(reading_is_live(f->r));
    put(f, 1, 10, "young"); /* older by its time, and yet the next */
    fake_release(&f->fc);
    while (!f->ready)
        loop_run_once(f->lp, -1);
    f->ready = false;
    assert_int_equal(next(f, 100), READING_MORE);
    assert_memory_equal(f->out.p, "young\n", 6);
    assert_int_equal(f->out.n, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(partitions_are_merged_by_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_merge_waits_for_each_partition, setup, teardown),
        cmocka_unit_test_setup_teardown(a_range_is_of_each_partition, setup, teardown),
        cmocka_unit_test_setup_teardown(what_stands_before_damage_comes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(retention_is_stepped_over, setup, teardown),
        cmocka_unit_test_setup_teardown(who_follows_gets_records_as_they_arrive, setup, teardown),
    };
    return RUN(tests);
}
