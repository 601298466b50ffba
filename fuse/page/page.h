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
struct page;

struct page_wait {
    void (*cb)(struct page_wait *w, int rc); /* rc: 0 or -errno */
    LIST_ENTRY(page_wait) link;              /* private */
};

bool page_is_of(enum node_kind kind); /* do nodes of this kind have a page? */
struct page *page_new(struct mount *m, struct node *n);
void page_free(struct page *p); /* NULL is fine; nobody may wait */
/* cb when the text is there and new enough; may run before this returns. */
void page_ask(struct page *p, struct page_wait *w);
/* The same, but nothing of it is older than this call. */
void page_ask_anew(struct page *p, struct page_wait *w);
/* The text as it was made last; empty before. */
size_t page_size(const struct page *p);
struct slice page_text(const struct page *p); /* the same; until the loop's next round */
void page_expire(struct page *p);             /* what it says has changed */
void page_touch(struct page *p);              /* and it was just now */

/* What makes a text; each ends with page_made exactly once. */
void page_make_config(struct page *p);       /* config_file.c */
void page_make_topic_status(struct page *p); /* status_file.c */
void page_make_cluster_status(struct page *p);
void page_make_group_status(struct page *p); /* group_status.c */
void page_make_position(struct page *p);     /* position_file.c */
/* Takes the bytes of text (when rc is 0). */
void page_made(struct page *p, int rc, struct bytebuf *text);
struct mount *page_mount(const struct page *p);
struct node *page_node(const struct page *p);

/* file_ops of such files */
void page_getattr(struct mount *m, struct node *n, fuse_req_t req);
void page_open(struct handle *h, fuse_req_t req);
void page_read(struct handle *h, fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi);

#endif
