/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster's life: made, started, watching, stopped. cluster_start() and cluster_stop() block on the main
 * thread; watches are called on the meta loop.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/meta/cluster_int.h"
#include "daemon/meta/cluster_start.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/thread.h"

struct cluster *cluster_new(const struct cluster_deps *deps)
{
    struct cluster *c = xcalloc(1, sizeof *c);

    c->deps = *deps;
    lock_init(&c->image_mu, LOCK_RANK_IMAGE, "image of the cluster");
    TAILQ_INIT(&c->brokers.changes);
    c->ids = producer_ids_new(c);
    latch_init(&c->started, deps->world->exec);
    return c;
}

void cluster_free(struct cluster *c)
{
    if (c == NULL)
        return;
    slots_free(c);
    producer_ids_free(c->ids);
    cluster_image_put(c->image);
    free(c->start_topics);
    lock_done(&c->image_mu);
    latch_done(&c->started);
    free(c);
}

const char *cluster_id(const struct cluster *c)
{
    return c->deps.cluster_id;
}

/* ---- watching ---- */

/* The topic that a path below top names, or NULL. */
static char *topic_in_path(const char *path, const char *top)
{
    size_t n = strlen(top);

    if (strncmp(path, top, n) != 0 || path[n] != '/')
        return NULL;
    const char *name = path + n + 1;
    return xstrndup(name, strcspn(name, "/"));
}

static void topic_changed(void *arg, const char *path)
{
    struct cluster *c = arg;
    char *name = topic_in_path(path, "/brokers/topics");

    if (name == NULL)
        name = topic_in_path(path, "/config/topics");
    if (name != NULL && !c->stopping)
        slot_mark_dirty(slot_get(c, name));
    free(name);
}

static void broker_changed(void *arg, const char *path)
{
    struct cluster *c = arg;

    if (strcmp(path, "/brokers/ids") == 0 || strcmp(path, "/config/brokers") == 0 || c->stopping)
        return;
    c->brokers.dirty = true;
    brokers_step(c);
}

static void watch(void *arg)
{
    struct cluster *c = arg;

    c->watches[0] = registers_watch(c->deps.registers, "/brokers/topics", topic_changed, c);
    c->watches[1] = registers_watch(c->deps.registers, "/config/topics", topic_changed, c);
    c->watches[2] = registers_watch(c->deps.registers, "/brokers/ids", broker_changed, c);
    c->watches[3] = registers_watch(c->deps.registers, "/config/brokers", broker_changed, c);
}

/* ---- starting and stopping ---- */

int cluster_start(struct cluster *c, char *err, size_t err_size)
{
    struct cluster_starter st = { .cluster = c };

    int rc = cluster_start_registers(&st, err, err_size);
    if (rc == 0)
        rc = cluster_start_topics(&st, err, err_size);
    if (rc == 0)
        loop_call(c->deps.loop, watch, c);
    cluster_starter_done(&st);
    return rc;
}

struct stop_call {
    struct cluster *cluster;
    struct latch idle;
};

/* Meta loop, which alone looks at `idle`. */
static void stop_begin(void *arg)
{
    struct stop_call *call = arg;
    struct cluster *c = call->cluster;

    c->idle = &call->idle;
    c->stopping = true;
    for (size_t i = 0; i < ARRAY_LEN(c->watches); i++)
        if (c->watches[i] != NULL)
            registers_unwatch(c->deps.registers, c->watches[i]);
    cluster_note_idle(c, 0);
}

void cluster_stop(struct cluster *c)
{
    if (c == NULL)
        return;
    struct stop_call call = { .cluster = c };
    latch_init(&call.idle, c->deps.world->exec);
    loop_call(c->deps.loop, stop_begin, &call);
    latch_wait(&call.idle);
    latch_done(&call.idle);
}
