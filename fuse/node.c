/* SPDX-License-Identifier: Apache-2.0 */
/* The table of inodes; rules N1 and N2 of node.h. Loop's thread. */
#include "fuse/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/mount.h"
#include "fuse/page.h"
#include "fuse/pfile.h"
#include "fuse/topics.h"
#include "fuse/watch.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

/* "/NAME:ID" for a topic (':' is in no topic's name), the parent's path and the name for what lies below. */
static char *path_of(const struct node *parent, const char *name, const struct topic *topic)
{
    char id[UUID_TEXT_LEN + 1];
    if (parent->kind != NODE_ROOT || topic == NULL)
        return xasprintf("%s/%s", parent->path, name);
    uuid_text(&topic->id, id);
    return xasprintf("/%s:%s", name, id);
}

/* FNV-1a over the cluster's id and the path, mixed once more since close names differ only in the last bits.
 */
static uint64_t ino_of(struct mount *m, const char *path)
{
    const char *cluster = client_cluster_id(m->client);
    uint64_t h = 0xcbf29ce484222325;
    for (const char *s = cluster == NULL ? "" : cluster; *s != '\0'; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3;
    for (const char *s = path; *s != '\0'; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93;
    h ^= h >> 32;
    return h <= FUSE_ROOT_ID ? h + 2 : h;
}

uint64_t node_ino_of(struct mount *m, const struct node *parent, const char *name, const struct topic *topic)
{
    CLEANUP(freep) char *path = path_of(parent, name, topic);
    return ino_of(m, path);
}

static struct node *node_by_path(struct mount *m, const char *path)
{
    struct node *n;
    HASH_FIND(by_path, m->nodes.by_path, path, strlen(path), n);
    return n;
}

static struct node *node_by_ino(struct mount *m, uint64_t ino)
{
    struct node *n;
    HASH_FIND(by_ino, m->nodes.by_ino, &ino, sizeof ino, n);
    return n;
}

/* N1; a number taken by another path (once in 2^64) moves on by one. */
static struct node *node_new(struct mount *m, const char *path, enum node_kind kind, uint64_t ino)
{
    KINVARIANT("N1", node_by_path(m, path) == NULL);
    size_t len = strlen(path);
    struct node *n = xcalloc(1, sizeof *n + len + 1);
    memcpy(n->path, path, len + 1);
    n->kind = kind;
    n->partition = -1;
    n->refs = 1;
    while (node_by_ino(m, ino) != NULL)
        ino++;
    n->ino = ino;
    HASH_ADD(by_ino, m->nodes.by_ino, ino, sizeof n->ino, n);
    HASH_ADD_KEYPTR(by_path, m->nodes.by_path, n->path, len, n);
    return n;
}

static void node_free(struct mount *m, struct node *n)
{
    HASH_DELETE(by_ino, m->nodes.by_ino, n);
    HASH_DELETE(by_path, m->nodes.by_path, n);
    pfile_unref(n->pfile);
    page_free(n->page);
    topic_unref(n->topic);
    free(n);
}

void nodes_init(struct mount *m)
{
    node_new(m, "", NODE_ROOT, FUSE_ROOT_ID);
}

void nodes_done(struct mount *m)
{
    struct node *n, *next;
    HASH_ITER (by_ino, m->nodes.by_ino, n, next)
        node_free(m, n);
}

struct node *node_find(struct mount *m, uint64_t ino)
{
    struct node *n = node_by_ino(m, ino);
    KINVARIANT("N2", n != NULL);
    return n;
}

struct node *node_get(struct mount *m, struct node *parent, const char *name, enum node_kind kind,
                      struct topic *topic, const struct view *view, int32_t partition)
{
    CLEANUP(freep) char *path = path_of(parent, name, topic);
    struct node *n = node_by_path(m, path);
    if (n != NULL)
        return node_ref(n);
    n = node_new(m, path, kind, ino_of(m, path));
    n->topic = topic_ref(topic != NULL ? topic : parent->topic);
    n->view = *view;
    n->partition = partition;
    if (kind == NODE_PARTITION || kind == NODE_STREAM || kind == NODE_POSITION ||
        (kind == NODE_READER && partition >= 0))
        n->pfile = pfile_get(m, n->topic, partition);
    if (page_is_of(kind))
        n->page = page_new(m, n);
    return n;
}

struct node *node_ref(struct node *n)
{
    n->refs++;
    return n;
}

void node_unref(struct mount *m, struct node *n)
{
    KINVARIANT("N2", n->refs > 0);
    if (--n->refs == 0)
        node_free(m, n);
}

void node_looked_up(struct node *n)
{
    if (n->nlookup++ == 0)
        node_ref(n);
    if (n->kind == NODE_PARTITION)
        watch_kernel_knows(n->pfile->mount->watch, n->pfile, true);
}

void node_forget(struct mount *m, struct node *n, uint64_t times)
{
    if (n->kind == NODE_ROOT)
        return;
    KINVARIANT("N2", n->nlookup >= times);
    n->nlookup -= times;
    if (n->nlookup > 0 || times == 0)
        return;
    if (n->kind == NODE_PARTITION)
        watch_kernel_knows(m->watch, n->pfile, false);
    node_unref(m, n);
}

static mode_t node_mode(const struct mount *m, const struct node *n)
{
    mode_t write = m->opt->ro ? 0 : 0222;
    switch (n->kind) {
    case NODE_ROOT:
    case NODE_TOPIC:
    case NODE_GROUPS:
    case NODE_GROUP:
        return S_IFDIR | 0555 | write;
    case NODE_CLUSTER_STATUS:
    case NODE_TOPIC_STATUS:
    case NODE_GROUP_STATUS:
    case NODE_READER:
        return S_IFREG | 0444;
    case NODE_STREAM:
    case NODE_PARTITION:
    case NODE_TOPIC_CONFIG:
    case NODE_POSITION:
        return S_IFREG | 0444 | write;
    case NODE_ANY:
        return S_IFREG | write;
    }
    KCHECK(!"a known kind of node");
    return 0;
}

static void count_topic(void *arg, const struct client_topic *ct)
{
    nlink_t *n = arg;
    *n += !ct->internal;
}

/* A directory has two links and one for each directory in it that is listed; find reckons with that. 1 is
 * for "who knows": groups are counted by asking for each. */
static nlink_t node_links(const struct mount *m, const struct node *n)
{
    nlink_t links = node_is_dir(n) ? 2 : 1;
    if (n->kind == NODE_ROOT)
        client_each_topic(m->client, count_topic, &links);
    else if (n->kind == NODE_TOPIC && n->view.parts == 0)
        links++; /* .groups */
    else if (n->kind == NODE_GROUPS)
        links = 1;
    return links;
}

void node_fill_stat(const struct mount *m, const struct node *n, struct stat *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->st_ino = n->ino;
    ret->st_mode = node_mode(m, n) & ~(mode_t)m->opt->umask;
    ret->st_nlink = node_links(m, n);
    ret->st_uid = (uid_t)m->opt->uid;
    ret->st_gid = (gid_t)m->opt->gid;
    ret->st_blksize = NODE_BLOCK_SIZE;
    ret->st_mtim.tv_sec = m->started_wall_ms / 1000;
    ret->st_mtim.tv_nsec = m->started_wall_ms % 1000 * 1000000;
    ret->st_atim = ret->st_ctim = ret->st_mtim;
}
