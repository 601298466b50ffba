/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ZooKeeper back-end of the register store; zookeeper_handle.h is the library below it. All of it happens on the loop: calls
 * from other threads are posted there (asked), and what the library's threads say (news) as well; these two queues are all that
 * mu guards.
 *
 * Calls are sent in their order, and answered in it: one that fails without being sent takes its place in `sent` and waits for
 * those before it. They are held back
 *  - while there is no connection; for as long as a session lives without one, then they fail,
 *  - while watches are being armed (register_watches.h), so that whoever reads after setting a watch, or after a connection
 *    came back, reads behind the watch.
 *
 * The library is never asked to take watches over to the next connection of a session: it sends them all in one request, and a
 * server drops a connection that sends more than 1 MiB, for ever again. They are disarmed while there is no connection, a few at
 * a time, and armed anew when there is one.
 */
#include "daemon/meta/zookeeper.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#ifdef HAVE_ZOOKEEPER
#include "daemon/config/ranks.h"
#include "daemon/meta/register_tree.h"
#include "daemon/meta/zookeeper_handle.h"
#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/loop.h"

enum {
    DISARM_AT_ONCE = 256,
    TICKS = 6, /* looks at the clock in a session's time-out */
};

/* - joining -> connected: watches are armed
 * - joining, connected -> suspended: the connection is lost, the session may live
 * - suspended -> joining; any -> expired; expired -> suspended: a new session is being made */
enum zk_state { ZK_IS_SUSPENDED, ZK_IS_JOINING, ZK_IS_CONNECTED, ZK_IS_EXPIRED };
#define B(state) (1u << ZK_IS_##state)
static const uint8_t state_next[] = {
    [ZK_IS_SUSPENDED] = B(JOINING) | B(EXPIRED),
    [ZK_IS_JOINING] = B(CONNECTED) | B(SUSPENDED) | B(EXPIRED),
    [ZK_IS_CONNECTED] = B(SUSPENDED) | B(EXPIRED),
    [ZK_IS_EXPIRED] = B(SUSPENDED),
};
#undef B

/* One of registers.h's calls, or one of our own (no cb). */
struct call {
    struct zk_request *request;
    TAILQ_ENTRY(call) link;
    int64_t asked_ms;
    bool done; /* its answer is there */
    union {
        void (*rc)(void *arg, int rc); /* MULTI, SYNC */
        void (*value)(void *arg, int rc, struct slice value, int64_t version);
        void (*names)(void *arg, int rc, const char *const *names, int n);
    } cb;
    void *arg;
};
TAILQ_HEAD(call_list, call);
TAILQ_HEAD(news_list, zk_news);

struct zk {
    struct registers base;
    struct zookeeper_target to;
    struct loop *loop;
    struct zk_handle *handle;

    struct lock mu;
    struct call_list asked; /* guarded by mu */
    struct news_list news;  /* guarded by mu */
    struct task stir;
    _Atomic int64_t last_reply_ms;

    /* the loop's */
    enum zk_state state;
    bool was_connected;   /* now or before */
    bool told_of_absence; /* in the log */
    bool shown;           /* while joining: watches were told, since an answer may have shown what they missed */
    int session_timeout_ms;
    int64_t suspended_ms; /* since when */
    struct call_list held, sent;
    struct zk_request_list lost; /* answered already, but the library has them still */
    struct register_watches watches;
    struct task disarm;
    struct timer timer;
    void (*session_cb)(void *arg, enum registers_event ev);
    void *session_arg;
    struct task tell_state;
};

static struct zk *zk_of(struct registers *r)
{
    return container_of(r, struct zk, base);
}

static void zk_move(struct zk *z, enum zk_state to)
{
    KCHECK(state_next[z->state] & (1u << to));
    z->state = to;
    if (to == ZK_IS_SUSPENDED)
        z->suspended_ms = loop_now_ms(z->loop);
}

/* ---- calls ---- */

static struct zk_request *request_new(enum zk_request_kind kind, const char *path)
{
    struct zk_request *q = xcalloc(1, sizeof *q);

