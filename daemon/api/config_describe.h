/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations as DescribeConfigs and CreateTopics show them: value, where it comes from, what stands
 * behind it. */
#ifndef KLOG_DAEMON_CONFIG_DESCRIBE_H
#define KLOG_DAEMON_CONFIG_DESCRIBE_H

#include "daemon/meta/cluster.h"
#include "lib/wire/wire.h"

enum config_source { /* the protocol's numbers */
                     CONFIG_SOURCE_TOPIC = 1,
                     CONFIG_SOURCE_DYNAMIC_BROKER = 2,
                     CONFIG_SOURCE_STATIC_BROKER = 4,
                     CONFIG_SOURCE_DEFAULT = 5,
                     CONFIG_SOURCE_DYNAMIC_LOGGER = 6,
};

/* Everything in out but its documentation comes from the arena. synonyms, documentation: whether they were
 * asked for. */
void config_describe_topic(struct arena *a, const struct conf_key *k, const struct topic_config *cfg,
                           const struct cluster_defaults *d, bool synonyms, bool documentation,
                           struct describe_configs_response_configs *out);
void config_describe_broker(struct arena *a, const struct conf_key *k, const struct cluster_defaults *d,
                            bool synonyms, bool documentation, struct describe_configs_response_configs *out);

#endif
