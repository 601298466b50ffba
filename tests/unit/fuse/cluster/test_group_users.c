/* SPDX-License-Identifier: Apache-2.0 */
/* Who uses a group on this mount: whose position is a reader's, and who waits for what a closed file still commits. */
#include "unit.h"

#include <errno.h>

#include "fuse/base/mount.h"
#include "fuse/cluster/groups.h"

static struct topic orders, users;

struct waiter {
    struct group_wait w;
    int calls, rc;
};

static void on_wait(struct group_wait *w, int rc)
{
    struct waiter *x = container_of(w, struct waiter, w);

    x->calls++;
    x->rc = rc;
}

static struct waiter waiter(const char *group)
{
    return (struct waiter){ .w = { .group = group, .cb = on_wait } };
}

static int setup(void **state)
{
    struct mount *m = calloc(1, sizeof *m);

    LIST_INIT(&m->group_users);
    TAILQ_INIT(&m->group_waits);
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void a_position_is_the_readers_while_the_file_is_open(void **state)
{
    struct mount *m = *state;
    struct group_user u = { .group = "g", .topic = &orders, .partition = 1 };

    assert_false(group_is_read(m, "g", &orders, 1));
    group_user_begin(m, &u);
    assert_true(group_is_read(m, "g", &orders, 1));
    assert_true(group_is_read(m, "g", &orders, -1));
    assert_false(group_is_read(m, "g", &orders, 0));
    assert_false(group_is_read(m, "g", &users, 1));
    assert_false(group_is_read(m, "h", &orders, 1));
    u.closing = true;
    assert_false(group_is_read(m, "g", &orders, 1));
    u.closing = false;
    u.lost = true; /* to members: they have it */
    assert_false(group_is_read(m, "g", &orders, 1));
    group_user_end(&u);
}

static void a_member_has_no_single_partition(void **state)
{
    struct mount *m = *state;
    struct group_user u = { .group = "g", .topic = &orders, .partition = -1 };

    group_user_begin(m, &u);
    assert_false(group_is_read(m, "g", &orders, -1));
    group_user_end(&u);
}

static void nobody_waits_for_a_file_that_stays_open(void **state)
{
    struct mount *m = *state;
    struct group_user u = { .group = "g", .topic = &orders, .partition = 0 };
    struct waiter w = waiter("g");

    group_user_begin(m, &u);
    group_wait(m, &w.w);
    assert_int_equal(w.calls, 1);
    assert_int_equal(w.rc, 0);
    group_user_end(&u);
}

static void the_last_of_a_groups_closed_files_is_waited_for(void **state)
{
    struct mount *m = *state;
    struct group_user a = { .group = "g", .topic = &orders, .partition = 0, .closing = true };
    struct group_user b = { .group = "g", .topic = &users, .partition = -1, .closing = true };
    struct waiter w = waiter("g"), other = waiter("h");

    group_user_begin(m, &a);
    group_user_begin(m, &b);
    group_wait(m, &w.w);
    group_wait(m, &other.w);
    assert_int_equal(w.calls, 0);
    assert_int_equal(other.calls, 1);
    group_user_end(&a);
    group_waits_go(m, "g");
    assert_int_equal(w.calls, 0);
    group_user_end(&b);
    group_waits_go(m, "h");
    assert_int_equal(w.calls, 0);
    group_waits_go(m, "g");
    assert_int_equal(w.calls, 1);
    assert_int_equal(w.rc, 0);
}

static void the_end_of_the_mount_ends_the_waiting(void **state)
{
    struct mount *m = *state;
    struct group_user u = { .group = "g", .topic = &orders, .partition = 0, .closing = true };
    struct waiter w = waiter("g");

    group_user_begin(m, &u);
    group_wait(m, &w.w);
    group_waits_cancel(m);
    assert_int_equal(w.calls, 1);
    assert_int_equal(w.rc, -ECANCELED);
    group_user_end(&u);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_position_is_the_readers_while_the_file_is_open),
        T(a_member_has_no_single_partition),
        T(nobody_waits_for_a_file_that_stays_open),
        T(the_last_of_a_groups_closed_files_is_waited_for),
        T(the_end_of_the_mount_ends_the_waiting),
    };
    return RUN(tests);
}
