/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending: a line is a record. Each open file keeps the bytes after its last '\n' (the tail) and joins them to what is
 * written next, so lines of any number of writers never mix. Loop's thread. Rules:
 *   W1  What write() says is appended is committed (sync), or its error shows at the next write, close or fsync (async).
 *   W2  A write that fails part-way tells the bytes up to the last committed line; one that fails as a whole leaves the
 *       tail as it was, so that it can be tried again.
 *   W3  No piece of a line that is too long is ever appended: when a refused write tore one, the open file takes nothing
 *       more, since it cannot know where the next line begins.
 *   W4  The tail becomes a record at RELEASE (last close), unless the write that was to end its line failed.
 *   W5  The answer of an interrupted write waits up to a second for the acknowledgement; then what was not sent is
 *       withdrawn, and the write fails with EINTR.
 *   W6  A line that is not of its view's form is refused (EINVAL), and nothing behind it is taken; what stands before it in the
 *       same write is appended and counted, so that the next write begins with it. Where lines go to partitions by their keys,
 *       the count of a write that fails part-way ends before the first line that is not known to be committed; lines behind
 *       it may be.
 */
#ifndef KLOG_FUSE_APPEND_H
#define KLOG_FUSE_APPEND_H

#include <stddef.h>

#include "fuse/base/fuse_api.h"

struct mount;
struct handle;
struct writers;

/* ---- what is on its way, of the whole mount (append_send.c) ---- */
struct writers *writers_new(struct mount *m);
void writers_free(struct writers *w);
size_t writers_pending(const struct writers *w); /* batches */

/* ---- opening and writing (append.c) ---- */
/* 0, or a positive errno for opening with these flags: appends only. */
int append_may_open(int flags);
/* FOPEN_ bits of a file that is appended to or read by position. */
unsigned append_open_flags(const struct handle *h);
/* flags: of the file at this moment (O_APPEND, O_NONBLOCK). */
void append_write(struct handle *h, fuse_req_t req, const char *buf, size_t size, int flags);

/* ---- closing (append_close.c) ---- */
/* Flush and fsync: answers when nothing of the handle is on its way, with the first error not yet told. */
void append_settle(struct handle *h, fuse_req_t req);
/* RELEASE: the unfinished last line becomes a record. */
void append_release(struct handle *h);
/* Of all open files, as RELEASE does; at the end of the mount. */
void append_release_all(struct mount *m);

#endif
