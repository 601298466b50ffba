/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See simregisters.h. The truth is `tree` and the list of changes that made it; each handle's server is a tree of its own that
 * applies the same changes later. mu guards all of it; callbacks are made without it, on the handle's loop.
 *
 * What a handle has asked for is in one of: asked (not looked at yet), held (no connection), out (under way to the server), in
 * (its answer under way back). `in` also has the watches' calls and the session's events, and is delivered in order.
 */
#include "tests/sim/simregisters.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/queue.h>

#include "daemon/config/ranks.h"
#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/loop.h"
#include "tests/sim/rand.h"

enum item_kind { ITEM_MULTI, ITEM_GET, ITEM_CHILDREN, ITEM_SYNC, ITEM_EVENT, ITEM_SESSION };

struct change { /* one that happened */
    STAILQ_ENTRY(change) link;
    uint64_t number;
    struct register_op *ops;
    int n;
};

struct item {
    enum item_kind kind;
    TAILQ_ENTRY(item) link;
    int64_t asked_ms, due_ms;
    bool answered; /* nobody waits for it any more */
    union {
        void (*rc)(void *arg, int rc);
        void (*value)(void *arg, int rc, struct slice value, int64_t version);
        void (*names)(void *arg, int rc, const char *const *names, int n);
    } cb;
    void *arg;
    char *path;
    struct register_op *caller_ops, *ops; /* MULTI: the caller's, and a copy that outlives them */
    int n_ops;
    int who; /* in `late`: whose it was, in which session */
    struct session *session;
    /* answer */
    int rc;
    uint8_t *value;
    size_t value_bytes;
    int64_t version;
    char **names;
    int n_names;
    enum registers_event event;
    struct register_watch *watch; /* EVENT; NULL: it was taken away meanwhile */
};
TAILQ_HEAD(item_list, item);

struct register_watch {
    char *path;
    void (*cb)(void *arg, const char *path);
    void *arg;
    bool dead;
    TAILQ_ENTRY(register_watch) link;
};

struct session {
    LIST_ENTRY(session) link;
    int64_t heard_ms;
    bool over;
    char **ephemerals;
    int n_ephemerals;
};

enum handle_state { HANDLE_AWAY, HANDLE_CONNECTED, HANDLE_EXPIRED };

struct simhandle {
    struct registers base;
    struct simregisters *sr;
    LIST_ENTRY(simhandle) link;
    int who;
    struct loop *loop;
    struct rnd rnd;
    enum handle_state state;
    bool dead; /* its process is */
    bool was_connected;
    int64_t back_ms;    /* AWAY: connected again then */
    int64_t advance_ms; /* its server applies what is new then; INT64_MAX: there is nothing */
    struct session *session;
    struct register_tree view;
    uint64_t applied; /* number of the last change in view */
    struct item_list asked, held, out, in;
    TAILQ_HEAD(, register_watch) watches;
    int delivering;
    void (*session_cb)(void *arg, enum registers_event ev);
    void *session_arg;
    struct task task;
    struct timer timer;
    _Atomic int64_t last_reply_ms;
};

struct simregisters {
    struct simregisters_config config;
    struct lock mu;
    const struct world *world; /* the first handle's, for the clock */
    struct register_tree tree;
    STAILQ_HEAD(, change) changes;
    uint64_t n_changes;
    LIST_HEAD(, simhandle) handles;
    LIST_HEAD(, session) sessions;
    struct item_list late; /* lost under way, and to be done yet */
    bool calm;
    uint64_t n_handles;
    struct simregisters_counts counts;
    void (*on_write)(void *arg, int who, const struct register_op *ops, int n);
    void *on_write_arg;
};

static struct simhandle *handle_of(struct registers *r)
{
    return container_of(r, struct simhandle, base);
}

static int64_t server_now(const struct simregisters *sr)
{
    if (sr->config.now_ms != NULL)
        return sr->config.now_ms(sr->config.now_arg);
    return sr->world == NULL ? 0 : world_mono_ms(sr->world);
}

/* ---- items ---- */

static void ops_free(struct register_op *ops, int n)
{
    for (int i = 0; i < n; i++) {
        free((char *)(uintptr_t)ops[i].path);
        free((uint8_t *)(uintptr_t)ops[i].value.p);
    }
    free(ops);
}

static struct register_op *ops_copy(const struct register_op *ops, int n)
{
    struct register_op *ret = xcalloc((size_t)n, sizeof *ret);

