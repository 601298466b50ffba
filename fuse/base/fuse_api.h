/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that chooses libfuse's API version. Only fuse/ may include it. */
#ifndef KLOG_FUSE_API_H
#define KLOG_FUSE_API_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#endif
