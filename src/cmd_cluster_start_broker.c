/* SPDX-License-Identifier: Apache-2.0 */
/* klog cluster start-broker: one broker of a cluster on this machine, after it was killed or has ended. One thread. */
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
    rc = cluster_start_zookeeper(&c);
    if (rc == CLI_OK)
        rc = cluster_start_broker(&c, b);
    return rc == CLI_OK ? cluster_wait_until_whole(&c) : rc;
}

const struct command cmd_cluster_start_broker = {
    .name = "start-broker",
    .operands = "BROKER",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Starts one broker of a cluster on this machine again",
    .text = "It returns when the others know of the broker. Nothing happens when it runs already.",
    .examples = "klog cluster start-broker 2",
    .options = options,
    .run = run,
};
