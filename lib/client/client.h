/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a klog (or Kafka) cluster on one loop: bootstrap, ApiVersions, metadata cache,
 * requests to the right broker with retries. Shared by klogfs, klog and a follower's fetcher.
 * Everything runs on the loop's thread. No call blocks, except those of sync.h.
 */
#ifndef KLOG_CLIENT_CLIENT_H
#define KLOG_CLIENT_CLIENT_H

#include "lib/base/kerr.h"
#include "lib/loop/loop.h"
#include "lib/loop/workers.h"
#include "lib/wire/wire.h"

struct client_config {
    const char *brokers;         /* "host:port,host:port" */
    const char *client_id;       /* "klogfs" */
    int64_t request_timeout_ms;  /* one attempt on one connection; default 30000 */
    int64_t retry_backoff_ms;    /* default 100, doubled up to 1000, with jitter */
    int64_t metadata_max_age_ms; /* default 300000 */
    int32_t frame_max;           /* largest response taken; default 104857600 */
    void (*sent)(void *arg, int16_t api_key); /* a request of that API went out; NULL: nobody counts them */
    void *sent_arg;
};

struct client;
/* NULL and errno EINVAL when `brokers` is no list of HOST:PORT. */
struct client *client_new(struct loop *lp, struct workers *w, const struct client_config *cfg);
/* pending calls end with -ECANCELED first; their cb must not call again */
void client_free(struct client *c);
struct loop *client_loop(const struct client *c);

/* ---- calls ---- */
enum client_target {
    TARGET_ANY, /* any broker that answers */
    TARGET_CONTROLLER,
    TARGET_BROKER,      /* call.broker_id */
    TARGET_LEADER,      /* of call.topic, call.partition */
    TARGET_COORDINATOR, /* of the group call.topic */
};

struct client_call {
    /* the caller fills these and keeps the struct until cb or client_cancel */
    enum client_target target;
    int32_t broker_id;
    const char *topic;
    struct uuid topic_id; /* TARGET_LEADER: of this topic only, and of no other that has got its name; zero: any */
    int32_t partition;
    const struct wire_message *request;
    const void *body;    /* encoded at each attempt, for the version agreed with that broker: keep it alive */
    int16_t max_version; /* -1: the newest both sides know */
    int64_t deadline_ms; /* loop_now_ms() scale; all attempts end by then */
    bool once;           /* no retry after anything was sent (-EPIPE instead) */
    bool no_reply; /* the broker sends no answer (Produce with acks 0): cb comes when it was handed over,
                    * with rc 0 and no response */
    bool parks;    /* the broker may hold the answer back (a long poll), or it is long: it goes over a
                    * connection of its own, so that nothing waits behind it */
    /* Judges a decoded response: a retriable kerr asks for another attempt after refreshing metadata;
     * KERR_NONE or any other is final. NULL: everything is final. */
    enum kerr (*judge)(struct client_call *call, int16_t version, const void *response);
    /* rc 0: *response is the decoded struct, valid during the callback; -ETIMEDOUT (err has the last
     * retriable kerr or 0), -ECANCELED, -EPIPE, -EBADMSG (an answer that cannot be read), -EPROTONOSUPPORT
     * (the broker lacks the API or version), -ENOENT (no such topic, or another under the name), or the errno of the error that the
     * metadata gave for the topic (in err). */
    void (*cb)(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response);
    void *user;
    /* private */
    struct client_call_state *state;
    struct rcbuf *frame;
    bool was_sent;
};
/* wire_records to send without a copy: p NULL, ext a struct rcbuf whose first n bytes are the records. cb is
 * never called from inside client_call. A once call is judged for the metadata's sake only: the response is
 * final. At most CLIENT_PARKED_MAX parked calls stand at one broker, more of them wait. */
enum { CLIENT_PARKED_MAX = 64 };
void client_call(struct client *c, struct client_call *call);
/* cb is not called any more. The request may have been sent. */
void client_cancel(struct client *c, struct client_call *call);
/* did any attempt reach a socket? (in cb and after it, too) */
bool client_call_was_sent(const struct client_call *call);
/* During cb: the frame that the response points into, to take a reference on. */
struct rcbuf *client_call_frame(const struct client_call *call);

/* ---- metadata cache ---- */
struct client_partition {
    int32_t id, leader, leader_epoch; /* leader -1: none */
    const int32_t *replicas, *isr;
    int32_t n_replicas, n_isr;
    enum kerr err;
};
struct client_topic {
    const char *name;
    struct uuid id;
    enum kerr err;
    bool internal;
    const struct client_partition *partitions; /* sorted by id */
    int32_t n_partitions;
    int64_t fetched_ms;
};
/* From the cache, NULL when unknown; valid until the loop's next round. */
const struct client_topic *client_topic(struct client *c, const char *name);
/* Asks for one topic (or all: NULL), never creating any; cb when it has come: rc 0, or -errno. A topic that
 * does not exist is rc 0 too, and not in the cache then. */
struct client_refresh {
    const char *topic;
    int64_t deadline_ms;
    void (*cb)(struct client_refresh *r, int rc);
    void *user;
    /* private */
    struct client *c;
    struct client_call call;
    struct metadata_request body;
    uint64_t seq;
};
void client_refresh(struct client *c, struct client_refresh *r);
void client_refresh_cancel(struct client *c, struct client_refresh *r);
/* All topics of the last "all" refresh: calls f for each. Returns the loop time of that refresh, -1 if there
 * was none. */
int64_t client_each_topic(struct client *c, void (*f)(void *arg, const struct client_topic *t), void *arg);
/* The cached leaders of the topic were wrong: whoever needs one asks first. */
void client_topic_is_stale(struct client *c, const char *name);
int32_t client_controller(struct client *c);
/* Since when (loop_now_ms() scale) no broker has answered though one was asked; 0: nobody waits for an answer. Long polls
 * do not count as asking, but their answers do. */
int64_t client_missing_since_ms(const struct client *c);
int64_t client_heard_ms(const struct client *c); /* when a broker answered last (the same scale); 0: none has yet */
const char *client_cluster_id(struct client *c);
size_t client_n_brokers(struct client *c);
/* Those of the last metadata, client_n_brokers() of them; f must not call the client's functions but client_call(). */
void client_each_broker(struct client *c, void (*f)(void *arg, int32_t id, const char *host), void *arg);
bool client_has_broker(struct client *c, int32_t id); /* is it one of these? */
bool client_has_api(struct client *c, int16_t api_key); /* of the last broker that told */

#endif
