/* SPDX-License-Identifier: Apache-2.0 */
/* Committed offsets and ends of partitions, asked of make-believe brokers. */
#include "unit.h"
#include "world.h"

#include "lib/base/attr.h"
#include "lib/client/positions.h"
#include "tests/lib/fakebroker.h"

struct fixture {
    struct loop *lp;
    struct fake_cluster fc;
    struct client *c;
    int told, rc;
    enum kerr err;
    int64_t offset;
    size_t n;
    struct position got[8];
    char topics[8][32], metadata[8][32];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    char brokers[128];
    f->lp = loop_new(test_world());
    fake_cluster_init(&f->fc, f->lp, 2);
    fake_topic_add(&f->fc, "t", 2, 1)->logs[1].start = 40;
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
    client_free(f->c);
    fake_cluster_done(&f->fc);
    loop_run_once(f->lp, 0);
    loop_free(f->lp);
    free(f);
    return 0;
}

static void run_until_told(struct fixture *f)
{
    f->told = 0;
    while (f->told == 0)
        loop_run_once(f->lp, -1);
    assert_int_equal(f->told, 1);
}

/* ---- fetching ---- */
static void on_fetched(struct positions_fetch *pf, int rc, enum kerr err, const struct position *ret,
                       size_t n)
{
    struct fixture *f = pf->user;
    f->told++;
    f->rc = rc;
    f->err = err;
    f->n = n;
    for (size_t i = 0; i < n; i++) {
        f->got[i] = ret[i];
        snprintf(f->topics[i], sizeof f->topics[i], "%s", ret[i].topic);
        snprintf(f->metadata[i], sizeof f->metadata[i], "%s", ret[i].metadata != NULL ? ret[i].metadata : "");
    }
}

static void fetch(struct fixture *f, struct position *wanted, size_t n, bool all, int64_t timeout_ms)
{
    struct positions_fetch pf = {
        .group = "g",
        .wanted = wanted,
        .n_wanted = n,
        .all = all,
        .deadline_ms = loop_now_ms(f->lp) + timeout_ms,
        .cb = on_fetched,
        .user = f,
    };
    positions_fetch(f->c, &pf);
    run_until_told(f);
}

static void add(struct fixture *f, const char *topic, int32_t partition, int64_t offset, enum kerr err)
{
    struct fake_position *p = &f->fc.group.positions[f->fc.group.n_positions++];
    *p = (struct fake_position){ .partition = partition, .offset = offset, .leader_epoch = 7, .err = err };
    snprintf(p->topic, sizeof p->topic, "%s", topic);
    snprintf(p->metadata, sizeof p->metadata, "m%d", partition);
}

static void wanted_positions_come_sorted_with_minus_one_for_none(void **state)
{
    struct fixture *f = *state;
    struct position wanted[] = { { .topic = "u", .partition = 1 },
                                 { .topic = "t", .partition = 1 },
                                 { .topic = "u", .partition = 0 } };
    add(f, "u", 1, 500, KERR_NONE);
    add(f, "t", 1, 0, KERR_NONE);
    fetch(f, wanted, 3, false, 5000);
    assert_int_equal(f->rc, 0);
    assert_int_equal(f->n, 3);
    assert_string_equal(f->topics[0], "t");
    assert_int_equal(f->got[0].offset, 0);
    assert_int_equal(f->got[0].leader_epoch, 7);
    assert_string_equal(f->metadata[0], "m1");
    assert_string_equal(f->topics[1], "u");
    assert_int_equal(f->got[1].partition, 0);
    assert_int_equal(f->got[1].offset, -1);
    assert_int_equal(f->got[2].partition, 1);
    assert_int_equal(f->got[2].offset, 500);
    assert_int_equal(f->fc.last_version[API_OFFSET_FETCH], 7);
}

static void all_positions_of_a_group_and_of_one_that_has_none(void **state)
{
    struct fixture *f = *state;
    fetch(f, NULL, 0, true, 5000);
    assert_int_equal(f->rc, 0);
    assert_int_equal(f->n, 0);
    add(f, "u", 3, 5, KERR_NONE);
    add(f, "t", 1, 6, KERR_NONE);
    fetch(f, NULL, 0, true, 5000);
    assert_int_equal(f->n, 2);
    assert_int_equal(f->got[0].offset, 6);
    assert_int_equal(f->got[1].offset, 5);
}

static void nothing_wanted_is_nothing_told(void **state)
{
    struct fixture *f = *state;
    add(f, "t", 1, 6, KERR_NONE);
    fetch(f, NULL, 0, false, 5000);
    assert_int_equal(f->rc, 0);
    assert_int_equal(f->n, 0);
}

static void an_old_broker_is_asked_without_what_it_does_not_know(void **state)
{
    struct fixture *f = *state;
    struct position wanted[] = { { .topic = "t", .partition = 1 } };
    add(f, "t", 1, 6, KERR_NONE);
    f->fc.max_version[API_OFFSET_FETCH] = 1;
    fetch(f, wanted, 1, false, 5000);
    assert_int_equal(f->rc, 0);
    assert_int_equal(f->got[0].offset, 6);
    assert_int_equal(f->got[0].leader_epoch, -1);
    assert_int_equal(f->fc.last_version[API_OFFSET_FETCH], 1);
}

