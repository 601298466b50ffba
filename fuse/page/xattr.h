/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes user.klog.*; see xattr.c. */
#ifndef KLOG_FUSE_XATTR_H
#define KLOG_FUSE_XATTR_H

#include "fuse/base/fuse_api.h"
#include "fuse/tree/node.h"

void xattr_get(struct mount *m, struct node *n, const char *name, fuse_req_t req, size_t size);
void xattr_list(struct node *n, fuse_req_t req, size_t size);

#endif
