/* SPDX-License-Identifier: Apache-2.0 */
/* Which log is cleaned when, by a whole broker; what a pass does is tested with the store. */
#include "rig.h"

#include <fcntl.h>
#include <unistd.h>

#include "daemon/meta/cluster.h"
#include "daemon/upkeep/cleaner_choice.h"
#include "lib/base/clock.h"
#include "lib/base/fsutil.h"
#include "lib/record/iter.h"
#include "lib/store/clean_marks.h"

/* ---- choosing ---- */

static double urgency(int64_t clean_bytes, int64_t dirty_bytes, int64_t oldest_ms, bool unfinished,
                      int64_t horizon_ms)
{
    const struct topic_config cfg = { .min_cleanable_dirty_ratio = 0.5, .max_compaction_lag_ms = 1000 };
    const struct clean_look look = { .clean_bytes = clean_bytes,
                                     .dirty_bytes = dirty_bytes,
                                     .oldest_ms = oldest_ms };
    return cleaner_urgency(&cfg, &look, unfinished, horizon_ms, 100000);
}

static void the_dirtiest_log_comes_first(void **state)
{
    (void)state;
    assert_true(urgency(0, 0, -1, false, HORIZON_NONE) == 0);
    assert_true(urgency(50, 50, -1, false, HORIZON_NONE) == 0); /* not more than half */
    assert_true(urgency(49, 51, -1, false, HORIZON_NONE) > 1);
    assert_true(urgency(10, 90, -1, false, HORIZON_NONE) > urgency(49, 51, -1, false, HORIZON_NONE));
    assert_true(urgency(99, 1, 99000, false, HORIZON_NONE) == 0);
    assert_true(urgency(99, 1, 98999, false, HORIZON_NONE) >
                urgency(0, 1, -1, false, HORIZON_NONE)); /* too long */
    assert_true(urgency(99, 1, -1, true, HORIZON_NONE) > urgency(0, 1, -1, false, HORIZON_NONE));
    assert_true(urgency(100, 0, -1, true, HORIZON_NONE) == 0);
}

static void tombstones_are_a_reason_once_their_time_has_come(void **state)
{
    (void)state;
    assert_true(urgency(100, 0, -1, false, 100001) == 0);
    assert_true(urgency(100, 0, -1, false, 100000) > 0);
    assert_true(urgency(100, 0, -1, false, HORIZON_UNKNOWN) > 0);
    assert_true(urgency(0, 0, -1, false, HORIZON_UNKNOWN) == 0);
    assert_true(urgency(0, 1, -1, false, HORIZON_NONE) > urgency(100, 0, -1, false, 1));
}

/* ---- files ---- */

static void add_mark(void *arg, const struct clean_mark *m)
{
    char id[UUID_TEXT_LEN + 1];

    uuid_text(&m->topic_id, id);
    bytebuf_printf(arg, "%s/%d/%lld", m->topic, m->partition, (long long)m->value);
    bytebuf_printf(arg, uuid_is_zero(&m->topic_id) ? " " : "/%s ", id);
}

static void checkpoints_are_kafka_s_text(void **state)
{
    (void)state;
    static const struct clean_mark marks[] = { { .topic = "orders", .value = 17, .topic_id = { { 1 } } },
                                                { .topic = "a.b", .partition = 12, .value = INT64_MAX } };
    static const char *const bad[] = {
        "",
        "2\n0\n",
        "1\n1\nx 0 1\n",
        "1\n1\nx 0 1 AQAA\n",
        "0\n1\n",
        "0\n1\nx 0\n",
        "0\n1\nx 0 1 2\n",
        "0\n1\nx y 1\n",
        "0\n2\nx 0 1\n",
        "0\n1\nx 0 1",
        "0\n1\nx -1 1\n",
        "0\n0\nx 0 1\n",
        "0\n1\nx 0 9223372036854775808\n",
    };
    struct bytebuf b = { 0 }, got = { 0 };

    clean_marks_encode(marks, 2, CLEAN_MARKS_KAFKA, &b);
    assert_string_equal(bytebuf_cstr(&b), "0\n2\norders 0 17\na.b 12 9223372036854775807\n");
    assert_true(clean_marks_decode(slice_of(b.p, b.n), add_mark, &got));
    assert_string_equal(bytebuf_cstr(&got), "orders/0/17 a.b/12/9223372036854775807 ");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(clean_marks_decode(slice_of(bad[i], strlen(bad[i])), add_mark, &got));
    assert_true(clean_marks_decode(slice_of("0\n0\n", 4), add_mark, &got));
    b.n = got.n = 0;
    clean_marks_encode(marks, 1, CLEAN_MARKS_WITH_ID, &b);
    assert_string_equal(bytebuf_cstr(&b), "1\n1\norders 0 17 AQAAAAAAAAAAAAAAAAAAAA\n");
    assert_true(clean_marks_decode(slice_of(b.p, b.n), add_mark, &got));
    assert_string_equal(bytebuf_cstr(&got), "orders/0/17/AQAAAAAAAAAAAAAAAAAAAA ");
    bytebuf_done(&b);
    bytebuf_done(&got);
}

