/* SPDX-License-Identifier: Apache-2.0 */
/* Groups and offsets as records: the bytes that other readers of __consumer_offsets expect, and back. */
#include "unit.h"

#include "daemon/group/group_log.h"
#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "tests/unit/daemon/group/fake_group.h"

/* What was built, read again record by record. */
struct tape {
    struct batch_builder b;
    struct bytebuf batch;
    struct record_iter it;
    struct arena arena;
};

static void tape_init(struct tape *t)
{
    memset(t, 0, sizeof *t);
    batch_builder_init(&t->b);
    record_iter_init(&t->it);
    arena_init(&t->arena);
}

static void tape_done(struct tape *t)
{
    batch_builder_done(&t->b);
    bytebuf_done(&t->batch);
    record_iter_done(&t->it);
    arena_done(&t->arena);
}

static void tape_rewind(struct tape *t)
{
    const struct batch_producer nobody = { .id = -1, .epoch = -1, .base_sequence = -1 };

    assert_int_equal(batch_builder_finish(&t->b, CODEC_NONE, 0, &nobody, 0, &t->batch), 0);
    assert_int_equal(record_iter_start(&t->it, slice_of(t->batch.p, t->batch.n), 1 << 20), 0);
}

static struct record tape_next(struct tape *t)
{
    struct record r;

    assert_int_equal(record_iter_next(&t->it, &r), 1);
    return r;
}

static struct group_log_record tape_read(struct tape *t)
{
    struct record r = tape_next(t);
    struct group_log_record rec;

    assert_null(group_log_read(&r, &t->arena, &rec));
    return rec;
}

#define assert_bytes(got, want)                               \
    do {                                                      \
        assert_int_equal((got).n, sizeof(want) - 1);          \
        assert_memory_equal((got).p, want, sizeof(want) - 1); \
    } while (0)

static const struct committed_offset an_offset = {
    .topic = (char *)"t",
    .partition = 5,
    .offset = 0x0102,
    .leader_epoch = 3,
    .metadata = (char *)"x\0y",
    .metadata_bytes = 3,
    .commit_ms = 0x1122334455,
    .expire_ms = -1,
};

static void an_offset_has_kafkas_bytes(void **state)
{
    (void)state;
    struct tape t;

    tape_init(&t);
    group_log_add_offset(&t.b, "grp", &an_offset, 1);
    tape_rewind(&t);
    struct record r = tape_next(&t);
    assert_bytes(r.key, "\0\1"
                        "\0\3grp"
                        "\0\1t"
                        "\0\0\0\5");
    assert_bytes(r.value, "\0\3"
                          "\0\0\0\0\0\0\1\2"
                          "\0\0\0\3"
                          "\0\3x\0y"
                          "\0\0\0\x11\x22\x33\x44\x55");
    tape_done(&t);
}

static void an_offset_with_a_retention_of_its_own_is_version_1(void **state)
{
    (void)state;
    struct tape t;
    struct committed_offset o = an_offset;

    o.expire_ms = 0x66;
    tape_init(&t);
    group_log_add_offset(&t.b, "grp", &o, 1);
    tape_rewind(&t);
    struct record r = tape_next(&t);
    assert_bytes(r.value, "\0\1"
                          "\0\0\0\0\0\0\1\2"
                          "\0\3x\0y"
                          "\0\0\0\x11\x22\x33\x44\x55"
                          "\0\0\0\0\0\0\0\x66");
    tape_done(&t);
}