    q->kind = kind;
    q->path = path == NULL ? NULL : xstrdup(path);
    return q;
}

static struct call *call_new(enum zk_request_kind kind, const char *path, void *arg)
{
    struct call *c = xcalloc(1, sizeof *c);

    c->request = request_new(kind, path);
    c->request->owner = c;
    c->arg = arg;
    return c;
}

static void call_answer(struct call *c)
{
    struct zk_request *q = c->request;

    switch (q->kind) {
    case ZK_MULTI:
        zk_request_fill(q);
        c->cb.rc(c->arg, q->rc);
        break;
    case ZK_SYNC:
        c->cb.rc(c->arg, q->rc);
        break;
    case ZK_GET:
        c->cb.value(c->arg, q->rc, slice_of(q->value, q->rc < 0 ? 0 : q->value_bytes), q->version);
        break;
    case ZK_CHILDREN:
        c->cb.names(c->arg, q->rc, (const char *const *)q->names, q->rc < 0 ? 0 : q->n_names);
        break;
    case ZK_ARM_DATA:
    case ZK_ARM_CHILDREN:
    case ZK_ROOT:
        KCHECK(false);
    }
}

/* Answers come in the order of the calls: whatever is at the head and done. */
static void answer_done(struct zk *z)
{
    struct call *c;

    while ((c = TAILQ_FIRST(&z->sent)) != NULL && c->done) {
        TAILQ_REMOVE(&z->sent, c, link);
        call_answer(c);
        zk_request_free(c->request);
        free(c);
    }
}

/* It is not sent, or no answer of it is waited for any more. */
static void call_fail(struct zk *z, struct call *c, int rc)
{
    struct zk_request *q = c->request;

    c->done = true;
    if (q->handle == NULL) {
        q->rc = rc;
        return;
    }
    /* the library writes to its request yet; the caller is answered from another one */
    c->request = request_new(q->kind, NULL);
    c->request->rc = rc;
    c->request->ops = q->ops;
    c->request->n_ops = q->n_ops;
    q->owner = &z->lost;
    TAILQ_INSERT_TAIL(&z->lost, q, link);
}

/* What ZooKeeper's client refuses with a leak, or its server with a lost connection. */
static bool path_is_sendable(const char *path)
{
    if (strcmp(path, "/") == 0)
        return true;
    if (!register_path_is_legal(path))
        return false;
    for (const char *s = path; s != NULL; s = strchr(s + 1, '/')) {
        size_t n = strcspn(s + 1, "/");
        if ((n == 1 && s[1] == '.') || (n == 2 && s[1] == '.' && s[2] == '.'))
            return false;
    }
    return true;
}

static int multi_check(const struct register_op *ops, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(ops[i].path, "/") == 0 || !path_is_sendable(ops[i].path) || ops[i].value.n > REGISTER_VALUE_MAX)
            return i;
    return -1;
}

/* False: it is not to be sent, and failed. */
static bool call_check(struct zk *z, struct call *c)
{
    struct zk_request *q = c->request;

    if (q->kind != ZK_MULTI) {
        if (!path_is_sendable(q->path))
            call_fail(z, c, -EINVAL);
        return !c->done;
    }
    int bad = multi_check(q->ops, q->n_ops);
    if (bad < 0 && registers_multi_bytes(q->ops, q->n_ops) <= REGISTERS_MULTI_MAX)
        return true;
    call_fail(z, c, bad < 0 ? -E2BIG : -EINVAL);
    return false;
}

static void send_call(struct zk *z, struct call *c)
{
    TAILQ_INSERT_TAIL(&z->sent, c, link);
    if (call_check(z, c))
        zk_handle_send(z->handle, c->request);
}

static bool may_send(const struct zk *z)
{
    return z->state == ZK_IS_CONNECTED && !register_watches_sweeping(&z->watches);
}

