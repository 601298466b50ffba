/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reactor: the order in which timers, descriptors, tasks and deferred work run, that none starves the others, what other
 * threads may do to it, and how it ends. Time is waited for only where a thread has to be seen asleep.
 */
#include "unit.h"
#include "world.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "lib/base/clock.h"
#include "lib/loop/loop.h"
#include "lib/loop/workers.h"

static int setup(void **state)
{
    *state = loop_new(test_world());
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    loop_free(*state);
    return 0;
}

/* ---- timers ---- */
struct ticker {
    struct timer t;
    struct loop *lp;
    struct ticker *victim;
    int *order, *n, id;
};

static void tick(struct timer *t)
{
    struct ticker *k = container_of(t, struct ticker, t);
    k->order[(*k->n)++] = k->id;
    if (k->victim != NULL)
        timer_clear(k->lp, &k->victim->t);
}

static void timers_run_in_the_order_of_their_due_times(void **state)
{
    struct loop *lp = *state;
    int order[100], n = 0;
    struct ticker k[100];
    for (int i = 0; i < 100; i++) {
        k[i] = (struct ticker){ .t.cb = tick, .lp = lp, .order = order, .n = &n, .id = i * 37 % 100 };
        timer_set(lp, &k[i].t, loop_now_ms(lp) - 1000 + k[i].id);
    }
    loop_run_once(lp, 0);
    assert_int_equal(n, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(order[i], i);
}

static void a_timer_at_the_end_of_time_never_runs(void **state)
{
    struct loop *lp = *state;
    int order[4], n = 0;
    struct ticker never = { .t.cb = tick, .order = order, .n = &n, .id = 1 };
    struct ticker now = { .t.cb = tick, .order = order, .n = &n, .id = 2 };
    timer_set_in(lp, &never.t, INT64_MAX);
    timer_set_in(lp, &now.t, -5);
    assert_int_equal(never.t.due_ms, INT64_MAX);
    loop_run_once(lp, 0);
    assert_int_equal(n, 1);
    assert_int_equal(order[0], 2);
    timer_clear(lp, &never.t);
}

static void a_moved_timer_runs_once_at_its_new_time(void **state)
{
    struct loop *lp = *state;
    int order[4], n = 0;
    struct ticker a = { .t.cb = tick, .order = order, .n = &n, .id = 1 };
    struct ticker b = { .t.cb = tick, .order = order, .n = &n, .id = 2 };
    int64_t now = loop_now_ms(lp);
    timer_set(lp, &a.t, now - 5);
    timer_set(lp, &b.t, now - 4);
    timer_set(lp, &a.t, now - 3);
    loop_run_once(lp, 0);
    assert_int_equal(n, 2);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[1], 1);
    assert_false(timer_is_set(&a.t));

    timer_set(lp, &a.t, now + 3600 * 1000);
    timer_set(lp, &a.t, now - 1);
    loop_run_once(lp, 0);
    assert_int_equal(n, 3);
}

static void a_timer_cleared_by_an_earlier_one_does_not_run(void **state)
{
    struct loop *lp = *state;
    int order[4], n = 0;
    struct ticker b = { .t.cb = tick, .lp = lp, .order = order, .n = &n, .id = 2 };
    struct ticker a = { .t.cb = tick, .lp = lp, .victim = &b, .order = order, .n = &n, .id = 1 };
    timer_set(lp, &a.t, loop_now_ms(lp) - 2);
    timer_set(lp, &b.t, loop_now_ms(lp) - 1);
    loop_run_once(lp, 0);
    assert_int_equal(n, 1);
    assert_false(timer_is_set(&b.t));
}

static void a_round_waits_for_the_next_timer_and_no_longer(void **state)
{
    struct loop *lp = *state;
    int order[1], n = 0;
    struct ticker a = { .t.cb = tick, .order = order, .n = &n };
    int64_t start = clock_mono_ms();
    timer_set(lp, &a.t, start + 20);
    while (n == 0)
        loop_run_once(lp, -1);
    assert_true(clock_mono_ms() - start >= 20);
}

/* ---- descriptors ---- */
struct watched {
    struct loop_fd w;
    struct loop *lp;
    struct watched *victim;
    int calls;
};

static void on_readable(struct loop_fd *w, uint32_t events)
{
    struct watched *x = container_of(w, struct watched, w);
    assert_true(events & EPOLLIN);
    x->calls++;
    loop_fd_del(x->lp, &x->victim->w);
}