    for (int i = 0; i < n; i++) {
        uint8_t *value = xmalloc(ops[i].value.n + 1);
        if (ops[i].value.n > 0)
            memcpy(value, ops[i].value.p, ops[i].value.n);
        ret[i] = ops[i];
        ret[i].path = xstrdup(ops[i].path);
        ret[i].value.p = value;
    }
    return ret;
}

static struct item *item_new(enum item_kind kind, const char *path, void *arg)
{
    struct item *it = xcalloc(1, sizeof *it);

    it->kind = kind;
    it->path = path == NULL ? NULL : xstrdup(path);
    it->arg = arg;
    return it;
}

static void item_free(struct item *it)
{
    ops_free(it->ops, it->n_ops);
    for (int i = 0; i < it->n_names; i++)
        free(it->names[i]);
    free(it->names);
    free(it->value);
    free(it->path);
    free(it);
}

static void items_free(struct item_list *l)
{
    struct item *it;

    while ((it = TAILQ_FIRST(l)) != NULL) {
        TAILQ_REMOVE(l, it, link);
        item_free(it);
    }
}

static int64_t draw_delay(struct simhandle *h)
{
    return rnd_one_in(&h->rnd, 2) ? 0 : rnd_range(&h->rnd, 0, h->sr->config.delay_max_ms);
}

/* Behind what is on the way already. */
static void travel(struct simhandle *h, struct item_list *l, struct item *it)
{
    struct item *last = TAILQ_LAST(l, item_list);

    it->due_ms = loop_now_ms(h->loop) + draw_delay(h);
    if (last != NULL && last->due_ms > it->due_ms)
        it->due_ms = last->due_ms;
    TAILQ_INSERT_TAIL(l, it, link);
}

static void poke(struct simhandle *h)
{
    loop_post(h->loop, &h->task);
}

static void tell_session(struct simhandle *h, enum registers_event ev)
{
    struct item *it = item_new(ITEM_SESSION, NULL, NULL);

    it->event = ev;
    travel(h, &h->in, it);
}

/* ---- watches ---- */

static bool is_told_already(const struct simhandle *h, const struct register_watch *w, const char *path)
{
    const struct item *it;

    TAILQ_FOREACH (it, &h->in, link)
        if (it->kind == ITEM_EVENT && it->watch == w && register_path_is_under(path, it->path))
            return true;
    return false;
}

/* Sometimes of the register above it, as ZooKeeper does of one that came or went. */
static void watch_fires(struct simhandle *h, struct register_watch *w, const char *path, bool came_or_went)
{
    CLEANUP(freep) char *told = xstrdup(path);
    char *slash = strrchr(told, '/');

    if (came_or_went && slash != told && rnd_one_in(&h->rnd, 2)) {
        *slash = '\0';
        if (!register_path_is_under(told, w->path))
            *slash = '/';
    }
    if (is_told_already(h, w, told)) {
        h->sr->counts.merged_events++;
        return;
    }
    struct item *it = item_new(ITEM_EVENT, told, NULL);
    it->watch = w;
    travel(h, &h->in, it);
    h->sr->counts.events++;
}

static void all_watches_fire(struct simhandle *h)
{
    struct register_watch *w;

    TAILQ_FOREACH (w, &h->watches, link)
        if (!w->dead)
            watch_fires(h, w, w->path, false);
}

static void view_apply(struct simhandle *h, const struct change *c)
{
    struct register_undo undo = { 0 };
    struct register_op *ops = ops_copy(c->ops, c->n);

    for (int i = 0; i < c->n; i++)
        ops[i].version = REGISTER_ANY_VERSION;
    int rc = register_tree_multi(&h->view, ops, c->n, &undo);
    KCHECK(rc == 0);
    register_undo_commit(&undo);
    ops_free(ops, c->n);
    h->applied = c->number;
    if (h->state != HANDLE_CONNECTED)
        return; /* told of all when it is back */
    for (int i = 0; i < c->n; i++) {
        struct register_watch *w;
        TAILQ_FOREACH (w, &h->watches, link)
            if (!w->dead && c->ops[i].kind != REGISTER_CHECK && register_path_is_under(c->ops[i].path, w->path))
                watch_fires(h, w, c->ops[i].path, c->ops[i].kind != REGISTER_SET);
    }
}

static void view_advance(struct simhandle *h, uint64_t to)
{
    struct change *c;

    STAILQ_FOREACH (c, &h->sr->changes, link)
        if (c->number > h->applied && c->number <= to)
            view_apply(h, c);
    h->advance_ms = h->applied == h->sr->n_changes ? INT64_MAX : h->advance_ms;
}

