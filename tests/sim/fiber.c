/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibers, and the functions of pthreads that must give way instead of blocking; see fiber.h.
 *
 * What the real thread keeps for "this thread" (errno, lib/base/world.h's thread_state) is exchanged at each switch. Stacks
 * are used again and again. Under the address sanitizer each switch is announced to it.
 */
#include "tests/sim/fiber.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/thread_state.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
enum { STACK_BYTES = 1024 * 1024 };

/* What a process that was ended had in memory is never freed. */
int __lsan_is_turned_off(void)
{
    return 1;
}
#else
enum { STACK_BYTES = 256 * 1024 };
#endif

enum {
    SPARE_STACKS = 64,
    HELD_MAX = 12,
    LOCK_PATIENCE_S = 600, /* who waits longer for a lock will never get it */
};

/* ---- contexts ---- */
/* ucontext asks the kernel for the signal mask at each switch, which is most of what a switch costs. */
#ifdef __x86_64__
struct context {
    void *sp; /* below it: what a called function must keep */
};

void sim_context_switch(void **save_sp, void *load_sp);
__asm__(".text\n"
        ".globl sim_context_switch\n"
        ".type sim_context_switch, @function\n"
        "sim_context_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size sim_context_switch, .-sim_context_switch\n");

static void context_make(struct context *c, uint8_t *stack, size_t n, void (*f)(void))
{
    void **sp = (void **)(void *)(stack + n);
    *--sp = NULL; /* f returns to nobody */
    *--sp = (void *)(uintptr_t)f;
    for (int i = 0; i < 6; i++)
        *--sp = NULL;
    c->sp = sp;
}

static void context_switch(struct context *from, struct context *to)
{
    sim_context_switch(&from->sp, to->sp);
}
#else
struct context {
    ucontext_t u;
};

static void context_make(struct context *c, uint8_t *stack, size_t n, void (*f)(void))
{
    getcontext(&c->u);
    c->u.uc_stack.ss_sp = stack;
    c->u.uc_stack.ss_size = n;
    c->u.uc_link = NULL;
    makecontext(&c->u, f, 0);
}

static void context_switch(struct context *from, struct context *to)
{
    swapcontext(&from->u, &to->u);
}
#endif

enum fiber_state { FIBER_RUNNING, FIBER_READY, FIBER_WAITING, FIBER_ENDED };

struct fiber {
    struct sim_step step; /* resumes it */
    struct fibers *fs;
    enum fiber_state state;
    bool by_time; /* it was the time that ended its waiting */
    bool dropped; /* nobody joins it: the scheduler frees it when it has ended */
    char name[16];
    const char *waits_for;
    void (*main)(void *arg);
    void *arg;
    struct fiber *joiner;
    LIST_ENTRY(fiber) link;
    struct fiber_queue *in; /* what it waits in */
    TAILQ_ENTRY(fiber) wait_link;
    const void *wants;           /* the lock it waits for */
    const void *held[HELD_MAX];  /* mutexes */
    int n_held;

    struct context context;
    uint8_t *stack;
    int saved_errno;
    struct thread_state saved_state;
    void *fake_stack;
};

/* The one real thread's. */
static struct fiber *current;
static struct context scheduler;
static void *scheduler_fake_stack;
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
static uint8_t *spare[SPARE_STACKS];
static int n_spare;

/* ---- stacks ---- */
static uint8_t *stack_get(void)
{
    if (n_spare > 0)
        return spare[--n_spare];
    void *p = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    KCHECK(p != MAP_FAILED);
    mprotect(p, 4096, PROT_NONE);
    return p;
}

static void stack_put(uint8_t *stack)
{
#ifdef WITH_ASAN
    __asan_unpoison_memory_region(stack, STACK_BYTES);
#endif
    if (n_spare < SPARE_STACKS)
        spare[n_spare++] = stack;
    else
        munmap(stack, STACK_BYTES);
}

/* ---- switching ---- */
static void before_switch(void **fake, const void *stack, size_t n)
{
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(fake, stack, n);
#else
    (void)fake;
    (void)stack;
    (void)n;
#endif
}

static void after_switch(void *fake, const void **stack, size_t *n)
{
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(fake, stack, n);
#else
    (void)fake;
    (void)stack;
    (void)n;
#endif
}

/* From the current fiber to the scheduler; returns when it is resumed. */
static void switch_away(void)
{
    struct fiber *me = current;
    me->saved_errno = errno;
    me->saved_state = thread_state;
    before_switch(me->state == FIBER_ENDED ? NULL : &me->fake_stack, scheduler_stack, scheduler_stack_bytes);
    context_switch(&me->context, &scheduler);
    after_switch(me->fake_stack, &scheduler_stack, &scheduler_stack_bytes);
    errno = me->saved_errno;
    thread_state = me->saved_state;
}

static void fiber_free(struct fiber *f)
{
    sim_cancel(f->fs->sim, &f->step);
    stack_put(f->stack);
    free(f);
}

static void fiber_main(void)
{
    struct fiber *me = current;
    after_switch(NULL, &scheduler_stack, &scheduler_stack_bytes);
    me->main(me->arg);
    KCHECK(me->n_held == 0);
    me->state = FIBER_ENDED;
    if (me->joiner != NULL)
        fiber_wake(me->joiner);
    switch_away();
    abort();
}

/* A step of the scheduler's. */
static void fiber_resume(struct sim_step *st)
{
    struct fiber *f = container_of(st, struct fiber, step);
    struct fibers *fs = f->fs;
    KCHECK(current == NULL);
    if (fs->stopped_until_ns > sim_now(fs->sim)) {
        sim_at(fs->sim, st, fs->stopped_until_ns);
        return;
    }
    f->by_time = f->state == FIBER_WAITING;
    f->state = FIBER_RUNNING;
    struct thread_state mine = thread_state;
    current = f;
    before_switch(&scheduler_fake_stack, f->stack, STACK_BYTES);
    context_switch(&scheduler, &f->context);
    after_switch(scheduler_fake_stack, NULL, NULL);
    current = NULL;
    thread_state = mine;
    if (f->state == FIBER_ENDED && f->dropped) {
        LIST_REMOVE(f, link);
        fiber_free(f);
    }
}

/* ---- life ---- */
void fibers_init(struct fibers *fs, struct sim *s, struct rnd rnd)
{
    *fs = (struct fibers){ .sim = s, .rnd = rnd, .slow = 1 };
    LIST_INIT(&fs->all);
    TAILQ_INIT(&fs->blocked);
}

/* What a thread does between two places where it waits takes a little, and now and then it has to wait for a processor. */
static int64_t turn_ns(struct fibers *fs)
{
    int64_t ns = rnd_range(&fs->rnd, 500, 20 * SIM_US);
    if (rnd_one_in(&fs->rnd, 500))
        ns += rnd_log(&fs->rnd, 100 * SIM_US, 20 * SIM_MS);
    return ns * fs->slow;
}

struct fiber *fiber_start(struct fibers *fs, void (*main)(void *arg), void *arg, const char *name)
{
    struct fiber *f = xcalloc(1, sizeof *f);
    f->step.run = fiber_resume;
    f->fs = fs;
    f->state = FIBER_READY;
    snprintf(f->name, sizeof f->name, "%s", name);
    f->main = main;
    f->arg = arg;
    f->stack = stack_get();
    context_make(&f->context, f->stack, STACK_BYTES, fiber_main);
    LIST_INSERT_HEAD(&fs->all, f, link);
    sim_in(fs->sim, &f->step, turn_ns(fs));
    return f;
}

void fiber_join(struct fiber *f)
{
    KCHECK(f->joiner == NULL);
    f->joiner = current;
    while (f->state != FIBER_ENDED)
        fiber_wait(INT64_MAX, "the end of another");
    LIST_REMOVE(f, link);
    fiber_free(f);
}

void fiber_detach(struct fiber *f)
{
    f->dropped = true;
}

void fibers_drop(struct fibers *fs)
{
    struct fiber *next, *me = NULL;
    for (struct fiber *f = LIST_FIRST(&fs->all); f != NULL; f = next) {
        next = LIST_NEXT(f, link);
        if (f == current)
            me = f;
        else
            fiber_free(f);
    }
    LIST_INIT(&fs->all);
    TAILQ_INIT(&fs->blocked);
    if (me == NULL)
        return;
    LIST_INSERT_HEAD(&fs->all, me, link);
    me->state = FIBER_ENDED;
    me->dropped = true;
    switch_away();
    abort();
}

void fibers_print(const struct fibers *fs)
{
    struct fiber *f;
    LIST_FOREACH (f, &fs->all, link)
        fprintf(stdout, "  %-16s %s%s, %d locks held\n", f->name,
                f->state == FIBER_WAITING ? "waits for " : f->state == FIBER_ENDED ? "has ended" : "is ready",
                f->state == FIBER_WAITING ? f->waits_for : "", f->n_held);
}

struct fiber *fiber_now(void)
{
    return current;
}

struct fibers *fiber_fibers(const struct fiber *f)
{
    return f->fs;
}

const char *fiber_name(const struct fiber *f)
{
    return f->name;
}

/* ---- waiting ---- */
bool fiber_wait(int64_t until_ns, const char *what)
{
    struct fiber *me = current;
    KCHECK(me != NULL);
    me->state = FIBER_WAITING;
    me->waits_for = what;
    if (until_ns != INT64_MAX)
        sim_at(me->fs->sim, &me->step, until_ns);
    switch_away();
    return !me->by_time;
}

void fiber_sleep(int64_t ns)
{
    KCHECK(current != NULL);
    fiber_wait(sim_now(current->fs->sim) + ns * current->fs->slow, "time");
}

static void leave_queue(struct fiber *f)
{
    if (f->in != NULL)
        TAILQ_REMOVE(f->in, f, wait_link);
    f->in = NULL;
}

void fiber_wake(struct fiber *f)
{
    if (f->state != FIBER_WAITING)
        return;
    leave_queue(f);
    f->state = FIBER_READY;
    sim_in(f->fs->sim, &f->step, turn_ns(f->fs));
}

bool fiber_wait_in(struct fiber_queue *q, int64_t until_ns, const char *what)
{
    struct fiber *me = current;
    KCHECK(me != NULL && me->in == NULL);
    me->in = q;
    TAILQ_INSERT_TAIL(q, me, wait_link);
    bool woken = fiber_wait(until_ns, what);
    leave_queue(me);
    return woken;
}

void fiber_wake_one(struct fiber_queue *q)
{
    if (!TAILQ_EMPTY(q))
        fiber_wake(TAILQ_FIRST(q));
}

void fiber_wake_all(struct fiber_queue *q)
{
    while (!TAILQ_EMPTY(q))
        fiber_wake(TAILQ_FIRST(q));
}

/* ---- locks ---- */
/* Each lock of klog is a mutex or a rwlock of pthreads, and belongs to one process. */
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_mutex_trylock(pthread_mutex_t *m);
int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __real_pthread_rwlock_rdlock(pthread_rwlock_t *l);
int __real_pthread_rwlock_wrlock(pthread_rwlock_t *l);
int __real_pthread_rwlock_unlock(pthread_rwlock_t *l);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *l);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *l);
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *l);

