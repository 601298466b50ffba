/* SPDX-License-Identifier: Apache-2.0 */
/* df: the brokers' data disks; see statfs.c. */
#ifndef KLOG_FUSE_STATFS_H
#define KLOG_FUSE_STATFS_H

#include "fuse/base/fuse_api.h"

struct mount;
struct disk_figures;

struct disk_figures *disk_figures_new(void);
void disk_figures_free(struct disk_figures *d);
void statfs_ask(struct mount *m, fuse_req_t req);

#endif
