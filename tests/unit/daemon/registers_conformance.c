/* SPDX-License-Identifier: Apache-2.0 */
/* See registers_conformance.h. */
#include "tests/unit/daemon/registers_conformance.h"

#include <pthread.h>

#include "daemon/meta/register_tree.h"
#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"

/* ---- calls that wait ---- */

void got_rc(void *arg, int rc)
{
    struct answer *a = arg;
    a->rc = rc;
    a->done = true;
}

void got_value(void *arg, int rc, struct slice value, int64_t version)
{
    struct answer *a = arg;
    a->rc = rc;
    snprintf(a->value, sizeof a->value, "%.*s", (int)value.n, value.n > 0 ? (const char *)value.p : "");
    a->version = version;
    a->done = true;
}

void got_names(void *arg, int rc, const char *const *names, int n)
{
    struct answer *a = arg;
    a->rc = rc;
    a->names[0] = '\0';
    for (int i = 0; i < n; i++) {
        strcat(a->names, i > 0 ? " " : "");
        strcat(a->names, names[i]);
    }
    a->done = true;
}

void wait_for(struct registers_rig *s, const bool *done)
{
    while (!*done)
        loop_run_once(s->loop, 1000);
}

int multi(struct registers_rig *s, struct register_op *ops, int n)
{
    struct answer a = { 0 };
    registers_multi(s->r, ops, n, got_rc, &a);
    wait_for(s, &a.done);
    return a.rc;
}

struct register_op op(enum register_op_kind kind, const char *path, const char *value, int64_t version)
{
    return (struct register_op){
        .kind = kind, .path = path, .value = slice_of(value, strlen(value)), .version = version
    };
}

int one(struct registers_rig *s, enum register_op_kind kind, const char *path, const char *value,
               int64_t version)
{
    struct register_op o = op(kind, path, value, version);
    int rc = multi(s, &o, 1);
    assert_int_equal(rc, o.rc);
    return rc;
}

int create(struct registers_rig *s, const char *path, const char *value)
{
    return one(s, REGISTER_CREATE, path, value, 0);
}

struct answer get(struct registers_rig *s, const char *path)
{
    struct answer a = { 0 };
    registers_get(s->r, path, got_value, &a);
    wait_for(s, &a.done);
    return a;
}

void assert_register(struct registers_rig *s, const char *path, const char *value, int64_t version)
{
    struct answer a = get(s, path);
    assert_int_equal(a.rc, 0);
    assert_string_equal(a.value, value);
    assert_int_equal(a.version, version);
}

void assert_absent(struct registers_rig *s, const char *path)
{
    assert_int_equal(get(s, path).rc, -ENOENT);
}

void assert_children(struct registers_rig *s, const char *path, int rc, const char *names)
{
    struct answer a = { 0 };
    registers_children(s->r, path, got_names, &a);
    wait_for(s, &a.done);
    assert_int_equal(a.rc, rc);
    assert_string_equal(a.names, names);
}

void any_register_begins_at_version_0_and_counts_its_changes(void **state)
{
    struct registers_rig *s = *state;

    assert_int_equal(create(s, "/a", "one"), 0);
    assert_register(s, "/a", "one", 0);

    struct register_op o = op(REGISTER_SET, "/a", "two", 0);
    assert_int_equal(multi(s, &o, 1), 0);
    assert_int_equal(o.new_version, 1);
    assert_int_equal(one(s, REGISTER_SET, "/a", "", REGISTER_ANY_VERSION), 0);
    assert_register(s, "/a", "", 2);

    assert_int_equal(one(s, REGISTER_DELETE, "/a", "", 2), 0);
    assert_absent(s, "/a");
    assert_int_equal(create(s, "/a", "again"), 0);
    assert_register(s, "/a", "again", 0);
}

void any_change_whose_condition_fails_changes_nothing(void **state)
{
    struct registers_rig *s = *state;

    assert_int_equal(create(s, "/a", "one"), 0);
    assert_int_equal(create(s, "/a", "x"), -EEXIST);
    assert_int_equal(create(s, "/no/parent", "x"), -ENOENT);
    assert_int_equal(one(s, REGISTER_SET, "/a", "x", 1), -ESTALE);
    assert_int_equal(one(s, REGISTER_SET, "/b", "x", REGISTER_ANY_VERSION), -ENOENT);
    assert_int_equal(one(s, REGISTER_DELETE, "/a", "", 7), -ESTALE);
    assert_int_equal(one(s, REGISTER_DELETE, "/b", "", REGISTER_ANY_VERSION), -ENOENT);
    assert_int_equal(one(s, REGISTER_CHECK, "/a", "", 1), -ESTALE);
    assert_int_equal(one(s, REGISTER_CHECK, "/a", "", 0), 0);
    assert_int_equal(create(s, "/a/b", ""), 0);
    assert_int_equal(one(s, REGISTER_DELETE, "/a", "", 0), -ENOTEMPTY);
    assert_register(s, "/a", "one", 0);
}