static void forget_changes(struct simregisters *sr)
{
    struct simhandle *h;
    struct change *c;
    uint64_t least = sr->n_changes;

    LIST_FOREACH (h, &sr->handles, link)
        least = h->applied < least ? h->applied : least;
    while ((c = STAILQ_FIRST(&sr->changes)) != NULL && c->number <= least) {
        STAILQ_REMOVE_HEAD(&sr->changes, link);
        ops_free(c->ops, c->n);
        free(c);
    }
}

/* ---- changes ---- */

static void session_forgets(struct session *ss, const char *path)
{
    for (int i = 0; i < ss->n_ephemerals; i++)
        if (strcmp(ss->ephemerals[i], path) == 0) {
            free(ss->ephemerals[i]);
            ss->ephemerals[i--] = ss->ephemerals[--ss->n_ephemerals];
        }
}

static void note_ephemerals(struct simregisters *sr, struct session *ss, const struct register_op *op)
{
    struct session *any;

    if (op->kind == REGISTER_CREATE_EPHEMERAL) {
        ss->ephemerals = xreallocarray(ss->ephemerals, (size_t)ss->n_ephemerals + 1, sizeof *ss->ephemerals);
        ss->ephemerals[ss->n_ephemerals++] = xstrdup(op->path);
    } else if (op->kind == REGISTER_DELETE) {
        LIST_FOREACH (any, &sr->sessions, link)
            session_forgets(any, op->path);
    }
}

static void others_lag(struct simregisters *sr)
{
    struct simhandle *h;

    LIST_FOREACH (h, &sr->handles, link) {
        int64_t at = loop_now_ms(h->loop) + rnd_range(&h->rnd, 0, sr->config.lag_max_ms);
        h->advance_ms = at < h->advance_ms ? at : h->advance_ms;
        poke(h);
    }
}

/* Applies ops, or refuses them; who < 0: a server's own. */
static int server_write(struct simregisters *sr, int who, struct session *ss, struct register_op *ops, int n)
{
    struct register_undo undo = { 0 };

    int rc = register_tree_multi(&sr->tree, ops, n, &undo);
    if (rc < 0) {
        register_undo_commit(&undo);
        sr->counts.refused++;
        return rc;
    }
    if (sr->on_write != NULL) { /* who sees the tree as it was */
        register_undo_revert(&sr->tree, &undo);
        sr->on_write(sr->on_write_arg, who, ops, n);
        rc = register_tree_multi(&sr->tree, ops, n, &undo);
        KCHECK(rc == 0);
    }
    register_undo_commit(&undo);
    struct change *c = xcalloc(1, sizeof *c);
    *c = (struct change){ .number = ++sr->n_changes, .ops = ops_copy(ops, n), .n = n };
    STAILQ_INSERT_TAIL(&sr->changes, c, link);
    for (int i = 0; i < n; i++)
        note_ephemerals(sr, ss, &ops[i]);
    sr->counts.writes++;
    others_lag(sr);
    return 0;
}

static void session_ends(struct simregisters *sr, struct session *ss)
{
    ss->over = true;
    while (ss->n_ephemerals > 0) {
        struct register_op op = { .kind = REGISTER_DELETE, .path = ss->ephemerals[0], .version = REGISTER_ANY_VERSION };
        CLEANUP(freep) char *path = xstrdup(op.path);
        op.path = path;
        int rc = server_write(sr, -1, ss, &op, 1);
        KCHECK(rc == 0);
    }
}

static struct session *session_new(struct simregisters *sr)
{
    struct session *ss = xcalloc(1, sizeof *ss);

    ss->heard_ms = server_now(sr);
    LIST_INSERT_HEAD(&sr->sessions, ss, link);
    return ss;
}

/* What was lost under way: all that is due, or all of a session's. */
static void do_late(struct simregisters *sr, const struct session *of)
{
    struct item *it, *next;
    int64_t now_ms = server_now(sr);

    for (it = TAILQ_FIRST(&sr->late); it != NULL; it = next) {
        next = TAILQ_NEXT(it, link);
        if (it->session != of && it->due_ms > now_ms)
            continue;
        TAILQ_REMOVE(&sr->late, it, link);
        if (!it->session->over)
            server_write(sr, it->who, it->session, it->ops, it->n_ops);
        item_free(it);
    }
}

/* What the servers do of themselves. */
static void server_tick(struct simregisters *sr)
{
    struct session *ss;
    int64_t now_ms = server_now(sr);

    do_late(sr, NULL);
    LIST_FOREACH (ss, &sr->sessions, link)
        if (!ss->over && now_ms - ss->heard_ms > sr->config.session_timeout_ms) {
            sr->counts.expiries++;
            session_ends(sr, ss);
        }
}