/* ---- a broker ---- */

static const char *const fast[] = { "log.cleaner.backoff.ms", "10", NULL };

static const char *const compact[] = {
    "cleanup.policy", "compact", "segment.ms", "1", "min.cleanable.dirty.ratio", "0.01", NULL,
};
static const char *const compact_soon[] = {
    "cleanup.policy",      "compact", "segment.ms", "1", "min.cleanable.dirty.ratio", "0.01",
    "delete.retention.ms", "500",     NULL,
};

/* "k=v k2" as records; no '=': a tombstone. */
static void produce(struct rig *g, const char *topic, const char *text)
{
    struct batch_builder bb;
    struct batch_producer none = { .id = -1, .epoch = -1, .base_sequence = -1 };
    struct bytebuf out = { 0 };
    struct arena a;
    char copy[256], *save = NULL;

    batch_builder_init(&bb);
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(word, '=');
        if (eq != NULL)
            *eq = '\0';
        batch_builder_add(&bb, clock_wall_ms(), kstr_of(word), kstr_of(eq == NULL ? NULL : eq + 1), NULL, 0);
    }
    assert_int_equal(batch_builder_finish(&bb, CODEC_NONE, 0, &none, 0, &out), 0);
    batch_builder_done(&bb);
    arena_init(&a);
    int fd = peer_open(g);
    assert_int_equal(peer_produce(fd, 9, topic, -1, &out, &a)->error_code, 0);
    close(fd);
    arena_done(&a);
    bytebuf_done(&out);
}

static void add_batch(struct bytebuf *ret, struct slice batch)
{
    struct record_iter it;
    struct record r;

    record_iter_init(&it);
    assert_int_equal(record_iter_start(&it, batch, 1 << 20), 0);
    while (record_iter_next(&it, &r) == 1)
        bytebuf_printf(ret, kstr_is_null(r.value) ? "%lld:%.*s " : "%lld:%.*s=%.*s ", (long long)r.offset,
                       KSTR_FMT(r.key), KSTR_FMT(r.value));
    record_iter_done(&it);
}

/* Everything in the log, straight from it. */
static bool log_is(struct rig *g, const char *topic, const char *want)
{
    struct partition *pt = rig_partition(g, topic, 0);
    struct plog_ends e;
    struct bytebuf got = { 0 };

    plog_ends(pt->log, &e);
    for (int64_t next = e.start_offset; next < e.end_offset;) {
        struct plog_span s;
        uint8_t bytes[4096];
        assert_int_equal(plog_read(pt->log, next, e.end_offset, sizeof bytes, true, &s), 0);
        assert_in_range(s.n, 1, sizeof bytes);
        assert_int_equal(plog_span_read(&s, bytes), 0);
        for (struct slice rest = slice_of(bytes, (size_t)s.n); rest.n > 0;) {
            struct batch_header h;
            assert_int_equal(batch_check(rest, 1 << 20, &h), 0);
            add_batch(&got, slice_of(rest.p, (size_t)batch_size(&h)));
            next = batch_last_offset(&h) + 1;
            rest = slice_of(rest.p + batch_size(&h), rest.n - (size_t)batch_size(&h));
        }
        plog_span_release(&s);
    }
    bool same = strcmp(bytebuf_cstr(&got), want) == 0;
    bytebuf_done(&got);
    partition_unref(pt);
    return same;
}

static void pause_ms(int ms)
{
    struct timespec ts = { .tv_nsec = ms * 1000000L };
    nanosleep(&ts, NULL);
}

/* or: what it may be as well; NULL. */
static void wait_log_or(struct rig *g, const char *topic, const char *want, const char * or)
{
    int64_t until = clock_mono_ms() + 20000;
    while (!log_is(g, topic, want) && (or == NULL || !log_is(g, topic, or))) {
        if (clock_mono_ms() > until)
            fail_msg("the log never became \"%s\"", want);
        pause_ms(5);
    }
}

static void wait_log(struct rig *g, const char *topic, const char *want)
{
    wait_log_or(g, topic, want, NULL);
}

static void assert_file(struct rig *g, const char *file, const char *want)
{
    char path[512];
    struct bytebuf b = { 0 };

    snprintf(path, sizeof path, "%s/data0/%s", g->dir, file);
    assert_int_equal(fs_read_file(AT_FDCWD, path, 4096, &b), 0);
    assert_string_equal(bytebuf_cstr(&b), want);
    bytebuf_done(&b);
}

