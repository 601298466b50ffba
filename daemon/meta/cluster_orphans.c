/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See cluster_start.h: directories that belong to no topic. Main thread, before any log is opened. Only what a
 * noted deletion left is removed. A directory that has the name of a registered partition stays where it is,
 * whatever it says of itself: partitions.c looks at it when it opens the partition. What cannot be moved or removed
 * stays, with a line; the start goes on.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/meta/cluster_start.h"
#include "daemon/storage/logdirs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/store/datadir.h"

struct found_dir {
    char *topic;
    int32_t partition;
    struct partition_dir dir;
};

struct search {
    struct found_dir *found;
    size_t n, cap;
};

struct deleted {
    char **ids; /* as text */
    int n;
    bool some_stay; /* a log of one of them could not be removed */
};

static int compare_names(const void *key, const void *elem)
{
    return strcmp(key, *(char *const *)elem);
}

/* NULL: no such partition is registered. */
static const struct topic_load *registered(const struct cluster_starter *st, const struct found_dir *f)
{
    char **name = st->n == 0 ? NULL : bsearch(f->topic, st->names, (size_t)st->n, sizeof(char *), compare_names);
    if (name == NULL)
        return NULL;

    const struct topic_load *l = &st->loads[name - st->names];
    return f->partition < l->n_partitions ? l : NULL;
}

/* Nobody knows what belongs to it. */
static bool is_broken(const struct cluster_starter *st, const char *topic)
{
    return st->n_broken > 0 && bsearch(topic, st->broken, (size_t)st->n_broken, sizeof(char *), compare_names) != NULL;
}

static bool has_replica(const struct cluster_partition *p, int32_t broker)
{
    for (int32_t i = 0; i < p->n_replicas; i++)
        if (p->replicas[i] == broker)
            return true;
    return false;
}

static void keep_found(void *arg, const char *topic, int32_t partition, const struct partition_dir *dir)
{
    struct search *s = arg;

    if (s->n == s->cap) {
        s->cap = s->cap == 0 ? 64 : 2 * s->cap;
        s->found = xreallocarray(s->found, s->cap, sizeof *s->found);
    }
    s->found[s->n++] = (struct found_dir){ xstrdup(topic), partition, *dir };
}

static bool was_deleted(const struct deleted *deleted, const struct uuid *id)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_text(id, text);
    for (int i = 0; i < deleted->n; i++)
        if (strcmp(deleted->ids[i], text) == 0)
            return true;
    return false;
}

static void set_aside(struct datadir *dd, const struct found_dir *f, const char *why)
{
    char to[256];
    int rc = datadir_set_aside(dd, f->topic, f->partition, &f->dir.topic_id, to);

    if (rc < 0)
        log_error("%s/%s-%d %s, and cannot be renamed: %s", datadir_path(dd), f->topic, f->partition, why, strerror(-rc));
    else
        log_warn("%s/%s-%d %s: kept as %s; delete it when you are sure", datadir_path(dd), f->topic, f->partition, why, to);
}

static void remove_deleted(struct datadir *dd, const struct found_dir *f, struct deleted *deleted)
{
    CLEANUP(freep) char *name = xasprintf("%s-%d", f->topic, f->partition);

    log_info("%s/%s: the topic was deleted; removing what is left", datadir_path(dd), name);
    int rc = datadir_remove(dd, name);
    if (rc == 0)
        return;
    deleted->some_stay = true;
    log_error("%s/%s cannot be removed: %s; the next start tries again", datadir_path(dd), name, strerror(-rc));
}

/* Where topics were deleted an empty directory is what is left of a log that was made and deleted while its disk was full, or
 * failing. */
static void judge_foreign(struct datadir *dd, const struct found_dir *f, const struct deleted *deleted)
{
    CLEANUP(freep) char *name = xasprintf("%s-%d", f->topic, f->partition);

    if (deleted->n > 0 && datadir_remove_empty(dd, name) == 0)
        log_info("%s/%s: was empty, and topics were deleted: removed", datadir_path(dd), name);
    else
        log_info("%s/%s holds nothing of klog's: left alone", datadir_path(dd), name);
}

static void judge(const struct cluster_starter *st, struct datadir *dd, const struct found_dir *f,
                  struct deleted *deleted)
{
    const struct topic_load *l = registered(st, f);