/* ---- connections ---- */

static void answer_lost(struct simhandle *h, struct item *it)
{
    it->rc = -EREMOTEIO;
    travel(h, &h->in, it);
}

/* Of the changes under way the first so many happen, at once or later; the rest does not. */
static void lose_changes(struct simhandle *h)
{
    struct simregisters *sr = h->sr;
    struct item_list lost = TAILQ_HEAD_INITIALIZER(lost);
    struct item *it;
    uint64_t n = 0;

    TAILQ_FOREACH (it, &h->out, link)
        n += it->kind == ITEM_MULTI;
    uint64_t done = rnd_below(&h->rnd, n + 1);
    int64_t late_ms = server_now(sr);
    TAILQ_CONCAT(&lost, &h->out, link);
    while ((it = TAILQ_FIRST(&lost)) != NULL) {
        TAILQ_REMOVE(&lost, it, link);
        if (it->kind == ITEM_MULTI && done > 0) {
            struct item *copy = item_new(ITEM_MULTI, NULL, NULL);
            done--;
            late_ms += rnd_one_in(&h->rnd, 2) ? 0 : rnd_range(&h->rnd, 0, sr->config.away_max_ms);
            copy->ops = ops_copy(it->ops, it->n_ops);
            copy->n_ops = it->n_ops;
            copy->who = h->who;
            copy->session = h->session;
            copy->due_ms = late_ms;
            TAILQ_INSERT_TAIL(&sr->late, copy, link);
            sr->counts.lost_late++;
        } else if (it->kind == ITEM_MULTI) {
            sr->counts.lost_not_done++;
        }
        if (h->dead)
            item_free(it);
        else
            answer_lost(h, it);
    }
}

static void disconnect(struct simhandle *h, enum registers_event ev, int64_t away_ms)
{
    struct item_list in = TAILQ_HEAD_INITIALIZER(in);
    struct item *it, *next;

    if (h->state != HANDLE_CONNECTED)
        return;
    h->sr->counts.cuts++;
    h->state = ev == REGISTERS_EXPIRED ? HANDLE_EXPIRED : HANDLE_AWAY;
    h->back_ms = loop_now_ms(h->loop) + away_ms;
    TAILQ_CONCAT(&in, &h->in, link);
    for (it = TAILQ_FIRST(&in); it != NULL; it = next) { /* what the listener is told keeps its order */
        next = TAILQ_NEXT(it, link);
        if (it->kind != ITEM_SESSION)
            continue;
        TAILQ_REMOVE(&in, it, link);
        TAILQ_INSERT_TAIL(&h->in, it, link);
    }
    tell_session(h, ev);
    while ((it = TAILQ_FIRST(&in)) != NULL) {
        TAILQ_REMOVE(&in, it, link);
        if (it->kind == ITEM_EVENT) {
            item_free(it); /* all watches are told when it is back */
        } else {
            h->sr->counts.lost_done += it->kind == ITEM_MULTI && it->rc == 0;
            answer_lost(h, it);
        }
    }
    if (ev == REGISTERS_EXPIRED) {
        while ((it = TAILQ_FIRST(&h->out)) != NULL) {
            TAILQ_REMOVE(&h->out, it, link);
            answer_lost(h, it);
        }
    } else {
        lose_changes(h);
    }
}

static void reconnect(struct simhandle *h)
{
    do_late(h->sr, h->session);
    server_tick(h->sr);
    if (h->session != NULL && h->session->over) {
        h->state = HANDLE_EXPIRED;
        h->session = NULL;
        tell_session(h, REGISTERS_EXPIRED);
        return;
    }
    if (h->session == NULL)
        h->session = session_new(h->sr);
    h->session->heard_ms = server_now(h->sr);
    /* another server: not behind what this handle has seen */
    view_advance(h, h->applied + rnd_below(&h->rnd, h->sr->n_changes - h->applied + 1));
    h->state = HANDLE_CONNECTED;
    tell_session(h, REGISTERS_CONNECTED);
    if (h->was_connected)
        all_watches_fire(h);
    h->was_connected = true;
    atomic_store(&h->last_reply_ms, loop_now_ms(h->loop));
}

/* ---- requests at the server ---- */

