/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers work on: request.services. Filled by who starts the broker, before the server accepts; then immutable. */
#ifndef KLOG_DAEMON_SERVICES_H
#define KLOG_DAEMON_SERVICES_H

#include <stdint.h>

#include "daemon/config/broker_config.h"
#include "daemon/server/request.h"
#include "lib/loop/workers.h"

struct cluster;
struct coordinator;
struct logdirs;
struct partitions;
struct throttle;
struct world;

struct services {
    const struct world *world;
    int32_t id;                         /* this broker's */
    const struct broker_config *config; /* as the file and the command line say; with what was set since: the cluster's image */
    struct workers *workers;            /* for what may block or take long */
    struct logdirs *dirs;
    struct partitions *partitions;
    struct cluster *cluster;
    struct coordinator *coordinator;
    struct throttle *throttle; /* of leaders' throttled replicas */
};

#endif
