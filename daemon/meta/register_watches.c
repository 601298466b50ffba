/* SPDX-License-Identifier: Apache-2.0 */
/* See register_watches.h. A node is made when it is heard of, and goes when it is known to be no more. */
#include "daemon/meta/register_watches.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "daemon/meta/register_tree.h"
#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

enum { UNDER_WAY_MAX = 256 }; /* requests; a ZooKeeper reads no more from who has a thousand */

struct watch_node {
    char *path; /* the key */
    struct watch_node_list *in;
    TAILQ_ENTRY(watch_node) link;
    bool sweep; /* WAITING: of a sweep; else it was found later, and is told of */
    UT_hash_handle hh;
};

void register_watches_init(struct register_watches *ws, const struct register_watches_env *env)
{
    *ws = (struct register_watches){ .env = *env };
    TAILQ_INIT(&ws->watches);
    TAILQ_INIT(&ws->waiting);
    TAILQ_INIT(&ws->armed);
    TAILQ_INIT(&ws->loose);
}

static void watch_free(struct register_watch *w)
{
    free(w->path);
    free(w);
}

static struct watch_node *node_find(const struct register_watches *ws, const char *path)
{
    struct watch_node *nd;

    HASH_FIND_STR(ws->by_path, path, nd);
    return nd;
}

/* The only one who moves a node, and counts those that a sweep waits for. */
static void node_move(struct register_watches *ws, struct watch_node *nd, struct watch_node_list *to)
{
    if (nd->in == &ws->waiting && nd->sweep)
        ws->sweep_left--;
    if (nd->in != NULL)
        TAILQ_REMOVE(nd->in, nd, link);
    nd->in = to;
    if (to != NULL)
        TAILQ_INSERT_TAIL(to, nd, link);
    if (to == &ws->waiting && nd->sweep)
        ws->sweep_left++;
}

static void node_wait(struct register_watches *ws, struct watch_node *nd, bool sweep)
{
    node_move(ws, nd, NULL);
    nd->sweep = sweep;
    node_move(ws, nd, &ws->waiting);
}

static struct watch_node *node_new(struct register_watches *ws, const char *path)
{
    struct watch_node *nd = xcalloc(1, sizeof *nd);

    nd->path = xstrdup(path);
    HASH_ADD_KEYPTR(hh, ws->by_path, nd->path, strlen(nd->path), nd);
    node_move(ws, nd, &ws->loose);
    return nd;
}

static void node_free(struct register_watches *ws, struct watch_node *nd)
{
    node_move(ws, nd, NULL);
    HASH_DEL(ws->by_path, nd);
    free(nd->path);
    free(nd);
}

void register_watches_done(struct register_watches *ws)
{
    struct watch_node *nd, *next;
    struct register_watch *w;

    HASH_ITER (hh, ws->by_path, nd, next)
        node_free(ws, nd);
    while ((w = TAILQ_FIRST(&ws->watches)) != NULL) {
        TAILQ_REMOVE(&ws->watches, w, link);
        watch_free(w);
    }
}

/* ---- telling ---- */

static void reap(struct register_watches *ws)
{
    struct register_watch *w, *next;

    for (w = TAILQ_FIRST(&ws->watches); w != NULL; w = next) {
        next = TAILQ_NEXT(w, link);
        if (!w->dead)
            continue;
        TAILQ_REMOVE(&ws->watches, w, link);
        watch_free(w);
    }
}

/* Watches may come and go in a callback: the list only grows at its tail meanwhile, the dead stay until the end.
 * path NULL: each its own. */
static void tell(struct register_watches *ws, const char *path)
{
    struct register_watch *w;

    ws->telling++;
    TAILQ_FOREACH (w, &ws->watches, link)
        if (!w->dead && (path == NULL || register_path_is_under(path, w->path)))
            w->cb(w->arg, path == NULL ? w->path : path);
    if (--ws->telling == 0)
        reap(ws);
}

void register_watches_tell_all(struct register_watches *ws)
{
    tell(ws, NULL);
}

static bool is_watched(const struct register_watches *ws, const char *path, bool *ret_is_top)
{
    const struct register_watch *w;
    bool ret = false;

    *ret_is_top = false;
    TAILQ_FOREACH (w, &ws->watches, link) {
        if (w->dead || !register_path_is_under(path, w->path))
            continue;
        ret = true;
        *ret_is_top |= strcmp(path, w->path) == 0;
    }
    return ret;
}

/* ---- arming ---- */

static void arm_data(struct register_watches *ws, const char *path, bool sweep)
{
    ws->under_way++;
    ws->sweep_left += sweep;
    ws->env.arm_data(ws->env.arg, path, (struct watch_ask){ ws->connection, sweep });
}

static void arm_children(struct register_watches *ws, const char *path, bool sweep)
{
    ws->under_way++;
    ws->sweep_left += sweep;
    ws->env.arm_children(ws->env.arg, path, (struct watch_ask){ ws->connection, sweep });
}

static void arm_node(struct register_watches *ws, struct watch_node *nd)
{
    CLEANUP(freep) char *path = xstrdup(nd->path); /* telling may make the node go */
    bool sweep = nd->sweep, is_top;

    if (!is_watched(ws, path, &is_top)) {
        node_free(ws, nd);
        return;
    }
    arm_data(ws, path, sweep); /* before the move: a sweep does not end between the two */
    arm_children(ws, path, sweep);
    node_move(ws, nd, &ws->armed);
    if (!sweep)
        tell(ws, path);
}

