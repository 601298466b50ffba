/* SPDX-License-Identifier: Apache-2.0 */
/* Making and deleting topics and partitions from the mount; see admin.c. */
#ifndef KLOG_FUSE_ADMIN_H
#define KLOG_FUSE_ADMIN_H

#include "fuse/base/fuse_api.h"
#include "fuse/tree/node.h"

/* mkdir: a topic; in .groups a group. Answers with its entry. */
void admin_mkdir(struct mount *m, struct node *parent, const char *name, fuse_req_t req);
/* rmdir: deletes a topic under -o delete; a group's positions in a topic. */
void admin_rmdir(struct mount *m, struct node *parent, const char *name, fuse_req_t req);
/* mknod and open(O_CREAT) of pN: the topic grows to N + 1 partitions. fi NULL: mknod, answered with the
 * entry. */
void admin_create(struct mount *m, struct node *parent, const char *name, fuse_req_t req,
                  const struct fuse_file_info *fi);
/* rm: only of a position. */
void admin_unlink(struct mount *m, struct node *parent, const char *name, fuse_req_t req);

#endif
