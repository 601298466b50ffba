/* SPDX-License-Identifier: Apache-2.0 */
/* Committed offsets: which record counts, and how long they live. */
#include "unit.h"

#include "daemon/group/committed.h"
#include "lib/base/attr.h"
#include "tests/unit/daemon/group/fake_group.h"

enum { MINUTE = 60000, RETENTION = 10 * MINUTE };

static void put(struct committed *c, const char *topic, int32_t partition, int64_t offset, int64_t record)
{
    struct committed_offset o = { .topic = (char *)topic,
                                  .partition = partition,
                                  .offset = offset,
                                  .leader_epoch = 7,
                                  .metadata = (char *)"a\0b",
                                  .metadata_bytes = 3,
                                  .expire_ms = -1,
                                  .record_offset = record };
    committed_put(c, &o);
}

static int64_t offset_of(const struct committed *c, const char *topic, int32_t partition)
{
    const struct committed_offset *o = committed_find(c, topic, partition);

    return o != NULL ? o->offset : -1;
}

static void what_is_put_is_found_with_all_its_bytes(void **state)
{
    (void)state;
    struct committed c = { 0 };

    put(&c, "t", 0, 100, 1);
    put(&c, "t", 10, 200, 2);
    put(&c, "t/1", 0, 300, 3);
    assert_int_equal(offset_of(&c, "t", 0), 100);
    assert_int_equal(offset_of(&c, "t", 10), 200);
    assert_int_equal(offset_of(&c, "t", 1), -1);
    const struct committed_offset *o = committed_find(&c, "t", 0);
    assert_int_equal(o->leader_epoch, 7);
    assert_int_equal(o->metadata_bytes, 3);
    assert_memory_equal(o->metadata, "a\0b", 3);
    committed_done(&c);
    assert_true(committed_is_empty(&c));
}

static void the_later_record_counts_whatever_comes_first(void **state)
{
    (void)state;
    struct committed c = { 0 };

    put(&c, "t", 0, 50, 9);
    put(&c, "t", 0, 40, 8);
    assert_int_equal(offset_of(&c, "t", 0), 50);
    put(&c, "t", 0, 30, 10); /* back is allowed: somebody reset it */
    assert_int_equal(offset_of(&c, "t", 0), 30);
    committed_remove(&c, "t", 0, 9);
    assert_int_equal(offset_of(&c, "t", 0), 30);
    committed_remove(&c, "t", 0, 11);
    assert_int_equal(offset_of(&c, "t", 0), -1);
    committed_remove(&c, "t", 0, 12);
    committed_done(&c);
}

/* ---- how long they live ---- */

static bool expired(struct fake *f, int64_t commit_ms, int64_t expire_ms, int64_t now_ms)
{
    struct committed_offset o = { .topic = (char *)"t", .commit_ms = commit_ms, .expire_ms = expire_ms };
    struct group_topics subscribed;

    group_topics_init(&subscribed, f->g);
    bool is = committed_expired(f->g, &subscribed, &o, RETENTION, now_ms);
    group_topics_done(&subscribed);
    return is;
}

static void a_simple_consumers_live_from_the_commit(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);

    f->g->state_since_ms = 0;
    assert_false(expired(f, 1000, -1, 1000 + RETENTION - 1));
    assert_true(expired(f, 1000, -1, 1000 + RETENTION));
    f->g->state_since_ms = 1000 + RETENTION; /* only loaded then: no reason to live longer */
    assert_true(expired(f, 1000, -1, 1000 + RETENTION));
    fake_free(f);
}

static void an_empty_groups_live_from_the_moment_it_became_empty(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);
    struct ticket *t = fake_join(f, (struct fake_join){ 0 });

    fake_leave(f, t->member_id);
    assert_state(f, GROUP_EMPTY);
    f->g->state_since_ms = 5000;
    assert_false(expired(f, 1000, -1, 5000 + RETENTION - 1));
    assert_true(expired(f, 1000, -1, 5000 + RETENTION));
    assert_false(expired(f, 6000, -1, 5000 + RETENTION)); /* a tool set it later */
    assert_true(expired(f, 6000, -1, 6000 + RETENTION));
    fake_free(f);
}

