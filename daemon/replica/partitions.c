/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of hosted partitions: by topic name and by topic id, and how a partition leaves.
 *
 * Any thread. `lock` guards both tables and the arrays in them. A partition that was removed stays in memory
 * until its last reference is gone; whoever drops that one says so under `dead_mu`, and the
 * remover, a worker, deletes the log. So nobody on a reactor ever waits for a deletion.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <uthash.h>

#include "daemon/replica/partition.h"
#include "daemon/storage/logdirs.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/thread.h"
#include "lib/metrics/histogram.h"

enum { SYNC_TOGETHER_MIN = 32 }; /* so many logs are synced with their whole file system: what others wrote to it takes time too */

struct hosted_topic {
    char *name;
    struct uuid id;
    struct partition **partitions; /* by number, NULL where not hosted */
    int32_t n_partitions, n_hosted;
    UT_hash_handle by_name, by_id;
};

struct partitions {
    struct partitions_deps deps; /* set once */
    pthread_rwlock_t lock;
    struct hosted_topic *by_name, *by_id; /* guarded by lock */
    struct traffic gone;                  /* guarded by lock: of partitions that have left */
    atomic_ullong isr_shrinks, isr_expands;
    size_t n;                             /* guarded by lock */
    int64_t broker_epoch;                 /* guarded by lock; this broker's */
    int *n_in_dir;                        /* guarded by lock; by index in log.dirs; those that are about to join count */
    struct lock dead_mu;
    struct cond dead; /* some partition's `gone` became true */
    struct lock care_mu;
    struct cond care;
    bool care_wanted, care_ended; /* guarded by care_mu */
};

/* ---- references ---- */
struct partition *partition_ref(struct partition *pt)
{
    int before = atomic_fetch_add(&pt->refs, 1);
    KCHECK(before > 0);
    return pt;
}

void partition_unref(struct partition *pt)
{
    if (pt == NULL)
        return;
    int before = atomic_fetch_sub(&pt->refs, 1);
    KCHECK(before > 0);
    if (before > 1)
        return;

    struct partitions *ps = pt->registry;
    lock_take(&ps->dead_mu);
    pt->gone = true; /* from here on it is the remover's */
    cond_broadcast(&ps->dead);
    lock_release(&ps->dead_mu);
}

static void partition_free(struct partition *pt)
{
    KCHECK(LIST_EMPTY(&pt->watchers) && flush_entry_is_idle(&pt->flush));
    topic_config_unref(pt->config);
    lock_done(&pt->mu);
    lock_done(&pt->change_mu);
    free(pt->topic);
    free(pt);
}

/* ---- the tables ---- */
struct partitions *partitions_new(const struct partitions_deps *deps)
{
    struct partitions *ps = xcalloc(1, sizeof *ps);
    ps->deps = *deps;
    ps->n_in_dir = xcalloc((size_t)logdirs_count(deps->dirs), sizeof *ps->n_in_dir);
    pthread_rwlock_init(&ps->lock, NULL);
    lock_init(&ps->dead_mu, LOCK_RANK_PARTITIONS, "partitions");
    cond_init(&ps->dead, deps->world->exec);
    lock_init(&ps->care_mu, LOCK_RANK_PARTITIONS, "partitions' care");
    cond_init(&ps->care, deps->world->exec);
    return ps;
}

static struct hosted_topic *topic_find(const struct partitions *ps, const char *name, size_t n)
{
    struct hosted_topic *t;
    HASH_FIND(by_name, ps->by_name, name, n, t);
    return t;
}

static struct hosted_topic *topic_find_by_id(const struct partitions *ps, const struct uuid *id)
{
    struct hosted_topic *t;
    HASH_FIND(by_id, ps->by_id, id, sizeof *id, t);
    return t;
}

static struct partition *topic_partition(struct hosted_topic *t, int32_t id)
{
    if (t == NULL || id < 0 || id >= t->n_partitions || t->partitions[id] == NULL)
        return NULL;
    return partition_ref(t->partitions[id]);
}

