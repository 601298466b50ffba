/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poll(2), select(2) and epoll(7) on files whose reads wait. The kernel asks what is ready now, and leaves a
 * handle through which it is told once that there is more. Loop's thread. Rules:
 *   E1  A poll says nothing about what was read; only reading on does.
 *   E2  A signal ends a poll at once, with nothing ready.
 *   E3  An open file keeps one handle, the newest, until it was used or the file is closed, also when it was readable:
 *       who waits for edges is not asked again before the next one.
 */
#ifndef KLOG_FUSE_POLL_OP_H
#define KLOG_FUSE_POLL_OP_H

#include "fuse/base/request.h"
#include "fuse/tree/file.h"

struct poll_op {
    struct request r;
    struct handle *h;           /* owned reference */
    struct fuse_pollhandle *ph; /* owned; NULL: the kernel does not want to be told */
};

void poll_op_begin(struct poll_op *op, struct handle *h, fuse_req_t req, struct fuse_pollhandle *ph);
/* Answers and ends what poll_op_begin began. True: h->poll is now to be told when there is more. */
bool poll_op_end(struct poll_op *op, bool readable);

void handle_poll_tell(struct handle *h); /* readable: whoever waits asks again. Forgets h->poll */
void handle_poll_forget(struct handle *h);

#endif
