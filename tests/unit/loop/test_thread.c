/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, conditions, latches and calls into a loop, over the threads of a program. */
#include "unit.h"
#include "world.h"

#include "lib/base/world.h"
#include "lib/loop/exec.h"
#include "lib/loop/loop.h"
#include "lib/loop/thread.h"

/* ---- two threads hand a number to and fro ---- */
struct game {
    struct lock mu;
    struct cond moved;
    int ball; /* guarded by mu: even, the first one's turn */
};

enum { MOVES = 1000 };

static void play(struct game *g, int me)
{
    lock_take(&g->mu);
    while (g->ball < MOVES) {
        if (g->ball % 2 != me) {
            cond_wait(&g->moved, &g->mu);
            continue;
        }
        g->ball++;
        cond_signal(&g->moved);
    }
    cond_broadcast(&g->moved);
    lock_release(&g->mu);
}

static void play_second(void *arg)
{
    play(arg, 1);
}

static void a_signal_wakes_who_waits(void **state)
{
    (void)state;
    struct exec *e = test_world()->exec;
    struct game g = { 0 };
    lock_init(&g.mu, 1, "game");
    cond_init(&g.moved, e);
    struct thread *t = thread_start(e, play_second, &g, "second");
    assert_non_null(t);
    play(&g, 0);
    thread_join(e, t);
    assert_int_equal(g.ball, MOVES);
    cond_done(&g.moved);
    lock_done(&g.mu);
}

static void a_wait_ends_at_its_time(void **state)
{
    (void)state;
    const struct world *w = test_world();
    struct lock mu;
    lock_init(&mu, 1, "test");
    struct cond never;
    cond_init(&never, w->exec);
    int64_t until_ms = world_mono_ms(w) + 20;
    lock_take(&mu);
    while (world_mono_ms(w) < until_ms)
        cond_wait_until(&never, &mu, until_ms);
    cond_wait_until(&never, &mu, 0); /* long ago: at once */
    lock_release(&mu);
    cond_done(&never);
    lock_done(&mu);
}

/* ---- latches ---- */
static void open_it(void *arg)
{
    latch_open(arg);
}

static void a_latch_stays_open(void **state)
{
    (void)state;
    struct exec *e = test_world()->exec;
    for (int i = 0; i < 200; i++) { /* it is gone as soon as the wait is over */
        struct latch l;
        latch_init(&l, e);
        struct thread *t = thread_start(e, open_it, &l, "opener");
        assert_non_null(t);
        latch_wait(&l);
        latch_wait(&l);
        thread_join(e, t);
        latch_done(&l);
    }
}

/* ---- calls into a loop ---- */
struct called {
    struct loop *loop;
    bool was_there;
};

static void look(void *arg)
{
    struct called *c = arg;
    c->was_there = loop_is_mine(c->loop);
}

static void run_loop(void *arg)
{
    loop_run(arg);
}

static void a_call_runs_on_the_loop_and_is_over_when_it_returns(void **state)
{
    (void)state;
    struct exec *e = test_world()->exec;
    struct called c = { .loop = loop_new(test_world()) };
    assert_non_null(c.loop);
    struct thread *t = thread_start(e, run_loop, c.loop, "loop");
    assert_non_null(t);
    for (int i = 0; i < 100; i++) {
        c.was_there = false;
        loop_call(c.loop, look, &c);
        assert_true(c.was_there);
    }
    loop_stop(c.loop);
    thread_join(e, t);
    loop_free(c.loop);
}

static void nobody_is_joined_where_nobody_was(void **state)
{
    (void)state;
    thread_join(test_world()->exec, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_wakes_who_waits),
        cmocka_unit_test(a_wait_ends_at_its_time),
        cmocka_unit_test(a_latch_stays_open),
        cmocka_unit_test(a_call_runs_on_the_loop_and_is_over_when_it_returns),
        cmocka_unit_test(nobody_is_joined_where_nobody_was),
    };
    return RUN(tests);
}