struct partition *partitions_get(struct partitions *ps, struct kstr topic, int32_t id)
{
    if (topic.n <= 0)
        return NULL;
    pthread_rwlock_rdlock(&ps->lock);
    struct partition *pt = topic_partition(topic_find(ps, topic.p, (size_t)topic.n), id);
    pthread_rwlock_unlock(&ps->lock);
    return pt;
}

struct partition *partitions_get_by_id(struct partitions *ps, const struct uuid *id, int32_t partition)
{
    pthread_rwlock_rdlock(&ps->lock);
    struct partition *pt = topic_partition(topic_find_by_id(ps, id), partition);
    pthread_rwlock_unlock(&ps->lock);
    return pt;
}

bool partitions_topic_name(struct partitions *ps, const struct uuid *id, char ret[TOPIC_NAME_MAX + 1])
{
    pthread_rwlock_rdlock(&ps->lock);
    const struct hosted_topic *t = topic_find_by_id(ps, id);
    if (t != NULL)
        snprintf(ret, TOPIC_NAME_MAX + 1, "%s", t->name);
    pthread_rwlock_unlock(&ps->lock);
    return t != NULL;
}

struct partition *partitions_get_named(struct partitions *ps, struct kstr topic, const struct uuid *topic_id, int32_t id,
                                       enum kerr *ret_err)
{
    char name[TOPIC_NAME_MAX + 1];
    bool by_name = uuid_is_zero(topic_id);
    struct partition *pt = by_name ? partitions_get(ps, topic, id) : partitions_get_by_id(ps, topic_id, id);
    if (pt == NULL && ps->deps.elsewhere != NULL)
        *ret_err = ps->deps.elsewhere(ps->deps.arg, topic, topic_id, id);
    else if (pt == NULL)
        *ret_err = by_name || partitions_topic_name(ps, topic_id, name) ? KERR_UNKNOWN_TOPIC_OR_PARTITION
                                                                        : KERR_UNKNOWN_TOPIC_ID;
    return pt;
}

enum kerr partitions_missing(struct partitions *ps, struct kstr topic, int32_t id)
{
    static const struct uuid by_name;

    return ps->deps.elsewhere == NULL ? KERR_UNKNOWN_TOPIC_OR_PARTITION
                                      : ps->deps.elsewhere(ps->deps.arg, topic, &by_name, id);
}

static struct hosted_topic *topic_make(struct partitions *ps, const char *name, const struct uuid *id)
{
    struct hosted_topic *t = xcalloc(1, sizeof *t);
    t->name = xstrdup(name);
    t->id = *id;
    HASH_ADD_KEYPTR(by_name, ps->by_name, t->name, strlen(t->name), t);
    HASH_ADD(by_id, ps->by_id, id, sizeof t->id, t);
    return t;
}

static void topic_unmake(struct partitions *ps, struct hosted_topic *t)
{
    HASH_DELETE(by_name, ps->by_name, t);
    HASH_DELETE(by_id, ps->by_id, t);
    free(t->partitions);
    free(t->name);
    free(t);
}

/* Under the write lock. -EEXIST: it is there already, or the name belongs to another topic id, or the reverse. */
static int table_add(struct partitions *ps, struct partition *pt)
{
    struct hosted_topic *t = topic_find(ps, pt->topic, strlen(pt->topic));
    if (t == NULL && topic_find_by_id(ps, &pt->topic_id) != NULL)
        return -EEXIST;
    if (t == NULL)
        t = topic_make(ps, pt->topic, &pt->topic_id);
    if (!uuid_eq(&t->id, &pt->topic_id))
        return -EEXIST;
    if (pt->id >= t->n_partitions) {
        t->partitions = xreallocarray(t->partitions, (size_t)pt->id + 1, sizeof *t->partitions);
        while (t->n_partitions <= pt->id)
            t->partitions[t->n_partitions++] = NULL;
    }
    if (t->partitions[pt->id] != NULL)
        return -EEXIST;
    t->partitions[pt->id] = pt;
    t->n_hosted++;
    ps->n++;
    return 0;
}

