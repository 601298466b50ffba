/* SPDX-License-Identifier: Apache-2.0 */
/* Which locks a thread holds, and what ends the process. */
#include "unit.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/lock.h"
#include "lib/base/log.h"

struct three {
    struct lock low, middle, high;
};

static int setup(void **state)
{
    struct three *l = calloc(1, sizeof *l);
    lock_init(&l->low, 1, "low");
    lock_init(&l->middle, 2, "middle");
    lock_init(&l->high, 3, "high");
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    struct three *l = *state;
    lock_done(&l->low);
    lock_done(&l->middle);
    lock_done(&l->high);
    free(l);
    return 0;
}

static void what_is_taken_is_held_until_it_is_released(void **state)
{
    struct three *l = *state;
    assert_false(lock_is_held(&l->low));
    lock_take(&l->low);
    lock_assert_held(&l->low);
    assert_false(lock_is_held(&l->high));
    lock_release(&l->low);
    assert_false(lock_is_held(&l->low));
}

static void locks_are_released_in_any_order(void **state)
{
    struct three *l = *state;
    lock_take(&l->low);
    lock_take(&l->middle);
    lock_take(&l->high);
    lock_release(&l->low);
    assert_false(lock_is_held(&l->low));
    lock_assert_held(&l->middle);
    lock_assert_held(&l->high);
    lock_release(&l->high);
    assert_false(lock_is_held(&l->high));
    lock_assert_held(&l->middle);
    lock_release(&l->middle);
    assert_int_equal(thread_state.n_held, 0);
}

static void *look(void *arg)
{
    return lock_is_held(arg) ? arg : NULL;
}

static void another_thread_does_not_hold_it(void **state)
{
    struct three *l = *state;
    pthread_t t;
    void *held = l;
    lock_take(&l->low);
    assert_int_equal(pthread_create(&t, NULL, look, &l->low), 0);
    assert_int_equal(pthread_join(t, &held), 0);
    assert_null(held);
    lock_release(&l->low);
}

/* ---- what ends the process ---- */
static void release_what_is_not_held(struct three *l)
{
    lock_release(&l->low);
}

static void assert_what_is_not_held(struct three *l)
{
    lock_assert_held(&l->low);
}

static void go_down(struct three *l)
{
    lock_take(&l->middle);
    lock_check_order(&l->low);
}

static void take_it_again(struct three *l)
{
    lock_take(&l->middle);
    lock_check_order(&l->middle);
}

static void go_up(struct three *l)
{
    lock_take(&l->low);
    lock_check_order(&l->middle);
}

/* The signal that ended a process which does that, or 0. */
static int signal_of(void (*f)(struct three *l), struct three *l)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        signal(SIGABRT, SIG_DFL);
        log_set_level(LOG_LEVEL_ERROR + 1);
        f(l);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void a_wrong_use_ends_the_process(void **state)
{
    assert_int_equal(signal_of(release_what_is_not_held, *state), SIGABRT);
    assert_int_equal(signal_of(assert_what_is_not_held, *state), SIGABRT);
    assert_int_equal(signal_of(go_down, *state), SIGABRT);
    assert_int_equal(signal_of(take_it_again, *state), SIGABRT);
    assert_int_equal(signal_of(go_up, *state), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_is_taken_is_held_until_it_is_released),
        T(locks_are_released_in_any_order),
        T(another_thread_does_not_hold_it),
        T(a_wrong_use_ends_the_process),
    };
    return RUN(tests);
}
