/* SPDX-License-Identifier: Apache-2.0 */
/* Names of topics, groups and partitions, as files and directories have them. Pure. */
#ifndef KLOG_VIEW_NAMES_H
#define KLOG_VIEW_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#define TOPIC_NAME_MAX 249
#define GROUP_NAME_MAX 249

/* "p0", "p17": digits without a leading zero. */
bool view_partition_parse(const char *name, int32_t *ret);
/* A name of a group that can be a name of a directory here: as for topics. */
bool group_name_ok(const char *name);
/* A legal name for a topic: [a-zA-Z0-9._-]{1,249}, not "." or "..". */
bool topic_name_ok(const char *name);

#endif
