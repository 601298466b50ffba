/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that are sent together, over a store that keeps what it is sent until the test lets it answer: how many multis there
 * are, and that each change ends as it would alone.
 */
#include "unit.h"
#include "world.h"

#include "daemon/meta/register_batch.h"
#include "daemon/meta/register_tree.h"
#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/loop/loop.h"

enum { N = 200, MULTIS_MAX = 256 };

struct store {
    struct registers base;
    struct register_tree tree;
    struct {
        struct register_op *ops;
        int n;
        void (*cb)(void *arg, int rc);
        void *arg;
    } sent[MULTIS_MAX];
    int n_sent, n_answered;
    int fails; /* each call ends with this instead, and nothing happens */
};

struct change {
    struct register_request request;
    struct register_op ops[2];
    char path[32];
    bool done;
    int rc;
};

struct scene {
    struct store store;
    struct loop *loop;
    struct register_batch batch;
    struct change change[N];
};

static void multi(struct registers *r, struct register_op *ops, int n, void (*cb)(void *arg, int rc), void *arg)
{
    struct store *s = container_of(r, struct store, base);

    assert_in_range(s->n_sent, 0, MULTIS_MAX - 1);
    assert_in_range(registers_multi_bytes(ops, n), 1, REGISTERS_MULTI_MAX);
    s->sent[s->n_sent].ops = ops;
    s->sent[s->n_sent].n = n;
    s->sent[s->n_sent].cb = cb;
    s->sent[s->n_sent++].arg = arg;
}

static void answer_all(struct scene *sc)
{
    struct store *s = &sc->store;

    loop_run_once(sc->loop, 0);
    while (s->n_answered < s->n_sent) {
        struct register_undo undo = { 0 };
        int i = s->n_answered++, rc = s->fails;
        for (int k = 0; rc != 0 && k < s->sent[i].n; k++)
            s->sent[i].ops[k].rc = rc;
        if (rc == 0)
            rc = register_tree_multi(&s->tree, s->sent[i].ops, s->sent[i].n, &undo);
        register_undo_commit(&undo);
        s->sent[i].cb(s->sent[i].arg, rc);
        loop_run_once(sc->loop, 0);
    }
}

static void ended(void *arg, int rc)
{
    struct change *ch = arg;

    assert_false(ch->done);
    ch->done = true;
    ch->rc = rc;
}

/* Sets register i when it is at `version`, and the fence at `fence`. */
static void ask(struct scene *s, int i, int64_t version, int64_t fence)
{
    struct change *ch = &s->change[i];

    ch->done = false;
    ch->ops[0] = (struct register_op){ .kind = REGISTER_CHECK, .path = "/fence", .version = fence };
    ch->ops[1] = (struct register_op){ .kind = REGISTER_SET, .path = ch->path, .value = slice_of("x", 1), .version = version };
    ch->request = (struct register_request){ .ops = ch->ops, .n = 2, .cb = ended, .arg = ch };
    register_batch_add(&s->batch, &ch->request);
}

static int64_t version_of(struct scene *s, int i)
{
    struct slice value;
    int64_t version;

    assert_int_equal(register_tree_get(&s->store.tree, s->change[i].path, &value, &version), 0);
    return version;
}

static void assert_ended(struct scene *s, int i, int rc, int64_t version)
{
    assert_true(s->change[i].done);
    assert_int_equal(s->change[i].rc, rc);
    assert_int_equal(version_of(s, i), version);
    if (rc == 0)
        assert_int_equal(s->change[i].ops[1].new_version, version);
}

static int set_up(void **state)
{
    static const struct registers_ops ops = { .multi = multi };
    struct scene *s = xcalloc(1, sizeof *s);

    s->loop = loop_new(test_world());
    s->store.base.ops = &ops;
    register_batch_init(&s->batch, &s->store.base, s->loop);
    register_tree_put(&s->store.tree, "/fence", slice_of("", 0), 7);
    for (int i = 0; i < N; i++) {
        snprintf(s->change[i].path, sizeof s->change[i].path, "/r%d", i);
        register_tree_put(&s->store.tree, s->change[i].path, slice_of("", 0), 3);
    }
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    register_batch_done(&s->batch);
    loop_free(s->loop);
    register_tree_done(&s->store.tree);
    free(s);
    return 0;
}

