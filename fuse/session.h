/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a served mount, and back to nothing; see session.c. */
#ifndef KLOG_FUSE_SESSION_H
#define KLOG_FUSE_SESSION_H

#include <stddef.h>

#include "fuse/base/mount.h"

/* Reaches a broker and mounts. 0, or -errno and one line of reason. On failure nothing stays behind. */
int session_start(struct mount *m, const struct options *opt, char *err, size_t err_size);
/* Serves until SIGTERM, SIGINT or umount; then sends what is pending. */
void session_run(struct mount *m);
/* Unmounts and frees everything. */
void session_end(struct mount *m);

#endif
