/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster's life: made, started, watching, stopped. cluster_start() and cluster_stop() block on the main
 * thread; watches are called on the meta loop.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
    c->brokers.malformed = -1;
    c->ids = producer_ids_new(c);
    register_batch_init(&c->lead.batch, deps->registers, deps->loop);
    cluster_enlist_init(c);
    latch_init(&c->started, deps->world->exec);
    return c;
}

void cluster_free(struct cluster *c)
{
    if (c == NULL)
        return;
    slots_free(c);
    lead_free(c);
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

int64_t cluster_broker_epoch(const struct cluster *c)
{
    return atomic_load(&c->broker_epoch);
}

/* ---- watching ---- */

/* What follows "TOP/" in a path below top; NULL: it is top itself, or above. */
static const char *below(const char *path, const char *top)
{
    size_t n = strlen(top);

    return strncmp(path, top, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static void list_topics(struct cluster *c);

static bool has_slot(struct cluster *c, const char *name)
{
    struct topic_slot *s;

    HASH_FIND_STR(c->slots, name, s);
    return s != NULL;
}

static int compare_names(const void *key, const void *elem)
{
    return strcmp(key, *(const char *const *)elem);
}

/* Sorted names: topics that are not known are read, and those that are gone. */
static void follow_names(struct cluster *c, const char *const *names, int n)
{
    struct topic_slot *s, *next;

    HASH_ITER (hh, c->slots, s, next)
        if (s->hosted && (n == 0 || bsearch(s->name, names, (size_t)n, sizeof *names, compare_names) == NULL))
            slot_mark_dirty(s, TOPIC_SHAPE);
    for (int i = 0; i < n; i++)
        if (!has_slot(c, names[i]))
            slot_mark_dirty(slot_get(c, names[i]), TOPIC_ALL);
}

static void names_came(void *arg, int rc, const char *const *names, int n)
{
    struct cluster *c = arg;

    c->listing = false;
    if (rc < 0 && rc != -EREMOTEIO) /* that is followed by another call of the watch */
        log_error("registers: cannot list the topics: %s", strerror(-rc));
    if (rc == 0 && !c->stopping)
        follow_names(c, names, n);
    if (c->list_again && !c->stopping)
        list_topics(c);
    cluster_note_idle(c, -1);
}

/* Which topics there are may be other ones than are known. */
static void list_topics(struct cluster *c)
{
    c->list_again = c->listing;
    if (c->listing)
        return;
    c->listing = true;
    cluster_note_idle(c, +1);
    registers_children(c->deps.registers, "/brokers/topics", names_came, c);
}

/* Anything may have changed. */
static void all_changed(struct cluster *c)
{
    struct topic_slot *s, *next;

    HASH_ITER (hh, c->slots, s, next)
        slot_mark_dirty(s, TOPIC_ALL);
    list_topics(c);
}

/* rest: of a path below a topic's register. The register of one partition, and nothing else, changes often. */
static void part_changed(struct topic_slot *s, const char *rest)
{
    const char *number = below(rest, "partitions");
    char *end;
    long id = number == NULL ? -1 : strtol(number, &end, 10);

    if (number != NULL && number[0] == '\0') { /* each that came is told of by itself */
        slot_mark_dirty(s, TOPIC_SHAPE);
    } else if (id < 0 || id >= CLUSTER_PARTITIONS_MAX) {
        slot_mark_dirty(s, TOPIC_SHAPE | TOPIC_PARTITIONS);
    } else if (strcmp(end, "/state") == 0) {
        slot_mark_partition(s, (int32_t)id);
    } else {
        topic_wants_add(&s->dirty, (int32_t)id);
        slot_mark_dirty(s, TOPIC_SHAPE);
    }
}

/* The slot of the topic that begins `rest`; *ret_rest: what follows its name, "" nothing. */
static struct topic_slot *slot_named(struct cluster *c, const char *rest, const char **ret_rest)
{
    size_t n = strcspn(rest, "/");
    CLEANUP(freep) char *name = xstrndup(rest, n);

    *ret_rest = rest[n] == '/' ? rest + n + 1 : "";
    return slot_get(c, name);
}

static void topic_changed(void *arg, const char *path)
{
    struct cluster *c = arg;
    const char *rest = below(path, "/brokers/topics");

    if (c->stopping)
        return;
    if (rest == NULL) {
        all_changed(c);
        return;
    }
    if (rest[0] == '\0') {
        list_topics(c);
        return;
    }
    struct topic_slot *s = slot_named(c, rest, &rest);
    part_changed(s, rest);
}

static void topic_config_changed(void *arg, const char *path)
{
    struct cluster *c = arg;
    const char *rest = below(path, "/config/topics");
    struct topic_slot *s, *next;

    if (c->stopping)
        return;
    if (rest != NULL && rest[0] == '\0') /* they come and go with their topics */
        return;
    if (rest != NULL)
        slot_mark_dirty(slot_named(c, rest, &rest), TOPIC_CONFIG);
    else
        HASH_ITER (hh, c->slots, s, next)
            slot_mark_dirty(s, TOPIC_CONFIG);
}

static void broker_changed(void *arg, const char *path)
{
    struct cluster *c = arg;
    (void)path;

    if (c->stopping)
        return;
    c->brokers.dirty = true;
    if (!c->starting)
        brokers_step(c);
}

static void watch(void *arg)
{
    struct cluster *c = arg;

    c->watches[0] = registers_watch(c->deps.registers, "/brokers/topics", topic_changed, c);
    c->watches[1] = registers_watch(c->deps.registers, "/config/topics", topic_config_changed, c);
    c->watches[2] = registers_watch(c->deps.registers, "/brokers/ids", broker_changed, c);
    c->watches[3] = registers_watch(c->deps.registers, "/config/brokers", broker_changed, c);
    if (c->deps.alone)
        return;
    CLEANUP(freep) char *epoch = xasprintf("/klog/broker_epoch/%d", c->deps.id); /* which this broker alone may write */
    c->watches[4] = registers_watch(c->deps.registers, epoch, broker_changed, c);
}

void cluster_watch(struct cluster *c)
{
    loop_call(c->deps.loop, watch, c);
}

/* What changed while the first round was going on. */
static void catch_up(void *arg)
{
    struct cluster *c = arg;
    struct topic_slot *s, *next;

    c->starting = false;
    brokers_step(c);
    HASH_ITER (hh, c->slots, s, next)
        slot_step(s);
    lead_start(c);
}

/* ---- starting and stopping ---- */

int cluster_start(struct cluster *c, char *err, size_t err_size)
{
    struct cluster_starter st = { .cluster = c };

    c->starting = true;
    int rc = cluster_start_registers(&st, err, err_size);
    if (rc == 0)
        rc = cluster_start_topics(&st, err, err_size);
    if (rc == 0)
        loop_call(c->deps.loop, catch_up, c);
    c->started_all = rc == 0;
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
    struct topic_slot *s, *next;

    c->idle = &call->idle;
    c->stopping = true;
    cluster_enlist_stop(c);
    lead_stop(c);
    HASH_ITER (hh, c->slots, s, next) /* changes that wait for registers to be read again wait no longer */
        slot_step(s);
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