static void a_descriptor_deleted_in_the_same_round_is_not_called(void **state)
{
    struct loop *lp = *state;
    int p[2], q[2];
    assert_int_equal(pipe(p), 0);
    assert_int_equal(pipe(q), 0);
    struct watched a = { .w = { .fd = p[0], .events = EPOLLIN, .cb = on_readable }, .lp = lp };
    struct watched b = { .w = { .fd = q[0], .events = EPOLLIN, .cb = on_readable }, .lp = lp };
    a.victim = &b;
    b.victim = &a;
    assert_int_equal(loop_fd_add(lp, &a.w), 0);
    assert_int_equal(loop_fd_add(lp, &b.w), 0);
    assert_int_equal(write(p[1], "x", 1), 1);
    assert_int_equal(write(q[1], "x", 1), 1);

    loop_run_once(lp, -1);
    assert_int_equal(a.calls + b.calls, 1);

    for (int i = 0; i < 2; i++) {
        close(p[i]);
        close(q[i]);
    }
}

/* ---- tasks ---- */
struct counted {
    struct task t;
    struct loop *lp;
    struct task *victim;
    int calls;
    bool again;
};

static void count(struct task *t)
{
    struct counted *c = container_of(t, struct counted, t);
    c->calls++;
    if (c->victim != NULL)
        loop_cancel(c->lp, c->victim);
    if (c->again)
        loop_post(c->lp, t);
}

static void a_task_posted_twice_runs_once(void **state)
{
    struct loop *lp = *state;
    struct counted c = { .t.cb = count };
    loop_post(lp, &c.t);
    loop_post(lp, &c.t);
    loop_run_once(lp, 0);
    assert_int_equal(c.calls, 1);
    loop_run_once(lp, 0);
    assert_int_equal(c.calls, 1);
}

static void a_task_that_posts_itself_runs_once_a_round(void **state)
{
    struct loop *lp = *state;
    struct counted c = { .t.cb = count, .lp = lp, .again = true };
    loop_post(lp, &c.t);
    for (int i = 1; i <= 3; i++) {
        loop_run_once(lp, -1);
        assert_int_equal(c.calls, i);
    }
    loop_cancel(lp, &c.t);
}

static void a_cancelled_task_does_not_run(void **state)
{
    struct loop *lp = *state;
    struct counted b = { .t.cb = count };
    struct counted a = { .t.cb = count, .lp = lp, .victim = &b.t };
    loop_post(lp, &a.t);
    loop_post(lp, &b.t);
    loop_run_once(lp, 0);
    assert_int_equal(a.calls, 1);
    assert_int_equal(b.calls, 0);
}

static void count_slowly(struct task *t)
{
    for (int64_t until_ms = clock_mono_ms() + 10; clock_mono_ms() < until_ms;)
        continue;
    count(t);
}

static void after_a_long_task_descriptors_and_timers_get_their_turn(void **state)
{
    struct loop *lp = *state;
    struct counted slow[3] = { { .t.cb = count_slowly }, { .t.cb = count_slowly }, { .t.cb = count_slowly } };
    for (int i = 0; i < 3; i++)
        loop_post(lp, &slow[i].t);
    for (int i = 1; i <= 3; i++) {
        loop_run_once(lp, -1);
        assert_int_equal(slow[0].calls + slow[1].calls + slow[2].calls, i);
        assert_int_equal(slow[i - 1].calls, 1);
    }
}

static void *post_from_a_thread(void *arg)
{
    struct counted *c = arg;
    loop_post(c->lp, &c->t);
    return NULL;
}

static void a_post_from_another_thread_wakes_a_sleeping_loop(void **state)
{
    struct loop *lp = *state;
    struct counted c = { .t.cb = count, .lp = lp };
    pthread_t th;
    assert_int_equal(pthread_create(&th, NULL, post_from_a_thread, &c), 0);
    while (c.calls == 0)
        loop_run_once(lp, -1);
    assert_int_equal(pthread_join(th, NULL), 0);
}

static void *stop_from_a_thread(void *arg)
{
    assert_false(loop_is_mine(arg));
    loop_stop(arg);
    return NULL;
}

static void a_stop_from_another_thread_ends_the_run(void **state)
{
    struct loop *lp = *state;
    pthread_t th;
    assert_false(loop_is_mine(lp));
    assert_int_equal(pthread_create(&th, NULL, stop_from_a_thread, lp), 0);
    loop_run(lp);
    assert_int_equal(pthread_join(th, NULL), 0);
}

