/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of commands: groups of them (topic, config, group, cluster) and their order, which is that of help,
 * completion and manual. A new command is named here and nowhere else. Constant data only.
 */
#include "src/commands.h"

static const struct command *const topic_children[] = { &cmd_topic_create,   &cmd_topic_list,
                                                        &cmd_topic_describe, &cmd_topic_alter,
                                                        &cmd_topic_delete,   NULL };
static const struct command cmd_topic = {
    .name = "topic",
    .operands = "",
    .summary = "Creates, lists, describes, alters and deletes topics",
    .online = true,
    .children = topic_children,
};

static const struct command *const config_children[] = { &cmd_config_get, &cmd_config_set, NULL };
static const struct command cmd_config = {
    .name = "config",
    .operands = "",
    .summary = "Shows and changes settings of topics and brokers",
    .online = true,
    .children = config_children,
};

static const struct command *const group_children[] = { &cmd_group_list, &cmd_group_describe,
                                                        &cmd_group_reset, &cmd_group_delete, NULL };
static const struct command cmd_group = {
    .name = "group",
    .operands = "",
    .summary = "Lists, describes, resets and deletes consumer groups",
    .online = true,
    .children = group_children,
};

static const struct command *const cluster_children[] = { &cmd_cluster_start, &cmd_cluster_stop,         &cmd_cluster_status,
                                                          &cmd_cluster_kill,  &cmd_cluster_start_broker, &cmd_cluster_import,
                                                          NULL };
static const struct command cmd_cluster = {
    .name = "cluster",
    .operands = "",
    .summary = "Runs a cluster on this machine: ZooKeeper and some brokers",
    .children = cluster_children,
};

static const struct command *const reassign_children[] = { &cmd_reassign_plan, &cmd_reassign_run, &cmd_reassign_status,
                                                           &cmd_reassign_cancel, NULL };
static const struct command cmd_reassign = {
    .name = "reassign",
    .operands = "",
    .summary = "Plans and does the moving of replicas to other brokers",
    .online = true,
    .children = reassign_children,
};

static const struct command *const leader_children[] = { &cmd_leader_elect, NULL };
static const struct command cmd_leader = {
    .name = "leader",
    .operands = "",
    .summary = "Elects leaders of partitions",
    .online = true,
    .children = leader_children,
};

static const struct command *const root_children[] = { &cmd_cat,     &cmd_tail,    &cmd_append, &cmd_ls,    &cmd_trim,
                                                       &cmd_topic,   &cmd_config,  &cmd_group,  &cmd_run,   &cmd_offsets,
                                                       &cmd_cluster, &cmd_reassign, &cmd_leader, &cmd_dump,    &cmd_verify, &cmd_ping,  NULL };
const struct command klog_root = {
    .name = "klog",
    .operands = "",
    .summary = "Administers and inspects a klog (or Kafka) cluster and its files.",
    .text = "Data goes to standard output, everything else to standard error. With --json every row is a "
            "JSON object\n"
            "on a line of its own. Brokers come from -b, else $KLOG_BROKERS, else 127.0.0.1:9092.",
    .examples = "klog ping\n"
                "klog topic create orders -p 3\n"
                "klog topic describe orders\n"
                "echo hello | klog append orders/p0\n"
                "klog tail -f orders/json/all\n"
                "klog verify /var/lib/klog",
    .online = true,
    .children = root_children,
};