static void fail_held(struct zk *z, int64_t asked_before_ms)
{
    struct call *c;

    while ((c = TAILQ_FIRST(&z->held)) != NULL && c->asked_ms < asked_before_ms) {
        TAILQ_REMOVE(&z->held, c, link);
        TAILQ_INSERT_TAIL(&z->sent, c, link);
        call_fail(z, c, -EREMOTEIO);
    }
}

static void send_held(struct zk *z)
{
    struct call *c;

    while (may_send(z) && (c = TAILQ_FIRST(&z->held)) != NULL) {
        TAILQ_REMOVE(&z->held, c, link);
        send_call(z, c);
    }
    if (z->state == ZK_IS_EXPIRED)
        fail_held(z, INT64_MAX);
    answer_done(z);
}

/* ---- what is sent of our own ---- */

static void send_own(struct zk *z, enum zk_request_kind kind, const char *path, struct watch_ask ask)
{
    struct zk_request *q = request_new(kind, path);

    q->ask = ask;
    zk_handle_send(z->handle, q);
}

static void arm_data(void *arg, const char *path, struct watch_ask ask)
{
    send_own(arg, ZK_ARM_DATA, path, ask);
}

static void arm_children(void *arg, const char *path, struct watch_ask ask)
{
    send_own(arg, ZK_ARM_CHILDREN, path, ask);
}

static void disarm_path(void *arg, const char *path)
{
    struct zk *z = arg;

    zk_handle_disarm(z->handle, path);
}

static void disarm_some(struct task *t)
{
    struct zk *z = container_of(t, struct zk, disarm);

    if (z->state == ZK_IS_SUSPENDED && register_watches_disarm(&z->watches, DISARM_AT_ONCE))
        loop_post(z->loop, &z->disarm);
}

/* The chroot, from its top down; what is there already is fine. */
static void send_chroot(struct zk *z)
{
    CLEANUP(freep) char *path = xstrdup(z->to.chroot);

    for (char *s = path; *s != '\0';) {
        s += 1 + strcspn(s + 1, "/");
        char end = *s;
        *s = '\0';
        send_own(z, ZK_ROOT, path, (struct watch_ask){ 0 });
        *s = end;
    }
}

static void own_answered(struct zk *z, struct zk_request *q)
{
    if (q->kind == ZK_ARM_DATA)
        register_watches_on_data(&z->watches, q->path, q->ask, q->rc);
    else if (q->kind == ZK_ARM_CHILDREN)
        register_watches_on_children(&z->watches, q->path, q->ask, q->rc, (const char *const *)q->names, q->n_names);
    if (q->rc == -EACCES || (q->kind == ZK_ROOT && q->rc < 0 && q->rc != -EEXIST && q->rc != -EREMOTEIO))
        log_error("ZooKeeper: %s cannot be %s: %s; see zookeeper.digest.file", q->path, q->kind == ZK_ROOT ? "made" : "watched",
                  strerror(-q->rc));
}

/* ---- the session ---- */

static void tell_session(struct zk *z, enum registers_event ev)
{
    if (z->session_cb != NULL)
        z->session_cb(z->session_arg, ev);
}

static void say_absent(struct zk *z)
{
    if (!z->told_of_absence)
        log_warn("ZooKeeper: no host of zookeeper.connect answers, as %s:%d; no leader or in-sync set can change until one does",
                 z->to.hosts[0].host, z->to.hosts[0].port);
    z->told_of_absence = true;
}

static void on_connected(struct zk *z, const struct zk_news *n)
{
    if (z->state != ZK_IS_SUSPENDED)
        return;
    zk_move(z, ZK_IS_JOINING);
    z->session_timeout_ms = n->session_timeout_ms;
    z->shown = false;
    zk_handle_use(z->handle, n);
    send_chroot(z);
    /* another server than before may be behind what we have seen */
    send_own(z, ZK_SYNC, "/", (struct watch_ask){ 0 });
    register_watches_connected(&z->watches);
}

