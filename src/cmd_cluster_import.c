/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog cluster import: a broker that was alone becomes the first of a cluster. klogd does it, which alone knows ZooKeeper and the
 * locks of its directories; this is its command line. One thread.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "src/cluster.h"
#include "src/commands.h"

static const struct option_spec options[] = {
    { "zookeeper", 'z', "HOST:PORT/PATH", "zookeeper.connect, where the settings do not have it yet" },
    { NULL, 0, NULL, NULL },
};

static int run(const struct args *a)
{
    const char *to = args_get(a, "zookeeper", NULL);
    CLEANUP(freep) char *klogd = cluster_find_klogd();
    CLEANUP(freep) char *override = to == NULL ? NULL : xasprintf("zookeeper.connect=%s", to);
    const char *argv[] = { "klogd", "--import", a->operands[0], to == NULL ? NULL : "--override", override, NULL };

    execvp(klogd, (char *const *)(uintptr_t)argv);
    complain(a, "cannot run %s: %s", klogd, strerror(errno));
    return CLI_FAILED;
}

const struct command cmd_cluster_import = {
    .name = "import",
    .operands = "SETTINGS",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Takes the registers of a broker that was alone into ZooKeeper",
    .text = "SETTINGS is the broker's klogd.properties; the broker must not run. Its topics, their settings and its number stay, and "
            "so do its records, where they are. The path in ZooKeeper has to be empty. After it klogd starts with zookeeper.connect "
            "only, as the first broker of a cluster; replicas on others come by a reassignment. An import that was interrupted goes "
            "on when it is called again.",
    .examples = "klog cluster import /etc/klog/klogd.properties --zookeeper zk1:2181,zk2:2181/klog",
    .options = options,
    .run = run,
};
