/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of partitions, and opening to append; see pfile_attr.c. */
#ifndef KLOG_FUSE_PFILE_ATTR_H
#define KLOG_FUSE_PFILE_ATTR_H

#include <sys/stat.h>

#include "fuse/base/fuse_api.h"
#include "fuse/base/request.h"

struct file_ops;
struct handle;
struct mount;
struct node;

extern const struct file_ops partition_ops, any_ops;
/* Asks for the ends and then answers by `reply`. */
void pfile_with_ends(struct mount *m, struct node *n, fuse_req_t req,
                     void (*reply)(struct request *, struct node *));
/* file_ops.open of what is appended to. */
void append_open(struct handle *h, fuse_req_t req);

#endif