static void serve_get(struct simhandle *h, struct item *it)
{
    struct slice value, newest;
    int64_t version, newest_version = -1;

    it->rc = register_tree_get(&h->view, it->path, &value, &version);
    int rc = register_tree_get(&h->sr->tree, it->path, &newest, &newest_version);
    h->sr->counts.reads++;
    h->sr->counts.stale_reads += rc != it->rc || (rc == 0 && version != newest_version);
    if (it->rc < 0)
        return;
    it->value = xmalloc(value.n + 1);
    memcpy(it->value, value.p, value.n);
    it->value_bytes = value.n;
    it->version = version;
}

static void serve_children(struct simhandle *h, struct item *it)
{
    const char **names;
    int n;

    it->rc = register_tree_children(&h->view, it->path, &names, &n);
    if (it->rc < 0)
        return;
    it->names = xcalloc((size_t)n + 1, sizeof *it->names);
    it->n_names = n;
    for (int i = 0; i < n; i++)
        it->names[i] = xstrdup(names[i]);
    free(names);
}

static void serve(struct simhandle *h, struct item *it)
{
    struct simregisters *sr = h->sr;

    h->session->heard_ms = server_now(sr);
    if (it->rc < 0) { /* refused before it was sent; only takes its turn */
    } else if (it->kind == ITEM_MULTI) {
        it->rc = server_write(sr, h->who, h->session, it->ops, it->n_ops);
        view_advance(h, sr->n_changes);
    } else if (it->kind == ITEM_SYNC) {
        view_advance(h, sr->n_changes);
    } else {
        if (rnd_one_in(&h->rnd, 2))
            view_advance(h, h->applied + rnd_below(&h->rnd, sr->n_changes - h->applied + 1));
        if (it->kind == ITEM_GET)
            serve_get(h, it);
        else
            serve_children(h, it);
    }
    travel(h, &h->in, it);
}

static int check_item(const struct item *it)
{
    for (int i = 0; i < it->n_ops; i++)
        if (!register_path_is_legal(it->ops[i].path) || it->ops[i].value.n > REGISTER_VALUE_MAX)
            return -EINVAL;
    return it->kind == ITEM_MULTI && registers_multi_bytes(it->ops, it->n_ops) > REGISTERS_MULTI_MAX ? -E2BIG : 0;
}

static void send_item(struct simhandle *h, struct item *it)
{
    const struct simregisters_config *c = &h->sr->config;

    it->rc = check_item(it);
    for (int i = 0; it->rc < 0 && i < it->n_ops; i++)
        it->ops[i].rc = it->rc;
    travel(h, &h->out, it);
    if (h->sr->calm)
        return;
    if (rnd_ppm(&h->rnd, c->loss_ppm))
        disconnect(h, REGISTERS_SUSPENDED, rnd_range(&h->rnd, 0, c->away_max_ms));
    else if (rnd_ppm(&h->rnd, c->expiry_ppm) && !h->session->over)
        session_ends(h->sr, h->session);
}

/* ---- the handle's turn ---- */

static void take_asked(struct simhandle *h)
{
    struct item *it;

    TAILQ_CONCAT(&h->held, &h->asked, link);
    while ((it = TAILQ_FIRST(&h->held)) != NULL) {
        bool waited = loop_now_ms(h->loop) - it->asked_ms >= h->sr->config.session_timeout_ms;
        if (h->state == HANDLE_AWAY && !waited)
            return;
        TAILQ_REMOVE(&h->held, it, link);
        if (h->state == HANDLE_CONNECTED)
            send_item(h, it);
        else
            answer_lost(h, it);
    }
}

static void serve_due(struct simhandle *h)
{
    struct item *it;

    while (h->state == HANDLE_CONNECTED && (it = TAILQ_FIRST(&h->out)) != NULL && it->due_ms <= loop_now_ms(h->loop)) {
        if (h->session->over)
            break;
        TAILQ_REMOVE(&h->out, it, link);
        serve(h, it);
    }
    if (h->state == HANDLE_CONNECTED && h->session->over) {
        disconnect(h, REGISTERS_EXPIRED, 0);
        h->session = NULL;
    }
}

static void deliver_answer(struct simhandle *h, struct item *it)
{
    if (it->rc != -EREMOTEIO)
        atomic_store(&h->last_reply_ms, loop_now_ms(h->loop));
    switch (it->kind) {
    case ITEM_MULTI:
        for (int i = 0; i < it->n_ops; i++) {
            it->caller_ops[i].rc = it->rc == -EREMOTEIO ? -EREMOTEIO : it->ops[i].rc;
            it->caller_ops[i].new_version = it->ops[i].new_version;
        }
        it->cb.rc(it->arg, it->rc);
        break;
    case ITEM_SYNC:
        it->cb.rc(it->arg, it->rc);
        break;
    case ITEM_GET:
        it->cb.value(it->arg, it->rc, slice_of(it->value, it->rc < 0 ? 0 : it->value_bytes), it->version);
        break;
    case ITEM_CHILDREN:
        it->cb.names(it->arg, it->rc, (const char *const *)it->names, it->rc < 0 ? 0 : it->n_names);
        break;
    case ITEM_SESSION:
        if (h->session_cb != NULL)
            h->session_cb(h->session_arg, it->event);
        break;
    case ITEM_EVENT:
        if (it->watch != NULL && !it->watch->dead)
            it->watch->cb(it->watch->arg, it->path);
        break;
    }
}