/* All watches are armed: of a new connection, or a new one of this. */
static void swept(void *arg)
{
    struct zk *z = arg;

    if (z->state == ZK_IS_JOINING) {
        zk_move(z, ZK_IS_CONNECTED);
        if (z->told_of_absence)
            log_info("ZooKeeper answers again");
        z->told_of_absence = false;
        tell_session(z, REGISTERS_CONNECTED);
        if (z->was_connected)
            register_watches_tell_all(&z->watches);
        z->was_connected = true;
    }
    send_held(z);
}

static void on_suspended(struct zk *z)
{
    if (z->state != ZK_IS_JOINING && z->state != ZK_IS_CONNECTED)
        return;
    bool was_told = z->state == ZK_IS_CONNECTED;
    zk_move(z, ZK_IS_SUSPENDED);
    register_watches_disconnected(&z->watches, false);
    loop_post(z->loop, &z->disarm);
    say_absent(z);
    if (was_told)
        tell_session(z, REGISTERS_SUSPENDED);
}

static void on_expired(struct zk *z)
{
    struct call *c;

    if (z->state == ZK_IS_EXPIRED)
        return;
    zk_move(z, ZK_IS_EXPIRED);
    register_watches_disconnected(&z->watches, true);
    log_warn("ZooKeeper: our session has ended: it was not heard of for longer than zookeeper.session.timeout.ms, or not accepted");
    tell_session(z, REGISTERS_EXPIRED);
    /* the library answers some of them only when the session is closed */
    TAILQ_FOREACH (c, &z->sent, link)
        if (!c->done)
            call_fail(z, c, -EREMOTEIO);
    send_held(z);
}

static void zk_renew(struct registers *r)
{
    struct zk *z = zk_of(r);

    if (z->state != ZK_IS_EXPIRED)
        return;
    zk_move(z, ZK_IS_SUSPENDED);
    zk_handle_renew(z->handle);
}

static void tell_state(struct task *t)
{
    struct zk *z = container_of(t, struct zk, tell_state);

    tell_session(z, z->state == ZK_IS_CONNECTED ? REGISTERS_CONNECTED
                 : z->state == ZK_IS_EXPIRED    ? REGISTERS_EXPIRED
                                                : REGISTERS_SUSPENDED);
}

static void zk_on_session(struct registers *r, void (*cb)(void *arg, enum registers_event ev), void *arg)
{
    struct zk *z = zk_of(r);

    z->session_cb = cb;
    z->session_arg = arg;
    if (cb != NULL)
        loop_post(z->loop, &z->tell_state);
}

/* Hears of a server that says nothing (the library does not tell of its pings), and lets calls fail that waited too long. */
static void on_timer(struct timer *t)
{
    struct zk *z = container_of(t, struct zk, timer);
    int64_t now_ms = loop_now_ms(z->loop);

    if (z->state == ZK_IS_CONNECTED && now_ms - atomic_load(&z->last_reply_ms) >= z->session_timeout_ms / 3)
        send_own(z, ZK_SYNC, "/", (struct watch_ask){ 0 });
    if (z->state == ZK_IS_SUSPENDED && now_ms - z->suspended_ms >= z->session_timeout_ms) {
        say_absent(z);
        fail_held(z, now_ms - z->session_timeout_ms + 1);
        answer_done(z);
    }
    timer_set_in(z->loop, &z->timer, MAX(1, z->session_timeout_ms / TICKS));
}

/* ---- from other threads ---- */

static void on_news(void *arg, struct zk_news *n)
{
    struct zk *z = arg;
    bool heard = n->kind == ZK_ANSWER ? n->request->rc != -EREMOTEIO : n->kind == ZK_EVENT || n->kind == ZK_CONNECTED;

    if (heard)
        atomic_store(&z->last_reply_ms, world_mono_ms(loop_world(z->loop)));
    lock_take(&z->mu);
    TAILQ_INSERT_TAIL(&z->news, n, link);
    loop_post(z->loop, &z->stir);
    lock_release(&z->mu);
}