static void pump(struct register_watches *ws)
{
    struct watch_node *nd;

    while (ws->connected && ws->under_way < UNDER_WAY_MAX && (nd = TAILQ_FIRST(&ws->waiting)) != NULL)
        arm_node(ws, nd);
}

/* One answer less is waited for. */
static void answered(struct register_watches *ws, bool sweep)
{
    KCHECK(ws->under_way > 0 && ws->sweep_left >= sweep);
    ws->under_way--;
    ws->sweep_left -= sweep;
    pump(ws);
    if (sweep && ws->sweep_left == 0 && ws->connected)
        ws->env.swept(ws->env.arg);
}

bool register_watches_sweeping(const struct register_watches *ws)
{
    return ws->sweep_left > 0;
}

struct register_watch *register_watches_add(struct register_watches *ws, const char *path,
                                            void (*cb)(void *arg, const char *path), void *arg)
{
    struct register_watch *w = xcalloc(1, sizeof *w);
    struct watch_node *nd = node_find(ws, path);

    *w = (struct register_watch){ .path = xstrdup(path), .cb = cb, .arg = arg };
    TAILQ_INSERT_TAIL(&ws->watches, w, link);
    if (nd == NULL)
        nd = node_new(ws, path);
    if (!ws->connected)
        return w;
    node_wait(ws, nd, true);
    pump(ws);
    return w;
}

void register_watches_remove(struct register_watches *ws, struct register_watch *w)
{
    w->dead = true;
    if (ws->telling == 0)
        reap(ws);
}

/* ---- connections ---- */

void register_watches_connected(struct register_watches *ws)
{
    struct watch_node *nd, *next;

    KCHECK(!ws->connected);
    ws->connected = true;
    HASH_ITER (hh, ws->by_path, nd, next)
        node_wait(ws, nd, true);
    pump(ws);
    if (ws->sweep_left == 0)
        ws->env.swept(ws->env.arg);
}

void register_watches_disconnected(struct register_watches *ws, bool session_lost)
{
    struct watch_node *nd;

    ws->connected = false;
    ws->connection++; /* what is under way will not be taken */
    ws->under_way = 0;
    while ((nd = TAILQ_FIRST(&ws->waiting)) != NULL) /* some of them are armed, from before */
        node_move(ws, nd, &ws->armed);
    ws->sweep_left = 0;
    while (session_lost && (nd = TAILQ_FIRST(&ws->armed)) != NULL)
        node_move(ws, nd, &ws->loose);
}

bool register_watches_disarm(struct register_watches *ws, int n)
{
    struct watch_node *nd;

    if (ws->connected)
        return false;
    while (n-- > 0 && (nd = TAILQ_FIRST(&ws->armed)) != NULL) {
        ws->env.disarm(ws->env.arg, nd->path);
        node_move(ws, nd, &ws->loose);
    }
    return !TAILQ_EMPTY(&ws->armed);
}

/* ---- answers and events ---- */

/* The top of a watch stays though it is not there: its watch tells when it comes. */
static void node_is_gone(struct register_watches *ws, const char *path)
{
    struct watch_node *nd = node_find(ws, path);
    bool is_top;

    is_watched(ws, path, &is_top);
    if (nd != NULL && !is_top)
        node_free(ws, nd);
}

void register_watches_on_data(struct register_watches *ws, const char *path, struct watch_ask ask, int rc)
{
    if (ask.connection != ws->connection)
        return;
    if (rc == -ENOENT)
        node_is_gone(ws, path);
    answered(ws, ask.sweep);
}

void register_watches_on_children(struct register_watches *ws, const char *path, struct watch_ask ask, int rc,
                                  const char *const *names, int n)
{
    bool is_top;

    if (ask.connection != ws->connection)
        return;
    for (int i = 0; rc == 0 && i < n && is_watched(ws, path, &is_top); i++) {
        char child[REGISTER_PATH_MAX + 1];
        int len = snprintf(child, sizeof child, "%s/%s", strcmp(path, "/") == 0 ? "" : path, names[i]);
        if (len < 0 || len >= (int)sizeof child)
            continue; /* somebody else's: no register has such a name */
        if (node_find(ws, child) == NULL)
            node_wait(ws, node_new(ws, child), ask.sweep);
    }
    answered(ws, ask.sweep);
}

/* It may be there, or may come: both watches, and whoever waits for it is told. */
static void node_arm_anew(struct register_watches *ws, const char *path)
{
    struct watch_node *nd = node_find(ws, path);

    if (nd == NULL)
        nd = node_new(ws, path);
    node_wait(ws, nd, false);
    arm_node(ws, nd);
}

/* Each that came is told of when it has been found, each that went by its own watch. */
static void tell_of_children(struct register_watches *ws, const char *path)
{
    CLEANUP(freep) char *all = xasprintf("%s/", path);

    tell(ws, strcmp(path, "/") == 0 ? path : all);
}

void register_watches_on_event(struct register_watches *ws, enum register_watch_event ev, const char *path)
{
    bool is_top;

    if (!ws->connected || !is_watched(ws, path, &is_top))
        return;
    switch (ev) {
    case WATCH_CREATED:
        node_arm_anew(ws, path);
        return;
    case WATCH_DELETED:
        if (is_top) {
            node_arm_anew(ws, path); /* to hear when it comes again */
            return;
        }
        node_is_gone(ws, path);
        break;
    case WATCH_CHANGED:
        arm_data(ws, path, false);
        break;
    case WATCH_CHILD:
        arm_children(ws, path, false);
        tell_of_children(ws, path);
        return;
    }
    tell(ws, path);
}
