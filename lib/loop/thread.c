/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/loop/thread.h"

#include <semaphore.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/loop/loop.h"

struct loop_call {
    struct task task;
    void (*f)(void *arg);
    void *arg;
    sem_t done;
};

static void call_run(struct task *t)
{
    struct loop_call *call = container_of(t, struct loop_call, task);
    call->f(call->arg);
    sem_post(&call->done);
}

void loop_call(struct loop *lp, void (*f)(void *arg), void *arg)
{
    struct loop_call call = { .task.cb = call_run, .f = f, .arg = arg };
    sem_init(&call.done, 0, 0);
    loop_post(lp, &call.task);
    while (sem_wait(&call.done) < 0)
        ;
    sem_destroy(&call.done);
}
