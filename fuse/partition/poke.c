/* SPDX-License-Identifier: Apache-2.0 */
/* The poke thread; see poke.h. It touches only the queue, under its mutex, and the mount by path. */
#include "fuse/partition/poke.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"

/* Files that wait; while a file waits in vain for its append, others must not pile up without end. */
#define POKE_QUEUE_MAX 1024

struct poke_item {
    char *path;
    uint64_t id; /* of the node */
    STAILQ_ENTRY(poke_item) link;
};

struct poke {
    pthread_t thread;
    char *mountpoint; /* constant */
    atomic_int tid;
    atomic_uint_fast64_t target; /* of the item at hand */
    pthread_mutex_t mu;
    pthread_cond_t more;
    STAILQ_HEAD(, poke_item) queue; /* guarded by mu */
    int queued;                     /* guarded by mu */
    bool stopping;                  /* guarded by mu */
};

static struct poke_item *poke_next(struct poke *p)
{
    struct poke_item *it = NULL;
    pthread_mutex_lock(&p->mu);
    while (!p->stopping && STAILQ_EMPTY(&p->queue))
        pthread_cond_wait(&p->more, &p->mu);
    if (!p->stopping) {
        it = STAILQ_FIRST(&p->queue);
        STAILQ_REMOVE_HEAD(&p->queue, link);
        p->queued--;
    }
    pthread_mutex_unlock(&p->mu);
    return it;
}

static void item_free(struct poke_item *it)
{
    free(it->path);
    free(it);
}

static void *poke_run(void *arg)
{
    struct poke *p = arg;
    struct poke_item *it;
    static const struct timespec now[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } };
    atomic_store(&p->tid, gettid());
    while ((it = poke_next(p)) != NULL) {
        atomic_store(&p->target, it->id);
        utimensat(AT_FDCWD, it->path, now, 0); /* the file may be gone by now; nobody needs to know */
        item_free(it);
    }
    return NULL;
}

struct poke *poke_new(const char *mountpoint)
{
    struct poke *p = xcalloc(1, sizeof *p);
    p->mountpoint = xstrdup(mountpoint);
    pthread_mutex_init(&p->mu, NULL);
    pthread_cond_init(&p->more, NULL);
    STAILQ_INIT(&p->queue);
    int rc = pthread_create(&p->thread, NULL, poke_run, p);
    KCHECK(rc == 0);
    return p;
}

void poke_stop(struct poke *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->mu);
    p->stopping = true;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->mu);
}

void poke_free(struct poke *p)
{
    struct poke_item *it;
    if (p == NULL)
        return;
    poke_stop(p);
    pthread_join(p->thread, NULL);
    while ((it = STAILQ_FIRST(&p->queue)) != NULL) {
        STAILQ_REMOVE_HEAD(&p->queue, link);
        item_free(it);
    }
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->mu);
    free(p->mountpoint);
    free(p);
}

static bool queue_has(const struct poke *p, const char *path, uint64_t id)
{
    const struct poke_item *it;
    STAILQ_FOREACH (it, &p->queue, link) {
        if (it->id == id && strcmp(it->path, path) == 0)
            return true;
    }
    return false;
}

void poke_file(struct poke *p, const char *topic, const char *name, uint64_t id)
{
    char *path = xasprintf("%s/%s/%s", p->mountpoint, topic, name);
    pthread_mutex_lock(&p->mu);
    if (p->stopping || p->queued >= POKE_QUEUE_MAX || queue_has(p, path, id)) {
        free(path);
    } else {
        struct poke_item *it = xcalloc(1, sizeof *it);
        it->path = path;
        it->id = id;
        STAILQ_INSERT_TAIL(&p->queue, it, link);
        p->queued++;
        pthread_cond_signal(&p->more);
    }
    pthread_mutex_unlock(&p->mu);
}

bool poke_is_caller(const struct poke *p, pid_t pid)
{
    return p != NULL && atomic_load(&p->tid) == pid;
}

uint64_t poke_target(const struct poke *p)
{
    return p == NULL ? 0 : atomic_load(&p->target);
}
