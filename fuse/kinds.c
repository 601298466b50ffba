/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All kinds of files, in one place. The tree (fuse/tree) makes nodes and hands out open files, but knows none of the kinds:
 * it finds what they do in this table, so that a new kind is a module of its own and a line here. Constant.
 */
#include "fuse/kinds.h"

#include "fuse/file/merged.h"
#include "fuse/file/pfile_attr.h"
#include "fuse/file/stream.h"
#include "fuse/group/group_files.h"
#include "fuse/group/reader.h"
#include "fuse/page/page.h"
#include "fuse/tree/file.h"

const struct file_ops *const kinds[] = {
    [NODE_ROOT] = NULL,
    [NODE_CLUSTER_STATUS] = &cluster_status_ops,
    [NODE_TOPIC] = NULL,
    [NODE_TOPIC_STATUS] = &topic_status_ops,
    [NODE_TOPIC_CONFIG] = &config_ops,
    [NODE_PARTITION] = &partition_ops,
    [NODE_STREAM] = &stream_ops,
    [NODE_ANY] = &any_ops,
    [NODE_ALL] = &merged_ops,
    [NODE_GROUPS] = NULL,
    [NODE_GROUP] = NULL,
    [NODE_GROUP_STATUS] = &group_status_ops,
    [NODE_POSITION] = &position_ops,
    [NODE_READER] = &reader_ops,
};
