/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names to addresses. getaddrinfo() may wait for a name server, so it runs on a worker; a numeric address is answered
 * without one, but never from inside the call, so that callers need not be ready for their own callback. What is found is
 * the callback's only while it runs.
 */
#include <netdb.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/loop/loop_int.h"
#include "lib/loop/net.h"
#include "lib/loop/workers.h"

struct resolve_job {
    struct job job;
    char *host, *port;
    struct addrinfo *list;
    int rc;
    void (*cb)(void *arg, struct addrinfo *list, const char *err);
    void *arg;
};

static int resolve_look_up(struct resolve_job *r, int flags)
{
    const struct net *net = loop_net(r->job.loop);
    return net->resolve(net, r->host, r->port, flags, &r->list);
}

static void resolve_run(struct job *j)
{
    struct resolve_job *r = container_of(j, struct resolve_job, job);
    r->rc = resolve_look_up(r, AI_ADDRCONFIG);
    /* A machine with only a loopback interface has no "configured" address family at all. */
    if (r->rc == EAI_NONAME || r->rc == EAI_ADDRFAMILY)
        r->rc = resolve_look_up(r, 0);
}

static void resolve_done(struct job *j)
{
    struct resolve_job *r = container_of(j, struct resolve_job, job);
    r->cb(r->arg, r->rc == 0 ? r->list : NULL, r->rc == 0 ? NULL : gai_strerror(r->rc));
    if (r->rc == 0)
        loop_net(r->job.loop)->free_addresses(loop_net(r->job.loop), r->list);
    free(r->host);
    free(r->port);
    free(r);
}

static void resolve_numeric_done(struct task *t)
{
    resolve_done(container_of(t, struct job, task));
}

void resolve(struct workers *w, struct loop *lp, const char *host, const char *port,
             void (*cb)(void *arg, struct addrinfo *list, const char *err), void *arg)
{
    struct resolve_job *r = xcalloc(1, sizeof *r);
    r->job = (struct job){ .run = resolve_run, .done = resolve_done, .loop = lp };
    r->host = xstrdup(host);
    r->port = xstrdup(port);
    r->cb = cb;
    r->arg = arg;
    r->rc = resolve_look_up(r, AI_NUMERICHOST | AI_NUMERICSERV);
    if (r->rc != 0) {
        workers_submit(w, &r->job);
        return;
    }
    r->job.task.cb = resolve_numeric_done;
    loop_post(lp, &r->job.task);
}
