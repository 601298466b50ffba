/* SPDX-License-Identifier: Apache-2.0 */
/* The table of inodes; rules N1 and N2 of node.h. Loop's thread. */
#include "fuse/tree/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/mount.h"
#include "fuse/cluster/topics.h"
#include "fuse/partition/pfile.h"
#include "fuse/partition/watch.h"
#include "fuse/tree/file.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

struct node_table {
    struct node *by_id, *by_path;
};

#define DIR_BYTES 4096
/* For so long a group that was emptied stays, for the rmdir that comes last. */
#define LINGER_MS 10000

/* "/NAME:ID" for a topic (':' is in no topic's name), the parent's path and the name for what lies below. */
static char *path_of(const struct node *parent, const char *name, const struct topic *topic)
{
    char id[UUID_TEXT_LEN + 1];
    if (parent->kind != NODE_ROOT || topic == NULL)
        return xasprintf("%s/%s", parent->path, name);
    uuid_text(&topic->id, id);
    return xasprintf("/%s:%s", name, id);
}

uint64_t hash_text(uint64_t h, const char *s)
{
    for (; *s != '\0'; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3;
    return h;
}

uint64_t hash_stir(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93;
    return h ^ h >> 32;
}

/* "json/p0" of "/orders:ID/json/p0". */
static const char *below_topic(const char *path)
{
    const char *s = *path == '/' ? strchr(path + 1, '/') : NULL;
    return s == NULL ? path : s + 1;
}

/* Of the cluster's id, the path and where its text begins. */
static uint64_t hash_path(const struct mount *m, const char *path, int64_t begin)
{
    const char *cluster = client_cluster_id(m->client);
    char number[24] = "";
    if (begin > 0)
        snprintf(number, sizeof number, "@%" PRId64, begin);
    uint64_t h = hash_text(HASH_START, cluster == NULL ? "" : cluster);
    h = hash_stir(hash_text(hash_text(h, path), number));
    return h <= FUSE_ROOT_ID ? h + 2 : h;
}

static uint64_t node_ino(const struct mount *m, const struct node *n)
{
    if (n->kind == NODE_ROOT)
        return FUSE_ROOT_ID;
    return hash_path(m, n->path, n->kind == NODE_PARTITION ? lens_ino_text(n->lens) : 0);
}

uint64_t node_ino_of(struct mount *m, const struct node *parent, const char *name, const struct topic *topic,
                     int32_t partition)
{
    CLEANUP(freep) char *path = path_of(parent, name, topic);
    bool plain = partition >= 0 && parent->kind == NODE_TOPIC && node_kind_of_partition(&parent->view) == NODE_PARTITION;
    struct pfile *f = plain ? pfile_find(m, parent->topic, partition) : NULL;
    struct lens *l = f == NULL ? NULL : lens_get(f, &parent->view);
    uint64_t ino = hash_path(m, path, l == NULL ? 0 : lens_ino_text(l));
    lens_unref(l);
    return ino;
}

static struct node *node_by_path(struct mount *m, const char *path)
{
    struct node *n;
    HASH_FIND(by_path, m->nodes->by_path, path, strlen(path), n);
    return n;
}

static struct node *node_by_id(struct mount *m, uint64_t id)
{
    struct node *n;
    HASH_FIND(by_id, m->nodes->by_id, &id, sizeof id, n);
    return n;
}

/* N1; an id taken by another node moves on by one. */
static struct node *node_new(struct mount *m, const char *path, enum node_kind kind, uint64_t id)
{
    KINVARIANT("N1", node_by_path(m, path) == NULL);
    size_t len = strlen(path);
    struct node *n = xcalloc(1, sizeof *n + len + 1);
    memcpy(n->path, path, len + 1);
    n->kind = kind;
    n->partition = -1;
    n->refs = 1;
    n->changed_wall_ms = clock_wall_ms();
    while (node_by_id(m, id) != NULL)
        id++;
    n->id = n->known.id = id;
    n->has_path = true;
    HASH_ADD(by_id, m->nodes->by_id, id, sizeof n->id, n);
    HASH_ADD_KEYPTR(by_path, m->nodes->by_path, n->path, len, n);
    return n;
}

/* Those who have it keep it; look-ups are led elsewhere. */
static void node_lose_path(struct mount *m, struct node *n)
{
    if (n->has_path)
        HASH_DELETE(by_path, m->nodes->by_path, n);
    n->has_path = false;
}

static void node_free(struct mount *m, struct node *n)
{
    const struct file_ops *ops = file_ops_of(m, n);
    HASH_DELETE(by_id, m->nodes->by_id, n);
    node_lose_path(m, n);
    ptext_unref(n->ptext);
    lens_unref(n->lens);
    pfile_unref(n->pfile);
    if (ops != NULL && ops->freed != NULL)
        ops->freed(n);
    topic_unref(n->topic);
    free(n);
}

void nodes_new(struct mount *m)
{
    m->nodes = xcalloc(1, sizeof *m->nodes);
    node_new(m, "", NODE_ROOT, FUSE_ROOT_ID);
}

void nodes_free(struct mount *m)
{
    struct node *n, *next;
    HASH_ITER (by_id, m->nodes->by_id, n, next)
        node_free(m, n);
    free(m->nodes);
}

struct node *node_find(struct mount *m, uint64_t id)
{
    struct node *n = node_by_id(m, id);
    KINVARIANT("N2", n != NULL);
    return n;
}

struct node *node_get(struct mount *m, struct node *parent, const char *name, enum node_kind kind,
                      struct topic *topic, const struct view *view, int32_t partition)
{
    CLEANUP(freep) char *path = path_of(parent, name, topic);
    struct node *n = node_by_path(m, path);
    if (n != NULL && (n->ptext == NULL || node_text(n) == ptext_now(n->lens)))
        return node_ref(n);
    if (n != NULL)
        node_lose_path(m, n);
    n = node_new(m, path, kind, hash_path(m, path, 0));
    n->topic = topic_ref(topic != NULL ? topic : parent->topic);
    n->view = *view;
    n->partition = partition;
    if (kind == NODE_PARTITION || kind == NODE_STREAM || kind == NODE_POSITION ||
        (kind == NODE_READER && partition >= 0))
        n->pfile = pfile_get(m, n->topic, partition);
    if (kind == NODE_PARTITION || kind == NODE_STREAM)
        n->lens = lens_get(n->pfile, view);
    if (kind == NODE_PARTITION)
        n->ptext = ptext_ref(ptext_now(n->lens));
    n->known.path = below_topic(n->path);
    const struct file_ops *ops = file_ops_of(m, n);
    if (ops != NULL && ops->made != NULL)
        ops->made(m, n);
    return n;
}

struct node *node_named(struct mount *m, const struct node *parent, const char *name, uint64_t id)
{
    CLEANUP(freep) char *path = path_of(parent, name, NULL);
    struct node *n = id != 0 ? node_by_id(m, id) : node_by_path(m, path);
    return n != NULL && strcmp(n->path, path) == 0 ? n : NULL;
}

bool node_lingers(const struct mount *m, const struct node *n)
{
    return n->emptied_ms > 0 && n->emptied_ms + LINGER_MS > loop_now_ms(m->loop);
}

struct ptext *node_text(struct node *n)
{
    struct ptext *now = ptext_now(n->lens);
    if (!n->ptext->based && n->ptext != now) {
        ptext_ref(now);
        ptext_unref(n->ptext);
        n->ptext = now;
    }
    return n->ptext;
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
    bool first = n->nlookup++ == 0;
    if (first)
        node_ref(n);
    if (n->kind != NODE_PARTITION)
        return;
    if (first)
        TAILQ_INSERT_TAIL(&n->pfile->known_nodes, &n->known, link);
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
    if (n->kind == NODE_PARTITION) {
        TAILQ_REMOVE(&n->pfile->known_nodes, &n->known, link);
        if (TAILQ_EMPTY(&n->pfile->known_nodes))
            watch_kernel_knows(m->watch, n->pfile, false);
    }
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
    case NODE_ALL:
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
    ret->st_ino = node_ino(m, n);
    ret->st_mode = node_mode(m, n) & ~(mode_t)m->opt->umask;
    ret->st_nlink = node_links(m, n);
    ret->st_uid = (uid_t)m->opt->uid;
    ret->st_gid = (gid_t)m->opt->gid;
    ret->st_blksize = NODE_BLOCK_SIZE;
    if (node_is_dir(n)) { /* as a small directory has elsewhere: `find -size 0` and `-empty` look for leftovers */
        ret->st_size = DIR_BYTES;
        ret->st_blocks = DIR_BYTES / 512;
    }
    int64_t ms = node_is_dir(n) || n->page != NULL ? n->changed_wall_ms : m->started_wall_ms;
    ret->st_mtim.tv_sec = ms / 1000;
    ret->st_mtim.tv_nsec = ms % 1000 * 1000000;
    ret->st_atim = ret->st_ctim = ret->st_mtim;
}
