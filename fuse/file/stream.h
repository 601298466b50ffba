/* SPDX-License-Identifier: Apache-2.0 */
/* follow/pN: reads that wait for more; see stream.c. */
#ifndef KLOG_FUSE_STREAM_H
#define KLOG_FUSE_STREAM_H

#include "fuse/tree/file.h"

extern const struct file_ops stream_ops;

#endif