    if (l != NULL && f->dir.id_rc == 0 && uuid_eq(&f->dir.topic_id, &l->shape.id) &&
        !has_replica(l->partitions[f->partition], st->cluster->deps.id)) {
        set_aside(dd, f, "has its replicas on other brokers by now"); /* given to them while this one was away */
        return;
    }
    if (is_broken(st, f->topic))
        return;
    if (l != NULL && (f->dir.id_rc < 0 || uuid_eq(&f->dir.topic_id, &l->shape.id)))
        return;
    if (f->dir.id_rc == 0 && was_deleted(deleted, &f->dir.topic_id))
        remove_deleted(dd, f, deleted);
    else if (!f->dir.is_ours)
        judge_foreign(dd, f, deleted);
    else if (l == NULL)
        set_aside(dd, f, "belongs to no topic of this cluster");
}

static int clear_dir(struct cluster_starter *st, struct datadir *dd, struct deleted *deleted, char *err,
                     size_t err_size)
{
    struct search s = { 0 };

    int rc = datadir_clear_leftovers(dd);
    if (rc == 0)
        rc = datadir_list(dd, keep_found, &s);
    if (rc < 0)
        snprintf(err, err_size, "%s: cannot list its partitions: %s", datadir_path(dd), strerror(-rc));
    for (size_t i = 0; i < s.n; i++) {
        if (rc == 0)
            judge(st, dd, &s.found[i], deleted);
        free(s.found[i].topic);
    }
    free(s.found);
    return rc;
}

static void add_forget_ops(struct cluster *c, const char *id, struct register_ops_list *ret)
{
    if (!c->deps.alone)
        ops_add(ret, REGISTER_DELETE, xasprintf("/admin/delete_topics/%s/%d", id, c->deps.id), NULL, REGISTER_ANY_VERSION);
    ops_add(ret, REGISTER_DELETE, xasprintf("/admin/delete_topics/%s", id), NULL, REGISTER_ANY_VERSION);
}

void cluster_forget_ops(struct cluster *c, const struct uuid *id, struct register_ops_list *ret)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_text(id, text);
    add_forget_ops(c, text, ret);
}

/* Every log that this broker had of these topics is gone now. */
static int forget_deleted(struct cluster *c, const struct deleted *deleted)
{
    struct register_ops_list l = { 0 };
    int rc = 0;

    if (deleted->some_stay)
        return 0;
    for (int i = 0; i < deleted->n; i++)
        add_forget_ops(c, deleted->ids[i], &l);
    if (c->deps.alone && l.n > 0)
        rc = registers_multi_wait(c->deps.registers, l.ops, l.n);
    for (int i = 0; !c->deps.alone && i < l.n && rc == 0; i++) { /* others may be at it, or have not come to it yet */
        rc = registers_multi_wait(c->deps.registers, &l.ops[i], 1);
        rc = rc == -ENOENT || rc == -ENOTEMPTY ? 0 : rc;
    }
    ops_done(&l);
    return rc == -ENOSPC || rc == -EDQUOT ? 0 : rc; /* then the next start forgets them */
}

int cluster_clear_orphans(struct cluster_starter *st, char *err, size_t err_size)
{
    struct logdirs *ld = st->cluster->deps.dirs;
    struct deleted deleted = { 0 };

    int rc = registers_children_wait(st->cluster->deps.registers, "/admin/delete_topics", &deleted.ids, &deleted.n);
    if (rc < 0)
        snprintf(err, err_size, "registers: cannot list /admin/delete_topics: %s", strerror(-rc));
    for (int i = 0; i < logdirs_count(ld) && rc == 0; i++)
        rc = clear_dir(st, logdirs_at(ld, i), &deleted, err, err_size);
    if (rc == 0 && (rc = forget_deleted(st->cluster, &deleted)) < 0)
        snprintf(err, err_size, "registers: cannot write: %s", strerror(-rc));
    registers_names_free(deleted.ids, deleted.n);
    return rc;
}

bool cluster_topic_was_deleted(struct registers *r, const struct uuid *id)
{
    CLEANUP(bytebuf_done) struct bytebuf value = { 0 };
    char text[UUID_TEXT_LEN + 1];
    int64_t version;

    uuid_text(id, text);
    CLEANUP(freep) char *path = xasprintf("/admin/delete_topics/%s", text);
    return registers_get_wait(r, path, &value, &version) == 0;
}
