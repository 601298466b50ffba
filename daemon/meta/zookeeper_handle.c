/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See zookeeper_handle.h. Three kinds of threads come here: the loop sends; the library's completion thread calls the functions
 * below "what the library says", which copy and hand on; the keeper opens and closes sessions. A session's callbacks have
 * all been made when zookeeper_close() returns, so none can be taken for another session's.
 *
 * mu guards what the keeper is told. `session` is the loop's, `opened` the keeper's.
 */
#include "daemon/meta/zookeeper_handle.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#ifdef HAVE_ZOOKEEPER
#define THREADED
#include <zookeeper/zookeeper.h>

#include "daemon/config/ranks.h"
#include "lib/base/attr.h"
#include "lib/base/buf.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/net.h"
#include "lib/loop/thread.h"

enum { BACKOFF_FIRST_MS = 100, BACKOFF_MAX_MS = 5000 };

struct zk_handle {
    const struct zookeeper_target *to;
    const struct world *world;
    void (*news)(void *arg, struct zk_news *n);
    void *arg;
    struct thread *keeper;

    struct lock mu;
    struct cond wake;
    bool open_asked, stopping; /* guarded by mu */

    zhandle_t *opened;
    zhandle_t *session;
    zhandle_t *known; /* the session that was told who we are; the loop's */
};

/* A multi as the library wants it; lives until it is answered. */
struct zk_multi {
    zoo_op_t *ops;
    zoo_op_result_t *results;
    struct Stat *stats;
    char **paths;
};

static void multi_free(struct zk_multi *m, int n)
{
    if (m == NULL)
        return;
    for (int i = 0; i < n; i++)
        free(m->paths[i]);
    free(m->paths);
    free(m->ops);
    free(m->results);
    free(m->stats);
    free(m);
}

void zk_request_free(struct zk_request *q)
{
    multi_free(q->multi, q->n_ops);
    for (int i = 0; i < q->n_names; i++)
        free(q->names[i]);
    free(q->names);
    free(q->value);
    free(q->path);
    free(q);
}

void zk_news_free(struct zk_news *n)
{
    free(n->path);
    free(n);
}

/* ---- what the library says ---- */

static int errno_of(int rc)
{
    static const int table[][2] = {
        { ZOK, 0 },
        { ZNONODE, -ENOENT },
        { ZNODEEXISTS, -EEXIST },
        { ZBADVERSION, -ESTALE },
        { ZNOTEMPTY, -ENOTEMPTY },
        { ZNOCHILDRENFOREPHEMERALS, -EINVAL },
        { ZBADARGUMENTS, -EINVAL },
        { ZNOAUTH, -EACCES },
        { ZINVALIDACL, -EACCES },
        { ZRUNTIMEINCONSISTENCY, -ECANCELED }, /* of an op, when another one failed */
        { ZUNIMPLEMENTED, -EOPNOTSUPP },
    };

    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i][0] == rc)
            return table[i][1];
    return -EREMOTEIO; /* lost connections and sessions, and whatever else leaves open what happened */
}

static void tell(struct zk_handle *h, struct zk_news n)
{
    struct zk_news *copy = xmalloc(sizeof *copy);

    *copy = n;
    h->news(h->arg, copy);
}

static void tell_answer(struct zk_request *q, int rc)
{
    q->rc = errno_of(rc);
    tell(q->handle, (struct zk_news){ .kind = ZK_ANSWER, .request = q });
}

static void on_void(int rc, const void *data)
{
    tell_answer((struct zk_request *)(uintptr_t)data, rc);
}

static void on_string(int rc, const char *value, const void *data)
{
    (void)value;
    on_void(rc, data);
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
    (void)stat;
    on_void(rc, data);
}

