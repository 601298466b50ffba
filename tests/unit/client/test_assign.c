/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets which partition, as Kafka's assignors have it, and the bytes in which it is told. */
#include "unit.h"

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/client/assign.h"

enum { MEMBERS_MAX = 4, TOPICS_MAX = 3 };

struct rig {
    struct arena a;
    struct assign_member members[MEMBERS_MAX];
    struct kstr subscriptions[MEMBERS_MAX][TOPICS_MAX];
    size_t n_members;
    struct assign_topic topics[TOPICS_MAX];
    size_t n_topics;
};

static int setup(void **state)
{
    struct rig *r = calloc(1, sizeof *r);
    arena_init(&r->a);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    arena_done(&r->a);
    free(r);
    return 0;
}

static void topic(struct rig *r, const char *name, int32_t n)
{
    r->topics[r->n_topics++] = (struct assign_topic){ kstr_of(name), n };
}

/* topics: up to three, by their first letters */
static void member(struct rig *r, const char *id, const char *instance_id, const char *topics)
{
    static const char *const names[] = { "a", "b", "c" };
    struct assign_member *m = &r->members[r->n_members];
    *m = (struct assign_member){ .id = kstr_of(id), .instance_id = kstr_of(instance_id) };
    m->topics = r->subscriptions[r->n_members];
    for (size_t i = 0; i < strlen(topics); i++)
        r->subscriptions[r->n_members][i] = kstr_of(names[topics[i] - 'a']);
    m->n_topics = (int32_t)strlen(topics);
    r->n_members++;
}

static const char *got(struct rig *r, size_t i)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    for (size_t k = 0; k < r->members[i].n_parts; k++)
        bytebuf_printf(&b, "%s%.*s%d", k > 0 ? " " : "", KSTR_FMT(r->members[i].parts[k].topic),
                       r->members[i].parts[k].partition);
    return arena_strdup(&r->a, bytebuf_cstr(&b));
}

static void run(struct rig *r, enum assignor as)
{
    assign(as, &r->a, r->members, r->n_members, r->topics, r->n_topics);
}

/* ---- range ---- */
static void range_gives_runs_and_the_rest_to_the_first(void **state)
{
    struct rig *r = *state;
    topic(r, "a", 5);
    member(r, "m2", NULL, "a");
    member(r, "m1", NULL, "a");
    run(r, ASSIGN_RANGE);
    assert_string_equal(got(r, 0), "a3 a4");
    assert_string_equal(got(r, 1), "a0 a1 a2");
}

static void range_goes_topic_by_topic(void **state)
{
    struct rig *r = *state;
    topic(r, "b", 3);
    topic(r, "a", 3);
    member(r, "m1", NULL, "ab");
    member(r, "m2", NULL, "ba");
    run(r, ASSIGN_RANGE);
    assert_string_equal(got(r, 0), "a0 a1 b0 b1");
    assert_string_equal(got(r, 1), "a2 b2");
}

static void range_leaves_out_who_does_not_subscribe(void **state)
{
    struct rig *r = *state;
    topic(r, "a", 2);
    topic(r, "b", 2);
    topic(r, "c", 2);
    member(r, "m1", NULL, "a");
    member(r, "m2", NULL, "ab");
    member(r, "m3", NULL, "");
    run(r, ASSIGN_RANGE);
    assert_string_equal(got(r, 0), "a0");
    assert_string_equal(got(r, 1), "a1 b0 b1");
    assert_string_equal(got(r, 2), "");
}

static void range_with_more_members_than_partitions(void **state)
{
    struct rig *r = *state;
    topic(r, "a", 1);
    member(r, "m1", NULL, "a");
    member(r, "m2", NULL, "a");
    run(r, ASSIGN_RANGE);
    assert_string_equal(got(r, 0), "a0");
    assert_string_equal(got(r, 1), "");
}

/* ---- round robin ---- */
static void round_robin_takes_turns_over_all_topics(void **state)
{
    struct rig *r = *state;
    topic(r, "a", 3);
    topic(r, "b", 3);
    member(r, "m1", NULL, "ab");
    member(r, "m2", NULL, "ab");
    run(r, ASSIGN_ROUNDROBIN);
    assert_string_equal(got(r, 0), "a0 a2 b1");
    assert_string_equal(got(r, 1), "a1 b0 b2");
    run(r, ASSIGN_ROUNDROBIN_KAFKAJS);
    assert_string_equal(got(r, 0), "a0 a2 b1");
}

/* The example in the documentation of Kafka's RoundRobinAssignor. */
static void round_robin_passes_over_who_does_not_subscribe(void **state)
{
    struct rig *r = *state;
    topic(r, "a", 1);
    topic(r, "b", 2);
    topic(r, "c", 3);
    member(r, "C0", NULL, "a");
    member(r, "C1", NULL, "ab");
    member(r, "C2", NULL, "abc");
    run(r, ASSIGN_ROUNDROBIN);
    assert_string_equal(got(r, 0), "a0");
    assert_string_equal(got(r, 1), "b0");
    assert_string_equal(got(r, 2), "b1 c0 c1 c2");
}

/* ---- both ---- */
static void static_members_come_first_by_their_instance(void **state)
{
    struct rig *r = *state;
    topic(r, "a", 3);
    member(r, "a-dynamic", NULL, "a");
    member(r, "z", "i2", "a");
    member(r, "y", "i1", "a");
    for (int as = 0; as < ASSIGNORS; as++) {
        run(r, (enum assignor)as);
        assert_string_equal(got(r, 0), "a2");
        assert_string_equal(got(r, 1), "a1");
        assert_string_equal(got(r, 2), "a0");
    }
}

