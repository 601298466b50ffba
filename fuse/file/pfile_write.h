/* SPDX-License-Identifier: Apache-2.0 */
/* Appending lines to partitions; see pfile_write.c. */
#ifndef KLOG_FUSE_PFILE_WRITE_H
#define KLOG_FUSE_PFILE_WRITE_H

#include <stddef.h>

#include "fuse/base/fuse_api.h"
#include "fuse/cluster/topics.h"

struct mount;
struct handle;
struct writers;

struct writers *writers_new(struct mount *m);
void writers_free(struct writers *w);

/* flags: of the file at this moment (O_APPEND, O_NONBLOCK). */
void append_write(struct handle *h, fuse_req_t req, const char *buf, size_t size, int flags);
/* Flush and fsync: answers when nothing of the handle is on its way, with the first error not yet told. */
void append_settle(struct handle *h, fuse_req_t req);
/* RELEASE: the unfinished last line becomes a record. */
void append_release(struct handle *h);
/* Of all open files, as RELEASE does; at the end of the mount. */
void append_release_all(struct mount *m);
/* Sends that are on their way, of the whole mount. */
size_t writers_pending(const struct writers *w);
/* 0, or a positive errno for opening with these flags: appends only. */
int append_may_open(int flags);
/* FOPEN_ bits of a file that is appended to or read by position. */
unsigned append_open_flags(const struct handle *h);

#endif
