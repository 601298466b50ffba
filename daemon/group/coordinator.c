/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shards, the way into them, and their life. A shard is one partition of __consumer_offsets; while this broker leads
 * it, its groups are in memory, under one lock. coordinator_enter finds the group's shard and says why it cannot be entered,
 * or holds its lock until coordinator_leave. That a partition is led here, or no longer, is seen by whoever enters or told by
 * the partition, and acted on under the same lock.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/coordinator_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"

/* ---- entries ---- */

/* While the log is read the table is the worker's that reads. */
static void assert_groups_are_mine(const struct shard *sh)
{
    KCHECK(sh->reading || lock_is_held(&sh->mu));
}

struct group_entry *shard_find(struct shard *sh, const char *group_id)
{
    assert_groups_are_mine(sh);
    struct group_entry *e;

    HASH_FIND_STR(sh->groups, group_id, e);
    return e;
}

struct group_entry *shard_add(struct shard *sh, const char *group_id)
{
    assert_groups_are_mine(sh);
    struct group_entry *e = xcalloc(1, sizeof *e);

    e->shard = sh;
    e->group = group_new(group_id, &sh->coordinator->env, e);
    HASH_ADD_KEYPTR(hh, sh->groups, e->group->id, strlen(e->group->id), e);
    return e;
}

void group_entry_free(struct group_entry *e)
{
    KCHECK(e->writing == 0);
    committed_done(&e->offsets);
    group_free(e->group);
    free(e);
}

/* Out of the table; with records under way it stays until the last has ended. */
void shard_remove(struct shard *sh, struct group_entry *e)
{
    assert_groups_are_mine(sh);
    KCHECK(!e->detached && e->group->n_parked_joins == 0);
    HASH_DEL(sh->groups, e);
    e->detached = true;
    if (e->writing == 0)
        group_entry_free(e);
}

void shard_clear(struct shard *sh, enum kerr err)
{
    struct group_entry *e, *next;

    HASH_ITER (hh, sh->groups, e, next) {
        group_unload(e->group, err);
        shard_remove(sh, e);
    }
}

/* ---- shards ---- */

static struct shard *shard_new(struct coordinator *c, int32_t id)
{
    struct shard *sh = xcalloc(1, sizeof *sh);

    lock_init(&sh->mu, LOCK_RANK_SHARD, "shard of the groups");
    sh->coordinator = c;
    sh->loop = c->deps.loops[id % c->deps.n_loops];
    sh->id = id;
    shard_writes_init(sh);
    shard_load_init(sh);
    shard_timer_init(sh);
    return sh;
}

static int32_t offsets_topic_partitions(struct coordinator *c)
{
    struct cluster_image *img = cluster_image_get(c->deps.cluster);
    const struct cluster_topic *t = cluster_image_topic(img, kstr_of(OFFSETS_TOPIC));
    int32_t n = t != NULL ? t->n_partitions : 0;

    cluster_image_put(img);
    return n;
}

/* Makes the shards once the topic is there; their number never changes after that. */
static void make_shards(struct coordinator *c)
{
    int32_t n = offsets_topic_partitions(c);

    if (n == 0)
        return;
    c->shards = xcalloc((size_t)n, sizeof(struct shard *));
    for (int32_t i = 0; i < n; i++)
        c->shards[i] = shard_new(c, i);
    c->n_shards = n;
}

int32_t coordinator_n_shards(struct coordinator *c)
{
    lock_take(&c->mu);
    if (c->n_shards == 0 && !atomic_load(&c->stopping))
        make_shards(c);
    int32_t n = c->n_shards;
    lock_release(&c->mu);
    return n;
}

void coordinator_busy(struct coordinator *c, int32_t delta)
{
    lock_take(&c->mu);
    c->busy += delta;
    KCHECK(c->busy >= 0);
    if (c->busy == 0)
        cond_broadcast(&c->idle);
    lock_release(&c->mu);
}

bool shard_has_moved(const struct shard *sh)
{
    struct partition_view v;

    partition_view(sh->partition, &v);
    return v.err != KERR_NONE || v.leader_epoch != sh->leader_epoch;
}

/* Another broker leads now, or this one in a new epoch, or the partition goes: what is in memory may not be what the
 * log says. */
void shard_unload(struct shard *sh)
{
    lock_assert_held(&sh->mu);
    KCHECK((sh->state == SHARD_ACTIVE || sh->state == SHARD_LOADING) && !sh->reading);
    shard_writes_fail(sh, KERR_NOT_COORDINATOR);
    shard_clear(sh, KERR_NOT_COORDINATOR);
    partition_unwatch(sh->partition, &sh->watcher);
    partition_unref(sh->partition);
    sh->partition = NULL;
    sh->state = SHARD_IDLE;
}

/* Is this broker the coordinator of these groups, and ready? */
static enum kerr shard_check(struct shard *sh)
{
    lock_assert_held(&sh->mu);
    if (sh->state == SHARD_STOPPED)
        return KERR_COORDINATOR_NOT_AVAILABLE;
    if (sh->state == SHARD_ACTIVE && !shard_has_moved(sh))
        return KERR_NONE;
    if (sh->state == SHARD_ACTIVE)
        shard_unload(sh);
    if (sh->state == SHARD_IDLE)
        shard_load(sh);
    return sh->state == SHARD_ACTIVE    ? KERR_NONE
           : sh->state == SHARD_LOADING ? KERR_COORDINATOR_LOAD_IN_PROGRESS
                                        : KERR_NOT_COORDINATOR;
}

