/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards: threads with a loop each, to which partitions are dealt out by their topic's id and number. Whoever tells of a
 * partition leaves a letter; the shard's thread reads them in their order.
 */
#include "daemon/follow/follow_int.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/config/broker_config.h"
#include "lib/base/check.h"
#include "lib/base/crc32c.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/thread.h"

enum { WORKERS = 2 };

/* ---- letters ---- */
static struct shard *shard_of(struct follow *f, const struct partition *pt)
{
    uint8_t key[20];

    memcpy(key, pt->topic_id.b, 16);
    put_be32(key + 16, (uint32_t)pt->id);
    return &f->shards[crc32c(0, key, sizeof key) % (uint32_t)f->n_shards];
}

static void post(struct follow *f, struct partition *pt, int32_t leader, const char *host, int32_t port)
{
    struct shard *sh = shard_of(f, pt);
    struct letter *le = xcalloc(1, sizeof *le);

    le->pt = partition_ref(pt);
    le->leader = leader;
    le->host = host == NULL ? NULL : xstrdup(host);
    le->port = port;
    lock_take(&sh->mu);
    STAILQ_INSERT_TAIL(&sh->mail, le, link);
    lock_release(&sh->mu);
    loop_post(sh->loop, &sh->mail_came);
}

void follow_partition(struct follow *f, struct partition *pt, const struct follow_leader *leader)
{
    KCHECK(leader->id >= 0 && leader->host != NULL);
    post(f, pt, leader->id, leader->host, leader->port);
}

void follow_stop_partition(struct follow *f, struct partition *pt)
{
    post(f, pt, -1, NULL, 0);
}

static struct letter *take_letter(struct shard *sh)
{
    lock_take(&sh->mu);
    struct letter *le = STAILQ_FIRST(&sh->mail);
    if (le != NULL)
        STAILQ_REMOVE_HEAD(&sh->mail, link);
    lock_release(&sh->mu);
    return le;
}

static void letter_free(struct letter *le)
{
    partition_unref(le->pt);
    free(le->host);
    free(le);
}

static void read_letter(struct shard *sh, const struct letter *le)
{
    struct part *p;
    HASH_FIND(hh, sh->parts, &le->pt, sizeof le->pt, p);
    if (le->leader < 0) {
        if (p != NULL)
            part_leave(p);
        return;
    }
    struct fetcher *fe = fetcher_get(sh, le->leader, le->host, le->port);
    if (p != NULL)
        part_follow(p, fe);
    else
        part_new(sh, le->pt, fe);
}

static void on_mail(struct task *t)
{
    struct shard *sh = container_of(t, struct shard, mail_came);
    struct letter *le;

    while ((le = take_letter(sh)) != NULL) {
        read_letter(sh, le);
        letter_free(le);
    }
}

/* ---- birth and end ---- */
static void shard_main(void *arg)
{
    loop_run(arg);
}

static int shard_start(struct follow *f, struct shard *sh)
{
    sh->follow = f;
    lock_init(&sh->mu, LOCK_RANK_FOLLOW, "letters");
    STAILQ_INIT(&sh->mail);
    LIST_INIT(&sh->fetchers);
    sh->mail_came.cb = on_mail;
    sh->loop = loop_new(f->deps.world);
    if (sh->loop == NULL)
        return -errno;
    sh->thread = thread_start(f->deps.world->exec, shard_main, sh->loop, "klogd-follow");
    return sh->thread == NULL ? -EAGAIN : 0;
}

struct follow *follow_new(const struct follow_deps *deps)
{
    struct follow *f = xcalloc(1, sizeof *f);
    int rc = 0;

    f->deps = *deps;
    f->shards = xcalloc((size_t)deps->config->num_replica_fetchers, sizeof *f->shards);
    f->workers = workers_new(deps->world, WORKERS, "klogd-copy");
    if (f->workers == NULL)
        rc = -EAGAIN;
    while (rc == 0 && f->n_shards < deps->config->num_replica_fetchers)
        rc = shard_start(f, &f->shards[f->n_shards++]);
    if (rc == 0)
        return f;
    follow_stop(f);
    follow_free(f);
    errno = -rc;
    return NULL;
}

/* What works is left by part_leave() and freed when that is done. */
static void leave_all(void *arg)
{
    struct shard *sh = arg;
    struct part *p, *next;
    struct letter *le;

    while ((le = take_letter(sh)) != NULL)
        letter_free(le);
    HASH_ITER (hh, sh->parts, p, next)
        part_leave(p);
}

void follow_stop(struct follow *f)
{
    if (f == NULL)
        return;
    for (int i = 0; i < f->n_shards; i++)
        if (f->shards[i].thread != NULL)
            loop_call(f->shards[i].loop, leave_all, &f->shards[i]);
    workers_free(f->workers); /* what was done is told to the loops before they stop */
    f->workers = NULL;
    for (int i = 0; i < f->n_shards; i++) {
        struct shard *sh = &f->shards[i];
        if (sh->thread == NULL)
            continue;
        loop_stop(sh->loop);
        thread_join(f->deps.world->exec, sh->thread);
        sh->thread = NULL;
        KCHECK(sh->parts == NULL && LIST_EMPTY(&sh->fetchers));
    }
}

void follow_free(struct follow *f)
{
    if (f == NULL)
        return;
    KCHECK(f->workers == NULL);
    for (int i = 0; i < f->n_shards; i++) {
        if (f->shards[i].loop != NULL)
            loop_free(f->shards[i].loop);
        lock_done(&f->shards[i].mu);
    }
    free(f->shards);
    free(f);
}
