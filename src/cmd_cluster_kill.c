/* SPDX-License-Identifier: Apache-2.0 */
/* klog cluster kill: kill -9 of one broker of a cluster on this machine, to see what becomes of it. One thread. */
#include <signal.h>
#include <string.h>

#include "lib/base/clock.h"
#include "src/cluster.h"
#include "src/commands.h"

static const struct option_spec options[] = {
    CLUSTER_OPTIONS,
    { NULL, 0, NULL, NULL },
};

static int run(const struct args *a)
{
    CLEANUP(cluster_done) struct cluster c = { 0 };
    int64_t id;

    if (!args_int(a->operands[0], 1, CLUSTER_BROKERS_MAX, &id))
        return complain_usage(a, "'%s' is no broker's id", a->operands[0]);
    int rc = cluster_read_made(&c, a);
    if (rc != CLI_OK)
        return rc;
    const struct cluster_broker *b = cluster_broker_of(&c, id);
    if (b == NULL)
        return CLI_FAILED;
    struct cluster_ending e = cluster_end_broker(b, SIGKILL);
    if (e.pid == 0)
        complain(a, "broker %d does not run", (int)id);
    else if (e.err != 0)
        complain(a, "broker %d, process %d: %s", (int)id, (int)e.pid, strerror(e.err));
    else if (cluster_ended(&e, clock_mono_ms() + c.timeout_ms))
        return CLI_OK;
    else
        complain(a, "broker %d, process %d, has not ended", (int)id, (int)e.pid);
    return CLI_FAILED;
}

const struct command cmd_cluster_kill = {
    .name = "kill",
    .operands = "BROKER",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Kills one broker of a cluster on this machine at once (kill -9)",
    .text = "What it led is led by others within zookeeper.session.timeout.ms. klog cluster start-broker brings it back.",
    .examples = "klog cluster kill 2",
    .options = options,
    .run = run,
};