static void an_offset_carries_its_topics_id_beside_version_3(void **state)
{
    (void)state;
    struct tape t;
    struct committed_offset o = an_offset;

    memcpy(o.topic_id.b, "0123456789abcdef", sizeof o.topic_id.b);
    tape_init(&t);
    group_log_add_offset(&t.b, "grp", &o, 1);
    group_log_add_offset(&t.b, "grp", &an_offset, 1);
    tape_rewind(&t);
    struct record r = tape_next(&t);
    struct slice headers = r.headers;
    struct kstr key, value;
    assert_int_equal(r.n_headers, 1);
    assert_int_equal(record_header_next(&headers, &key, &value), 1);
    assert_bytes(key, "topic.id");
    assert_bytes(value, "0123456789abcdef");
    assert_int_equal(r.value.p[1], 3);
    assert_int_equal(tape_next(&t).n_headers, 0);

    assert_int_equal(record_iter_start(&t.it, slice_of(t.batch.p, t.batch.n), 1 << 20), 0);
    struct group_log_record rec = tape_read(&t);
    assert_memory_equal(rec.offset.topic_id.b, "0123456789abcdef", 16);
    rec = tape_read(&t);
    assert_true(uuid_is_zero(&rec.offset.topic_id));
    tape_done(&t);
}

static void offsets_and_tombstones_come_back(void **state)
{
    (void)state;
    struct tape t;

    tape_init(&t);
    group_log_add_offset(&t.b, "grp", &an_offset, 1);
    group_log_add_offset_tombstone(&t.b, "grp", "t", 5, 1);
    group_log_add_group_tombstone(&t.b, "grp", 1);
    tape_rewind(&t);

    struct group_log_record rec = tape_read(&t);
    assert_int_equal(rec.kind, GROUP_LOG_OFFSET);
    assert_false(rec.tombstone);
    assert_string_equal(rec.group, "grp");
    assert_string_equal(rec.offset.topic, "t");
    assert_int_equal(rec.offset.partition, 5);
    assert_int_equal(rec.offset.offset, 0x0102);
    assert_int_equal(rec.offset.leader_epoch, 3);
    assert_int_equal(rec.offset.metadata_bytes, 3);
    assert_memory_equal(rec.offset.metadata, "x\0y", 3);
    assert_int_equal(rec.offset.commit_ms, 0x1122334455);
    assert_int_equal(rec.offset.expire_ms, -1);
    assert_int_equal(rec.offset.record_offset, 0);

    rec = tape_read(&t);
    assert_int_equal(rec.kind, GROUP_LOG_OFFSET);
    assert_true(rec.tombstone);
    assert_int_equal(rec.offset.partition, 5);
    assert_int_equal(rec.offset.record_offset, 1);
    rec = tape_read(&t);
    assert_int_equal(rec.kind, GROUP_LOG_GROUP);
    assert_true(rec.tombstone);
    tape_done(&t);
}

static void older_and_newer_forms_of_an_offset_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        size_t n;
        int64_t expire;
        int32_t epoch;
    } rows[] = {
#define V(s) s, sizeof(s) - 1
        { V("\0\0"
            "\0\0\0\0\0\0\0\7"
            "\0\0"
            "\0\0\0\0\0\0\0\1"),
          -1, -1 },
        { V("\0\1"
            "\0\0\0\0\0\0\0\7"
            "\0\0"
            "\0\0\0\0\0\0\0\1"
            "\0\0\0\0\0\0\0\2"),
          2, -1 },
        { V("\0\2"
            "\0\0\0\0\0\0\0\7"
            "\0\0"
            "\0\0\0\0\0\0\0\1"),
          -1, -1 },
        { V("\0\4"
            "\0\0\0\0\0\0\0\7"
            "\0\0\0\x9"
            "\1"
            "\0\0\0\0\0\0\0\1"
            "\0"),
          -1, 9 },
#undef V
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena a;
        struct group_log_record rec;
        struct record r = { .key = kstr_bytes("\0\0"
                                              "\0\1g"
                                              "\0\1t"
                                              "\0\0\0\0",
                                              12),
                            .value = kstr_bytes(rows[i].value, rows[i].n) };
        arena_init(&a);
        assert_null(group_log_read(&r, &a, &rec));
        assert_int_equal(rec.offset.offset, 7);
        assert_int_equal(rec.offset.expire_ms, rows[i].expire);
        assert_int_equal(rec.offset.leader_epoch, rows[i].epoch);
        arena_done(&a);
    }
}

