/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a configuration's own settings (KIP-339), before they become a register. Pure. */
#ifndef KLOG_DAEMON_CONFIG_OPS_H
#define KLOG_DAEMON_CONFIG_OPS_H

#include "daemon/meta/cluster.h"

/* Settings with owned strings, in the order in which they were first set. */
struct config_settings {
    struct topic_config_entry *entries;
    size_t n;
};
void config_settings_done(struct config_settings *s);

/* Applies the ops in order. effective: the struct of the table, for what APPEND and SUBTRACT start from when
 * the setting is not there. -EINVAL and one line in err for a key that is unknown or given twice, a missing
 * value, or a list op on what is no list. Values are not judged here. */
int config_settings_apply(struct config_settings *s, const struct conf_table *t, const void *effective,
                          const struct config_op *ops, int32_t n_ops, char *err, size_t err_size);

#endif
