/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small texts that are made when somebody looks: .status, .config and positions of groups. Each open has it
 * made anew, so nobody reads what was before; a size may be a second old (a position's never). Its time is when the text last became another.
 * Loop's thread.
 */
#ifndef KLOG_FUSE_PAGE_H
#define KLOG_FUSE_PAGE_H

#include <sys/queue.h>

#include "fuse/base/fuse_api.h"
#include "fuse/tree/node.h"
#include "lib/base/buf.h"

struct mount;
struct handle;
struct file_ops;
struct page;

struct page_wait {
    void (*cb)(struct page_wait *w, int rc); /* rc: 0 or -errno */
    LIST_ENTRY(page_wait) link;              /* private */
};

/* Gives a new node its page. make makes the text, and ends with page_made exactly once. valid_ms: how old the text may
 * be when only its size is asked for. */
void page_attach(struct mount *m, struct node *n, void (*make)(struct page *p), int64_t valid_ms);
/* cb when the text is there and new enough; may run before this returns. */
void page_ask(struct page *p, struct page_wait *w);
/* The same, but nothing of it is older than this call. */
void page_ask_anew(struct page *p, struct page_wait *w);
/* The text as it was made last; empty before. */
size_t page_size(const struct page *p);
struct slice page_text(const struct page *p); /* the same; until the loop's next round */
void page_expire(struct page *p);             /* what it says has changed */
void page_touch(struct page *p);              /* and it was just now */

/* How old a size may be: a second, as metadata. */
#define PAGE_VALID_MS 1000
/* Takes the bytes of text (when rc is 0). */
void page_made(struct page *p, int rc, struct bytebuf *text);
struct mount *page_mount(const struct page *p);
struct node *page_node(const struct page *p);

/* What such files have in common among their file_ops. */
void page_detach(struct node *n); /* .freed */
void page_fill_stat(struct mount *m, struct node *n, struct stat *ret);
void page_getattr(struct mount *m, struct node *n, fuse_req_t req);
void page_open(struct handle *h, fuse_req_t req);
void page_read(struct handle *h, fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi);
int page_may_only_read(struct mount *m, struct node *n, int flags); /* .may_open */

extern const struct file_ops config_ops, topic_status_ops, cluster_status_ops;

#endif