/* Offset keys are 0 1, group, topic, partition; group keys 0 2, group; their values begin with a version, too. */
#define BYTES(s)     s, sizeof(s) - 1
#define OFFSET_VALUE "\0\0" "\0\0\0\0\0\0\0\1" "\0\0" "\0\0\0\0\0\0\0\1"
static const struct odd_record {
    const char *why;
    bool refused;
    const char *key;
    size_t n_key;
    const char *value;
    size_t n_value;
} odd_records[] = {
    { "a later kind of key", false, BYTES("\0\3" "a later kind"), BYTES("?") },
    { "half a version", true, BYTES("\0"), BYTES("?") },
    { "no key", true, BYTES(""), BYTES("?") },
    { "a negative version", true, BYTES("\xff\xff" "x"), BYTES("?") },
    { "a key that is cut", true, BYTES("\0\1" "\0\1g" "\0\1t" "\0\0\0"), BYTES("\0\0") },
    { "a value of a later version", true, BYTES("\0\1" "\0\1g" "\0\1t" "\0\0\0\0"), BYTES("\0\x63" "later value") },
    { "a value that is cut", true, BYTES("\0\1" "\0\1g" "\0\1t" "\0\0\0\0"), BYTES("\0\3" "short") },
    { "a group's value that is cut", true, BYTES("\0\2" "\0\1g"), BYTES("\0\3" "\0") },
    { "a group's key with more behind it", true, BYTES("\0\2" "\0\1g" "more"), BYTES("\0\3" "\0") },
    { "a group whose name has a NUL", true, BYTES("\0\2" "\0\2g\0"), BYTES("\0\3" "\0") },
    { "a topic whose name has one", true, BYTES("\0\1" "\0\1g" "\0\2t\0" "\0\0\0\0"), BYTES(OFFSET_VALUE) },
    { "partition -1", true, BYTES("\0\1" "\0\1g" "\0\1t" "\xff\xff\xff\xff"), BYTES(OFFSET_VALUE) },
};

static void what_is_not_ours_is_skipped_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(odd_records); i++) {
        const struct odd_record *o = &odd_records[i];
        struct record r = { .key = kstr_bytes(o->key, o->n_key), .value = kstr_bytes(o->value, o->n_value) };
        struct group_log_record rec;
        struct arena a;
        arena_init(&a);
        bool refused = group_log_read(&r, &a, &rec) != NULL;
        if (refused != o->refused || (!refused && rec.kind != GROUP_LOG_OTHER))
            fail_msg("%s", o->why);
        arena_done(&a);
    }
}

static void a_group_has_kafkas_bytes(void **state)
{
    (void)state;
    struct tape t;
    struct fake *f = fake_new(0);
    struct ticket *j = fake_join(
        f,
        (struct fake_join){
            .instance = "i", .client = "cl", .metadata = "sub", .session_ms = 10000, .rebalance_ms = 20000 });

    fake_sync_as(f, j->member_id, "i", 1, NULL, NULL, "i-0=as");
    fake_written(f, KERR_NONE);
    f->g->state_since_ms = 0x77;
    tape_init(&t);
    group_log_add_group(&t.b, f->g, 1);
    tape_rewind(&t);
    struct record r = tape_next(&t);
    assert_bytes(r.key, "\0\2"
                        "\0\1g");
    assert_bytes(r.value, "\0\3"
                          "\0\x08"
                          "consumer"
                          "\0\0\0\1"
                          "\0\5range"
                          "\0\3i-0"
                          "\0\0\0\0\0\0\0\x77"
                          "\0\0\0\1"
                          "\0\3i-0"
                          "\0\1i"
                          "\0\2cl"
                          "\0\x0a/127.0.0.1"
                          "\0\0\x4e\x20"
                          "\0\0\x27\x10"
                          "\0\0\0\3sub"
                          "\0\0\0\2as");
    tape_done(&t);
    fake_free(f);
}