static void a_quiet_topic_gets_clean_and_it_is_remembered(void **state)
{
    (void)state;
    struct rig g = { 0 };

    rig_start(&g, fast);
    rig_create_topic(&g, "t", 1, compact);
    rig_create_topic(&g, "not", 1, NULL);
    produce(&g, "t", "a=1 b=1 a=2");
    produce(&g, "not", "a=1 a=2");
    wait_log(&g, "t", "1:b=1 2:a=2 ");
    char id[UUID_TEXT_LEN + 1], want[128];
    struct cluster_image *img = cluster_image_get(g.b.cluster);
    uuid_text(&cluster_image_topic(img, kstr_of("t"))->id, id);
    cluster_image_put(img);
    snprintf(want, sizeof want, "1\n1\nt 0 9223372036854775807 %s\n", id);
    assert_true(rig_stop(&g));
    assert_file(&g, CLEAN_OFFSETS_FILE, "0\n1\nt 0 3\n");
    assert_file(&g, CLEAN_HORIZONS_FILE, want);
    rig_start_in(&g, NULL, 1, fast);
    assert_true(log_is(&g, "not", "0:a=1 1:a=2 "));
    produce(&g, "t", "b=2 c=1");
    wait_log(&g, "t", "2:a=2 3:b=2 4:c=1 ");
    rig_done(&g);
}

static void deleted_keys_go_after_a_restart_too(void **state)
{
    (void)state;
    struct rig g = { 0 };
    char path[512];

    rig_start(&g, fast);
    rig_create_topic(&g, "t", 1, compact_soon);
    produce(&g, "t", "a=1 b=1");
    produce(&g, "t", "b");
    wait_log_or(&g, "t", "0:a=1 2:b ", "0:a=1 ");
    assert_true(rig_stop(&g));
    snprintf(path, sizeof path, "%s/data0/" CLEAN_HORIZONS_FILE, g.dir);
    assert_int_equal(unlink(path), 0); /* when they may go is then found out by a pass */
    rig_start_in(&g, NULL, 1, fast);
    wait_log(&g, "t", "0:a=1 ");
    rig_done(&g);
}

/* At a byte a second no pass ends; but it lets go of the log. */
static void a_pass_is_no_obstacle_to_deletion_and_stop(void **state)
{
    (void)state;
    struct rig g = { 0 };
    static const char *const slow[] = { "log.cleaner.backoff.ms", "1", "log.cleaner.io.max.bytes.per.second",
                                        "1", NULL };
    static const char *const entries[] = { "cleanup.policy", "compact", "segment.bytes", "150000", NULL };
    char text[256], value[200];

    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    rig_start(&g, slow);
    for (int t = 0; t < 2; t++) {
        rig_create_topic(&g, t == 0 ? "one" : "two", 1, entries);
        for (int i = 0; i < 700; i++) {
            snprintf(text, sizeof text, "k%d=%s", i % 10, value);
            produce(&g, t == 0 ? "one" : "two", text);
        }
    }
    rig_delete_topic(&g, "one"); /* waits until nobody has it any more */
    rig_delete_topic(&g, "two");
    rig_done(&g);
}

static void a_topic_of_the_same_name_is_another_log(void **state)
{
    (void)state;
    struct rig g = { 0 };

    rig_start(&g, fast);
    for (int i = 0; i < 2; i++) {
        rig_create_topic(&g, "t", 1, compact);
        produce(&g, "t", "a=1 b=1 a=2");
        wait_log(&g, "t", "1:b=1 2:a=2 ");
        rig_delete_topic(&g, "t");
    }
    rig_done(&g);
}

static void without_the_cleaner_nothing_goes(void **state)
{
    (void)state;
    struct rig g = { 0 };
    static const char *const off[] = { "log.cleaner.enable", "false", "log.cleaner.backoff.ms", "1", NULL };

    rig_start(&g, off);
    assert_null(g.b.cleaner);
    rig_create_topic(&g, "t", 1, compact);
    produce(&g, "t", "a=1 a=2");
    assert_true(log_is(&g, "t", "0:a=1 1:a=2 "));
    rig_done(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dirtiest_log_comes_first),
        cmocka_unit_test(tombstones_are_a_reason_once_their_time_has_come),
        cmocka_unit_test(checkpoints_are_kafka_s_text),
        cmocka_unit_test(a_quiet_topic_gets_clean_and_it_is_remembered),
        cmocka_unit_test(deleted_keys_go_after_a_restart_too),
        cmocka_unit_test(a_pass_is_no_obstacle_to_deletion_and_stop),
        cmocka_unit_test(a_topic_of_the_same_name_is_another_log),
        cmocka_unit_test(without_the_cleaner_nothing_goes),
    };
    return RUN(tests);
}
