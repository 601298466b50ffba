/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"
#include "world.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "lib/loop/conn.h"
#include "lib/loop/net.h"
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

/* ---- waking ---- */
/* A network of which the test sees the order of what it is asked. */
struct trace {
    char text[64];
    sem_t asleep;
};
static struct trace trace;

static void note_call(const char *what)
{
    size_t n = strlen(trace.text);
    snprintf(trace.text + n, sizeof trace.text - n, "%s ", what);
}

static void wake_traced(struct poller *p)
{
    note_call("wake");
    net_real.poller_wake(p);
}

static int64_t writev_traced(const struct net *n, int fd, const struct iovec *iov, int n_iov, bool more)
{
    note_call("write");
    return net_real.writev(n, fd, iov, n_iov, more);
}

static int wait_traced(struct poller *p, struct poll_event *ret, int max, int timeout_ms)
{
    if (timeout_ms != 0)
        sem_post(&trace.asleep);
    return net_real.poller_wait(p, ret, max, timeout_ms);
}

struct request {
    struct task arrives, a, b;
    struct loop *other;
    struct conn *c;
    int n_ran;
};

static void other_ran(struct task *t)
{
    struct request *r = container_of(t, struct request, a);
    loop_stop(r->other);
    r->n_ran++;
}

static void also_ran(struct task *t)
{
    container_of(t, struct request, b)->n_ran++;
}

static void on_request(struct task *t)
{
    struct request *r = container_of(t, struct request, arrives);
    loop_post(r->other, &r->b);
    loop_post(r->other, &r->a);
    struct rcbuf *answer = rcbuf_new(3);
    memcpy(answer->p, "abc", 3);
    answer->n = 3;
    conn_send(r->c, answer, 0, 3);
    rcbuf_unref(answer);
}

static void an_answer_goes_out_before_another_loop_is_woken(void **state)
{
    (void)state;
    static const struct conn_ops no_ops;
    struct net net = net_real;
    net.poller_wake = wake_traced;
    net.poller_wait = wait_traced;
    net.writev = writev_traced;
    struct world w = *test_world();
    w.net = &net;
    trace = (struct trace){ 0 };
    sem_init(&trace.asleep, 0, 0);

    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    struct loop *lp = loop_new(&w);
    struct request r = { .arrives.cb = on_request, .a.cb = other_ran, .b.cb = also_ran, .other = loop_new(&w) };
    r.c = conn_new(lp, fds[0], &no_ops, &(struct conn_limits){ .frame_max = 100, .sndbuf = -1, .rcvbuf = -1 }, NULL);
    struct thread *t = w.exec->thread_start(w.exec, run_a_loop, r.other, "test");
    while (sem_wait(&trace.asleep) < 0)
        continue;
    loop_post(lp, &r.arrives);
    loop_run_once(lp, 0);
    assert_string_equal(trace.text, "write wake ");
    w.exec->thread_join(w.exec, t);
    assert_int_equal(r.n_ran, 2);

    conn_close(r.c);
    loop_free(lp);
    loop_free(r.other);
    close(fds[1]);
    sem_destroy(&trace.asleep);
}

/* ---- jobs ---- */
struct work {
    struct job j;
    int *order, *n, id;
};

static void note_job(struct job *j)
{
    struct work *w = container_of(j, struct work, j);
    w->order[(*w->n)++] = w->id;
}

static void freeing_a_pool_runs_what_is_queued_in_its_order(void **state)
{
    (void)state;
    int order[50], n = 0;
    struct work w[50];
    struct workers *pool = workers_new(test_world(), 1, "test");
    for (int i = 0; i < 50; i++) {
        w[i] = (struct work){ .j = { .run = note_job }, .order = order, .n = &n, .id = i };
        workers_submit(pool, &w[i].j);
    }
    workers_free(pool);
    assert_int_equal(n, 50);
    for (int i = 0; i < 50; i++)
        assert_int_equal(order[i], i);
}

static void run_nothing(struct job *j)
{
    (void)j;
}

static void a_pool_that_is_made_smaller_and_larger_does_all_jobs(void **state)
{
    int order[60], n = 0, width[3] = { 1, 6, 3 };
    struct work w[60];
    struct workers *pool = workers_new(test_world(), 4, "test");
    for (int i = 0; i < 60; i++) {
        if (i % 20 == 10)
            assert_int_equal(workers_resize(pool, width[i / 20]), width[i / 20]);
        w[i] = (struct work){ .j = { .run = run_nothing, .done = note_job, .loop = *state }, .order = order, .n = &n };
        workers_submit(pool, &w[i].j);
    }
    while (n < 60)
        loop_run_once(*state, -1);
    workers_free(pool);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_thread_runs_with_all_signals_blocked_and_is_joined),
        T(a_loop_on_a_thread_is_its_own_and_ends_when_it_is_stopped),
        T(an_answer_goes_out_before_another_loop_is_woken),
        T(freeing_a_pool_runs_what_is_queued_in_its_order),
        T(a_pool_that_is_made_smaller_and_larger_does_all_jobs),
    };
    return RUN(tests);
}