/* Writes f's group, reads it into a fresh one, returns that. */
static struct fake *through_the_log(struct fake *f)
{
    struct tape t;
    struct fake *copy = fake_new(0);

    tape_init(&t);
    group_log_add_group(&t.b, f->g, 1);
    tape_rewind(&t);
    struct group_log_record rec = tape_read(&t);
    assert_int_equal(rec.kind, GROUP_LOG_GROUP);
    assert_string_equal(rec.group, "g");
    assert_null(group_log_restore(copy->g, rec.value, &t.arena, copy->now_ms));
    tape_done(&t);
    fake_check(copy);
    return copy;
}

static void a_stable_group_goes_on_after_a_restart(void **state)
{
    (void)state;
    char ids[3][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 3, ids), *copy = through_the_log(f);

    assert_state(copy, GROUP_STABLE);
    assert_int_equal(copy->g->generation, 1);
    assert_string_equal(copy->g->leader, ids[0]);
    assert_string_equal(copy->g->protocol_type, "consumer");
    assert_int_equal(copy->g->state_since_ms, f->g->state_since_ms);
    for (int i = 0; i < 3; i++) {
        char want[16];
        snprintf(want, sizeof want, "a%d", i);
        assert_err(fake_heartbeat(copy, ids[i], 1), KERR_NONE);
        assert_string_equal(fake_sync(copy, ids[i], 1, NULL)->assignment, want);
        assert_answer(fake_join(copy, (struct fake_join){ .id = ids[2] }), KERR_NONE);
    }
    fake_sleep(copy, 10000); /* who does not come back is expelled */
    assert_state(copy, GROUP_EMPTY);
    fake_free(copy);
    fake_free(f);
}

static void an_empty_group_keeps_its_generation_and_since_when(void **state)
{
    (void)state;
    char ids[1][FAKE_ID_MAX];
    struct fake *f = fake_in_state(GROUP_STABLE, 1, ids);

    fake_leave(f, ids[0]);
    struct fake *copy = through_the_log(f);
    assert_state(copy, GROUP_EMPTY);
    assert_int_equal(copy->g->generation, 2);
    assert_string_equal(copy->g->protocol_type, "consumer");
    assert_int_equal(copy->g->state_since_ms, f->g->state_since_ms);
    struct ticket *t = fake_join(copy, (struct fake_join){ .type = "connect" });
    assert_answer(t, KERR_NONE);
    assert_int_equal(t->generation, 3);
    fake_free(copy);
    fake_free(f);
}

static void a_group_whose_leader_is_missing_gets_one(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);
    struct arena a;
    struct group_metadata_value_members members[2] = {
        { .member_id = kstr_of("x"),
          .group_instance_id = KSTR_NULL,
          .client_id = kstr_of("c"),
          .client_host = kstr_of("h"),
          .rebalance_timeout = -1,
          .session_timeout = 10000,
          .subscription = kstr_of("s"),
          .assignment = kstr_of("a") },
    };
    members[1] = members[0]; /* twice the same: once is enough */
    struct group_metadata_value v = { .protocol_type = kstr_of("consumer"),
                                      .generation = 4,
                                      .protocol = kstr_of("range"),
                                      .leader = KSTR_NULL,
                                      .n_members = 2,
                                      .members = members };

    arena_init(&a);
    assert_non_null(strstr(group_log_restore(f->g, &v, &a, f->now_ms), "one id"));
    arena_done(&a);
    assert_int_equal(group_n_members(f->g), 1);
    assert_string_equal(f->g->leader, "x");
    assert_int_equal(f->g->members->rebalance_timeout_ms, 10000);
    fake_free(f);
}