static void topics_that_are_not_there_have_nothing_to_give(void **state)
{
    struct rig *r = *state;
    topic(r, "a", 0);
    member(r, "m1", NULL, "ab");
    for (int as = 0; as < ASSIGNORS; as++) {
        run(r, (enum assignor)as);
        assert_string_equal(got(r, 0), "");
    }
    r->n_members = 0;
    topic(r, "b", 2);
    run(r, ASSIGN_ROUNDROBIN);
}

static void names_are_those_of_other_clients(void **state)
{
    (void)state;
    assert_string_equal(assignor_name(ASSIGN_RANGE), "range");
    assert_int_equal(assignor_of(kstr_of("roundrobin")), ASSIGN_ROUNDROBIN);
    assert_int_equal(assignor_of(kstr_of("RoundRobinAssigner")), ASSIGN_ROUNDROBIN_KAFKAJS);
    assert_int_equal(assignor_of(kstr_of("cooperative-sticky")), -1);
    assert_int_equal(assignor_of(KSTR_NULL), -1);
}

/* ---- bytes ---- */
#define BYTES(s) kstr_bytes(s, sizeof(s) - 1)

static void a_subscription_is_read_and_written(void **state)
{
    struct rig *r = *state;
    static const char bytes[] = "\0\0\0\0\0\2\0\1a\0\2bc\xff\xff\xff\xff";
    struct kstr topics[] = { kstr_of("a"), kstr_of("bc") }, *ret;
    int32_t n;
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    assign_write_subscription(topics, 2, &b);
    assert_int_equal(b.n, sizeof bytes - 1);
    assert_memory_equal(b.p, bytes, b.n);
    assert_int_equal(assign_read_subscription(BYTES(bytes), &r->a, &ret, &n), 0);
    assert_int_equal(n, 2);
    assert_true(kstr_eqz(ret[1], "bc"));
    /* version 9 with who knows what behind */
    assert_int_equal(assign_read_subscription(BYTES("\0\x09\0\0\0\1\0\1a???"), &r->a, &ret, &n), 0);
    assert_int_equal(n, 1);
}

static void an_assignment_is_read_and_written(void **state)
{
    struct rig *r = *state;
    static const char bytes[] =
        "\0\0\0\0\0\2\0\1a\0\0\0\2\0\0\0\1\0\0\0\3\0\2bc\0\0\0\1\0\0\0\0\xff\xff\xff\xff";
    struct assign_part parts[] = { { kstr_of("a"), 1 }, { kstr_of("a"), 3 }, { kstr_of("bc"), 0 } }, *ret;
    size_t n;
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    assign_write_parts(parts, 3, &b);
    assert_int_equal(b.n, sizeof bytes - 1);
    assert_memory_equal(b.p, bytes, b.n);
    assert_int_equal(assign_read_parts(BYTES(bytes), &r->a, &ret, &n), 0);
    assert_int_equal(n, 3);
    assert_true(kstr_eqz(ret[1].topic, "a"));
    assert_int_equal(ret[1].partition, 3);
    assert_true(kstr_eqz(ret[2].topic, "bc"));

    bytebuf_done(&b);
    assign_write_parts(NULL, 0, &b);
    assert_memory_equal(b.p, "\0\0\0\0\0\0\xff\xff\xff\xff", 10);
}

static void cut_and_absurd_bytes_are_refused(void **state)
{
    struct rig *r = *state;
    static const char subscription[] = "\0\0\0\0\0\2\0\1a\0\2bc";
    static const char assignment[] = "\0\0\0\0\0\1\0\1a\0\0\0\2\0\0\0\1\0\0\0\3";
    struct kstr *topics;
    struct assign_part *parts;
    int32_t n;
    size_t n_parts;
    for (size_t i = 0; i < sizeof subscription - 1; i++)
        assert_int_equal(assign_read_subscription(kstr_bytes(subscription, i), &r->a, &topics, &n), -EBADMSG);
    for (size_t i = 0; i < sizeof assignment - 1; i++)
        assert_int_equal(assign_read_parts(kstr_bytes(assignment, i), &r->a, &parts, &n_parts), -EBADMSG);
    assert_int_equal(assign_read_subscription(KSTR_NULL, &r->a, &topics, &n), -EBADMSG);
    assert_int_equal(assign_read_subscription(BYTES("\0\0\x7f\xff\xff\xff\0\1a"), &r->a, &topics, &n),
                     -EBADMSG);
    assert_int_equal(assign_read_subscription(BYTES("\0\0\xff\xff\xff\xff"), &r->a, &topics, &n), -EBADMSG);
    assert_int_equal(assign_read_subscription(BYTES("\xff\xff\0\0\0\0"), &r->a, &topics, &n), -EBADMSG);
    assert_int_equal(
        assign_read_parts(BYTES("\0\0\0\0\0\1\0\1a\x7f\xff\xff\xff\0\0\0\1"), &r->a, &parts, &n_parts),
        -EBADMSG);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(range_gives_runs_and_the_rest_to_the_first),
        T(range_goes_topic_by_topic),
        T(range_leaves_out_who_does_not_subscribe),
        T(range_with_more_members_than_partitions),
        T(round_robin_takes_turns_over_all_topics),
        T(round_robin_passes_over_who_does_not_subscribe),
        T(static_members_come_first_by_their_instance),
        T(topics_that_are_not_there_have_nothing_to_give),
        T(names_are_those_of_other_clients),
        T(a_subscription_is_read_and_written),
        T(an_assignment_is_read_and_written),
        T(cut_and_absurd_bytes_are_refused),
    };
    return RUN(tests);
}