static struct partition *table_take(struct partitions *ps, const char *topic, int32_t id)
{
    struct hosted_topic *t = topic_find(ps, topic, strlen(topic));
    if (t == NULL || id < 0 || id >= t->n_partitions || t->partitions[id] == NULL)
        return NULL;
    struct partition *pt = t->partitions[id];
    t->partitions[id] = NULL;
    traffic_add(&ps->gone, &pt->traffic);
    ps->n--;
    if (pt->dir >= 0)
        ps->n_in_dir[pt->dir]--;
    if (--t->n_hosted == 0)
        topic_unmake(ps, t);
    return pt;
}

/* ---- joining ---- */
/* Where the partition's records are; see dir_search(). */
struct dir_search {
    int dir; /* index in log.dirs, -1: nowhere */
    struct partition_dir found;
    int n_same; /* directories that have this partition of this topic */
};

/* All working log directories are asked for this one name. The topic's own directory goes before one whose topic
 * cannot be told, and that before another topic's. */
static int dir_search(struct partition *pt, struct dir_search *ret)
{
    struct logdirs *ld = pt->deps->dirs;
    int best = -1;

    *ret = (struct dir_search){ .dir = -1, .found.id_rc = -ENOENT };
    for (int i = 0; i < logdirs_count(ld); i++) {
        struct datadir *dd = logdirs_at(ld, i);
        struct partition_dir p;
        int rc = datadir_failed(dd) ? 0 : datadir_find(dd, pt->topic, pt->id, &p);
        if (rc < 0)
            return rc;
        if (datadir_failed(dd) || !p.is_there)
            continue;
        bool same = p.id_rc == 0 && uuid_eq(&p.topic_id, &pt->topic_id);
        int rank = same ? 3 : p.id_rc == 0 ? 1 : p.is_ours ? 2 : 0;
        ret->n_same += same;
        if (rank <= best)
            continue;
        best = rank;
        ret->dir = i;
        ret->found = p;
    }
    return 0;
}

/* The working directory with the fewest partitions; -1 when none works. */
static int dir_emptiest(struct partitions *ps)
{
    int best = -1;
    pthread_rwlock_rdlock(&ps->lock);
    for (int i = 0; i < logdirs_count(ps->deps.dirs); i++)
        if (!datadir_failed(logdirs_at(ps->deps.dirs, i)) && (best < 0 || ps->n_in_dir[i] < ps->n_in_dir[best]))
            best = i;
    pthread_rwlock_unlock(&ps->lock);
    return best;
}

static void dir_count(struct partitions *ps, int dir, int delta)
{
    pthread_rwlock_wrlock(&ps->lock);
    if (dir >= 0)
        ps->n_in_dir[dir] += delta;
    pthread_rwlock_unlock(&ps->lock);
}

static void log_recovery(const struct partition *pt, const struct plog_recovery *rec)
{
    if (rec->cut_bytes > 0)
        log_warn(
            "%s: %lld bytes at the end of the log (position %lld) were no whole batches and were cut off; %s%s",
            plog_name(pt->log), (long long)rec->cut_bytes, (long long)rec->cut_position,
            rec->cut_file[0] == '\0' ? "they were zeros" : "they are kept in ", rec->cut_file);
    if (rec->note[0] != '\0')
        log_warn("%s: %s", plog_name(pt->log), rec->note);
    if (!rec->clean)
        log_debug("%s: recovered, scanned=%lld rebuilt_indexes=%d", plog_name(pt->log),
                  (long long)rec->scanned_bytes, rec->rebuilt_indexes);
}

static struct datadir *dir_of(const struct partition *pt)
{
    return logdirs_at(pt->deps->dirs, pt->dir);
}

