/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files, and what each kind of file does with the kernel's requests. ops.c unpacks a request and calls
 * these; each answers its request exactly once, now or later. Loop's thread only.
 */
#ifndef KLOG_FUSE_FILE_H
#define KLOG_FUSE_FILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "fuse/base/fuse_api.h"
#include "fuse/partition/pfile.h"
#include "fuse/partition/ptext.h"
#include "fuse/tree/node.h"
#include "lib/base/buf.h"

struct mount;

/* The appending side of an open file (file/append.h). */
struct appender {
    struct bytebuf tail; /* bytes after the last '\n' written */
    bool lost;           /* part of a line was refused: what follows has lost its beginning (W3) */
    bool torn;           /* the write that would have ended the tail's line failed (W4) */
    int error;           /* async: the first error not yet told, positive errno */
    int sends;           /* on their way */
    LIST_HEAD(, append) on_way;
    LIST_HEAD(, append_wait) waiting; /* flush, fsync: for sends to become 0 */
};

struct handle {
    struct mount *mount;
    struct node *node; /* owned reference */
    int refs;          /* the kernel's until RELEASE, and one for each request that outlives its answer */
    int flags;         /* of open */
    bool dropped;      /* the kernel's reference is gone */
    LIST_ENTRY(handle) open_link; /* mount->handles */

    /* a partition that is read by position (pfile_read.c) */
    struct text_place place; /* where it goes on reading; streams have one too */
    bool holds;              /* it keeps the text's base */
    int64_t next_off;        /* the position of a sequential reader that is at place.at */
    int64_t run;             /* bytes it has read one after the other */
    int64_t lost_from, lost_to; /* positions whose jumps were forgotten */

    struct appender app; /* partitions, any, .config */

    /* a stream (stream.c) */
    struct pfile_waker poll_waker; /* while a poll of it waits */

    struct merged *merged; /* all (merged.c) */
    struct reader *reader; /* as/ (reader.c) */

    struct fuse_pollhandle *poll; /* to be told when something comes (poll_op.h) */

    struct rcbuf *text;   /* .status, .config: as it was at open */
    struct dir_list *dir; /* a directory: its names as they were at the first readdir */
};

/* What a kind of file does. What is NULL has its usual answer. */
struct file_ops {
    /* A node of the kind was made, or goes. */
    void (*made)(struct mount *m, struct node *n);
    void (*freed)(struct node *n);
    /* Attributes as far as they are known; nobody is asked. NULL: node_fill_stat. */
    void (*fill_stat)(struct mount *m, struct node *n, struct stat *ret);
    void (*getattr)(struct mount *m, struct node *n, fuse_req_t req);
    /* Judges an open before a handle is made: 0 or a positive errno. */
    int (*may_open)(struct mount *m, struct node *n, int flags);
    /* Answers by handle_reply_open, or with an error after handle_drop. NULL: handle_reply_open at once. */
    void (*open)(struct handle *h, fuse_req_t req);
    unsigned (*open_flags)(const struct handle *h); /* FOPEN_ bits */
    void (*read)(struct handle *h, fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi);
    void (*write)(struct handle *h, fuse_req_t req, const char *buf, size_t size, struct fuse_file_info *fi);
    void (*flush)(struct handle *h, fuse_req_t req);
    void (*fsync)(struct handle *h, fuse_req_t req);
    void (*release)(struct handle *h); /* the kernel is done with it; the reference goes afterwards */
    void (*poll)(struct handle *h, fuse_req_t req, struct fuse_pollhandle *ph);
};

const struct file_ops *file_ops_of(const struct mount *m, const struct node *n); /* NULL for directories */
void file_fill_stat(struct mount *m, struct node *n, struct stat *ret);

struct handle *handle_new(struct mount *m, struct node *n, int flags);
/* For an open file of which nothing was read and no size told yet: it goes by the text that a look-up is led to now. */
void handle_renew_text(struct handle *h);
struct handle *handle_ref(struct handle *h);
void handle_unref(struct handle *h);
void handle_reply_open(struct handle *h, fuse_req_t req);
/* The kernel never got it, or gives it back. */
void handle_drop(struct handle *h);
static inline struct handle *handle_of(const struct fuse_file_info *fi)
{
    return (struct handle *)(uintptr_t)fi->fh;
}
static inline bool handle_writes(const struct handle *h)
{
    return (h->flags & O_ACCMODE) != O_RDONLY;
}

#endif