static void hold(const void *lock)
{
    KCHECK(current->n_held < HELD_MAX);
    current->held[current->n_held++] = lock;
}

static void let_go(const void *lock)
{
    struct fiber *me = current;
    for (int i = me->n_held - 1; i >= 0; i--) {
        if (me->held[i] == lock) {
            me->held[i] = me->held[--me->n_held];
            return;
        }
    }
    sim_fail(me->fs->sim, "LOCK", "%s gives a lock back that it does not hold", me->name);
}

static void wait_for_lock(const void *lock)
{
    struct fiber *me = current;
    struct sim *s = me->fs->sim;
    for (int i = 0; i < me->n_held; i++)
        if (me->held[i] == lock)
            sim_fail(s, "LOCK", "%s waits for a lock that it holds", me->name);
    me->wants = lock;
    if (!fiber_wait_in(&me->fs->blocked, sim_now(s) + LOCK_PATIENCE_S * SIM_S, "a lock")) {
        fibers_print(me->fs);
        sim_fail(s, "LOCK", "%s has waited for a lock for %d s", me->name, LOCK_PATIENCE_S);
    }
    me->wants = NULL;
}

static void wake_who_wants(const void *lock)
{
    struct fiber *f, *next;
    for (f = TAILQ_FIRST(&current->fs->blocked); f != NULL; f = next) {
        next = TAILQ_NEXT(f, wait_link);
        if (f->wants == lock)
            fiber_wake(f);
    }
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    if (current == NULL)
        return __real_pthread_mutex_lock(m);
    while (__real_pthread_mutex_trylock(m) == EBUSY)
        wait_for_lock(m);
    hold(m);
    return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
    int rc = __real_pthread_mutex_trylock(m);
    if (current != NULL && rc == 0)
        hold(m);
    return rc;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    int rc = __real_pthread_mutex_unlock(m);
    if (current != NULL) {
        let_go(m);
        wake_who_wants(m);
    }
    return rc;
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
    if (current == NULL)
        return __real_pthread_rwlock_rdlock(l);
    while (pthread_rwlock_tryrdlock(l) == EBUSY)
        wait_for_lock(l);
    hold(l);
    return 0;
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
    if (current == NULL)
        return __real_pthread_rwlock_wrlock(l);
    while (pthread_rwlock_trywrlock(l) == EBUSY)
        wait_for_lock(l);
    hold(l);
    return 0;
}

int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *l)
{
    int rc = __real_pthread_rwlock_unlock(l);
    if (current != NULL) {
        let_go(l);
        wake_who_wants(l);
    }
    return rc;
}
