/* SPDX-License-Identifier: Apache-2.0 */
/* KlogStat for many partitions: the question and the answer. */
#include "unit.h"

#include "fuse/partition/stat_call.h"

static char orders_name[] = "orders", users_name[] = "users";
static struct topic orders = { .name = orders_name }, users = { .name = users_name };
static struct pfile o0 = { .key = { &orders, 0 }, .watched_end = 7 };
static struct pfile o2 = { .key = { &orders, 2 }, .watched_end = -1 };
static struct pfile u1 = { .key = { &users, 1 }, .watched_end = 9 };

static void partitions_are_grouped_by_topic(void **state)
{
    (void)state;
    struct pfile *files[] = { &u1, &o2, &o0 };
    struct klog_stat_request q;
    struct arena a;
    arena_init(&a);
    stat_build(&a, files, 3, 500, true, &q);
    assert_int_equal(q.max_wait_ms, 500);
    assert_int_equal(q.n_topics, 2);
    assert_true(kstr_eqz(q.topics[0].name, "orders"));
    assert_int_equal(q.topics[0].n_partitions, 2);
    assert_int_equal(q.topics[0].partitions[0].index, 0);
    assert_int_equal(q.topics[0].partitions[0].known_end_offset, 7);
    assert_int_equal(q.topics[0].partitions[1].index, 2);
    assert_int_equal(q.topics[0].partitions[1].known_end_offset, -1);
    assert_true(kstr_eqz(q.topics[1].name, "users"));
    assert_int_equal(q.topics[1].partitions[0].known_end_offset, 9);
    stat_build(&a, files, 3, 0, false, &q);
    assert_int_equal(q.topics[1].partitions[0].known_end_offset, -1);
    arena_done(&a);
}

struct seen {
    int n;
    struct pfile *file;
    enum kerr err;
    struct ends ends;
};

static void see(void *arg, struct pfile *file, enum kerr err, const struct ends *e)
{
    struct seen *s = arg;
    s->n++;
    s->file = file;
    s->err = err;
    s->ends = *e;
}

static struct seen answer(struct klog_stat_response_partitions p)
{
    struct pfile *files[] = { &o0, &o2, &u1 };
    struct klog_stat_response_topics t = { .name = kstr_of("orders"), .partitions = &p, .n_partitions = 1 };
    struct klog_stat_response r = { .topics = &t, .n_topics = 1 };
    struct seen s = { 0 };
    stat_each(&r, files, 3, see, &s);
    return s;
}

static void an_answer_finds_its_partition(void **state)
{
    (void)state;
    struct seen s = answer((struct klog_stat_response_partitions){ .index = 2,
                                                                   .start_offset = 1,
                                                                   .end_offset = 5,
                                                                   .start_text = 10,
                                                                   .end_text = 50,
                                                                   .newest_timestamp = 99 });
    assert_int_equal(s.n, 1);
    assert_ptr_equal(s.file, &o2);
    assert_int_equal(s.err, KERR_NONE);
    assert_int_equal(s.ends.end_text, 50);
    assert_int_equal(s.ends.newest_ms, 99);
    assert_int_equal(answer((struct klog_stat_response_partitions){ .index = 1 }).n, 0);
}

static void ends_that_no_log_can_have_are_an_error(void **state)
{
    (void)state;
    assert_int_equal(answer((struct klog_stat_response_partitions){ .start_offset = 5, .end_offset = 4 }).err,
                     KERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(answer((struct klog_stat_response_partitions){ .start_text = 5, .end_text = 4 }).err,
                     KERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(answer((struct klog_stat_response_partitions){ .end_text = INT64_MAX }).err,
                     KERR_UNKNOWN_SERVER_ERROR);
    assert_int_equal(
        answer((struct klog_stat_response_partitions){ .error_code = KERR_NOT_LEADER_OR_FOLLOWER }).err,
        KERR_NOT_LEADER_OR_FOLLOWER);
}

/* A topic deleted and made anew under its name: each is asked for by its id, and gets its own answer. */
static void topics_of_one_name_go_by_id(void **state)
{
    (void)state;
    struct topic old = { .name = orders_name, .id = { { 1 } } }, anew = { .name = orders_name, .id = { { 2 } } };
    struct pfile f_old = { .key = { &old, 0 } }, f_anew = { .key = { &anew, 0 } };
    struct pfile *files[] = { &f_anew, &f_old };
    struct klog_stat_request q;
    struct arena a;
    arena_init(&a);
    stat_build(&a, files, 2, 0, false, &q);
    assert_int_equal(q.n_topics, 2);
    assert_true(uuid_eq(&q.topics[0].topic_id, &old.id));
    assert_true(uuid_eq(&q.topics[1].topic_id, &anew.id));
    struct klog_stat_response_partitions p = { .end_offset = 3 };
    struct klog_stat_response_topics t = {
        .name = kstr_of("orders"), .topic_id = anew.id, .partitions = &p, .n_partitions = 1
    };
    struct klog_stat_response r = { .topics = &t, .n_topics = 1 };
    struct seen s = { 0 };
    stat_each(&r, files, 2, see, &s);
    assert_int_equal(s.n, 1);
    assert_ptr_equal(s.file, &f_anew);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions_are_grouped_by_topic),
        cmocka_unit_test(topics_of_one_name_go_by_id),
        cmocka_unit_test(an_answer_finds_its_partition),
        cmocka_unit_test(ends_that_no_log_can_have_are_an_error),
    };
    return RUN(tests);
}
