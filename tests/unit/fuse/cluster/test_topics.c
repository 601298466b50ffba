/* SPDX-License-Identifier: Apache-2.0 */
/* Topics by name and id: which is which, and who is told when one has gone. */
#include "unit.h"

#include "fuse/base/mount.h"
#include "fuse/cluster/topics.h"

struct listener {
    struct topic_listener l;
    int told;
    struct topic_listener *takes_along; /* stops listening as well */
};

static void on_gone(struct topic_listener *l)
{
    struct listener *x = container_of(l, struct listener, l);

    x->told++;
    if (x->takes_along != NULL)
        topic_unlisten(x->takes_along);
}

static struct listener listener(void)
{
    return (struct listener){ .l.cb = on_gone };
}

static int setup(void **state)
{
    struct mount *m = calloc(1, sizeof *m);

    m->topics = topics_new(m);
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    struct mount *m = *state;

    topics_free(m->topics);
    free(m);
    return 0;
}

static struct topic *topic_with(struct mount *m, const char *name, uint8_t id)
{
    struct client_topic ct = { .name = (char *)name, .id = { { id } } };
    return topic_of(m, &ct);
}

static void a_topic_made_anew_is_another_one(void **state)
{
    struct mount *m = *state;
    struct topic *t = topic_with(m, "orders", 1), *same = topic_with(m, "orders", 1);

    assert_ptr_equal(t, same);
    struct topic *anew = topic_with(m, "orders", 2);
    assert_ptr_not_equal(anew, t);
    assert_true(t->gone);
    assert_false(anew->gone);
    topic_unref(t);
    topic_unref(same);
    topic_unref(anew);
}

static void listeners_are_told_once(void **state)
{
    struct mount *m = *state;
    struct topic *t = topic_with(m, "orders", 1);
    struct listener a = listener(), b = listener(), left = listener();

    topic_listen(t, &a.l);
    topic_listen(t, &b.l);
    topic_listen(t, &left.l);
    topic_unlisten(&left.l);
    topic_vanish(t);
    topic_vanish(t);
    assert_int_equal(a.told, 1);
    assert_int_equal(b.told, 1);
    assert_int_equal(left.told, 0);
    topic_unlisten(&a.l); /* fine, though it was taken off */
    topic_unref(t);
}

static void who_listens_to_a_topic_that_has_gone_hears_nothing(void **state)
{
    struct mount *m = *state;
    struct topic *t = topic_with(m, "orders", 1);
    struct listener late = listener();

    topic_vanish(t);
    topic_listen(t, &late.l);
    topic_vanish(t);
    assert_int_equal(late.told, 0);
    topic_unlisten(&late.l);
    topic_unref(t);
}

/* As a group's reader does, whose end frees the files of the topic's other partitions. */
static void a_listener_may_take_others_along(void **state)
{
    struct mount *m = *state;
    struct topic *t = topic_with(m, "orders", 1);
    struct listener first = listener(), second = listener();

    topic_listen(t, &first.l);
    topic_listen(t, &second.l); /* told before the first */
    second.takes_along = &first.l;
    topic_vanish(t);
    assert_int_equal(second.told, 1);
    assert_int_equal(first.told, 0);
    topic_unref(t);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_topic_made_anew_is_another_one),
        T(listeners_are_told_once),
        T(who_listens_to_a_topic_that_has_gone_hears_nothing),
        T(a_listener_may_take_others_along),
    };
    return RUN(tests);
}
