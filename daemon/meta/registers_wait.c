/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register store for threads that may block: asks, and waits for the answer.
 *
 * The answer's callback runs on the meta loop and only copies what it is given into the waiter, which lives on the
 * stack of the thread that asked. So none of these may be called on that loop, which would wait for itself: workers
 * call them, and the main thread while it starts. What is returned is the caller's, also the list of names.
 */
#include <errno.h>
#include <string.h>

#include "daemon/meta/registers.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/loop/thread.h"

struct waiter {
    struct latch done;
    int rc;
    struct bytebuf *value;
    int64_t version;
    char **names;
    int n;
};

static void waiter_wait(struct waiter *w)
{
    latch_wait(&w->done);
    latch_done(&w->done);
}

static void got_rc(void *arg, int rc)
{
    struct waiter *w = arg;

    w->rc = rc;
    latch_open(&w->done);
}

int registers_multi_wait(struct registers *r, struct register_op *ops, int n)
{
    struct waiter w = { .rc = 0 };

    latch_init(&w.done, r->exec);
    registers_multi(r, ops, n, got_rc, &w);
    waiter_wait(&w);
    return w.rc;
}

int registers_sync_wait(struct registers *r)
{
    struct waiter w = { .rc = 0 };

    latch_init(&w.done, r->exec);
    registers_sync(r, got_rc, &w);
    waiter_wait(&w);
    return w.rc;
}

static void got_value(void *arg, int rc, struct slice value, int64_t version)
{
    struct waiter *w = arg;

    w->rc = rc;
    if (rc == 0) {
        bytebuf_add(w->value, value.p, value.n);
        w->version = version;
    }
    latch_open(&w->done);
}

int registers_get_wait(struct registers *r, const char *path, struct bytebuf *ret, int64_t *ret_version)
{
    struct waiter w = { .value = ret };

    ret->n = 0;
    latch_init(&w.done, r->exec);
    registers_get(r, path, got_value, &w);
    waiter_wait(&w);
    if (w.rc == 0)
        *ret_version = w.version;
    return w.rc;
}

struct many {
    struct latch done;
    struct register_got *ret;
    int n, at; /* answers come in the order of the calls */
};

static void got_one_of_many(void *arg, int rc, struct slice value, int64_t version)
{
    struct many *m = arg;
    struct register_got *g = &m->ret[m->at++];

    g->rc = rc;
    g->version = version;
    if (rc == 0)
        bytebuf_add(&g->value, value.p, value.n);
    if (m->at == m->n)
        latch_open(&m->done);
}

void registers_get_many_wait(struct registers *r, char *const *paths, int n, struct register_got *ret)
{
    struct many m = { .ret = ret, .n = n };

    if (n == 0)
        return;
    memset(ret, 0, (size_t)n * sizeof *ret);
    latch_init(&m.done, r->exec);
    for (int i = 0; i < n; i++)
        registers_get(r, paths[i], got_one_of_many, &m);
    latch_wait(&m.done);
    latch_done(&m.done);
}

static void got_children(void *arg, int rc, const char *const *names, int n)
{
    struct waiter *w = arg;

    w->rc = rc;
    if (rc == 0) {
        w->n = n;
        w->names = xcalloc((size_t)n + 1, sizeof *w->names);
        for (int i = 0; i < n; i++)
            w->names[i] = xstrdup(names[i]);
    }
    latch_open(&w->done);
}

int registers_children_wait(struct registers *r, const char *path, char ***ret_names, int *ret_n)
{
    struct waiter w = { .rc = 0 };

    latch_init(&w.done, r->exec);
    registers_children(r, path, got_children, &w);
    waiter_wait(&w);
    if (w.rc == 0) {
        *ret_names = w.names;
        *ret_n = w.n;
    }
    return w.rc;
}

void registers_names_free(char **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}