struct last_words {
    struct task ask, answer;
    struct loop *lp;
    int answered;
};

static void last_answer(struct task *t)
{
    container_of(t, struct last_words, answer)->answered++;
}

/* Another thread was told already that all is done, and stops the loop. */
static void last_ask(struct task *t)
{
    struct last_words *w = container_of(t, struct last_words, ask);
    loop_post(w->lp, &w->answer);
    loop_stop(w->lp);
}

static void what_was_posted_before_a_stop_still_runs(void **state)
{
    struct loop *lp = *state;
    struct last_words w = { .ask.cb = last_ask, .answer.cb = last_answer, .lp = lp };
    loop_post(lp, &w.ask);
    loop_run(lp);
    assert_int_equal(w.answered, 1);
}

static void a_stop_waits_for_all_that_was_posted_before_it_however_long_that_takes(void **state)
{
    struct loop *lp = *state;
    struct counted slow[3] = { { .t.cb = count_slowly }, { .t.cb = count_slowly }, { .t.cb = count_slowly } };
    for (int i = 0; i < 3; i++)
        loop_post(lp, &slow[i].t);
    loop_stop(lp);
    assert_false(loop_run_once(lp, 0));
    for (int i = 0; i < 3; i++)
        assert_int_equal(slow[i].calls, 1);
}

/* ---- workers ---- */
struct work {
    struct job j;
    pthread_t ran_on;
    int *done;
};

static void work_run(struct job *j)
{
    container_of(j, struct work, j)->ran_on = pthread_self();
}

static void work_done(struct job *j)
{
    struct work *w = container_of(j, struct work, j);
    assert_false(pthread_equal(w->ran_on, pthread_self()));
    (*w->done)++;
}

static void jobs_run_on_workers_and_end_on_the_loop(void **state)
{
    struct loop *lp = *state;
    struct workers *pool = workers_new(test_world(), 2, "test");
    struct work w[50];
    int done = 0;
    for (int i = 0; i < 50; i++) {
        w[i] = (struct work){ .j = { .run = work_run, .done = work_done, .loop = lp }, .done = &done };
        workers_submit(pool, &w[i].j);
    }
    while (done < 50)
        loop_run_once(lp, -1);
    workers_free(pool);
}

struct resolved {
    bool called;
    int port;
    bool failed;
};

static void on_resolved(void *arg, struct addrinfo *list, const char *err)
{
    struct resolved *r = arg;
    r->called = true;
    r->failed = err != NULL;
    if (list != NULL && list->ai_family == AF_INET)
        r->port = ntohs(((struct sockaddr_in *)(void *)list->ai_addr)->sin_port);
}

static void a_numeric_address_resolves_without_a_worker_and_not_inside_the_call(void **state)
{
    struct resolved r = { 0 };
    resolve(NULL, *state, "127.0.0.1", "9092", on_resolved, &r);
    assert_false(r.called);
    loop_run_once(*state, 0);
    assert_true(r.called);
    assert_int_equal(r.port, 9092);
}

static void a_bad_name_is_told_as_an_error(void **state)
{
    struct workers *pool = workers_new(test_world(), 1, "test");
    struct resolved r = { 0 };
    resolve(pool, *state, "no such host", "9092", on_resolved, &r);
    while (!r.called)
        loop_run_once(*state, -1);
    assert_true(r.failed);
    workers_free(pool);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(timers_run_in_the_order_of_their_due_times),
        T(a_timer_at_the_end_of_time_never_runs),
        T(a_moved_timer_runs_once_at_its_new_time),
        T(a_timer_cleared_by_an_earlier_one_does_not_run),
        T(a_round_waits_for_the_next_timer_and_no_longer),
        T(a_descriptor_deleted_in_the_same_round_is_not_called),
        T(a_task_posted_twice_runs_once),
        T(a_task_that_posts_itself_runs_once_a_round),
        T(a_cancelled_task_does_not_run),
        T(after_a_long_task_descriptors_and_timers_get_their_turn),
        T(a_post_from_another_thread_wakes_a_sleeping_loop),
        T(a_stop_from_another_thread_ends_the_run),
        T(what_was_posted_before_a_stop_still_runs),
        T(a_stop_waits_for_all_that_was_posted_before_it_however_long_that_takes),
        T(jobs_run_on_workers_and_end_on_the_loop),
        T(a_numeric_address_resolves_without_a_worker_and_not_inside_the_call),
        T(a_bad_name_is_told_as_an_error),
    };
    return RUN(tests);
}
