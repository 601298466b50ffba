/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producer ids, each given out once in the life of the cluster: blocks of 1000 are taken from
 * /latest_producer_id_block by compare-and-set, and what is left of a block when the broker stops is lost.
 * Meta loop; askers come from any loop and get their answer there.
 */
#include <errno.h>
#include <string.h>

#include "daemon/meta/cluster_int.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define BLOCK_SIZE INT64_C(1000)
#define BLOCK_PATH "/latest_producer_id_block"

struct asker {
    struct task task; /* to the meta loop, later back */
    struct cluster *cluster;
    struct loop *loop;
    void (*cb)(void *arg, enum kerr err, int64_t id);
    void *arg;
    enum kerr err;
    int64_t id;
    TAILQ_ENTRY(asker) link;
};

struct producer_ids {
    struct cluster *cluster;
    int64_t next, end; /* of the block in hand */
    TAILQ_HEAD(, asker) askers;
    bool fetching;
    int64_t fetched_first; /* of the block that is being written */
    struct register_ops_list ops;
};

static void asker_answer(struct task *t)
{
    struct asker *a = container_of(t, struct asker, task);

    a->cb(a->arg, a->err, a->id);
    free(a);
}

static void asker_end(struct producer_ids *p, enum kerr err, int64_t id)
{
    struct asker *a = TAILQ_FIRST(&p->askers);

    TAILQ_REMOVE(&p->askers, a, link);
    a->err = err;
    a->id = id;
    a->task.cb = asker_answer;
    loop_post(a->loop, &a->task);
}

static void fetch(struct producer_ids *p);

static void serve(struct producer_ids *p)
{
    while (!TAILQ_EMPTY(&p->askers) && p->next < p->end)
        asker_end(p, KERR_NONE, p->next++);
    if (!TAILQ_EMPTY(&p->askers) && !p->fetching)
        fetch(p);
}

static void fetch_failed(struct producer_ids *p, int rc)
{
    p->fetching = false;
    log_error("registers: cannot take a block of producer ids: %s", strerror(-rc));
    while (!TAILQ_EMPTY(&p->askers))
        asker_end(p, KERR_COORDINATOR_NOT_AVAILABLE, -1);
}

static void block_written(void *arg, int rc)
{
    struct producer_ids *p = arg;

    ops_done(&p->ops);
    if (rc < 0 && rc != -ESTALE) {
        fetch_failed(p, rc);
        return;
    }
    p->fetching = false;
    if (rc == 0) {
        p->next = p->fetched_first;
        p->end = p->next + BLOCK_SIZE;
    }
    serve(p); /* -ESTALE: another broker was faster, read again */
}

static void block_read(void *arg, int rc, struct slice value, int64_t version)
{
    struct producer_ids *p = arg;
    int64_t last = -1;

    if (rc == 0 && value.n > 0) /* empty: no block was taken yet */
        rc = id_block_decode(value, &last);
    if (rc == 0 && last > INT64_MAX - 2 * BLOCK_SIZE)
        rc = -ERANGE;
    if (rc < 0) {
        fetch_failed(p, rc);
        return;
    }
    p->fetched_first = last + 1;
    ops_add(&p->ops, REGISTER_SET, xstrdup(BLOCK_PATH),
            id_block_encode(p->cluster->deps.id, last + 1, last + BLOCK_SIZE), version);
    registers_multi(p->cluster->deps.registers, p->ops.ops, p->ops.n, block_written, p);
}

static void fetch(struct producer_ids *p)
{
    p->fetching = true;
    registers_get(p->cluster->deps.registers, BLOCK_PATH, block_read, p);
}

static void asker_arrive(struct task *t)
{
    struct asker *a = container_of(t, struct asker, task);
    struct producer_ids *p = a->cluster->ids;

    TAILQ_INSERT_TAIL(&p->askers, a, link);
    serve(p);
}

void cluster_new_producer_id(struct cluster *c, struct loop *lp,
                             void (*cb)(void *arg, enum kerr err, int64_t id), void *arg)
{
    struct asker *a = xcalloc(1, sizeof *a);

    a->cluster = c;
    a->loop = lp;
    a->cb = cb;
    a->arg = arg;
    a->task.cb = asker_arrive;
    loop_post(c->deps.loop, &a->task);
}

struct producer_ids *producer_ids_new(struct cluster *c)
{
    struct producer_ids *p = xcalloc(1, sizeof *p);

    p->cluster = c;
    TAILQ_INIT(&p->askers);
    return p;
}

void producer_ids_free(struct producer_ids *p)
{
    struct asker *a;

    if (p == NULL)
        return;
    while ((a = TAILQ_FIRST(&p->askers)) != NULL) {
        TAILQ_REMOVE(&p->askers, a, link);
        free(a);
    }
    ops_done(&p->ops);
    free(p);
}