/* What other programs may have written: a group comes of it that can go on, and it is said what was left out. */
static void what_no_group_can_be_is_made_legal(void **state)
{
    (void)state;
#define MEMBER(id, instance)                                                                                       \
    { .member_id = id, .group_instance_id = instance, .client_id = kstr_of(""), .client_host = kstr_of(""),        \
      .session_timeout = 10000, .rebalance_timeout = 10000, .subscription = kstr_of("s"), .assignment = kstr_of("a") }
    const struct group_metadata_value_members good = MEMBER(kstr_of("x"), kstr_of("s"));
    const struct {
        const char *why; /* NULL: nothing was left out */
        struct kstr protocol, leader;
        int32_t generation, want_generation, want_members;
        struct group_metadata_value_members second;
    } rows[] = {
        { "instance id", kstr_of("range"), kstr_of("x"), 1, 1, 1, MEMBER(kstr_of("y"), kstr_of("s")) },
        { "one id", kstr_of("range"), kstr_of("x"), 1, 1, 1, MEMBER(kstr_of("x"), KSTR_NULL) },
        { "no id", kstr_of("range"), kstr_of(""), 1, 1, 1, MEMBER(kstr_of(""), KSTR_NULL) },
        { "no id", kstr_of("range"), kstr_of("x"), 1, 1, 1, MEMBER(kstr_bytes("x\0y", 3), KSTR_NULL) },
        { "NUL", kstr_of("range"), kstr_of("x"), 1, 1, 1, MEMBER(kstr_of("y"), kstr_bytes("s\0", 2)) },
        { "generation", kstr_of("range"), kstr_of("x"), -7, 0, 2, MEMBER(kstr_of("y"), KSTR_NULL) },
        { "generation", kstr_of("range"), kstr_of("x"), INT32_MAX, 1 << 30, 2, MEMBER(kstr_of("y"), KSTR_NULL) },
        { NULL, KSTR_NULL, KSTR_NULL, 1, 1, 2, MEMBER(kstr_of("y"), KSTR_NULL) },
        { NULL, kstr_of(""), kstr_of("nobody"), 1, 1, 2, MEMBER(kstr_of("y"), kstr_of("")) },
    };
#undef MEMBER
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake *f = fake_new(0);
        struct arena a;
        struct group_metadata_value_members members[2] = { good, rows[i].second };
        struct group_metadata_value v = { .protocol_type = kstr_of("consumer"),
                                          .generation = rows[i].generation,
                                          .protocol = rows[i].protocol,
                                          .leader = rows[i].leader,
                                          .current_state_timestamp = INT64_MIN,
                                          .n_members = 2,
                                          .members = members };

        arena_init(&a);
        const char *why = group_log_restore(f->g, &v, &a, f->now_ms);
        arena_done(&a);
        assert_int_equal(why != NULL, rows[i].why != NULL);
        if (why != NULL)
            assert_non_null(strstr(why, rows[i].why));
        fake_check(f);
        assert_state(f, GROUP_STABLE);
        assert_int_equal(group_n_members(f->g), rows[i].want_members);
        assert_int_equal(f->g->generation, rows[i].want_generation);
        struct ticket *t = fake_join(f, (struct fake_join){ .instance = "s", .protocols = "range" });
        fake_written(f, KERR_NONE);
        fake_sleep(f, 20000);
        assert_int_equal(t->answers, 1);
        assert_state(f, GROUP_EMPTY);
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offset_has_kafkas_bytes),
        cmocka_unit_test(an_offset_with_a_retention_of_its_own_is_version_1),
        cmocka_unit_test(an_offset_carries_its_topics_id_beside_version_3),
        cmocka_unit_test(offsets_and_tombstones_come_back),
        cmocka_unit_test(older_and_newer_forms_of_an_offset_are_read),
        cmocka_unit_test(what_is_not_ours_is_skipped_or_refused),
        cmocka_unit_test(a_group_has_kafkas_bytes),
        cmocka_unit_test(a_stable_group_goes_on_after_a_restart),
        cmocka_unit_test(an_empty_group_keeps_its_generation_and_since_when),
        cmocka_unit_test(a_group_whose_leader_is_missing_gets_one),
        cmocka_unit_test(what_no_group_can_be_is_made_legal),
    };
    return RUN(tests);
}