static void on_data(int rc, const char *value, int n, const struct Stat *stat, const void *data)
{
    struct zk_request *q = (struct zk_request *)(uintptr_t)data;

    if (rc == ZOK) {
        q->value_bytes = n > 0 ? (size_t)n : 0; /* -1: null */
        q->value = xmalloc(q->value_bytes + 1);
        if (n > 0)
            memcpy(q->value, value, q->value_bytes);
        q->version = stat->version;
    }
    tell_answer(q, rc);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void on_strings(int rc, const struct String_vector *names, const void *data)
{
    struct zk_request *q = (struct zk_request *)(uintptr_t)data;

    if (rc == ZOK) {
        q->names = xcalloc((size_t)names->count + 1, sizeof *q->names);
        q->n_names = names->count;
        for (int i = 0; i < names->count; i++)
            q->names[i] = xstrdup(names->data[i]);
        qsort(q->names, (size_t)q->n_names, sizeof *q->names, compare_names);
    }
    tell_answer(q, rc);
}

/* Below the chroot; NULL: it is elsewhere. */
static char *path_from(const struct zk_handle *h, const char *path)
{
    size_t n = strlen(h->to->chroot);

    if (strncmp(path, h->to->chroot, n) != 0)
        return NULL;
    if (path[n] == '\0')
        return xstrdup("/");
    return path[n] == '/' ? xstrdup(path + n) : NULL;
}

/* Also called for each change of the session, which on_session_event hears of itself. */
static void on_node_event(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct zk_handle *h = context;
    struct zk_news n = { .kind = ZK_EVENT };
    (void)zh, (void)state;

    if (type == ZOO_CREATED_EVENT)
        n.event = WATCH_CREATED;
    else if (type == ZOO_DELETED_EVENT)
        n.event = WATCH_DELETED;
    else if (type == ZOO_CHANGED_EVENT)
        n.event = WATCH_CHANGED;
    else if (type == ZOO_CHILD_EVENT)
        n.event = WATCH_CHILD;
    else
        return;
    n.path = path_from(h, path);
    if (n.path != NULL)
        tell(h, n);
}

static void on_session_event(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct zk_handle *h = context;
    struct zk_news n = { .kind = ZK_SUSPENDED };
    (void)path;

    if (type != ZOO_SESSION_EVENT)
        return;
    if (state == ZOO_CONNECTED_STATE) {
        n.kind = ZK_CONNECTED;
        n.session = zh;
        n.session_timeout_ms = zoo_recv_timeout(zh);
    } else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
        n.kind = ZK_EXPIRED;
    }
    tell(h, n);
}

/* It says the same with each attempt to connect, a hundred times a second: nothing for people. */
static void on_log(const char *line)
{
    log_debug("ZooKeeper's library: %s", line);
}

static void on_auth(int rc, const void *data)
{
    (void)rc, (void)data; /* a refusal ends the session: on_session_event */
}

/* ---- the keeper ---- */

/* "ADDRESS:PORT,..." of all hosts; an empty one when none is known. May block for long. */
static void look_up(const struct zk_handle *h, struct bytebuf *ret)
{
    const struct net *net = h->world->net;

    ret->n = 0;
    for (int i = 0; i < h->to->n_hosts; i++) {
        struct addrinfo *list;
        char port[16], host[NI_MAXHOST];
        snprintf(port, sizeof port, "%d", h->to->hosts[i].port);
        int rc = net->resolve(net, h->to->hosts[i].host, port, 0, &list);
        if (rc != 0) {
            log_debug("ZooKeeper: %s: %s", h->to->hosts[i].host, gai_strerror(rc));
            continue;
        }
        for (struct addrinfo *ai = list; ai != NULL; ai = ai->ai_next)
            if (getnameinfo(ai->ai_addr, ai->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST) == 0)
                bytebuf_printf(ret, "%s%s:%s", ret->n > 0 ? "," : "", host, port);
        net->free_addresses(net, list);
    }
    bytebuf_add(ret, "", 1);
}

static zhandle_t *try_open(struct zk_handle *h)
{
    CLEANUP(bytebuf_done) struct bytebuf hosts = { 0 };

    look_up(h, &hosts);
    if (hosts.n <= 1)
        return NULL;
    zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
    return zookeeper_init2((const char *)hosts.p, on_session_event, h->to->session_timeout_ms, NULL, h, 0, on_log);
}