void any_malformed_path_or_huge_value_is_refused(void **state)
{
    struct registers_rig *s = *state;
    static const char *const bad[] = { "", "/", "a", "/a/", "//a", "/a//b" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(create(s, bad[i], ""), -EINVAL);

    CLEANUP(freep) char *big = xcalloc(1, REGISTER_VALUE_MAX + 1);
    struct register_op o = { REGISTER_CREATE, "/big", slice_of(big, REGISTER_VALUE_MAX + 1), 0, 0, 0 };
    assert_int_equal(multi(s, &o, 1), -EINVAL);
    o.value.n = 0;
    o.value.n = REGISTERS_MULTI_MAX - registers_multi_bytes(&o, 1) + 1;
    if (s->has_multi_max) {
        assert_int_equal(multi(s, &o, 1), -E2BIG);
        assert_int_equal(o.rc, -E2BIG);
    }
    o.value.n--;
    assert_int_equal(multi(s, &o, 1), 0);
}

void any_changes_happen_together_or_not_at_all(void **state)
{
    struct registers_rig *s = *state;
    struct register_op ops[] = {
        op(REGISTER_CREATE, "/t", "topic", 0),
        op(REGISTER_CREATE, "/t/p", "0", 0),
        op(REGISTER_SET, "/t", "topic2", 0),
        op(REGISTER_DELETE, "/old", "", 3),
    };

    assert_int_equal(create(s, "/old", "o"), 0);
    assert_int_equal(multi(s, ops, 4), -ESTALE);
    assert_int_equal(ops[0].rc, -ECANCELED);
    assert_int_equal(ops[2].rc, -ECANCELED);
    assert_int_equal(ops[3].rc, -ESTALE);
    assert_absent(s, "/t");
    assert_absent(s, "/t/p");

    ops[3].version = 0;
    assert_int_equal(multi(s, ops, 4), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ops[i].rc, 0);
    assert_register(s, "/t", "topic2", 1);
    assert_register(s, "/t/p", "0", 0);
    assert_absent(s, "/old");
}

void any_children_are_the_direct_ones_in_order(void **state)
{
    struct registers_rig *s = *state;

    assert_children(s, "/", 0, "");
    assert_children(s, "/b", -ENOENT, "");
    assert_int_equal(create(s, "/b", ""), 0);
    assert_int_equal(create(s, "/b/z", ""), 0);
    assert_int_equal(create(s, "/b/a", ""), 0);
    assert_int_equal(create(s, "/b/a/deep", ""), 0);
    assert_int_equal(create(s, "/a", ""), 0);
    assert_children(s, "/b", 0, "a z");
    assert_children(s, "/", 0, "a b");
    assert_children(s, "/b/z", 0, "");
}

void saw(void *arg, const char *path)
{
    struct seen *n = arg;
    size_t at = strlen(n->paths);
    assert_in_range(at + strlen(path) + 2, 0, sizeof n->paths);
    snprintf(n->paths + at, sizeof n->paths - at, "%s ", path);
    if (n->unwatch_from != NULL)
        registers_unwatch(n->unwatch_from, n->w);
}

bool was_told(struct seen *n, const char *path)
{
    bool ret = false;
    char *save;
    for (char *p = strtok_r(n->paths, " ", &save); p != NULL; p = strtok_r(NULL, " ", &save)) {
        size_t len = strlen(p);
        if (len > 1 && p[len - 1] == '/')
            p[len - 1] = '\0'; /* children of it came or went */
        ret |= register_path_is_under(path, p);
    }
    n->paths[0] = '\0';
    return ret;
}

void any_watch_tells_of_changes_below_it_before_their_answer(void **state)
{
    struct registers_rig *s = *state;
    struct seen n = { .paths = "" };

    assert_int_equal(create(s, "/a", ""), 0);
    n.w = registers_watch(s->r, "/a", saw, &n);
    assert_int_equal(create(s, "/a/b", ""), 0);
    assert_true(was_told(&n, "/a/b"));
    assert_int_equal(create(s, "/a/b/c", ""), 0);
    assert_true(was_told(&n, "/a/b/c"));
    assert_int_equal(one(s, REGISTER_SET, "/a", "x", 0), 0);
    assert_true(was_told(&n, "/a"));
    assert_int_equal(one(s, REGISTER_SET, "/a/b/c", "x", 0), 0);
    assert_true(was_told(&n, "/a/b/c"));
    assert_int_equal(one(s, REGISTER_DELETE, "/a/b/c", "", 1), 0);
    assert_true(was_told(&n, "/a/b/c"));
    assert_int_equal(one(s, REGISTER_DELETE, "/a/b", "", 0), 0);
    assert_true(was_told(&n, "/a/b"));
    assert_int_equal(one(s, REGISTER_DELETE, "/a", "", 1), 0);
    assert_true(was_told(&n, "/a"));
    assert_int_equal(create(s, "/a", ""), 0); /* the watch waits for it to come again */
    assert_true(was_told(&n, "/a"));
    assert_int_equal(create(s, "/a/b", ""), 0);
    assert_true(was_told(&n, "/a/b"));

    registers_unwatch(s->r, n.w);
    assert_int_equal(one(s, REGISTER_SET, "/a", "y", 0), 0);
    assert_int_equal(create(s, "/a/d", ""), 0);
    assert_string_equal(n.paths, "");
}

/* A change that is asked for straight after the watch, deep below it. */
void any_watch_tells_of_what_was_there_before_it(void **state)
{
    struct registers_rig *s = *state;
    struct seen n = { .paths = "" }, none = { .paths = "" };

    assert_int_equal(create(s, "/t", ""), 0);
    assert_int_equal(create(s, "/t/p", ""), 0);
    assert_int_equal(create(s, "/t/p/7", ""), 0);
    assert_int_equal(create(s, "/t/p/7/state", "0"), 0);
    n.w = registers_watch(s->r, "/t", saw, &n);
    none.w = registers_watch(s->r, "/not/there", saw, &none);
    assert_int_equal(one(s, REGISTER_SET, "/t/p/7/state", "1", 0), 0);
    assert_true(was_told(&n, "/t/p/7/state"));

    struct register_op ops[] = { op(REGISTER_CREATE, "/not", "", 0), op(REGISTER_CREATE, "/not/there", "", 0),
                                 op(REGISTER_CREATE, "/not/there/yet", "", 0) };
    assert_int_equal(multi(s, ops, 3), 0);
    assert_true(was_told(&none, "/not/there"));
    assert_int_equal(one(s, REGISTER_SET, "/not/there/yet", "1", 0), 0);
    assert_true(was_told(&none, "/not/there/yet"));
    registers_unwatch(s->r, n.w);
    registers_unwatch(s->r, none.w);
}

void any_watch_may_end_itself(void **state)
{
    struct registers_rig *s = *state;
    struct seen n = { .paths = "", .unwatch_from = s->r };

    n.w = registers_watch(s->r, "/", saw, &n);
    struct register_op ops[] = { op(REGISTER_CREATE, "/a", "", 0), op(REGISTER_CREATE, "/b", "", 0) };
    assert_int_equal(multi(s, ops, 2), 0);
    assert_int_equal(create(s, "/c", ""), 0);
    char first[sizeof n.paths];
    snprintf(first, sizeof first, "%s", n.paths);
    assert_true(strchr(first, ' ') == first + strlen(first) - 1); /* one */
    assert_true(was_told(&n, "/a"));
}

void any_answers_come_in_the_order_of_the_calls(void **state)
{
    struct registers_rig *s = *state;
    struct register_op first = op(REGISTER_CREATE, "/a", "1", 0), second = op(REGISTER_SET, "/a", "2", 0);
    struct answer a[4] = { 0 };

    registers_multi(s->r, &first, 1, got_rc, &a[0]);
    registers_get(s->r, "/a", got_value, &a[1]);
    registers_multi(s->r, &second, 1, got_rc, &a[2]);
    registers_get(s->r, "/a", got_value, &a[3]);
    wait_for(s, &a[3].done);
    for (int i = 0; i < 4; i++) {
        assert_true(a[i].done);
        assert_int_equal(a[i].rc, 0);
    }
    assert_string_equal(a[1].value, "1");
    assert_string_equal(a[3].value, "2");
}

void any_registers_outlive_the_process_and_ephemeral_ones_do_not(void **state)
{
    struct registers_rig *s = *state;

    assert_int_equal(create(s, "/ids", ""), 0);
    assert_int_equal(one(s, REGISTER_CREATE_EPHEMERAL, "/ids/1", "me", 0), 0);
    assert_int_equal(create(s, "/ids/1/below", ""), -EINVAL);
    assert_int_equal(one(s, REGISTER_SET, "/ids/1", "me too", 0), 0);
    assert_int_equal(one(s, REGISTER_CREATE_EPHEMERAL, "/ids/2", "you", 0), 0);
    assert_int_equal(one(s, REGISTER_DELETE, "/ids/2", "", 0), 0);
    assert_int_equal(create(s, "/gone", ""), 0);
    assert_int_equal(one(s, REGISTER_DELETE, "/gone", "", 0), 0);
    assert_int_equal(create(s, "/kept", "a"), 0);
    assert_int_equal(one(s, REGISTER_SET, "/kept", "b", 0), 0);

    s->reopen(s);
    assert_children(s, "/ids", 0, "");
    assert_register(s, "/kept", "b", 1);
    assert_absent(s, "/gone");
    assert_int_equal(one(s, REGISTER_CREATE_EPHEMERAL, "/ids/1", "me", 0), 0);
    assert_register(s, "/ids/1", "me", 0);
}

/* Adds one to /n by compare-and-set, 50 times, from a thread that has no loop. */
struct adder {
    struct registers_rig *s;
    pthread_t thread;
    struct register_op op;
    int64_t version;
    char text[24];
    int left;
    bool done;
};

static void adder_go(struct adder *a);

static void adder_read(void *arg, int rc, struct slice value, int64_t version)
{
    struct adder *a = arg;
    assert_int_equal(rc, 0);
    int n = snprintf(a->text, sizeof a->text, "%d", atoi((const char *)value.p) + 1);
    a->op = (struct register_op){ REGISTER_SET, "/n", slice_of(a->text, (size_t)n + 1), version, 0, 0 };
    adder_go(a);
}

static void adder_wrote(void *arg, int rc)
{
    struct adder *a = arg;
    assert_true(rc == 0 || rc == -ESTALE);
    a->left -= rc == 0;
    a->done = a->left == 0;
    if (!a->done)
        registers_get(a->s->r, "/n", adder_read, a);
}

static void adder_go(struct adder *a)
{
    registers_multi(a->s->r, &a->op, 1, adder_wrote, a);
}

static void *adder_run(void *arg)
{
    struct adder *a = arg;
    registers_get(a->s->r, "/n", adder_read, a);
    return NULL;
}

void any_compare_and_set_loses_no_update(void **state)
{
    struct registers_rig *s = *state;
    struct adder a[4];
    struct register_op zero = { REGISTER_CREATE, "/n", slice_of("0", 2), 0, 0, 0 };

    assert_int_equal(multi(s, &zero, 1), 0);
    for (int i = 0; i < 4; i++) {
        a[i] = (struct adder){ .s = s, .left = 50 };
        assert_int_equal(pthread_create(&a[i].thread, NULL, adder_run, &a[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(a[i].thread, NULL);
        wait_for(s, &a[i].done);
    }
    assert_int_equal(get(s, "/n").version, 200);
    assert_int_equal(atoi(get(s, "/n").value), 200);
}

/* ---- sessions ---- */

void saw_session(void *arg, enum registers_event ev)
{
    struct session_seen *n = arg;
    size_t at = strlen(n->events);
    assert_in_range(at, 0, sizeof n->events - 2);
    n->events[at] = ev == REGISTERS_CONNECTED ? 'C' : ev == REGISTERS_SUSPENDED ? 'S' : 'X';
}

int sync_reads(struct registers_rig *s)
{
    struct answer a = { 0 };
    registers_sync(s->r, got_rc, &a);
    wait_for(s, &a.done);
    return a.rc;
}

void any_session_begins_connected(void **state)
{
    struct registers_rig *s = *state;
    struct session_seen n = { .events = "" };

    assert_int_equal(create(s, "/a", "1"), 0);
    registers_on_session(s->r, saw_session, &n);
    assert_string_equal(n.events, ""); /* not from inside the call */
    while (n.events[0] == '\0')
        loop_run_once(s->loop, 1000);
    assert_string_equal(n.events, "C");
    registers_renew(s->r); /* nothing */
    int64_t before = world_mono_ms(loop_world(s->loop));
    assert_int_equal(sync_reads(s), 0);
    assert_in_range(registers_last_reply_ms(s->r), before, world_mono_ms(loop_world(s->loop)));
    assert_register(s, "/a", "1", 0);
    registers_on_session(s->r, saw_session, &n);
    registers_on_session(s->r, NULL, NULL);
    assert_int_equal(sync_reads(s), 0);
    assert_string_equal(n.events, "C");
}
