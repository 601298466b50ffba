/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server from inside: server.c (listeners, life), session.c (one connection), request.c (answers).
 *
 * A session belongs to one reactor and is touched by its thread alone. Other threads reach a reactor by the
 * queue of accepted descriptors (`mu`) and by tasks.
 */
#ifndef KLOG_DAEMON_SERVER_INT_H
#define KLOG_DAEMON_SERVER_INT_H

#include <stdatomic.h>

#include "daemon/config/broker_config.h"
#include "daemon/config/ranks.h"
#include "daemon/server/request.h"
#include "daemon/server/server.h"
#include "lib/base/log.h"
#include "lib/loop/conn.h"
#include "lib/loop/thread.h"
#include "lib/loop/workers.h"
#include "lib/metrics/histogram.h"

struct listener {
    struct loop_fd w;   /* on loops[0] */
    struct timer retry; /* set while descriptors are out */
    struct server *server;
    const struct broker_listener *conf;
    char address[64]; /* "127.0.0.1:9092" as bound, for people */
    int32_t port;     /* as bound */
    bool accepting;   /* in the loop */
};

struct accepted { /* a descriptor on its way to its reactor */
    int fd;
    struct listener *listener;
};

/* What those who watch want to know of one reactor. Its thread writes, any reads; on cache lines of its own. */
struct reactor_figures {
    char apart[CACHE_LINE];
    atomic_ullong began, ended;                           /* requests */
    atomic_ullong opened[LISTENERS_MAX], closed[LISTENERS_MAX]; /* connections */
    struct histogram *took; /* requests that were answered, by place in the table of APIs; NULL: nobody watches */
    char apart_too[CACHE_LINE];
};

struct reactor { /* one a loop */
    struct server *server;
    struct loop *loop;
    atomic_bool in_use; /* it gets connections; written on loops[0] */
    struct task turn;   /* that changed */
    atomic_int n_conns; /* here or on the way here */
    struct lock mu;
    struct accepted *queue;    /* guarded by mu */
    size_t n_queue, cap_queue; /* guarded by mu */
    struct task take;
    LIST_HEAD(, session) sessions; /* the loop's thread */
    bool draining;                 /* the loop's thread */
    TAILQ_HEAD(, session) starved; /* the loop's thread: wait for memory, in the order they came */
    struct timer relief;           /* set while memory is short: memory.c */
    struct task relieve;           /* another reactor found that it is short */
    unsigned turns;                /* of those who wait for memory */
    int64_t looked_ms;             /* when it last looked for those who hold memory and do not go on */
    struct reactor_figures figures;
    struct task beat;               /* asked whether the loop comes round */
    atomic_llong beat_ms;           /* when it was asked and has not answered yet; 0: it has */
    int64_t log_window_ms;         /* the loop's thread: see reactor_may_log */
    int log_lines, log_suppressed;
};

/* The memory of requests and answers, over all connections: memory.c has the rules. Any thread. */
struct budget {
    int64_t max_bytes; /* queued.max.request.bytes; set once */
    atomic_llong used_bytes;
    _Atomic(struct session *) over; /* the one that may go over it */
    atomic_llong told_ms;           /* when it was last said that it is short; 0: never */
};

struct server {
    struct server_deps deps;       /* set once */
    struct broker_listener *confs; /* set once */
    size_t n;                      /* set once */
    struct listener *listeners;    /* n of them */
    struct reactor *reactors;      /* NETWORK_THREADS_MAX of them */
    atomic_int n_reactors;         /* that were made: the first ones; only more */
    int n_used;                    /* of them, that get connections; loops[0] */
    int reserve_fd; /* given up to turn one connection away when descriptors are out; loops[0] */
    atomic_int max_conns; /* max.connections */
    int possible_conns;   /* what the limit of descriptors leaves room for; set once */
    bool told_full; /* loops[0]: that they are reached was said */
    struct lock drained_mu;
    struct cond drained; /* some session ended while draining */
    atomic_int n_conns;
    atomic_int n_sessions; /* with a connection, or with requests that go on without it */
    atomic_bool draining;
    struct budget budget;
    atomic_ullong *errors; /* told to clients, by API and code; NULL: nobody watches */
};

TAILQ_HEAD(request_queue, request);

struct session {
    struct reactor *reactor;
    struct listener *listener;
    struct conn *conn;             /* NULL once the connection is gone */
    struct request_queue requests; /* in the order they came; answered ones wait for those before them */
    int32_t n_requests;
    int32_t n_long;       /* of them, made by workers or in pieces: no more is read meanwhile */
    size_t request_bytes; /* of their frames, what they were decoded to, answers that wait for their turn */
    size_t charged_bytes; /* what the budget has of it and of the connection's input and output */
    bool starved;         /* in reactor.starved */
    bool granted;         /* its turn has come: it may ask again before others */
    int64_t over_ms;      /* since when it may go over the budget */
    TAILQ_ENTRY(session) starved_link;
    bool paused; /* reading stopped: too much under way */
    bool is_klog;
    int busy; /* functions on the stack that will look at it again: do not free it */
    LIST_ENTRY(session) link;
};

/* session.c */
void session_open(struct reactor *rx, int fd, struct listener *l);
void session_drain(struct session *s); /* finish what is parked, close when nothing is left */
void session_retire(struct session *s); /* the reactor drains: close when what is under way has its answers */
void session_abort(struct session *s); /* close now */
void session_ended(struct session *s, struct request *r);  /* r has its answer: send what can go, in order */
void session_close(struct session *s, const char *why);    /* and one log line, unless why is NULL */
void session_charge(struct session *s, struct request *r, size_t n); /* r takes n bytes more, about */
void session_released(struct session *s); /* n_long is less */
void session_forget(struct session *s, struct request *r); /* r leaves the queue and is freed */

void session_evict(struct session *s, const char *why);    /* session_close; s may be gone then */

/* memory.c */
void memory_init(struct server *s);
void memory_start(struct reactor *rx); /* before its first session */
void memory_stop(struct reactor *rx);
bool memory_may_take(struct session *s, size_t n); /* for the rest of a frame; false: it waits in reactor.starved */
bool memory_take(struct session *s, size_t n);     /* for an answer; false: there is none */
void memory_recount(struct session *s);            /* its work, input or output became more or less */
void memory_forget(struct session *s);             /* its connection is gone */
bool memory_is_short(const struct session *s);     /* and s is not the one that may go over */

/* request.c */
struct request *request_new(struct session *s, struct rcbuf *frame);
void request_free(struct request *r);
void request_send(struct request *r, struct conn *c); /* the encoded answer; c NULL: drops it */

/* figures.c */
atomic_ullong *figures_new_errors(void);
void figures_start(struct reactor *rx);
void figures_done(struct reactor *rx);
void figures_began(struct request *r);
void figures_answered(struct request *r);
void figures_errors(const struct request *r, const void *response); /* any thread */

/* server.c */
void server_conn_ended(struct reactor *rx);
void server_session_ended(struct server *s); /* its last request too */
/* Strangers must not fill the disk with log lines: a few a second, then one with the count. */
bool reactor_may_log(struct reactor *rx);

#endif
