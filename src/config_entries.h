/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of topics and brokers: what config get, config set and topic alter share; see config_entries.c. */
#ifndef KLOG_SRC_CONFIG_ENTRIES_H
#define KLOG_SRC_CONFIG_ENTRIES_H

#include "src/session.h"

struct resource {
    int8_t type; /* Kafka's ConfigResource.Type */
    const char *name;
    int32_t broker_id; /* of a broker, -1 else */
};
enum { RESOURCE_TOPIC = 2, RESOURCE_BROKER = 4 };
enum config_op { CONFIG_OP_SET = 0, CONFIG_OP_DELETE = 1, CONFIG_OP_APPEND = 2, CONFIG_OP_SUBTRACT = 3 };

/* From the operands "topic NAME" or "broker ID". CLI_OK, or CLI_USAGE after saying why. */
int resource_parse(const struct args *a, struct resource *ret);

/* Is a broker of that id in the cluster? CLI_OK, or CLI_FAILED after saying why. */
int resource_find(struct session *s, const struct resource *r);

struct config_change {
    const char *key, *value; /* value NULL for a deletion */
    enum config_op op;
};
/* Reads "KEY=VALUE", "KEY+=VALUE", "KEY-=VALUE"; strings go to the session's arena. */
bool config_change_parse(struct session *s, const char *text, struct config_change *ret);
/* All or nothing. CLI_OK, or CLI_FAILED after saying why. */
int config_apply(struct session *s, const struct resource *r, const struct config_change *changes, size_t n,
                 bool dry_run);

#endif
