/* SPDX-License-Identifier: Apache-2.0 */
/* What is the same of a pool whoever runs its jobs: see exec.h. */
#include "lib/loop/workers.h"

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/world.h"
#include "lib/loop/exec.h"
#include "lib/loop/loop_int.h"

struct workers *workers_new(const struct world *w, int width, const char *name)
{
    KCHECK(width > 0 && width <= WORKERS_MAX);
    return w->exec->workers_new(w->exec, width, name);
}

static void job_done(struct task *t)
{
    struct job *j = container_of(t, struct job, task);
    j->done(j);
}

void workers_submit(struct workers *w, struct job *j)
{
    KCHECK(j->run != NULL && (j->loop == NULL || j->done != NULL));
    j->task = (struct task){ .cb = job_done };
    w->exec->submit(w, j);
}

bool workers_cancel(struct workers *w, struct job *j)
{
    return w->exec->cancel(w, j);
}

int workers_resize(struct workers *w, int width)
{
    KCHECK(width > 0 && width <= WORKERS_MAX);
    return w->exec->workers_resize(w, width);
}

void workers_free(struct workers *w)
{
    if (w != NULL)
        w->exec->workers_free(w);
}

void job_run(struct job *j)
{
    j->run(j);
    if (j->loop != NULL)
        loop_post(j->loop, &j->task);
    else if (j->done != NULL)
        j->done(j);
}
