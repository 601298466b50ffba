/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of segments, opened when needed. A log has any number of segments, a process a limited number of
 * descriptors: a file that nobody has pinned may be closed at any time (least recently used first) and is
 * opened again by the next pin. A dirty file stays open until it is flushed: the kernel reports a failed
 * write-back to the descriptors that were open at the time (rule S8).
 *
 * Any thread; the cache has one mutex, a leaf. A data directory owns its cache and outlives every file.
 */
#ifndef KLOG_STORE_SEGFILE_H
#define KLOG_STORE_SEGFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/world.h"
#include "lib/store/io.h"
#include "lib/store/ranks.h"

struct filecache;
struct segfile;

/* Paths are relative to dirfd, which the caller keeps open. limit: descriptors kept open at rest. */
struct filecache *filecache_new(const struct store_io *io, int dirfd, int limit);
void filecache_free(struct filecache *c); /* every file must be gone */
/* limit: of files that nobody uses, more than that many are closed. most (INT_MAX at first): none is made, -EMFILE, while so many are in
 * use, or wait for a flush, which needs descriptors itself. */
void filecache_set_limit(struct filecache *c, int limit, int most);
int filecache_open_files(struct filecache *c); /* descriptors open now */
const struct store_io *filecache_io(const struct filecache *c);
int filecache_dirfd(const struct filecache *c);
/* The limit when nothing else is said: 1000, at most a third of what the process may have. */
int filecache_default_limit(const struct machine *m);

struct segfile *segfile_new(struct filecache *c, const char *path); /* one reference; nothing is opened */
struct segfile *segfile_ref(struct segfile *f);
void segfile_unref(struct segfile *f); /* NULL is fine */
const char *segfile_path(const struct segfile *f);
const struct store_io *segfile_io(const struct segfile *f);
/* Opens it if need be (creating it when `create`) and keeps it open until segfile_unpin. 0 or -errno. */
int segfile_pin(struct segfile *f, bool create);
void segfile_unpin(struct segfile *f);
int segfile_fd(struct segfile *f); /* of a pinned file */
void segfile_set_dirty(struct segfile *f, bool dirty); /* dirty: of a pinned one */
/* The file may have been replaced by another of its name: the next pin opens that one. */
void segfile_forget(struct segfile *f);
/* The name is about to be another file's: a later pin is -ENOENT, who has it pinned goes on reading. */
void segfile_retire(struct segfile *f);
/* f takes over the open file of `from`, which its owner has pinned and nobody else knows: f is then pinned, and
 * `from` closed. For a file that is about to be renamed to f's path. */
void segfile_adopt(struct segfile *f, struct segfile *from);
/* Removes the name; who has it pinned goes on reading, a later pin is -ENOENT. Blocks. */
int segfile_unlink(struct segfile *f);

/* Pin, do, unpin. */
int64_t segfile_read(struct segfile *f, void *p, size_t n, int64_t at);    /* count, short at the end */
int segfile_write(struct segfile *f, const void *p, size_t n, int64_t at); /* creates the file */
int segfile_truncate(struct segfile *f, int64_t size);
int segfile_sync(struct segfile *f);     /* fdatasync; 0 when not there */
int64_t segfile_size(struct segfile *f); /* or -errno */

#endif