/* Until it is open, or nobody wants it any more. */
static void keeper_open(struct zk_handle *h)
{
    int64_t wait_ms = BACKOFF_FIRST_MS;

    lock_assert_held(&h->mu);
    while (!h->stopping) {
        lock_release(&h->mu);
        h->opened = try_open(h);
        lock_take(&h->mu);
        if (h->opened != NULL)
            return;
        if (wait_ms == BACKOFF_FIRST_MS)
            log_warn("ZooKeeper: no address is known of any host of zookeeper.connect, as %s; asking again until there is one",
                     h->to->hosts[0].host);
        int64_t until_ms = world_mono_ms(h->world) + wait_ms;
        while (!h->stopping && world_mono_ms(h->world) < until_ms)
            cond_wait_until(&h->wake, &h->mu, until_ms);
        wait_ms = MIN(2 * wait_ms, (int64_t)BACKOFF_MAX_MS);
    }
}

static void keeper_close(struct zk_handle *h)
{
    if (h->opened != NULL)
        zookeeper_close(h->opened); /* waits for its threads, and seconds for a server that does not answer */
    h->opened = NULL;
}

static void keeper_run(void *arg)
{
    struct zk_handle *h = arg;

    lock_take(&h->mu);
    while (!h->stopping) {
        if (!h->open_asked) {
            cond_wait(&h->wake, &h->mu);
            continue;
        }
        h->open_asked = false;
        lock_release(&h->mu);
        keeper_close(h);
        lock_take(&h->mu);
        keeper_open(h);
    }
    lock_release(&h->mu);
    keeper_close(h);
}

struct zk_handle *zk_handle_new(const struct zookeeper_target *to, const struct world *w,
                                void (*news)(void *arg, struct zk_news *n), void *arg)
{
    struct zk_handle *h = xcalloc(1, sizeof *h);

    h->to = to;
    h->world = w;
    h->news = news;
    h->arg = arg;
    h->open_asked = true;
    lock_init(&h->mu, LOCK_RANK_REGISTERS, "zookeeper handle");
    cond_init(&h->wake, w->exec);
    return h;
}

int zk_handle_start(struct zk_handle *h)
{
    h->keeper = thread_start(h->world->exec, keeper_run, h, "klogd-zookeeper");
    return h->keeper == NULL ? -EAGAIN : 0;
}

void zk_handle_renew(struct zk_handle *h)
{
    h->session = h->known = NULL;
    lock_take(&h->mu);
    h->open_asked = true;
    cond_signal(&h->wake);
    lock_release(&h->mu);
}

void zk_handle_close(struct zk_handle *h)
{
    lock_take(&h->mu);
    h->stopping = true;
    cond_signal(&h->wake);
    lock_release(&h->mu);
    thread_join(h->world->exec, h->keeper);
    lock_done(&h->mu);
    cond_done(&h->wake);
    free(h);
}

/* ---- requests ---- */

void zk_handle_use(struct zk_handle *h, const struct zk_news *connected)
{
    h->session = connected->session;
    if (h->session == h->known || h->to->digest[0] == '\0')
        return;
    h->known = h->session; /* the library says it again on each of its connections */
    zoo_add_auth(h->session, "digest", h->to->digest, (int)strlen(h->to->digest), on_auth, NULL);
}

static char *path_to(const struct zk_handle *h, const char *path)
{
    if (strcmp(path, "/") == 0)
        return xstrdup(h->to->chroot[0] == '\0' ? "/" : h->to->chroot);
    return xasprintf("%s%s", h->to->chroot, path);
}

static const struct ACL_vector *acl_of(const struct zk_handle *h)
{
    return h->to->digest[0] == '\0' ? &ZOO_OPEN_ACL_UNSAFE : &ZOO_CREATOR_ALL_ACL;
}

/* -1: any; one that it cannot have: none. */
static int version_of(int64_t version)
{
    return version > INT32_MAX || version < -1 ? INT32_MIN : (int)version;
}

