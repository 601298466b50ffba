/* SPDX-License-Identifier: Apache-2.0 */
/* What has a configuration: topics, this broker, and its one logger, root, whose level is log.level. */
#ifndef KLOG_DAEMON_CONFIG_RESOURCE_H
#define KLOG_DAEMON_CONFIG_RESOURCE_H

#include "daemon/server/request.h"

enum config_resource { CONFIG_RESOURCE_TOPIC = 2, CONFIG_RESOURCE_BROKER = 4, CONFIG_RESOURCE_LOGGER = 8 }; /* the protocol's numbers */

#define ROOT_LOGGER "root"
/* Kafka's words, in the order of log.level's. */
extern const char *const config_logger_levels[4];

bool config_resource_is_me(const struct request *r, struct kstr name);

#endif