static void reap_watches(struct simhandle *h)
{
    struct register_watch *w, *next;
    struct item *it;

    for (w = TAILQ_FIRST(&h->watches); w != NULL; w = next) {
        next = TAILQ_NEXT(w, link);
        if (!w->dead)
            continue;
        TAILQ_FOREACH (it, &h->in, link)
            if (it->watch == w)
                it->watch = NULL;
        TAILQ_REMOVE(&h->watches, w, link);
        free(w->path);
        free(w);
    }
}

static void deliver_due(struct simhandle *h)
{
    struct item *it;

    h->delivering++;
    while ((it = TAILQ_FIRST(&h->in)) != NULL && it->due_ms <= loop_now_ms(h->loop)) {
        TAILQ_REMOVE(&h->in, it, link);
        lock_release(&h->sr->mu);
        deliver_answer(h, it);
        lock_take(&h->sr->mu);
        item_free(it);
    }
    h->delivering--;
    reap_watches(h);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void set_timer(struct simhandle *h)
{
    int64_t now_ms = loop_now_ms(h->loop), at = now_ms + h->sr->config.session_timeout_ms / 4 + 1; /* a ping */
    const struct item *out = TAILQ_FIRST(&h->out), *in = TAILQ_FIRST(&h->in);

    if (h->state == HANDLE_AWAY)
        at = least(at, h->back_ms);
    if (out != NULL)
        at = least(at, out->due_ms);
    if (in != NULL)
        at = least(at, in->due_ms);
    if (h->state == HANDLE_CONNECTED)
        at = least(at, h->advance_ms);
    timer_set(h->loop, &h->timer, at > now_ms ? at : now_ms);
}

static void handle_step(struct simhandle *h)
{
    int64_t now_ms = loop_now_ms(h->loop);

    if (h->dead)
        return;
    lock_take(&h->sr->mu);
    server_tick(h->sr);
    if (h->state == HANDLE_AWAY && h->back_ms <= now_ms)
        reconnect(h);
    if (h->state == HANDLE_CONNECTED && !h->session->over) {
        h->session->heard_ms = server_now(h->sr); /* a ping goes with everything */
        atomic_store(&h->last_reply_ms, now_ms);
    }
    if (h->state == HANDLE_CONNECTED && h->advance_ms <= now_ms)
        view_advance(h, h->sr->n_changes);
    take_asked(h);
    serve_due(h);
    deliver_due(h);
    forget_changes(h->sr);
    set_timer(h);
    lock_release(&h->sr->mu);
}

static void on_task(struct task *t)
{
    handle_step(container_of(t, struct simhandle, task));
}

static void on_timer(struct timer *t)
{
    handle_step(container_of(t, struct simhandle, timer));
}

/* ---- the table ---- */

static void ask(struct registers *r, struct item *it)
{
    struct simhandle *h = handle_of(r);

    lock_take(&h->sr->mu);
    it->asked_ms = world_mono_ms(loop_world(h->loop));
    TAILQ_INSERT_TAIL(&h->asked, it, link);
    poke(h);
    lock_release(&h->sr->mu);
}

static void sim_multi(struct registers *r, struct register_op *ops, int n, void (*cb)(void *arg, int rc), void *arg)
{
    struct item *it = item_new(ITEM_MULTI, NULL, arg);

    it->cb.rc = cb;
    it->caller_ops = ops;
    it->ops = ops_copy(ops, n);
    it->n_ops = n;
    ask(r, it);
}

static void sim_get(struct registers *r, const char *path, void (*cb)(void *arg, int rc, struct slice value, int64_t version),
                    void *arg)
{
    struct item *it = item_new(ITEM_GET, path, arg);

    it->cb.value = cb;
    ask(r, it);
}

static void sim_children(struct registers *r, const char *path,
                         void (*cb)(void *arg, int rc, const char *const *names, int n), void *arg)
{
    struct item *it = item_new(ITEM_CHILDREN, path, arg);

    it->cb.names = cb;
    ask(r, it);
}

static void sim_sync(struct registers *r, void (*cb)(void *arg, int rc), void *arg)
{
    struct item *it = item_new(ITEM_SYNC, NULL, arg);

    it->cb.rc = cb;
    ask(r, it);
}

static struct register_watch *sim_watch(struct registers *r, const char *path, void (*cb)(void *arg, const char *path),
                                        void *arg)
{
    struct simhandle *h = handle_of(r);
    struct register_watch *w = xcalloc(1, sizeof *w);

    *w = (struct register_watch){ .path = xstrdup(path), .cb = cb, .arg = arg };
    lock_take(&h->sr->mu);
    TAILQ_INSERT_TAIL(&h->watches, w, link);
    lock_release(&h->sr->mu);
    return w;
}

static void sim_unwatch(struct registers *r, struct register_watch *w)
{
    struct simhandle *h = handle_of(r);

    lock_take(&h->sr->mu);
    w->dead = true;
    if (h->delivering == 0)
        reap_watches(h);
    lock_release(&h->sr->mu);
}

static void sim_on_session(struct registers *r, void (*cb)(void *arg, enum registers_event ev), void *arg)
{
    static const enum registers_event told[] = {
        [HANDLE_AWAY] = REGISTERS_SUSPENDED, [HANDLE_CONNECTED] = REGISTERS_CONNECTED, [HANDLE_EXPIRED] = REGISTERS_EXPIRED
    };
    struct simhandle *h = handle_of(r);

    h->session_cb = cb;
    h->session_arg = arg;
    if (cb == NULL)
        return;
    lock_take(&h->sr->mu);
    tell_session(h, told[h->state]);
    poke(h);
    lock_release(&h->sr->mu);
}

static void sim_renew(struct registers *r)
{
    struct simhandle *h = handle_of(r);

    lock_take(&h->sr->mu);
    if (h->state == HANDLE_EXPIRED) {
        h->state = HANDLE_AWAY;
        h->back_ms = loop_now_ms(h->loop) + draw_delay(h);
        poke(h);
    }
    lock_release(&h->sr->mu);
}

static int64_t sim_last_reply_ms(struct registers *r)
{
    return atomic_load(&handle_of(r)->last_reply_ms);
}

static void handle_free(struct simhandle *h)
{
    struct register_watch *w;

    TAILQ_FOREACH (w, &h->watches, link)
        w->dead = true;
    reap_watches(h);
    items_free(&h->asked);
    items_free(&h->held);
    items_free(&h->out);
    items_free(&h->in);
    register_tree_done(&h->view);
    free(h);
}

/* What was sent is done, as ZooKeeper does what came before the end of the session. */
static void sim_close(struct registers *r)
{
    struct simhandle *h = handle_of(r);
    struct simregisters *sr = h->sr;
    struct item *it;

    lock_take(&sr->mu);
    loop_cancel(h->loop, &h->task);
    timer_clear(h->loop, &h->timer);
    if (h->dead) {
        lock_release(&sr->mu);
        handle_free(h);
        return;
    }
    LIST_REMOVE(h, link);
    TAILQ_FOREACH (it, &h->out, link)
        if (it->kind == ITEM_MULTI && it->rc == 0 && !h->session->over)
            server_write(sr, h->who, h->session, it->ops, it->n_ops);
    if (h->session != NULL && h->state == HANDLE_CONNECTED && !h->session->over)
        session_ends(sr, h->session);
    lock_release(&sr->mu);
    handle_free(h);
}

static const struct registers_ops sim_ops = {
    .multi = sim_multi,
    .get = sim_get,
    .children = sim_children,
    .watch = sim_watch,
    .unwatch = sim_unwatch,
    .sync = sim_sync,
    .on_session = sim_on_session,
    .renew = sim_renew,
    .last_reply_ms = sim_last_reply_ms,
    .close = sim_close,
};

/* A server that has applied all there is. */
static void view_of_tree(void *arg, const char *path, struct slice value, int64_t version)
{
    int rc = register_tree_put(arg, path, value, version);
    KCHECK(rc == 0);
}

static void view_begins(struct simhandle *h)
{
    struct simregisters *sr = h->sr;
    struct session *ss;

    register_tree_each(&sr->tree, view_of_tree, &h->view);
    LIST_FOREACH (ss, &sr->sessions, link)
        for (int i = 0; i < ss->n_ephemerals; i++) {
            struct register_undo undo = { 0 };
            struct register_op op = { .kind = REGISTER_CREATE_EPHEMERAL, .path = ss->ephemerals[i] };
            struct slice value;
            int64_t version;
            int rc = register_tree_get(&sr->tree, op.path, &value, &version);
            op.value = value;
            rc = rc < 0 ? rc : register_tree_multi(&h->view, &op, 1, &undo);
            op.kind = REGISTER_SET;
            op.version = REGISTER_ANY_VERSION;
            for (int64_t v = 0; rc == 0 && v < version; v++)
                rc = register_tree_multi(&h->view, &op, 1, &undo);
            KCHECK(rc == 0);
            register_undo_commit(&undo);
        }
    h->applied = sr->n_changes;
}

void simregisters_open(struct simregisters *sr, struct loop *lp, int who, struct registers **ret)
{
    struct simhandle *h = xcalloc(1, sizeof *h);
    const struct world *w = loop_world(lp);

    h->base = (struct registers){ .ops = &sim_ops, .exec = w->exec };
    h->sr = sr;
    h->who = who;
    h->loop = lp;
    h->rnd = rnd_of(sr->config.seed, RND_REGISTERS, sr->n_handles++);
    h->state = HANDLE_AWAY;
    h->advance_ms = INT64_MAX;
    TAILQ_INIT(&h->asked);
    TAILQ_INIT(&h->held);
    TAILQ_INIT(&h->out);
    TAILQ_INIT(&h->in);
    TAILQ_INIT(&h->watches);
    h->task.cb = on_task;
    h->timer.cb = on_timer;
    h->last_reply_ms = world_mono_ms(w);
    lock_take(&sr->mu);
    if (sr->world == NULL)
        sr->world = w;
    view_begins(h);
    LIST_INSERT_HEAD(&sr->handles, h, link);
    poke(h);
    lock_release(&sr->mu);
    *ret = &h->base;
}

/* ---- for the one who plays ---- */

struct simregisters *simregisters_new(const struct simregisters_config *c)
{
    struct simregisters *sr = xcalloc(1, sizeof *sr);

    sr->config = *c;
    lock_init(&sr->mu, LOCK_RANK_REGISTERS, "simregisters");
    STAILQ_INIT(&sr->changes);
    TAILQ_INIT(&sr->late);
    return sr;
}

void simregisters_free(struct simregisters *sr)
{
    struct session *ss;

    KCHECK(LIST_EMPTY(&sr->handles));
    items_free(&sr->late);
    forget_changes(sr);
    while ((ss = LIST_FIRST(&sr->sessions)) != NULL) {
        LIST_REMOVE(ss, link);
        for (int i = 0; i < ss->n_ephemerals; i++)
            free(ss->ephemerals[i]);
        free(ss->ephemerals);
        free(ss);
    }
    register_tree_done(&sr->tree);
    lock_done(&sr->mu);
    free(sr);
}

static struct simhandle *handle_find(const struct simregisters *sr, int who)
{
    struct simhandle *h;

    LIST_FOREACH (h, &sr->handles, link)
        if (h->who == who)
            return h;
    return NULL;
}

void simregisters_died(struct simregisters *sr, int who)
{
    struct simhandle *h = handle_find(sr, who);

    if (h == NULL)
        return;
    LIST_REMOVE(h, link);
    h->dead = true;
    if (h->session != NULL && h->state == HANDLE_CONNECTED && !h->session->over)
        lose_changes(h);
}

void simregisters_cut(struct simregisters *sr, int who, int64_t away_ms)
{
    struct simhandle *h;

    LIST_FOREACH (h, &sr->handles, link) {
        if (who >= 0 && h->who != who)
            continue;
        disconnect(h, REGISTERS_SUSPENDED, away_ms);
        poke(h);
    }
}

void simregisters_expire(struct simregisters *sr, int who)
{
    struct simhandle *h = handle_find(sr, who);

    if (h == NULL || h->session == NULL || h->session->over)
        return;
    sr->counts.expiries++;
    session_ends(sr, h->session);
    poke(h);
}

void simregisters_calm(struct simregisters *sr)
{
    struct simhandle *h;

    sr->calm = true;
    LIST_FOREACH (h, &sr->handles, link) {
        h->back_ms = least(h->back_ms, loop_now_ms(h->loop));
        poke(h);
    }
}

const struct register_tree *simregisters_tree(const struct simregisters *sr)
{
    return &sr->tree;
}

void simregisters_on_write(struct simregisters *sr, void (*f)(void *arg, int who, const struct register_op *ops, int n),
                           void *arg)
{
    sr->on_write = f;
    sr->on_write_arg = arg;
}

struct simregisters_counts simregisters_counts(const struct simregisters *sr)
{
    return sr->counts;
}