static int open_log_of(struct partition *pt, const struct uuid *topic_id, bool sync_later)
{
    struct plog_recovery rec = { 0 };
    int rc = (sync_later ? plog_open_unsynced : plog_open)(dir_of(pt), pt->topic, pt->id, topic_id, &pt->config->plog,
                                                           world_wall_ms(pt->deps->world), &pt->log, &rec);
    if (rc == 0)
        log_recovery(pt, &rec);
    pt->lost_end |= rec.lost_end;
    pt->holed |= rec.holed;
    pt->holed_from = rec.holed_from;
    return rc;
}

/* The directory belongs to an earlier topic of this name. It may go where a note of that one's deletion is there, or where it
 * never held a record: on a full disk a topic is taken back and its directory stays. */
static int discard_old_log(struct partition *pt, const struct uuid *found)
{
    const char *path = datadir_path(dir_of(pt));
    char theirs[UUID_TEXT_LEN + 1], ours[UUID_TEXT_LEN + 1];

    uuid_text(found, theirs);
    uuid_text(&pt->topic_id, ours);
    bool unwritten = datadir_is_unwritten(dir_of(pt), pt->topic, pt->id);
    if (!unwritten && !pt->deps->was_deleted(pt->deps->arg, found)) {
        log_error("%s/%s-%d belongs to another topic, its partition.metadata says (id %s); the registers know %s by "
                  "the id %s; it is left untouched: move it away, or put the right partition.metadata in",
                  path, pt->topic, pt->id, theirs, pt->topic, ours);
        return -ESTALE;
    }
    int rc = open_log_of(pt, found, false);
    if (rc < 0)
        return rc;
    if (unwritten)
        log_info("%s: its directory belonged to another topic of the same name and never held a record; making it anew",
                 plog_name(pt->log));
    else
        log_warn("%s: its directory belonged to a deleted topic of the same name; deleting that one's records",
                 plog_name(pt->log));
    return plog_remove(take(&pt->log));
}

static bool a_dir_has_failed(const struct logdirs *ld)
{
    for (int i = 0; i < logdirs_count(ld); i++)
        if (datadir_failed(logdirs_at(ld, i)))
            return true;
    return false;
}

/* What is unusual about the directory that was found, or was not. */
static int judge_search(struct partition *pt, const struct dir_search *s, const struct partition_new *new)
{
    const char *path = s->dir < 0 ? "" : datadir_path(logdirs_at(pt->deps->dirs, s->dir));

    if (s->n_same > 1) {
        log_error("%s-%d is in %d log directories, also in %s: only one can be right; move the others away",
                  pt->topic, pt->id, s->n_same, path);
        return -EEXIST;
    }
    if (s->dir < 0 && new->at_start && a_dir_has_failed(pt->deps->dirs)) {
        log_error("%s-%d: its directory is in none of the log directories that work; it may be in the one that has failed, "
                  "and is not begun anew",
                  pt->topic, pt->id);
        return -EIO;
    }
    if (s->dir < 0 && new->was_here)
        log_error("%s-%d: its directory is in none of the log directories: what records it had are lost, and it begins "
                  "anew at offset 0",
                  pt->topic, pt->id);
    if (s->dir >= 0 && s->found.is_ours && (s->found.id_rc == -ENOENT || s->found.id_rc == -EBADMSG))
        log_warn("%s/%s-%d/partition.metadata is %s; by its name it is taken for the topic's", path, pt->topic, pt->id,
                 s->found.id_rc == -ENOENT ? "missing" : "damaged");
    if (s->found.id_rc == -EPROTO)
        log_error("%s/%s-%d/partition.metadata is of a newer klog", path, pt->topic, pt->id);
    return 0;
}

static int open_log(struct partition *pt, const struct partition_new *new, bool sync_later)
{
    struct dir_search s;
    pt->dir = -1;
    int rc = dir_search(pt, &s);
    if (rc == 0)
        rc = judge_search(pt, &s, new);
    if (rc < 0)
        return rc;
    /* Others may have what is missing here, and must not take this replica for one that has it. */
    pt->begins_anew = s.dir < 0 && new->at_start && new->st->n_replicas > 1;
    pt->dir = s.dir >= 0 ? s.dir : dir_emptiest(pt->registry);
    if (pt->dir < 0)
        return -EIO;
    dir_count(pt->registry, pt->dir, +1);
    if (s.found.id_rc == 0 && !uuid_eq(&s.found.topic_id, &pt->topic_id))
        rc = discard_old_log(pt, &s.found.topic_id);
    return rc < 0 ? rc : open_log_of(pt, &pt->topic_id, sync_later);
}

