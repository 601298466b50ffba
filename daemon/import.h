/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the registers of a broker that was alone into ZooKeeper, while it does not run: `klogd --import`, which `klog cluster
 * import` calls. After it the broker starts with zookeeper.connect, as the first of a cluster, and not without it any more.
 */
#ifndef KLOG_DAEMON_IMPORT_H
#define KLOG_DAEMON_IMPORT_H

#include <stddef.h>

#include "daemon/config/broker_config.h"

struct world;

/* Blocks. 0 and how many registers there were; -errno and a line: nothing is changed in the directories, and doing it again goes on
 * where it ended. */
int broker_import(const struct broker_config *c, const struct world *w, size_t *ret_n, char *err, size_t err_size);

#endif
