/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a file of as/, and who else is in its group: rules A4 and A6 of reader.h; and the waiting for what
 * closed files still have to commit (groups.h). as/G/pN asks for the position and the members at the same
 * time, and for the members again when its last commit is not proof enough. Loop's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/group/reader.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

#define OPEN_WAIT_MS   1000
#define ALONE_VALID_MS 2000

struct reader_open {
    struct request r;
    struct handle *h; /* owned reference */
    struct group_wait wait;
    struct reader *before; /* that has the file open; in its heirs */
    struct timer patience;
    TAILQ_ENTRY(reader_open) link;
};

/* ---- members ---- */

void reader_lose(struct reader *g)
{
    g->user.lost = true;
    parts_gone(g);
}

static void on_reader_look(struct group_look *l, int rc, const struct describe_groups_response_groups *it)
{
    struct reader *g = container_of(l, struct reader, look);
    g->looking = false;
    if (rc != 0)
        g->error = -rc;
    else if (!group_has_members(it))
        g->alone_ms = g->looked_ms;
    else if (g->opening != NULL)
        g->error = EBUSY;
    else
        reader_lose(g);
    reader_go(g);
}

static void reader_look(struct reader *g)
{
    g->looking = true;
    g->looked_ms = loop_now_ms(g->mount->loop);
    g->look = (struct group_look){ .group = g->node->view.group, .cb = on_reader_look };
    group_look(g->mount, &g->look);
}

bool reader_is_alone(struct reader *g)
{
    if (g->member != NULL || g->user.closing || loop_now_ms(g->mount->loop) < g->alone_ms + ALONE_VALID_MS)
        return true;
    if (!g->looking)
        reader_look(g);
    return false;
}

/* ---- opening ---- */

static void open_end(struct reader_open *o, int err)
{
    struct mount *m = o->h->mount;
    fuse_req_t req = request_take(&o->r);
    timer_clear(m->loop, &o->patience);
    if (req != NULL && err != 0)
        fuse_reply_err(req, err);
    if (req == NULL || err != 0)
        handle_drop(o->h);
    else
        handle_reply_open(o->h, req);
    handle_unref(o->h);
    free(o);
}

/* No position yet: the start, which is committed with the first line. */
static void part_begin(struct reader_part *p)
{
    if (p->committed < 0)
        p->acked = p->sent = p->committed = p->next;
}

void reader_open_go(struct reader *g)
{
    struct reader_open *o = g->opening;
    struct reader_part *p = LIST_FIRST(&g->parts);
    int err = g->topic_gone ? ESTALE : g->error; /* the kernel then looks the path up anew */
    bool released = g->h == NULL;
    if (g->asking || g->looking || (p != NULL && p->asking))
        return;
    if (p != NULL)
        part_begin(p);
    g->error = 0;
    g->opening = NULL;
    open_end(o, err); /* may end g, unless that was waiting for us */
    if (released)
        reader_go(g);
}

static void on_reader_position(struct group_ask *a, int rc, const struct position *p, size_t n)
{
    struct reader *g = container_of(a, struct reader, ask);
    g->asking = false;
    if (rc == 0 && n != 1)
        rc = -EIO;
    if (rc != 0)
        g->error = -rc;
    else
        part_new(g, g->node->partition, &p[0]);
    reader_go(g);
}

static struct reader *reader_find(const struct mount *m, const struct node *n)
{
    struct group_user *u;
    LIST_FOREACH (u, &m->group_users, link) {
        struct reader *g = container_of(u, struct reader, user);
        if (g->node->topic == n->topic && g->node->partition == n->partition &&
            strcmp(g->node->view.group, n->view.group) == 0)
            return g;
    }
    return NULL;
}

static void open_alone(struct reader_open *o)
{
    struct reader *g = reader_new(o->h);
    g->opening = o;
    g->asking = true;
    g->ask = (struct group_ask){ .group = g->node->view.group,
                                 .topic = g->node->topic->name,
                                 .first = g->node->partition,
                                 .n = 1,
                                 .cb = on_reader_position };
    reader_look(g);
    group_ask(g->mount, &g->ask);
}

static void on_settled(struct group_wait *w, int rc)
{
    struct reader_open *o = container_of(w, struct reader_open, wait);
    const struct node *n = o->h->node;
    struct reader *before = n->partition < 0 ? NULL : reader_find(o->h->mount, n);
    if (rc != 0 || o->h->mount->stopping) {
        open_end(o, EIO);
    } else if (!request_is_open(&o->r)) {
        open_end(o, EINTR);
    } else if (before != NULL && timer_is_set(&o->patience)) {
        o->before = before;
        TAILQ_INSERT_TAIL(&before->heirs, o, link);
    } else if (before != NULL) {
        open_end(o, EBUSY);
    } else if (n->partition < 0) {
        reader_join(reader_new(o->h));
        open_end(o, 0);
    } else {
        open_alone(o);
    }
}

static void open_begin(struct reader_open *o)
{
    o->wait = (struct group_wait){ .group = o->h->node->view.group, .cb = on_settled };
    group_wait(o->h->mount, &o->wait);
}

void reader_heirs_go(struct reader *g)
{
    struct reader_open *o;
    while ((o = TAILQ_FIRST(&g->heirs)) != NULL) {
        TAILQ_REMOVE(&g->heirs, o, link);
        o->before = NULL;
        open_begin(o);
    }
}

/* A4. Not for an open that waits for a commit, nor for one on its way: those end by themselves. */
static void on_patience(struct timer *t)
{
    struct reader_open *o = container_of(t, struct reader_open, patience);
    if (o->before == NULL || o->before->user.closing)
        return;
    TAILQ_REMOVE(&o->before->heirs, o, link);
    open_end(o, EBUSY);
}

void reader_open(struct handle *h, fuse_req_t req)
{
    struct reader_open *o = xcalloc(1, sizeof *o);
    o->h = handle_ref(h);
    o->patience.cb = on_patience;
    request_begin(&o->r, h->mount, req);
    if ((h->flags & O_NONBLOCK) == 0)
        timer_set(h->mount->loop, &o->patience, loop_now_ms(h->mount->loop) + OPEN_WAIT_MS);
    open_begin(o);
}