static int64_t broker_epoch_of(struct partitions *ps)
{
    pthread_rwlock_rdlock(&ps->lock);
    int64_t be = ps->broker_epoch;
    pthread_rwlock_unlock(&ps->lock);
    return be;
}

static void start_replica(struct partition *pt)
{
    struct plog_ends ends = { 0 };
    if (pt->log != NULL)
        plog_ends(pt->log, &ends);
    replica_init(&pt->replica, pt->deps->me, broker_epoch_of(pt->registry), ends.end_offset, ends.flushed_offset,
                 ends.checkpoint_hw);
    replica_set_min_isr(&pt->replica, pt->config->min_insync_replicas);
    if (pt->log == NULL || pt->begins_anew)
        replica_damage(&pt->replica);
    else if (pt->config->flush_policy == FLUSH_ASYNC)
        replica_flushed(&pt->replica, ends.end_offset);
}

static struct partition *partition_make(struct partitions *ps, const char *topic, int32_t id,
                                        const struct uuid *topic_id, struct topic_config *cfg)
{
    struct partition *pt = xcalloc(1, sizeof *pt);
    lock_init(&pt->change_mu, LOCK_RANK_CHANGE, "partition's changes");
    lock_init_spinning(&pt->mu, LOCK_RANK_PARTITION, "partition"); /* held for microseconds: a sleep would take longer */
    pt->registry = ps;
    pt->deps = &ps->deps;
    pt->topic = xstrdup(topic);
    pt->id = id;
    pt->topic_id = *topic_id;
    pt->suspect_at = pt->sound_at = pt->damage_at = -1;
    pt->internal = strcmp(topic, "__consumer_offsets") == 0 || strcmp(topic, "__transaction_state") == 0;
    pt->config = topic_config_ref(cfg);
    pt->flush.ops = &partition_flush_ops;
    LIST_INIT(&pt->watchers);
    atomic_init(&pt->refs, 1); /* the registry's */
    return pt;
}

/* It does not have what it told others that it has. One of several replicas says so, so that it is not elected and cuts nobody's
 * log (R11); the others have it. A log that only lost its end is then copied on, one with holes is mended first. With a hole
 * inside it is still better than nobody, and only then it leads; without its front it would take that from the others, too. */
static void own_up(struct partition *pt, const struct partition_state *st)
{
    struct plog_ends ends;

    if (pt->log == NULL)
        return;
    plog_ends(pt->log, &ends);
    if (pt->holed)
        pt->damage_at = pt->holed_from;
    if (st->n_replicas < 2 || !(pt->lost_end || pt->holed))
        return;
    pt->begins_anew = !pt->holed;
    if (pt->lost_end || pt->holed_from < ends.start_offset)
        replica_damage(&pt->replica);
    if (pt->holed)
        log_warn("%s: records from offset %lld on are missing or damaged: it counts for nothing until they are copied from its leader",
                 plog_name(pt->log), (long long)pt->holed_from);
    else
        log_warn("%s: it has less than it had acknowledged: it counts for nothing until it is copied from its leader",
                 plog_name(pt->log));
}

static int join(struct partitions *ps, struct partition *pt, const struct partition_state *st)
{
    pt->flush.lane = pt->dir;
    start_replica(pt);
    own_up(pt, st);
    int rc = partition_set_state(pt, st) ? 0 : -EIO;

    pthread_rwlock_wrlock(&ps->lock);
    int added = table_add(ps, pt);
    pthread_rwlock_unlock(&ps->lock);
    if (added == 0) {
        partition_set_broker_epoch(pt, broker_epoch_of(ps)); /* it may have changed meanwhile */
        return rc;
    }
    dir_count(ps, pt->dir, -1);
    if (pt->log != NULL)
        plog_close(pt->log, false, 0);
    partition_free(pt);
    return added;
}

