/* SPDX-License-Identifier: Apache-2.0 */
/* The commands, one a file; main.c and klog_man.c hang them on klog_root (commands.c). */
#ifndef KLOG_SRC_COMMANDS_H
#define KLOG_SRC_COMMANDS_H

#include "src/cli.h"

extern const struct command cmd_topic_create, cmd_topic_list, cmd_topic_describe, cmd_topic_alter,
    cmd_topic_delete;
extern const struct command cmd_config_get, cmd_config_set;
extern const struct command cmd_group_list, cmd_group_describe, cmd_group_reset, cmd_group_delete;
extern const struct command cmd_cluster_start, cmd_cluster_stop, cmd_cluster_status, cmd_cluster_kill, cmd_cluster_import,
    cmd_cluster_start_broker;
extern const struct command cmd_reassign_plan, cmd_reassign_run, cmd_reassign_status, cmd_reassign_cancel, cmd_leader_elect;
extern const struct command cmd_cat, cmd_tail, cmd_append, cmd_ls, cmd_trim;
extern const struct command cmd_offsets;
extern const struct command cmd_dump;
extern const struct command cmd_verify;
extern const struct command cmd_ping;
extern const struct command cmd_run;

#endif
