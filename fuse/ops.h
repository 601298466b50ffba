/* SPDX-License-Identifier: Apache-2.0 */
/* libfuse's table of operations. */
#ifndef KLOG_FUSE_OPS_H
#define KLOG_FUSE_OPS_H

#include "fuse/base/fuse_api.h"

extern const struct fuse_lowlevel_ops klogfs_ops;

#endif