static int sync_new(struct partition *const *fresh, size_t n)
{
    CLEANUP(freep) struct plog **logs = xcalloc(n + 1, sizeof *logs);
    size_t n_logs = 0;

    for (size_t i = 0; i < n; i++)
        if (fresh[i]->log != NULL)
            logs[n_logs++] = fresh[i]->log;
    int rc = plog_sync_new(logs, n_logs);
    if (rc == 0)
        return 0;
    log_error("%s: cannot make its new logs last: %s; they are not served", fresh[0]->topic, strerror(-rc));
    for (size_t i = 0; i < n; i++) {
        if (fresh[i]->log == NULL || !plog_is_unsynced(fresh[i]->log))
            continue;
        if (rc == -ENOSPC || rc == -EDQUOT) /* nothing of a log that there is no room for stays */
            plog_remove(take(&fresh[i]->log));
        else
            plog_close(take(&fresh[i]->log), false, 0);
    }
    return rc;
}

int partitions_add(struct partitions *ps, const char *topic, const struct uuid *topic_id, struct topic_config *cfg,
                   const struct partition_new *new, size_t n)
{
    CLEANUP(freep) struct partition **fresh = xcalloc(n + 1, sizeof(*fresh));
    int first = 0;

    for (size_t i = 0; i < n; i++) {
        fresh[i] = partition_make(ps, topic, new[i].id, topic_id, cfg);
        int rc = open_log(fresh[i], &new[i], n >= SYNC_TOGETHER_MIN);
        if (rc < 0)
            log_error("%s-%d: cannot open the log: %s; the partition is not served", topic, new[i].id, strerror(-rc));
        first = first == 0 ? rc : first;
    }
    int rc = sync_new(fresh, n);
    first = first == 0 ? rc : first;
    for (size_t i = 0; i < n; i++) { /* only now can they be found */
        rc = join(ps, fresh[i], new[i].st);
        first = first == 0 ? rc : first;
    }
    return first;
}

/* ---- leaving ---- */
static void wait_until_gone(struct partitions *ps, struct partition *pt)
{
    lock_take(&ps->dead_mu);
    while (!pt->gone)
        cond_wait(&ps->dead, &ps->dead_mu);
    lock_release(&ps->dead_mu);
}

static void partition_retire(struct partition *pt)
{
    lock_take(&pt->mu);
    pt->deleted = true;
    lock_release(&pt->mu);
    partition_wake_all(pt);
}

void partitions_retire(struct partitions *ps, const char *topic, int32_t id)
{
    struct partition *pt = partitions_get(ps, kstr_of(topic), id);
    if (pt == NULL)
        return;
    partition_retire(pt);
    partition_unref(pt);
}

/* A log that could not be opened: an empty directory may be all that was made of it. */
static int remove_unopened(const struct partition *pt)
{
    CLEANUP(freep) char *name = xasprintf("%s-%d", pt->topic, pt->id);
    int rc = pt->dir < 0 ? -EIO : datadir_remove_empty(dir_of(pt), name);
    return rc == 0 || rc == -ENOENT ? 0 : -EIO;
}

int partitions_remove(struct partitions *ps, const char *topic, int32_t id)
{
    pthread_rwlock_wrlock(&ps->lock);
    struct partition *pt = table_take(ps, topic, id);
    pthread_rwlock_unlock(&ps->lock);
    if (pt == NULL)
        return 0;

    partition_retire(pt);
    flusher_forget(ps->deps.flusher, &pt->flush);
    partition_unref(pt);
    wait_until_gone(ps, pt);

    int rc = pt->log == NULL ? remove_unopened(pt) : plog_remove(pt->log);
    if (rc < 0)
        log_error("%s-%d: cannot delete the log: %s; the next start tries again", topic, id, strerror(-rc));
    partition_free(pt);
    return rc;
}

