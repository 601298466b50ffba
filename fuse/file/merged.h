/* SPDX-License-Identifier: Apache-2.0 */
/* all: every partition of a topic as one stream; see merged.c. Loop's thread. */
#ifndef KLOG_FUSE_MERGED_H
#define KLOG_FUSE_MERGED_H

#include "fuse/tree/file.h"

extern const struct file_ops merged_ops;

/* The mount ends: reads that wait get the end of file. */
void merged_end_all(struct mount *m);

#endif
