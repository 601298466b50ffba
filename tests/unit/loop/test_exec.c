/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"
#include "world.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include "lib/base/attr.h"
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

/* ---- threads ---- */
struct seen {
    bool ran, blocked;
    char name[16];
};

static void look(void *arg)
{
    struct seen *s = arg;
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    s->blocked = sigismember(&set, SIGTERM) && sigismember(&set, SIGINT) && sigismember(&set, SIGHUP);
    s->ran = true;
}

static void a_thread_runs_with_all_signals_blocked_and_is_joined(void **state)
{
    (void)state;
    struct exec *e = test_world()->exec;
    struct seen s = { 0 };
    struct thread *t = e->thread_start(e, look, &s, "a name that is longer than fifteen bytes");
    assert_non_null(t);
    e->thread_join(e, t);
    assert_true(s.ran && s.blocked);
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    assert_false(sigismember(&set, SIGTERM)); /* only there */
}

static void run_a_loop(void *arg)
{
    loop_run(arg);
}

struct post {
    struct task t;
    struct loop *lp;
    bool was_mine;
};

static void see_whose(struct task *t)
{
    struct post *p = container_of(t, struct post, t);
    p->was_mine = loop_is_mine(p->lp);
    loop_stop(p->lp);
}

static void a_loop_on_a_thread_is_its_own_and_ends_when_it_is_stopped(void **state)
{
    struct exec *e = test_world()->exec;
    struct post p = { .t.cb = see_whose, .lp = *state };
    struct thread *t = e->thread_start(e, run_a_loop, p.lp, "test");
    loop_post(p.lp, &p.t);
    assert_false(loop_is_mine(p.lp));
    e->thread_join(e, t);
    assert_true(p.was_mine);
}

/* ---- jobs ---- */
struct work {
    struct job j;
    sem_t *may_end;
    int *order, *n, id;
};

static void hold(struct job *j)
{
    struct work *w = container_of(j, struct work, j);
    if (w->may_end != NULL)
        while (sem_wait(w->may_end) < 0)
            continue;
}

static void note(struct job *j)
{
    struct work *w = container_of(j, struct work, j);
    w->order[(*w->n)++] = w->id;
}

/* One worker, at work on job 0 until the semaphore is posted; job 1 waits behind it, and 2 and 3. */
struct queue {
    struct workers *pool;
    sem_t may_end;
    struct work w[4];
    int order[8], n;
};

static void queue_begin(struct queue *q, struct loop *lp)
{
    *q = (struct queue){ .pool = workers_new(test_world(), 1, "test") };
    sem_init(&q->may_end, 0, 0);
    for (int i = 0; i < 4; i++) {
        q->w[i] = (struct work){ .j = { .run = hold, .done = note, .loop = lp }, .order = q->order, .n = &q->n, .id = i };
        q->w[i].may_end = i == 0 ? &q->may_end : NULL;
        workers_submit(q->pool, &q->w[i].j);
    }
}

static void queue_end(struct queue *q)
{
    workers_free(q->pool);
    sem_destroy(&q->may_end);
}

static void a_job_that_has_not_begun_can_be_taken_back_and_submitted_again(void **state)
{
    struct queue q;
    queue_begin(&q, *state);
    assert_true(workers_cancel(q.pool, &q.w[2].j));
    assert_false(workers_cancel(q.pool, &q.w[2].j)); /* it is not there any more */
    workers_submit(q.pool, &q.w[2].j);               /* now the last */
    assert_true(workers_cancel(q.pool, &q.w[1].j));
    sem_post(&q.may_end);
    while (q.n < 3)
        loop_run_once(*state, -1);
    queue_end(&q);
    assert_int_equal(loop_next_due_ms(*state), INT64_MAX); /* nothing else was posted */
    assert_int_equal(q.order[0], 0);
    assert_int_equal(q.order[1], 3);
    assert_int_equal(q.order[2], 2);
}

struct starting {
    struct job j;
    sem_t begun, may_end;
};

static void start_and_hold(struct job *j)
{
    struct starting *s = container_of(j, struct starting, j);
    sem_post(&s->begun);
    while (sem_wait(&s->may_end) < 0)
        continue;
}

static void a_job_that_has_begun_is_not_taken_back(void **state)
{
    (void)state;
    struct starting s = { .j = { .run = start_and_hold } };
    struct workers *pool = workers_new(test_world(), 1, "test");
    sem_init(&s.begun, 0, 0);
    sem_init(&s.may_end, 0, 0);
    workers_submit(pool, &s.j);
    while (sem_wait(&s.begun) < 0)
        continue;
    assert_false(workers_cancel(pool, &s.j));
    sem_post(&s.may_end);
    workers_free(pool);
    assert_false(s.j.loop != NULL);
    sem_destroy(&s.begun);
    sem_destroy(&s.may_end);
}

static void freeing_a_pool_runs_what_is_queued(void **state)
{
    struct queue q;
    queue_begin(&q, NULL); /* done on the worker */
    sem_post(&q.may_end);
    queue_end(&q);
    (void)state;
    assert_int_equal(q.n, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(q.order[i], i);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_thread_runs_with_all_signals_blocked_and_is_joined),
        T(a_loop_on_a_thread_is_its_own_and_ends_when_it_is_stopped),
        T(a_job_that_has_not_begun_can_be_taken_back_and_submitted_again),
        T(a_job_that_has_begun_is_not_taken_back),
        T(freeing_a_pool_runs_what_is_queued),
    };
    return RUN(tests);
}