/* ---- all of them ---- */
static struct partition **collect(struct partitions *ps, size_t *ret_n)
{
    size_t n = 0;
    pthread_rwlock_rdlock(&ps->lock);
    struct partition **all = xcalloc(ps->n + 1, sizeof *all);
    for (struct hosted_topic *t = ps->by_name; t != NULL; t = t->by_name.next)
        for (int32_t i = 0; i < t->n_partitions; i++)
            if (t->partitions[i] != NULL)
                all[n++] = partition_ref(t->partitions[i]);
    KCHECK(n == ps->n);
    pthread_rwlock_unlock(&ps->lock);
    *ret_n = n;
    return all;
}

void partitions_each(struct partitions *ps, void (*f)(void *arg, struct partition *pt), void *arg)
{
    size_t n;
    struct partition **all = collect(ps, &n);
    for (size_t i = 0; i < n; i++) {
        f(arg, all[i]);
        partition_unref(all[i]);
    }
    free(all);
}

static void broker_epoch_cb(void *arg, struct partition *pt)
{
    partition_set_broker_epoch(pt, *(int64_t *)arg);
}

void partitions_set_broker_epoch(struct partitions *ps, int64_t be)
{
    pthread_rwlock_wrlock(&ps->lock);
    ps->broker_epoch = be;
    pthread_rwlock_unlock(&ps->lock);
    partitions_each(ps, broker_epoch_cb, &be);
}

static void dir_failed_cb(void *arg, struct partition *pt)
{
    if (pt->dir == *(int *)arg)
        partition_disk_failed(pt);
}

void partitions_want_care(struct partitions *ps)
{
    lock_take(&ps->care_mu);
    ps->care_wanted = true;
    cond_signal(&ps->care);
    lock_release(&ps->care_mu);
}

void partitions_end_care(struct partitions *ps)
{
    lock_take(&ps->care_mu);
    ps->care_ended = true;
    cond_signal(&ps->care);
    lock_release(&ps->care_mu);
}

bool partitions_wait_for_care(struct partitions *ps, int64_t until_ms, bool *ret_wanted)
{
    lock_take(&ps->care_mu);
    while (!ps->care_wanted && !ps->care_ended && world_mono_ms(ps->deps.world) < until_ms)
        cond_wait_until(&ps->care, &ps->care_mu, until_ms);
    *ret_wanted = ps->care_wanted;
    ps->care_wanted = false;
    bool goes_on = !ps->care_ended;
    lock_release(&ps->care_mu);
    return goes_on;
}

void partitions_traffic(struct partitions *ps, struct traffic *ret)
{
    pthread_rwlock_rdlock(&ps->lock);
    *ret = ps->gone;
    for (const struct hosted_topic *t = ps->by_name; t != NULL; t = t->by_name.next)
        for (int32_t i = 0; i < t->n_partitions; i++)
            if (t->partitions[i] != NULL)
                traffic_add(ret, &t->partitions[i]->traffic);
    pthread_rwlock_unlock(&ps->lock);
}

void partitions_note_isr(struct partitions *ps, int32_t before, int32_t after)
{
    if (after < before)
        atomic_fetch_add(&ps->isr_shrinks, 1);
    if (after > before)
        atomic_fetch_add(&ps->isr_expands, 1);
}

struct isr_changes partitions_isr_changes(const struct partitions *ps)
{
    return (struct isr_changes){ atomic_load(&ps->isr_shrinks), atomic_load(&ps->isr_expands) };
}

void partitions_dir_failed(struct partitions *ps, int dir)
{
    partitions_each(ps, dir_failed_cb, &dir);
}

/* Returns whether the log is whole on disk, with its checkpoints. */
static bool is_well(const struct partition *pt)
{
    return pt->log != NULL && pt->replica.role != REPLICA_DAMAGED;
}

