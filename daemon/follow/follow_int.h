/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From inside. All but the mailbox belongs to the shard's thread.
 *
 *   follow.c   birth and end, which shard a partition belongs to, the mailbox
 *   fetcher.c  one leader: requests and answers
 *   part.c     one partition: what follows from an answer
 *
 * A fetcher has lanes, each with one request out at most, over a connection of its own: the leader holds a request until
 * something comes for one of its partitions, and those that wait for a flush, or were told of meanwhile, must not wait for
 * that. And what comes for one costs a look at each of its request, so many partitions go into many requests. A partition
 * is in one place at a time, by its state.
 */
#ifndef KLOG_DAEMON_FOLLOW_INT_H
#define KLOG_DAEMON_FOLLOW_INT_H

#include <sys/queue.h>
#include <uthash.h>

#include "daemon/follow/follow.h"
#include "daemon/replica/partition_follow.h"
#include "lib/base/arena.h"
#include "lib/client/client.h"
#include "lib/loop/workers.h"

enum {
    LANES = 64, /* as many requests may be parked at a broker: CLIENT_PARKED_MAX */
};

struct fetcher;
struct lane;
struct shard;

enum part_state {
    PART_READY,    /* in fetcher.ready: part of the next request */
    PART_ASKED,    /* in a request that is out */
    PART_FLUSHING, /* what came is not on the disk yet, and the topic's policy is not `async` */
    PART_WORKING,  /* a worker cuts its log, begins it anew or deletes its front */
    PART_LOOKING,  /* asks where the plain view begins at the leader's start */
    PART_RESTING,  /* something failed: waits for its timer, or for news */
    PART_STATES
};

enum part_work { WORK_TRUNCATE, WORK_RESTART, WORK_DELETE };

struct part {
    struct shard *shard;
    struct fetcher *fetcher; /* NULL: it is followed no more, and only its work is waited for */
    struct partition *pt;    /* a reference, and the key in shard.parts */
    enum part_state state;
    TAILQ_ENTRY(part) link; /* READY */
    struct lane *lane;      /* ASKED, or FLUSHING what came with its request */
    int32_t slot;           /* ASKED: its place in lane.asked */
    struct partition_copy at; /* as asked */
    int32_t failures;       /* in a row */
    struct timer rest;
    struct watcher watcher; /* FLUSHING */
    struct task flushed;
    /* the leader's log begins above the end of this one */
    int64_t anew;          /* where; -1: it does not */
    int64_t text_position; /* of the plain view there; -1 not known yet */
    struct client_call look;
    struct klog_find_text_request look_body;
    /* WORKING */
    struct job job;
    enum part_work work;
    int32_t diverging_epoch;
    int64_t offset;       /* the diverging end, or the leader's start */
    struct slice batches; /* in frame */
    int64_t leader_hw;
    struct rcbuf *frame;
    enum copy_result result;
    UT_hash_handle hh;
};

struct lane {
    struct fetcher *fetcher;
    struct client_call call;
    bool out;
    int32_t n_flushing; /* parts whose flush is waited for before its next request */
    struct part **asked; /* in the order of the request; NULL: gone meanwhile */
    int32_t n_asked;
    struct arena arena; /* of the request */
    struct fetch_request request;
};

struct fetcher { /* of one leader */
    struct shard *shard;
    LIST_ENTRY(fetcher) link;
    int32_t leader;
    char *host;
    int32_t port;
    struct client *client;
    int32_t n_parts;
    TAILQ_HEAD(part_list, part) ready;
    struct lane lanes[LANES];
    struct deferred turn;
};

struct letter { /* to a shard */
    struct partition *pt; /* a reference */
    int32_t leader;       /* -1: followed no more */
    char *host;
    int32_t port;
    STAILQ_ENTRY(letter) link;
};

struct shard {
    struct follow *follow;
    struct loop *loop;
    struct thread *thread;
    struct lock mu;
    STAILQ_HEAD(, letter) mail; /* guarded by mu */
    struct task mail_came;
    LIST_HEAD(, fetcher) fetchers;
    struct part *parts; /* uthash by pt */
};

struct follow {
    struct follow_deps deps;
    struct workers *workers;
    int n_shards;
    struct shard *shards;
};

/* ---- fetcher.c ---- */
/* The one of that leader at that address, made when there is none. */
struct fetcher *fetcher_get(struct shard *sh, int32_t leader, const char *host, int32_t port);
void fetcher_stir(struct fetcher *fe); /* its lanes look for what is ready, at the end of the round */
void fetcher_leave(struct fetcher *fe); /* a part has left it; with the last one it is freed */

/* ---- part.c ---- */
struct part *part_new(struct shard *sh, struct partition *pt, struct fetcher *fe);
/* It is to follow another leader, or the same one in another epoch. */
void part_follow(struct part *p, struct fetcher *fe);
void part_leave(struct part *p); /* it follows no more; frees it, now or when its work is done */
/* About to be asked for. False: it is not to be asked for now, and is somewhere else already. */
bool part_ask(struct part *p, struct lane *la, int32_t slot);
/* Its piece of the answer; frame: what it points into. */
void part_answered(struct part *p, const struct fetch_response_partitions *r, struct rcbuf *frame);
void part_failed(struct part *p, const char *why); /* the request came to nothing: later again */

#endif