static void ask(struct registers *r, struct call *c)
{
    struct zk *z = zk_of(r);

    lock_take(&z->mu);
    c->asked_ms = world_mono_ms(loop_world(z->loop));
    TAILQ_INSERT_TAIL(&z->asked, c, link);
    loop_post(z->loop, &z->stir);
    lock_release(&z->mu);
}

static void on_answer(struct zk *z, struct zk_request *q)
{
    struct call *c = q->owner;

    q->handle = NULL; /* the library has done with it */
    if (q->owner == &z->lost) {
        TAILQ_REMOVE(&z->lost, q, link);
        zk_request_free(q);
    } else if (c == NULL) {
        own_answered(z, q);
        zk_request_free(q);
    } else {
        c->done = true;
        if (z->state == ZK_IS_JOINING && q->rc != -EREMOTEIO && !z->shown) {
            z->shown = true;
            register_watches_tell_all(&z->watches);
        }
        answer_done(z);
    }
}

static void on_one_news(struct zk *z, struct zk_news *n)
{
    switch (n->kind) {
    case ZK_ANSWER:
        on_answer(z, n->request);
        break;
    case ZK_EVENT:
        register_watches_on_event(&z->watches, n->event, n->path);
        break;
    case ZK_CONNECTED:
        on_connected(z, n);
        break;
    case ZK_SUSPENDED:
        on_suspended(z);
        break;
    case ZK_EXPIRED:
        on_expired(z);
        break;
    }
    zk_news_free(n);
}

static void stir(struct task *t)
{
    struct zk *z = container_of(t, struct zk, stir);
    struct news_list news = TAILQ_HEAD_INITIALIZER(news);
    struct zk_news *n;

    if (!timer_is_set(&z->timer))
        on_timer(&z->timer);
    lock_take(&z->mu);
    TAILQ_CONCAT(&news, &z->news, link);
    TAILQ_CONCAT(&z->held, &z->asked, link);
    lock_release(&z->mu);
    while ((n = TAILQ_FIRST(&news)) != NULL) {
        TAILQ_REMOVE(&news, n, link);
        on_one_news(z, n);
    }
    send_held(z);
}

/* ---- the table ---- */

static void zk_multi(struct registers *r, struct register_op *ops, int n, void (*cb)(void *arg, int rc), void *arg)
{
    struct call *c = call_new(ZK_MULTI, NULL, arg);

    c->request->ops = ops;
    c->request->n_ops = n;
    c->cb.rc = cb;
    ask(r, c);
}

static void zk_get(struct registers *r, const char *path,
                   void (*cb)(void *arg, int rc, struct slice value, int64_t version), void *arg)
{
    struct call *c = call_new(ZK_GET, path, arg);

    c->cb.value = cb;
    ask(r, c);
}

static void zk_children(struct registers *r, const char *path,
                        void (*cb)(void *arg, int rc, const char *const *names, int n), void *arg)
{
    struct call *c = call_new(ZK_CHILDREN, path, arg);

    c->cb.names = cb;
    ask(r, c);
}

static void zk_sync(struct registers *r, void (*cb)(void *arg, int rc), void *arg)
{
    struct call *c = call_new(ZK_SYNC, "/", arg);

    c->cb.rc = cb;
    ask(r, c);
}

static struct register_watch *zk_watch(struct registers *r, const char *path, void (*cb)(void *arg, const char *path),
                                       void *arg)
{
    return register_watches_add(&zk_of(r)->watches, path, cb, arg);
}

static void zk_unwatch(struct registers *r, struct register_watch *w)
{
    register_watches_remove(&zk_of(r)->watches, w);
}

static int64_t zk_last_reply_ms(struct registers *r)
{
    return atomic_load(&zk_of(r)->last_reply_ms);
}

static void calls_free(struct call_list *l)
{
    struct call *c;

    while ((c = TAILQ_FIRST(l)) != NULL) {
        TAILQ_REMOVE(l, c, link);
        zk_request_free(c->request);
        free(c);
    }
}

/* The session is closed by the keeper, and with that all that is out has been answered: calls are in `sent`, what was lost in
 * `lost`, and whatever else is only in the news. */