static void errors_that_pass_are_waited_for(void **state)
{
    static const enum kerr passing[] = { KERR_COORDINATOR_LOAD_IN_PROGRESS, KERR_COORDINATOR_NOT_AVAILABLE,
                                         KERR_NOT_COORDINATOR };
    struct fixture *f = *state;
    struct position wanted[] = { { .topic = "t", .partition = 1 } };
    for (size_t i = 0; i < ARRAY_LEN(passing); i++)
        fake_script(&f->fc, API_OFFSET_FETCH, FAKE_ERROR, passing[i]);
    fake_script(&f->fc, API_OFFSET_FETCH, FAKE_DROP, KERR_NONE);
    fake_script(&f->fc, API_FIND_COORDINATOR, FAKE_ERROR, KERR_COORDINATOR_NOT_AVAILABLE);
    add(f, "t", 1, 6, KERR_UNSTABLE_OFFSET_COMMIT); /* once */
    fetch(f, wanted, 1, false, 5000);
    assert_int_equal(f->rc, 0);
    assert_int_equal(f->got[0].offset, 6);
    assert_int_equal(f->fc.requests[API_OFFSET_FETCH], 6);
    assert_true(f->fc.requests[API_FIND_COORDINATOR] >= 4);
}

static void errors_that_do_not_pass_are_told(void **state)
{
    struct fixture *f = *state;
    struct position wanted[] = { { .topic = "t", .partition = 1 } };
    fake_script(&f->fc, API_OFFSET_FETCH, FAKE_ERROR, KERR_GROUP_AUTHORIZATION_FAILED);
    fetch(f, wanted, 1, false, 5000);
    assert_int_equal(f->rc, -EACCES);
    assert_int_equal(f->err, KERR_GROUP_AUTHORIZATION_FAILED);
    fake_script(&f->fc, API_OFFSET_FETCH, FAKE_DEAF, KERR_NONE);
    fetch(f, wanted, 1, false, 30);
    assert_int_equal(f->rc, -ETIMEDOUT);

    add(f, "t", 1, 6, KERR_TOPIC_AUTHORIZATION_FAILED);
    fetch(f, wanted, 1, false, 5000);
    assert_int_equal(f->rc, 0);
    assert_int_equal(f->got[0].err, KERR_TOPIC_AUTHORIZATION_FAILED);
    assert_int_equal(f->got[0].offset, -1);
}

/* ---- committing ---- */
static void on_committed(struct positions_commit *pc, int rc, enum kerr err)
{
    struct fixture *f = pc->user;
    f->told++;
    f->rc = rc;
    f->err = err;
}

static void commit(struct fixture *f, struct position *positions, size_t n, int32_t generation)
{
    struct positions_commit pc = {
        .group = "g",
        .member_id = generation < 0 ? "" : "somebody",
        .generation = generation,
        .positions = positions,
        .n = n,
        .deadline_ms = loop_now_ms(f->lp) + 5000,
        .cb = on_committed,
        .user = f,
    };
    positions_commit(f->c, &pc);
    run_until_told(f);
}

static void positions_are_stored_with_epoch_and_metadata(void **state)
{
    struct fixture *f = *state;
    struct position p[] = {
        { .topic = "u", .partition = 1, .offset = 3, .leader_epoch = 9, .metadata = "hi" },
        { .topic = "t", .partition = 0, .offset = 0, .leader_epoch = -1 },
        { .topic = "u", .partition = 0, .offset = 4, .leader_epoch = -1 },
    };
    commit(f, p, 3, -1);
    assert_int_equal(f->rc, 0);
    assert_int_equal(f->fc.group.n_positions, 3);
    const struct fake_position *t0 = &f->fc.group.positions[0], *u1 = &f->fc.group.positions[2];
    assert_string_equal(t0->topic, "t");
    assert_int_equal(t0->offset, 0);
    assert_string_equal(t0->metadata, "");
    assert_string_equal(u1->topic, "u");
    assert_int_equal(u1->partition, 1);
    assert_int_equal(u1->offset, 3);
    assert_int_equal(u1->leader_epoch, 9);
    assert_string_equal(u1->metadata, "hi");
    assert_int_equal(f->fc.last_version[API_OFFSET_COMMIT], 9);
}

static void each_position_is_told_what_became_of_it(void **state)
{
    struct fixture *f = *state;
    struct position p[] = {
        { .topic = "t", .partition = 1, .offset = 3, .metadata = "far too much metadata" },
        { .topic = "t", .partition = 0, .offset = 2 },
    };
    commit(f, p, 2, -1);
    assert_int_equal(f->rc, -EMSGSIZE);
    assert_int_equal(f->err, KERR_OFFSET_METADATA_TOO_LARGE);
    assert_int_equal(p[0].err, KERR_OFFSET_METADATA_TOO_LARGE);
    assert_int_equal(p[1].err, KERR_NONE);
    assert_int_equal(f->fc.group.n_positions, 1);
}