static bool partition_close(struct partition *pt)
{
    bool well = is_well(pt);
    int rc = pt->log == NULL ? 0 : plog_close(pt->log, well, pt->replica.hw);
    if (rc < 0)
        log_error("%s-%d: cannot close the log: %s; the next start checks it", pt->topic, pt->id, strerror(-rc));
    pt->log = NULL;
    if (atomic_load(&pt->refs) == 1)
        partition_free(pt); /* else a request that was cut short still names it: the process ends */
    return well && rc == 0;
}

/* Each log's last flush waits for the disk; many at a time share the file system's journal commits. */
enum { CLOSERS = 8 };

struct closing {
    struct partition **all;
    size_t n;
    atomic_size_t next;
    struct lock mu;
    bool *dir_clean;                 /* guarded by mu */
};

static struct partition *next_to_close(struct closing *c)
{
    size_t i = atomic_fetch_add(&c->next, 1);
    return i < c->n ? c->all[i] : NULL;
}

/* What fails is tried again, and told, when the log is closed. */
static void prepare_some(void *arg)
{
    struct partition *pt;
    while ((pt = next_to_close(arg)) != NULL)
        if (is_well(pt))
            plog_checkpoint_prepare(pt->log, pt->replica.hw);
}

static void close_some(void *arg)
{
    struct closing *c = arg;
    struct partition *pt;
    while ((pt = next_to_close(c)) != NULL) {
        int dir = pt->dir;
        if (partition_close(pt) || dir < 0)
            continue;
        lock_take(&c->mu);
        c->dir_clean[dir] = false;
        lock_release(&c->mu);
    }
}

static void run_closers(struct closing *c, struct exec *e, void (*some)(void *arg))
{
    struct thread *threads[CLOSERS];
    int n_threads = 0;

    atomic_store(&c->next, 0);
    while (n_threads < CLOSERS && (size_t)n_threads + 1 < c->n &&
           (threads[n_threads] = thread_start(e, some, c, "klogd-close")) != NULL)
        n_threads++;
    some(c);
    for (int i = 0; i < n_threads; i++)
        thread_join(e, threads[i]);
}

static void write_late_checkpoints(struct closing *c)
{
    CLEANUP(freep) struct plog **late = xcalloc(c->n + 1, sizeof(*late));
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++)
        if (is_well(c->all[i]) && plog_checkpoint_is_late(c->all[i]->log))
            late[n++] = c->all[i]->log;
    if (n >= SYNC_TOGETHER_MIN)
        plog_checkpoint_together(late, n);
}

/* The registry's own references, not further ones. */
static struct partition **take_all(struct partitions *ps, size_t *ret_n)
{
    struct partition **all = xcalloc(ps->n + 1, sizeof *all);
    size_t n = 0;
    while (ps->by_name != NULL) {
        struct hosted_topic *t = ps->by_name;
        for (int32_t i = 0; i < t->n_partitions; i++)
            if (t->partitions[i] != NULL)
                all[n++] = t->partitions[i];
        topic_unmake(ps, t);
    }
    KCHECK(n <= ps->n);
    ps->n = 0;
    *ret_n = n;
    return all;
}

void partitions_close(struct partitions *ps, bool *dir_clean)
{
    struct exec *e = ps->deps.world->exec;
    struct closing c = { .dir_clean = dir_clean };
    lock_init(&c.mu, LOCK_RANK_PARTITIONS, "partitions closing");
    c.all = take_all(ps, &c.n);
    if (c.n >= SYNC_TOGETHER_MIN) {
        run_closers(&c, e, prepare_some);
        write_late_checkpoints(&c);
    }
    run_closers(&c, e, close_some);
    lock_done(&c.mu);
    free(c.all);
}

void partitions_free(struct partitions *ps)
{
    if (ps == NULL)
        return;
    KCHECK(ps->by_name == NULL);
    pthread_rwlock_destroy(&ps->lock);
    lock_done(&ps->dead_mu);
    cond_done(&ps->dead);
    lock_done(&ps->care_mu);
    cond_done(&ps->care);
    free(ps->n_in_dir);
    free(ps);
}
