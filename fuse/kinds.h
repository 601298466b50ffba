/* SPDX-License-Identifier: Apache-2.0 */
/* What each kind of node does; the table that every mount is given. */
#ifndef KLOG_FUSE_KINDS_H
#define KLOG_FUSE_KINDS_H

struct file_ops;

extern const struct file_ops *const kinds[]; /* by enum node_kind; NULL: a directory */

#endif
