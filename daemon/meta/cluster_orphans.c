/* SPDX-License-Identifier: Apache-2.0 */
/* See cluster_start.h: directories that belong to no topic. Main thread, before any log is opened. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/broker.h"
#include "daemon/meta/cluster_start.h"
#include "lib/base/fsutil.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/store/datadir.h"

struct orphan {
    char *topic;
    int32_t partition;
    struct uuid id;
};

struct search {
    const struct cluster_starter *starter;
    struct orphan *found;
    size_t n;
};

static int compare_names(const void *key, const void *elem)
{
    return strcmp(key, *(char *const *)elem);
}

static bool belongs(const struct cluster_starter *st, const char *topic, int32_t partition,
                    const struct uuid *id)
{
    char **name = st->n == 0 ? NULL : bsearch(topic, st->names, (size_t)st->n, sizeof(char *), compare_names);
    if (name == NULL)
        return false;

    const struct topic_load *l = &st->loads[name - st->names];
    return partition < l->n_partitions && (uuid_is_zero(id) || uuid_eq(id, &l->id));
}

static void look_at(void *arg, const char *topic, int32_t partition, const struct uuid *topic_id)
{
    struct search *s = arg;

    if (belongs(s->starter, topic, partition, topic_id))
        return;
    s->found = xreallocarray(s->found, s->n + 1, sizeof *s->found);
    s->found[s->n++] = (struct orphan){ xstrdup(topic), partition, *topic_id };
}

static bool was_deleted(char *const *deleted, int n, const struct uuid *id)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_text(id, text);
    for (int i = 0; i < n; i++)
        if (strcmp(deleted[i], text) == 0)
            return true;
    return false;
}

static int set_aside(struct datadir *dd, const struct orphan *o, const char *name)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_text(&o->id, text);
    CLEANUP(freep) char *to = xasprintf("%s.%s-stray", name, text);
    if (renameat(datadir_fd(dd), name, datadir_fd(dd), to) < 0)
        return -errno;
    log_warn("%s/%s belongs to no topic of this cluster: kept as %s; delete it when you are sure",
             datadir_path(dd), name, to);
    return fs_sync_dir(datadir_fd(dd));
}

static int clear_one(struct datadir *dd, const struct orphan *o, char *const *deleted, int n_deleted)
{
    CLEANUP(freep) char *name = xasprintf("%s-%d", o->topic, o->partition);

    if (!was_deleted(deleted, n_deleted, &o->id))
        return set_aside(dd, o, name);
    log_info("%s/%s: the topic was deleted; removing what is left", datadir_path(dd), name);
    return fs_remove_tree(datadir_fd(dd), name);
}

static int clear_dir(struct cluster_starter *st, struct datadir *dd, char *const *deleted, int n_deleted,
                     char *err, size_t err_size)
{
    struct search s = { .starter = st };

    int rc = datadir_list(dd, look_at, &s);
    for (size_t i = 0; i < s.n; i++) {
        if (rc == 0)
            rc = clear_one(dd, &s.found[i], deleted, n_deleted);
        free(s.found[i].topic);
    }
    free(s.found);
    if (rc < 0)
        snprintf(err, err_size, "%s: cannot tell its partitions apart: %s", datadir_path(dd), strerror(-rc));
    return rc;
}

/* Every log of these topics is gone now. */
static int forget_deleted(struct cluster *c, char *const *deleted, int n)
{
    struct register_ops_list l = { 0 };

    for (int i = 0; i < n; i++)
        ops_add(&l, REGISTER_DELETE, xasprintf("/admin/delete_topics/%s", deleted[i]), NULL,
                REGISTER_ANY_VERSION);
    int rc = l.n == 0 ? 0 : registers_multi_wait(c->registers, l.ops, l.n);
    ops_done(&l);
    return rc;
}

int cluster_clear_orphans(struct cluster_starter *st, char *err, size_t err_size)
{
    struct broker *b = st->cluster->broker;
    char **deleted = NULL;
    int n = 0;

    int rc = registers_children_wait(st->cluster->registers, "/admin/delete_topics", &deleted, &n);
    if (rc < 0)
        snprintf(err, err_size, "registers: cannot list /admin/delete_topics: %s", strerror(-rc));
    for (int i = 0; i < b->n_dirs && rc == 0; i++)
        rc = clear_dir(st, b->dirs[i], deleted, n, err, err_size);
    if (rc == 0 && (rc = forget_deleted(st->cluster, deleted, n)) < 0)
        snprintf(err, err_size, "registers: cannot write: %s", strerror(-rc));
    registers_names_free(deleted, n);
    return rc;
}
