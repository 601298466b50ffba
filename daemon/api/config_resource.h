/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has a configuration: topics, this broker, and its one logger, root, whose level is log.level. Groups and client
 * metrics can be asked about and have nothing to set: Kafka's settings of them are of protocols that are not here.
 */
#ifndef KLOG_DAEMON_CONFIG_RESOURCE_H
#define KLOG_DAEMON_CONFIG_RESOURCE_H

#include "daemon/server/request.h"

enum config_resource { /* the protocol's numbers */
    CONFIG_RESOURCE_TOPIC = 2,
    CONFIG_RESOURCE_BROKER = 4,
    CONFIG_RESOURCE_LOGGER = 8,
    CONFIG_RESOURCE_CLIENT_METRICS = 16,
    CONFIG_RESOURCE_GROUP = 32,
};

#define ROOT_LOGGER "root"
/* Kafka's words, in the order of log.level's. */
extern const char *const config_logger_levels[4];

static inline bool config_resource_has_no_settings(int8_t type)
{
    return type == CONFIG_RESOURCE_CLIENT_METRICS || type == CONFIG_RESOURCE_GROUP;
}

bool config_resource_is_me(const struct request *r, struct kstr name);

#endif
