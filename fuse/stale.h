/* SPDX-License-Identifier: Apache-2.0 */
/* What an earlier klogfs may have left on the mount point; see stale.c. */
#ifndef KLOG_FUSE_STALE_H
#define KLOG_FUSE_STALE_H

#include <stddef.h>

/* Detaches a dead klogfs from the mount point. 0: it is free now; -EBUSY: a klogfs serves it; or -errno. err:
 * one line. */
int stale_clear(const char *mountpoint, char *err, size_t err_size);

#endif
