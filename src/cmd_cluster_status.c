/* SPDX-License-Identifier: Apache-2.0 */
/* klog cluster status: what of a cluster on this machine runs, what each broker leads and what it lags behind. One thread. */
#include "src/cluster.h"
#include "src/commands.h"

static const struct option_spec options[] = {
    CLUSTER_OPTIONS,
    { NULL, 0, NULL, NULL },
};

static int run(const struct args *a)
{
    CLEANUP(cluster_done) struct cluster c = { 0 };
    int rc = cluster_read_made(&c, a);

    return rc == CLI_OK ? cluster_print(&c) : rc;
}

const struct command cmd_cluster_status = {
    .name = "status",
    .operands = "",
    .summary = "Shows the processes of a cluster on this machine, and what each broker leads",
    .text = "LEADS and REPLICAS count partitions; OUT-OF-SYNC those whose in-sync replicas the broker is none of. The state of a "
            "broker\n"
            "is 'not registered' as long as it cannot reach ZooKeeper, or has just come back.",
    .exits = "0 all run and answer, and each partition has a leader; 1 not so, or it cannot be told; 2 it was called wrongly.",
    .examples = "klog cluster status\n"
                "klog cluster status --json | jq 'select(.state != \"serves\")'",
    .options = options,
    .run = run,
};