/* ---- the way in ---- */

/* Group ids become C strings; no client has reason to put a NUL into one. */
static bool group_id_valid(struct kstr id)
{
    return id.n >= 0 && id.n <= INT16_MAX && (id.n == 0 || memchr(id.p, '\0', (size_t)id.n) == NULL);
}

enum kerr coordinator_enter(struct coordinator *c, struct kstr group_id, bool create, struct group_lease *ret)
{
    if (!group_id_valid(group_id))
        return KERR_INVALID_GROUP_ID;
    int32_t n = coordinator_n_shards(c);
    if (n == 0)
        return KERR_COORDINATOR_NOT_AVAILABLE;

    CLEANUP(freep) char *id = xstrndup(group_id.n > 0 ? group_id.p : "", (size_t)group_id.n);
    struct shard *sh = c->shards[coordinator_partition_of(group_id, n)];
    lock_take(&sh->mu);
    enum kerr err = shard_check(sh);
    struct group_entry *e = err == KERR_NONE ? shard_find(sh, id) : NULL;
    if (e != NULL && e->closing)
        err = KERR_COORDINATOR_LOAD_IN_PROGRESS;
    if (err != KERR_NONE) {
        lock_release(&sh->mu);
        return err;
    }
    ret->shard = sh;
    ret->e = e == NULL && create ? shard_add(sh, id) : e;
    return KERR_NONE;
}

/* Made for a request that came to nothing. A group that has lost its last position is an empty one until the next
 * look for what has expired, as in Kafka. */
static bool entry_is_blank(const struct group_entry *e)
{
    const struct group *g = e->group;

    return g->state == GROUP_EMPTY && g->generation == 0 && g->pending == NULL && !e->offsets.had_some &&
           !e->has_record && e->writing == 0;
}

void coordinator_leave(struct group_lease *l)
{
    if (l->e != NULL && entry_is_blank(l->e))
        shard_remove(l->shard, l->e);
    else if (l->e != NULL)
        shard_retime(l->shard, group_due_ms(l->e->group));
    lock_release(&l->shard->mu);
}

enum kerr coordinator_each(struct coordinator *c, void (*f)(void *arg, struct group_entry *e), void *arg)
{
    enum kerr worst = KERR_NONE;
    int32_t n = coordinator_n_shards(c);

    for (int32_t i = 0; i < n; i++) {
        struct shard *sh = c->shards[i];
        struct group_entry *e, *next;
        lock_take(&sh->mu);
        enum kerr err = shard_check(sh);
        if (err == KERR_NONE)
            HASH_ITER (hh, sh->groups, e, next)
                f(arg, e);
        else if (err != KERR_NOT_COORDINATOR)
            worst = err;
        lock_release(&sh->mu);
    }
    return worst;
}

/* ---- life ---- */

struct coordinator *coordinator_new(const struct coordinator_deps *deps)
{
    struct coordinator *c = xcalloc(1, sizeof *c);

    c->deps = *deps;
    lock_init(&c->mu, LOCK_RANK_COORDINATOR, "coordinator");
    cond_init(&c->idle, deps->world->exec);
    coordinator_env_init(c);
    return c;
}

static void start_on_loop(struct task *t)
{
    struct coordinator *c = container_of(t, struct coordinator, start);

    for (int32_t i = 0, n = coordinator_n_shards(c); i < n; i++) {
        struct shard *sh = c->shards[i];
        lock_take(&sh->mu);
        shard_check(sh);
        lock_release(&sh->mu);
    }
    coordinator_expiry_start(c);
}

void coordinator_start(struct coordinator *c)
{
    c->start.cb = start_on_loop;
    loop_post(c->deps.loops[0], &c->start);
}

/* Records under way end as they will; who waits for them is answered then, and the partition let go. */
static void shard_stop(struct shard *sh)
{
    struct group_entry *e, *next;

    lock_take(&sh->mu);
    if (sh->state == SHARD_ACTIVE)
        HASH_ITER (hh, sh->groups, e, next)
            group_unload(e->group, KERR_COORDINATOR_NOT_AVAILABLE);
    sh->state = SHARD_STOPPED;
    loop_post(sh->loop, &sh->moved);
    lock_release(&sh->mu);
}

void coordinator_stop(struct coordinator *c)
{
    if (c == NULL)
        return;
    atomic_store(&c->stopping, true);
    for (int32_t i = 0, n = coordinator_n_shards(c); i < n; i++)
        shard_stop(c->shards[i]);
}

void coordinator_drain(struct coordinator *c)
{
    if (c == NULL)
        return;
    lock_take(&c->mu);
    while (c->busy > 0)
        cond_wait(&c->idle, &c->mu);
    lock_release(&c->mu);
}

static void shard_free(struct shard *sh)
{
    KCHECK(TAILQ_EMPTY(&sh->writes));
    lock_take(&sh->mu);
    shard_clear(sh, KERR_COORDINATOR_NOT_AVAILABLE);
    lock_release(&sh->mu);
    if (sh->partition != NULL) {
        partition_unwatch(sh->partition, &sh->watcher);
        partition_unref(sh->partition);
    }
    lock_done(&sh->mu);
    free(sh);
}

void coordinator_free(struct coordinator *c)
{
    if (c == NULL)
        return;
    for (int32_t i = 0; i < c->n_shards; i++)
        shard_free(c->shards[i]);
    free(c->shards);
    cond_done(&c->idle);
    lock_done(&c->mu);
    free(c);
}