static void fill_op(struct zk_handle *h, struct zk_multi *m, int i, const struct register_op *op)
{
    const char *value = op->value.n == 0 ? "" : (const char *)op->value.p;
    int n = (int)op->value.n, version = version_of(op->version);
    const char *path = m->paths[i] = path_to(h, op->path);

    switch (op->kind) {
    case REGISTER_CREATE:
    case REGISTER_CREATE_EPHEMERAL:
        zoo_create_op_init(&m->ops[i], path, value, n, acl_of(h), op->kind == REGISTER_CREATE ? 0 : ZOO_EPHEMERAL, NULL, 0);
        break;
    case REGISTER_SET:
        zoo_set_op_init(&m->ops[i], path, value, n, version, &m->stats[i]);
        break;
    case REGISTER_DELETE:
        zoo_delete_op_init(&m->ops[i], path, version);
        break;
    case REGISTER_CHECK:
        zoo_check_op_init(&m->ops[i], path, version);
        break;
    }
}

static int send_multi(struct zk_handle *h, struct zk_request *q)
{
    struct zk_multi *m = q->multi = xcalloc(1, sizeof *m);
    size_t n = (size_t)q->n_ops;

    m->ops = xcalloc(n, sizeof *m->ops);
    m->results = xcalloc(n, sizeof *m->results);
    m->stats = xcalloc(n, sizeof *m->stats);
    m->paths = xcalloc(n, sizeof *m->paths);
    for (int i = 0; i < q->n_ops; i++)
        fill_op(h, m, i, &q->ops[i]);
    return zoo_amulti(h->session, q->n_ops, m->ops, m->results, on_void, q);
}

/* The first that failed has its own error, the others say that it was not they. */
void zk_request_fill(struct zk_request *q)
{
    bool found = false;

    for (int i = 0; i < q->n_ops; i++) {
        struct register_op *op = &q->ops[i];
        if (q->rc == -EREMOTEIO || q->multi == NULL) {
            op->rc = q->rc;
            continue;
        }
        int rc = errno_of(q->multi->results[i].err);
        op->rc = q->rc == 0 ? 0 : -ECANCELED;
        if (rc != 0 && rc != -ECANCELED && !found) {
            found = true;
            q->rc = op->rc = rc;
        }
        if (q->rc == 0)
            op->new_version = op->kind == REGISTER_SET ? q->multi->stats[i].version : 0;
    }
}

static int send_one(struct zk_handle *h, struct zk_request *q)
{
    CLEANUP(freep) char *path = q->kind == ZK_MULTI || q->kind == ZK_ROOT ? NULL : path_to(h, q->path);

    switch (q->kind) {
    case ZK_MULTI:
        return send_multi(h, q);
    case ZK_GET:
        return zoo_aget(h->session, path, 0, on_data, q);
    case ZK_CHILDREN:
        return zoo_aget_children(h->session, path, 0, on_strings, q);
    case ZK_SYNC:
        return zoo_async(h->session, path, on_string, q);
    case ZK_ARM_DATA:
        return zoo_awexists(h->session, path, on_node_event, h, on_stat, q);
    case ZK_ARM_CHILDREN:
        return zoo_awget_children(h->session, path, on_node_event, h, on_strings, q);
    case ZK_ROOT:
        return zoo_acreate(h->session, q->path, "", 0, acl_of(h), 0, on_string, q);
    }
    return ZBADARGUMENTS;
}

void zk_handle_send(struct zk_handle *h, struct zk_request *q)
{
    q->handle = h;
    KCHECK(h->session != NULL);
    int rc = send_one(h, q);
    if (rc != ZOK)
        tell_answer(q, ZINVALIDSTATE); /* the session has ended; on_session_event says so, too */
}

void zk_handle_disarm(struct zk_handle *h, const char *path)
{
    CLEANUP(freep) char *full = path_to(h, path);

    zoo_remove_watches(h->session, full, ZWATCHTYPE_ANY, on_node_event, h, 1);
}
#endif
