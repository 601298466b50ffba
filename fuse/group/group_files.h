/* SPDX-License-Identifier: Apache-2.0 */
/* TOPIC/.groups/: the files in it, and making and deleting groups there. Loop's thread. */
#ifndef KLOG_FUSE_GROUP_FILES_H
#define KLOG_FUSE_GROUP_FILES_H

#include "fuse/tree/file.h"

extern const struct file_ops group_status_ops, position_ops; /* group_status.c, position_file.c */

/* ---- group_admin.c ---- */
/* mkdir .groups/G: positions at the start of all partitions. */
void group_mkdir(struct mount *m, struct node *parent, const char *name, fuse_req_t req);
/* mknod and open(O_CREAT) of .groups/G/pN: a position at the start. fi NULL: mknod. */
void group_create(struct mount *m, struct node *parent, const char *name, fuse_req_t req,
                  const struct fuse_file_info *fi);
/* rmdir .groups/G: all its positions in the topic; rm of .groups/G/pN: this one. */
void group_rmdir(struct mount *m, struct node *parent, const char *name, fuse_req_t req);
void group_unlink(struct mount *m, struct node *parent, const char *name, fuse_req_t req);

#endif