static void a_stranger_to_the_group_is_refused(void **state)
{
    struct fixture *f = *state;
    struct position p[] = { { .topic = "t", .partition = 0, .offset = 2 } };
    commit(f, p, 1, 3);
    assert_int_equal(f->rc, -EIO);
    assert_int_equal(f->err, KERR_UNKNOWN_MEMBER_ID);
    assert_int_equal(p[0].err, KERR_UNKNOWN_MEMBER_ID);
}

static void a_commit_survives_what_passes(void **state)
{
    struct fixture *f = *state;
    struct position p[] = { { .topic = "t", .partition = 0, .offset = 2 } };
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_ERROR, KERR_NOT_COORDINATOR);
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_ERROR, KERR_COORDINATOR_LOAD_IN_PROGRESS);
    fake_script(&f->fc, API_OFFSET_COMMIT, FAKE_DO_AND_DROP, KERR_NONE);
    commit(f, p, 1, -1);
    assert_int_equal(f->rc, 0);
    assert_int_equal(f->fc.requests[API_OFFSET_COMMIT], 4);
}

static void a_cancelled_commit_is_not_told(void **state)
{
    struct fixture *f = *state;
    struct position p[] = { { .topic = "t", .partition = 0, .offset = 2 } };
    struct positions_commit pc = { .group = "g",
                                   .member_id = "",
                                   .generation = -1,
                                   .positions = p,
                                   .n = 1,
                                   .deadline_ms = loop_now_ms(f->lp) + 5000,
                                   .cb = on_committed,
                                   .user = f };
    positions_commit(f->c, &pc);
    positions_commit_cancel(&pc);
    positions_commit_cancel(&pc);
    struct position wanted[] = { { .topic = "t", .partition = 1 } };
    fetch(f, wanted, 1, false, 5000);
    assert_int_equal(f->told, 1);
}

/* ---- ends ---- */
static void on_found(struct position_find *pf, int rc, enum kerr err, int64_t offset)
{
    struct fixture *f = pf->user;
    f->told++;
    f->rc = rc;
    f->err = err;
    f->offset = offset;
}

static void find(struct fixture *f, const char *topic, int64_t at)
{
    struct position_find pf = { .topic = topic,
                                .partition = 1,
                                .at = at,
                                .deadline_ms = loop_now_ms(f->lp) + 200,
                                .cb = on_found,
                                .user = f };
    position_find(f->c, &pf);
    run_until_told(f);
}

static void ends_and_times_are_found_at_the_leader(void **state)
{
    struct fixture *f = *state;
    f->fc.topics[0].logs[1].n = 0;
    find(f, "t", POSITION_START);
    assert_int_equal(f->rc, 0);
    assert_int_equal(f->offset, 40);
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_ERROR, KERR_NOT_LEADER_OR_FOLLOWER);
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_ERROR, KERR_OFFSET_NOT_AVAILABLE);
    find(f, "t", POSITION_END);
    assert_int_equal(f->offset, 40);
    find(f, "t", 30);
    assert_int_equal(f->offset, 40 - 0);
    find(f, "t", 41);
    assert_int_equal(f->rc, 0);
    assert_int_equal(f->offset, -1);
}

static void a_partition_that_is_not_there_has_no_ends(void **state)
{
    struct fixture *f = *state;
    find(f, "nosuch", POSITION_END);
    assert_int_equal(f->rc, -ENOENT);
    assert_int_equal(f->offset, -1);
    fake_script(&f->fc, API_LIST_OFFSETS, FAKE_ERROR, KERR_TOPIC_AUTHORIZATION_FAILED);
    find(f, "t", POSITION_END);
    assert_int_equal(f->rc, -EACCES);
    assert_int_equal(f->err, KERR_TOPIC_AUTHORIZATION_FAILED);
}

static void doubles_are_dropped_when_sorting(void **state)
{
    struct position p[] = { { .topic = "b", .offset = 1 },
                            { .topic = "a", .partition = 1, .offset = 2 },
                            { .topic = "b", .offset = 1 } };
    (void)state;
    assert_int_equal(positions_sort(p, 3), 2);
    assert_string_equal(p[0].topic, "a");
    assert_int_equal(p[1].offset, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(wanted_positions_come_sorted_with_minus_one_for_none),
        T(all_positions_of_a_group_and_of_one_that_has_none),
        T(nothing_wanted_is_nothing_told),
        T(an_old_broker_is_asked_without_what_it_does_not_know),
        T(errors_that_pass_are_waited_for),
        T(errors_that_do_not_pass_are_told),
        T(positions_are_stored_with_epoch_and_metadata),
        T(each_position_is_told_what_became_of_it),
        T(a_stranger_to_the_group_is_refused),
        T(a_commit_survives_what_passes),
        T(a_cancelled_commit_is_not_told),
        T(ends_and_times_are_found_at_the_leader),
        T(a_partition_that_is_not_there_has_no_ends),
        cmocka_unit_test(doubles_are_dropped_when_sorting),
    };
    return RUN(tests);
}
