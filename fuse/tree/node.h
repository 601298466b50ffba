/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inodes. A node is one path of the mount that the kernel, an open file or a pending request knows. What stat() shows
 * as its number is a hash of cluster, topic id, path, and for a partition of the place where its text begins, so it is
 * the same on every mount and after a restart. Loop's thread only.
 *
 *   N1  A path leads to one node; for a partition to a new one once its text is old (X2 of ptext.h), while open files
 *       keep theirs.
 *   N2  A node lives while its references are above 0; the kernel's look-ups together hold one, each open file and each
 *       pending request hold one.
 */
#ifndef KLOG_FUSE_NODE_H
#define KLOG_FUSE_NODE_H

#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <uthash.h>

#include "fuse/partition/pfile.h"
#include "lib/view/view.h"

struct mount;
struct topic;
struct pfile;
struct page;
struct file_ops;

enum node_kind {
    NODE_ROOT,
    NODE_CLUSTER_STATUS, /* /.status */
    NODE_TOPIC,          /* a topic, or a view of it: a directory of partitions */
    NODE_TOPIC_STATUS,   /* TOPIC/.status */
    NODE_TOPIC_CONFIG,   /* TOPIC/.config */
    NODE_PARTITION,      /* pN: a file with every position */
    NODE_STREAM,         /* follow/pN: reads wait for more */
    NODE_ANY,            /* any: append, klog chooses the partition */
    NODE_ALL,            /* all: read, the partitions as one stream */
    NODE_GROUPS,         /* TOPIC/.groups: the groups that have positions in it */
    NODE_GROUP,          /* TOPIC/.groups/G; its name is view.group, here and below */
    NODE_GROUP_STATUS,   /* TOPIC/.groups/G/.status */
    NODE_POSITION,       /* TOPIC/.groups/G/pN: the committed offset */
    NODE_READER,         /* as/G/pN, as/G/follow/pN: read from there, and commit */
};

struct node {
    uint64_t id; /* the kernel's name for it: no other node has it */
    enum node_kind kind;
    int refs;
    uint64_t nlookup;    /* what the kernel counts; > 0 holds one of refs */
    struct topic *topic; /* owned reference; NULL above topics */
    struct view view;
    int32_t partition;   /* -1: not a partition */
    struct pfile *pfile; /* owned reference; what is about a partition */
    struct lens *lens;   /* owned reference; how its view shows the partition: of files that read it by position or follow it */
    struct ptext *ptext; /* owned reference; by which a file that reads by position does so */
    struct page *page;   /* owned; of kinds that are pages (page.h) */
    UT_hash_handle by_id, by_path;
    bool has_path; /* in by_path: look-ups come here */
    struct known_node known; /* pfile->known_nodes: a partition's own that the kernel knows */
    int64_t kept_until_ms;   /* the kernel keeps the name of a partition until then (X5 of ptext.h) */
    bool asked_again;        /* and was told to look it up anew */
    int64_t emptied_ms;      /* a group: when its last positions were removed by name here; 0 never */
    int64_t changed_wall_ms; /* a page or a directory: when what it says, or the names in it, changed as far as was seen */
    uint64_t entries;        /* a directory: what names there are, as a number (dir_attr.c); 0: never seen */
    int64_t listed_ms;       /* .groups: when it was last asked what groups there are, on the loop's clock; 0: never */
    int64_t listing_ms;      /* and how long that took */
    char path[]; /* "/orders/follow/p0"; the key holds topic ids instead of names */
};

/* FNV-1a of s behind what h stands for, and a last stir: close names differ only in the last bits. */
#define HASH_START 0xcbf29ce484222325
uint64_t hash_text(uint64_t h, const char *s);
uint64_t hash_stir(uint64_t h);

void nodes_new(struct mount *m); /* m->nodes, with the root, which is never freed before nodes_free */
void nodes_free(struct mount *m);
struct node *node_find(struct mount *m, uint64_t id); /* KCHECKs: the kernel only names what it was given */
/* The node of `name` in `parent`, found or made, with a reference for the caller. topic: of a topic's
 * directory below the root (a reference is taken), else the parent's. */
struct node *node_get(struct mount *m, struct node *parent, const char *name, enum node_kind kind,
                      struct topic *topic, const struct view *view, int32_t partition);
/* The number that stat() would show, for directory listings; a partition's only as far as is known where it begins. */
uint64_t node_ino_of(struct mount *m, const struct node *parent, const char *name, const struct topic *topic,
                     int32_t partition);
/* The node of `name` in `parent`: with an id, of several that had the name, the one that the kernel calls so. Borrowed; NULL:
 * there is none. */
struct node *node_named(struct mount *m, const struct node *parent, const char *name, uint64_t id);
/* A group that was emptied here a moment ago is there until it is removed. */
bool node_lingers(const struct mount *m, const struct node *n);
/* The text by which a partition's own node reads it: the newest, unless somebody holds the one that it has. Borrowed. */
struct ptext *node_text(struct node *n);
struct node *node_ref(struct node *n);
void node_unref(struct mount *m, struct node *n);
/* The kernel was told of the node once more; or forgets it n times. */
void node_looked_up(struct node *n);
void node_forget(struct mount *m, struct node *n, uint64_t times);

static inline bool node_kind_is_dir(enum node_kind kind)
{
    return kind == NODE_ROOT || kind == NODE_TOPIC || kind == NODE_GROUPS || kind == NODE_GROUP;
}
static inline bool node_is_dir(const struct node *n)
{
    return node_kind_is_dir(n->kind);
}
/* What a view makes of pN. */
static inline enum node_kind node_kind_of_partition(const struct view *v)
{
    return (v->parts & VIEW_AS) != 0       ? NODE_READER
           : (v->parts & VIEW_FOLLOW) != 0 ? NODE_STREAM
                                           : NODE_PARTITION;
}
/* What programs are told to read and write at once: one request of the kernel, and for appends one flush of
 * the broker, takes that much. */
#define NODE_BLOCK_SIZE (1024 * 1024)
/* Everything of st but the size of files, and the times of partitions. */
void node_fill_stat(const struct mount *m, const struct node *n, struct stat *ret);

#endif