static void a_commit_with_its_own_retention_is_judged_by_that(void **state)
{
    (void)state;
    struct fake *f = fake_new(0);

    assert_false(expired(f, 1000, 2000, 1999));
    assert_true(expired(f, 1000, 2000, 2000));
    assert_false(expired(f, 1000, 1000 + 2 * RETENTION, 1000 + RETENTION));
    fake_free(f);
}

/* A group of one, in the state, that subscribes so. */
static struct fake *subscriber(const char *type, const void *subscription, size_t n)
{
    struct fake *f = fake_new(0);
    struct ticket *t = fake_join(f, (struct fake_join){ .type = type });
    struct group_protocol *p = &f->g->members->protocols[0];

    free(p->metadata);
    p->metadata = malloc(n + 1);
    memcpy(p->metadata, subscription, n);
    p->metadata_bytes = (int32_t)n;
    fake_sync(f, t->member_id, 1, NULL);
    fake_written(f, KERR_NONE);
    assert_state(f, GROUP_STABLE);
    return f;
}

static const char to_t[] = "\0\1"
                           "\0\0\0\1"
                           "\0\1t"
                           "\xff\xff\xff\xff"
                           "\0\0\0\0",
                  to_u_and_v[] = "\0\7"
                                 "\0\0\0\2"
                                 "\0\1u\0\1v"
                                 "whatever a later version adds";

static void a_working_groups_live_where_it_subscribes(void **state)
{
    (void)state;
    struct fake *f = subscriber("consumer", to_t, sizeof to_t - 1);

    assert_false(expired(f, 1000, -1, 1000 + 100 * RETENTION));
    assert_false(expired(f, 1000, 2000, 1000 + 100 * RETENTION));
    fake_free(f);

    f = subscriber("consumer", to_u_and_v, sizeof to_u_and_v - 1);
    assert_false(expired(f, 1000, -1, 1000 + RETENTION - 1));
    assert_true(expired(f, 1000, -1, 1000 + RETENTION));
    struct ticket *second = fake_join(f, (struct fake_join){ 0 }); /* while it rebalances nothing goes */
    assert_waits(second);
    assert_false(expired(f, 1000, -1, 1000 + 100 * RETENTION));
    fake_free(f);
}

static void what_is_not_understood_counts_as_subscribed(void **state)
{
    (void)state;
    static const struct {
        const char *type, *bytes;
        size_t n;
    } rows[] = {
        { "connect", to_u_and_v, sizeof to_u_and_v - 1 },
        { "consumer", "", 0 },
        { "consumer", "\0\0\0\0", 4 },
        { "consumer", "\xff\xff\0\0\0\1\0\1u", 9 },
        { "consumer", "\0\0\xff\xff\xff\xff", 6 },
        { "consumer", "\0\0\0\0\0\2\0\1u", 9 },
        { "consumer", "\0\0\x7f\xff\xff\xff\0\1u", 9 },
        { "consumer", "\0\0\0\0\0\1\0\2u", 9 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake *f = subscriber(rows[i].type, rows[i].bytes, rows[i].n);
        assert_false(expired(f, 1000, -1, 1000 + 100 * RETENTION));
        fake_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_found_with_all_its_bytes),
        cmocka_unit_test(the_later_record_counts_whatever_comes_first),
        cmocka_unit_test(a_simple_consumers_live_from_the_commit),
        cmocka_unit_test(an_empty_groups_live_from_the_moment_it_became_empty),
        cmocka_unit_test(a_commit_with_its_own_retention_is_judged_by_that),
        cmocka_unit_test(a_working_groups_live_where_it_subscribes),
        cmocka_unit_test(what_is_not_understood_counts_as_subscribed),
    };
    return RUN(tests);
}