static void drop_all(struct zk *z)
{
    struct zk_news *n;
    struct zk_request *q;

    while ((n = TAILQ_FIRST(&z->news)) != NULL) {
        TAILQ_REMOVE(&z->news, n, link);
        if (n->kind == ZK_ANSWER && n->request->owner == NULL)
            zk_request_free(n->request);
        zk_news_free(n);
    }
    while ((q = TAILQ_FIRST(&z->lost)) != NULL) {
        TAILQ_REMOVE(&z->lost, q, link);
        zk_request_free(q);
    }
    calls_free(&z->asked);
    calls_free(&z->held);
    calls_free(&z->sent);
}

static void zk_close(struct registers *r)
{
    struct zk *z = zk_of(r);

    zk_handle_close(z->handle);
    loop_cancel(z->loop, &z->stir);
    loop_cancel(z->loop, &z->disarm);
    loop_cancel(z->loop, &z->tell_state);
    timer_clear(z->loop, &z->timer);
    drop_all(z);
    register_watches_done(&z->watches);
    zookeeper_target_done(&z->to);
    lock_done(&z->mu);
    free(z);
}

static const struct registers_ops zk_ops = {
    .multi = zk_multi,
    .get = zk_get,
    .children = zk_children,
    .watch = zk_watch,
    .unwatch = zk_unwatch,
    .sync = zk_sync,
    .on_session = zk_on_session,
    .renew = zk_renew,
    .last_reply_ms = zk_last_reply_ms,
    .close = zk_close,
};

static void target_copy(const struct zookeeper_target *from, struct zookeeper_target *ret)
{
    *ret = *from;
    ret->hosts = xcalloc((size_t)from->n_hosts, sizeof *ret->hosts);
    for (int i = 0; i < from->n_hosts; i++)
        ret->hosts[i] = (struct zookeeper_host){ xstrdup(from->hosts[i].host), from->hosts[i].port };
    ret->chroot = xstrdup(from->chroot);
    ret->digest = xstrdup(from->digest);
}

int registers_open_zookeeper(const struct zookeeper_target *to, struct loop *lp, struct registers **ret, char *err,
                             size_t err_size)
{
    struct zk *z = xcalloc(1, sizeof *z);
    const struct world *w = loop_world(lp);
    struct register_watches_env env = {
        .arg = z, .arm_data = arm_data, .arm_children = arm_children, .disarm = disarm_path, .swept = swept
    };

    z->base = (struct registers){ .ops = &zk_ops, .exec = w->exec };
    target_copy(to, &z->to);
    z->loop = lp;
    lock_init(&z->mu, LOCK_RANK_REGISTERS, "zookeeper");
    TAILQ_INIT(&z->asked);
    TAILQ_INIT(&z->news);
    TAILQ_INIT(&z->held);
    TAILQ_INIT(&z->sent);
    TAILQ_INIT(&z->lost);
    z->stir.cb = stir;
    z->disarm.cb = disarm_some;
    z->tell_state.cb = tell_state;
    z->timer.cb = on_timer;
    z->session_timeout_ms = to->session_timeout_ms;
    register_watches_init(&z->watches, &env);
    atomic_store(&z->last_reply_ms, world_mono_ms(w));
    z->suspended_ms = world_mono_ms(w);
    z->handle = zk_handle_new(&z->to, w, on_news, z);
    if (zk_handle_start(z->handle) < 0) {
        snprintf(err, err_size, "no thread for ZooKeeper: %s", strerror(EAGAIN));
        zk_close(&z->base);
        return -EAGAIN;
    }
    loop_post(lp, &z->stir); /* which sets the timer */
    *ret = &z->base;
    return 0;
}

#else
int registers_open_zookeeper(const struct zookeeper_target *to, struct loop *lp, struct registers **ret, char *err,
                             size_t err_size)
{
    (void)to, (void)lp, (void)ret;
    snprintf(err, err_size, "zookeeper.connect is set, but this klogd was built without libzookeeper_mt");
    return -ENOSYS;
}
#endif
