/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a partition by position; see pfile_read.c. */
#ifndef KLOG_FUSE_PFILE_READ_H
#define KLOG_FUSE_PFILE_READ_H

#include <sys/types.h>

#include "fuse/base/fuse_api.h"

struct handle;

void pfile_read(struct handle *h, fuse_req_t req, size_t size, off_t off);

#endif
