/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog cluster start: makes the directories and settings that are missing, starts what does not run, waits until all know of
 * each other, and shows it. Run again it starts what has ended since. One thread.
 */
#include <string.h>

#include "src/cluster.h"
#include "src/commands.h"

static const struct option_spec options[] = {
    { "brokers", 'n', "N", "how many brokers (default: those that are there, 3 in a new directory)" },
    { "rack", 'r', "A,B,C", "racks of new brokers, given out in turn" },
    { "port", 'p', "PORT", "of broker 1 when it is new, and one more for each after it (default 9092)" },
    { "zookeeper-port", 0, "PORT", "of a new ZooKeeper (default 2181)" },
    CLUSTER_OPTIONS,
    { NULL, 0, NULL, NULL },
};

static bool is_rack_list(const char *racks)
{
    return racks == NULL || (racks[0] != '\0' && strpbrk(racks, " \t\n\\#=") == NULL && racks[0] != ',' &&
                             strstr(racks, ",,") == NULL && racks[strlen(racks) - 1] != ',');
}

static int wanted_read(const struct args *a, struct cluster_wanted *w)
{
    int rc = args_get_int(a, "brokers", 1, CLUSTER_BROKERS_MAX, -1, &w->n_brokers);

    if (rc == CLI_OK)
        rc = args_get_int(a, "port", 1, 65535, 9092, &w->port);
    if (rc == CLI_OK)
        rc = args_get_int(a, "zookeeper-port", 1, 65535, 2181, &w->zookeeper_port);
    w->racks = args_get(a, "rack", NULL);
    if (rc == CLI_OK && !is_rack_list(w->racks))
        rc = complain_usage(a, "'%s' is no list of racks; it looks like A,B,C", w->racks);
    return rc;
}

static int run(const struct args *a)
{
    CLEANUP(cluster_done) struct cluster c = { 0 };
    struct cluster_wanted w;
    int rc = wanted_read(a, &w);

    if (rc == CLI_OK)
        rc = cluster_read(&c, a);
    if (rc == CLI_OK)
        rc = cluster_make(&c, &w);
    if (rc == CLI_OK)
        rc = cluster_start_zookeeper(&c);
    for (size_t i = 0; rc == CLI_OK && i < c.n_brokers; i++)
        rc = cluster_start_broker(&c, &c.brokers[i]);
    if (rc == CLI_OK)
        rc = cluster_wait_until_whole(&c);
    return rc == CLI_OK ? cluster_print(&c) : rc;
}

const struct command cmd_cluster_start = {
    .name = "start",
    .operands = "",
    .summary = "Starts ZooKeeper and some brokers on this machine, and makes what they need",
    .text = "Brokers listen on 127.0.0.1. Their settings, in DIR/broker-N/klogd.properties, are made once and are yours "
            "then.\n"
            "ZooKeeper is Debian's (libzookeeper-java). For several machines see docs/CLUSTER.md.",
    .examples = "klog cluster start --brokers 3\n"
                "klog cluster start --dir /tmp/c --rack A,B,C --port 19092 --zookeeper-port 12181",
    .options = options,
    .run = run,
};