static void many_changes_are_few_multis(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < N; i++)
        ask(s, i, 3, 7);
    answer_all(s);
    for (int i = 0; i < N; i++)
        assert_ended(s, i, 0, 4);
    assert_int_equal(s->store.n_sent, (N + REGISTER_BATCH_MAX - 1) / REGISTER_BATCH_MAX);
    assert_int_equal(s->store.sent[0].n, REGISTER_BATCH_MAX + 1); /* the fence once */
}

static void one_that_is_late_does_not_stop_the_others(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 50; i++)
        ask(s, i, i == 20 ? 2 : 3, 7);
    answer_all(s);
    for (int i = 0; i < 50; i++)
        assert_ended(s, i, i == 20 ? -ESTALE : 0, i == 20 ? 3 : 4);
    assert_int_equal(s->change[20].ops[1].rc, -ESTALE);
    assert_int_equal(s->store.n_sent, 2);
}

static void each_of_many_that_are_late_ends_and_so_do_the_others(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 60; i++)
        ask(s, i, i % 3 == 0 ? 2 : 3, 7);
    answer_all(s);
    for (int i = 0; i < 60; i++)
        assert_ended(s, i, i % 3 == 0 ? -ESTALE : 0, i % 3 == 0 ? 3 : 4);
    assert_in_range(s->store.n_sent, 3, 2 + 58);
}

static void who_is_fenced_takes_nobody_along(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 20; i++)
        ask(s, i, 3, i < 10 ? 7 : 6); /* two conditions on one register never go together */
    answer_all(s);
    for (int i = 0; i < 20; i++)
        assert_ended(s, i, i < 10 ? 0 : -ESTALE, i < 10 ? 4 : 3);
    assert_int_equal(s->store.n_sent, 2); /* one for all of them that have the wrong one */
}

static void two_changes_of_one_register_are_two_multis(void **state)
{
    struct scene *s = *state;
    struct change *ch = &s->change[1];

    ask(s, 0, 3, 7);
    snprintf(ch->path, sizeof ch->path, "/r0");
    ask(s, 1, 4, 7);
    answer_all(s);
    assert_int_equal(s->change[0].rc, 0);
    assert_ended(s, 1, 0, 5);
    assert_int_equal(s->store.n_sent, 2);
}

static void nothing_is_sent_twice_that_may_have_happened(void **state)
{
    struct scene *s = *state;

    s->store.fails = -EREMOTEIO;
    for (int i = 0; i < 30; i++)
        ask(s, i, 3, 7);
    answer_all(s);
    for (int i = 0; i < 30; i++)
        assert_ended(s, i, -EREMOTEIO, 3);
    assert_int_equal(s->store.n_sent, 1);
}

static void when_nobody_is_to_blame_each_goes_alone(void **state)
{
    struct scene *s = *state;

    s->store.fails = -EACCES;
    for (int i = 0; i < 30; i++)
        ask(s, i, 3, 7);
    answer_all(s);
    for (int i = 0; i < 30; i++)
        assert_ended(s, i, -EACCES, 3);
    assert_int_equal(s->store.n_sent, 31);
}

#define ONE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(many_changes_are_few_multis),
        ONE(one_that_is_late_does_not_stop_the_others),
        ONE(each_of_many_that_are_late_ends_and_so_do_the_others),
        ONE(who_is_fenced_takes_nobody_along),
        ONE(two_changes_of_one_register_are_two_multis),
        ONE(nothing_is_sent_twice_that_may_have_happened),
        ONE(when_nobody_is_to_blame_each_goes_alone),
    };
    return RUN(tests);
}
