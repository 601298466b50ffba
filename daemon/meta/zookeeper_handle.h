/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libzookeeper_mt, wrapped: sessions one after the other, requests, and what comes back as news. zookeeper_handle.c is the
 * only file that includes its header. What the library's threads have to say is only handed on (news), never acted on there.
 *
 * The library blocks where it looks up names and where it ends a session, so both happen on a thread of the handle's own (the
 * keeper), and names are looked up once a session: the library is given addresses, and never tries to look up anything.
 */
#ifndef KLOG_DAEMON_ZOOKEEPER_HANDLE_H
#define KLOG_DAEMON_ZOOKEEPER_HANDLE_H

#include <stdbool.h>
#include <sys/queue.h>

#include "daemon/meta/register_watches.h"
#include "daemon/meta/zookeeper.h"

enum zk_request_kind {
    ZK_MULTI,
    ZK_GET,
    ZK_CHILDREN,
    ZK_SYNC,
    ZK_ARM_DATA,     /* -ENOENT arms, too */
    ZK_ARM_CHILDREN, /* arms when rc is 0 */
    ZK_ROOT,         /* creates one node of the chroot; path is not below the chroot */
};

struct zk_multi;
struct zk_request {
    enum zk_request_kind kind;
    TAILQ_ENTRY(zk_request) link; /* the owner's */
    char *path;                   /* owned; NULL for MULTI */
    struct register_op *ops;      /* MULTI: the caller's; looked at while it is sent, filled by zk_request_fill */
    int n_ops;
    void *owner;          /* the owner's, as the next */
    struct watch_ask ask;
    /* answer */
    int rc; /* -errno; -EREMOTEIO: no answer */
    uint8_t *value;
    size_t value_bytes;
    int64_t version;
    char **names; /* sorted */
    int n_names;
    struct zk_multi *multi; /* private */
    struct zk_handle *handle;
};
TAILQ_HEAD(zk_request_list, zk_request);
void zk_request_free(struct zk_request *q);
/* MULTI, after its answer: rc and new_version of each op. */
void zk_request_fill(struct zk_request *q);

enum zk_news_kind { ZK_ANSWER, ZK_EVENT, ZK_CONNECTED, ZK_SUSPENDED, ZK_EXPIRED };
struct zk_news {
    enum zk_news_kind kind;
    TAILQ_ENTRY(zk_news) link;          /* the receiver's */
    struct zk_request *request;         /* ANSWER */
    enum register_watch_event event;    /* EVENT, with the path, which is owned */
    char *path;
    void *session;          /* CONNECTED: for zk_handle_use */
    int session_timeout_ms; /* CONNECTED: what the server granted */
};
void zk_news_free(struct zk_news *n); /* not the request */

struct zk_handle;
struct world;
/* news is called from the library's threads, or from inside zk_handle_send; it owns what it is given. to is the caller's. */
struct zk_handle *zk_handle_new(const struct zookeeper_target *to, const struct world *w,
                                void (*news)(void *arg, struct zk_news *n), void *arg);
int zk_handle_start(struct zk_handle *h); /* begins the first session; -EAGAIN: no threads */
/* The rest: one thread (the loop). After CONNECTED: this is the session from now on. */
void zk_handle_use(struct zk_handle *h, const struct zk_news *connected);
/* Each request is answered once, in the order they are sent, at the latest when its session is closed. */
void zk_handle_send(struct zk_handle *h, struct zk_request *q);
/* Of our side alone: the library forgets what it armed there. */
void zk_handle_disarm(struct zk_handle *h, const char *path);
void zk_handle_renew(struct zk_handle *h); /* after EXPIRED: ends that session, begins another */
void zk_handle_close(struct zk_handle *h); /* blocks; answers what is out; no news after it */

#endif
