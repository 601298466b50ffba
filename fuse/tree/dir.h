/* SPDX-License-Identifier: Apache-2.0 */
/* Directories: looking names up, and listing them; see lookup.c and dir.c. Loop's thread. */
#ifndef KLOG_FUSE_DIR_H
#define KLOG_FUSE_DIR_H

#include "fuse/base/fuse_api.h"
#include "fuse/cluster/groups.h"
#include "fuse/cluster/topics.h"
#include "fuse/partition/pfile.h"
#include "fuse/tree/node.h"

struct handle;
struct dir_list;

/* ---- look-up ---- */
struct lookup {
    /* rc 0 and a referenced node, which the callee gives back; or -errno (-ENOENT: no such name). */
    void (*cb)(struct lookup *l, int rc, struct node *n);
    struct mount *mount;
    struct node *parent; /* owned reference while it runs */
    char *name;
    struct view view;
    int32_t partition;
    int64_t max_age_ms;
    struct topics_wait metadata;
    struct group_ask ask;
    struct lens *lens; /* of which the ends are asked for; owned reference */
    struct text_wait ends;
};
/* max_age_ms: how old the metadata may be. cb may run before this returns. */
void lookup_begin(struct mount *m, struct lookup *l, struct node *parent, const char *name,
                  int64_t max_age_ms);

/* What the kernel is told of a node, from what is known; nobody is asked. */
void entry_fill(struct mount *m, struct node *n, struct fuse_entry_param *ret);
/* Answers a LOOKUP, MKDIR or MKNOD and counts the look-up. */
void entry_reply(struct mount *m, struct node *n, fuse_req_t req);
/* Answers a CREATE with the entry and an open file. */
void entry_reply_created(struct mount *m, struct node *n, int flags, fuse_req_t req);

/* ---- attributes (dir_attr.c) ---- */
void dir_getattr(struct mount *m, struct node *n, fuse_req_t req);
/* The names in a directory, as far as the metadata tells, were seen. */
void dir_saw_metadata(struct mount *m, struct node *n);
/* The names in a directory were seen: entries is a sum of dir_entry_hash() of each. */
void dir_saw(struct node *n, uint64_t entries);
/* .groups: asks which there are; and in its cb, they were seen. */
void dir_list_groups(struct mount *m, struct node *n, struct groups_list *l);
void dir_saw_groups(struct mount *m, struct node *n, const struct groups_list *l);
/* The same number for p0, p1... of a group with positions in these. */
uint64_t dir_positions_hash(const struct position *p, size_t n);
uint64_t dir_entry_hash(const char *name, const struct uuid *id); /* NULL: names alone tell them apart */
/* A name came or went here, with its dir_entry_hash. */
void dir_added(struct node *n, uint64_t entry);
void dir_removed(struct node *n, uint64_t entry);

/* ---- listing ---- */
/* Is it listed in the root? Kafka's own topics can be entered, but crawlers are not led into them. */
bool dir_lists_topic(const struct client_topic *ct);
void dir_list_free(struct dir_list *d); /* NULL is fine */
void dir_read(struct handle *h, fuse_req_t req, size_t size, off_t off, bool plus);

#endif
