/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog cluster stop: all brokers at once, so that none takes over what another leaves, then ZooKeeper. What did not run is
 * no error: afterwards nothing does. One thread.
 */
#include <signal.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "src/cluster.h"
#include "src/commands.h"

static const struct option_spec options[] = {
    CLUSTER_OPTIONS,
    { NULL, 0, NULL, NULL },
};

/* CLI_OK when it has ended. */
static int wait_for_end(const struct cluster *c, struct cluster_ending *e, int64_t until_ms, const char *what)
{
    int err = e->err;

    if (cluster_ended(e, until_ms))
        return CLI_OK;
    if (err != 0)
        complain(c->args, "%s, process %d: %s", what, (int)e->pid, strerror(err));
    else
        complain(c->args, "%s, process %d, has not ended within %d s", what, (int)e->pid, (int)(c->timeout_ms / 1000));
    return CLI_FAILED;
}

static int stop_brokers(const struct cluster *c)
{
    struct cluster_ending *e = xcalloc(c->n_brokers, sizeof *e);
    int64_t until_ms = clock_mono_ms() + c->timeout_ms;
    int rc = CLI_OK;

    for (size_t i = 0; i < c->n_brokers; i++)
        e[i] = cluster_end_broker(&c->brokers[i], SIGTERM);
    for (size_t i = 0; i < c->n_brokers; i++) {
        CLEANUP(freep) char *what = xasprintf("broker %d", (int)c->brokers[i].id);
        if (wait_for_end(c, &e[i], until_ms, what) != CLI_OK)
            rc = CLI_FAILED;
    }
    free(e);
    return rc;
}

static int run(const struct args *a)
{
    CLEANUP(cluster_done) struct cluster c = { 0 };
    int rc = cluster_read_made(&c, a);

    if (rc != CLI_OK)
        return rc;
    rc = stop_brokers(&c);
    if (rc != CLI_OK)
        return rc; /* they need it to the end */
    struct cluster_ending e = cluster_end_zookeeper(&c, SIGTERM);
    return wait_for_end(&c, &e, clock_mono_ms() + c.timeout_ms, "ZooKeeper");
}

const struct command cmd_cluster_stop = {
    .name = "stop",
    .operands = "",
    .summary = "Stops the brokers of a cluster on this machine, and its ZooKeeper",
    .text = "The data stays; klog cluster start goes on with it.",
    .examples = "klog cluster stop",
    .options = options,
    .run = run,
};
