/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client from inside. One loop's thread; no locks.
 *
 *   client.c       birth and death, brokers, routing of calls to brokers
 *   call.c         what becomes of a call: phases, retries, deadlines
 *   link.c         one connection to a broker: connect, ApiVersions, requests in flight
 *   metadata.c     the cache of topics and brokers, refreshes
 *   coordinator.c  which broker looks after a group
 *
 * A call is in one list at a time. It moves: routing -> (queued -> ) sent -> over, and from
 * queued or sent back to routing for another attempt. Every list is first in, first out, so that calls
 * to one broker keep their order through a reconnect.
 */
#ifndef KLOG_CLIENT_CLIENT_INT_H
#define KLOG_CLIENT_CLIENT_INT_H

#include <sys/queue.h>
#include <sys/socket.h>
#include <uthash.h>

#include "lib/base/mem.h"
#include "lib/client/client.h"
#include "lib/loop/conn.h"

TAILQ_HEAD(call_list, client_call_state);

enum call_phase {
    CALL_ROUTING, /* in client.routing: waits for metadata, a back-off, or just its turn */
    CALL_QUEUED,  /* in link.queued, or broker.waiting (parks): no connection yet */
    CALL_SENT,    /* in link.sent */
    CALL_ENDING,  /* in client.ending: cb comes from the loop */
};

struct client_call_state {
    struct client *c;
    struct client_call *call; /* NULL: over for the caller, only its answer is still to come */
    enum call_phase phase;
    TAILQ_ENTRY(client_call_state) entry;
    struct call_list *list;
    struct link *link; /* queued on it or sent over it */
    struct timer deadline;
    int64_t retry_at_ms; /* routing: not before */
    int attempts;
    uint64_t need_seq;   /* metadata asked for earlier than this is too old; 0: any will do */
    uint64_t wanted_ask; /* the number of the ask that will tell what it lacks */
    enum kerr last_err;
    int end_rc; /* CALL_ENDING */
    /* what was sent last */
    int32_t correlation_id;
    int16_t version;
    int64_t sent_ms;
    const struct wire_message *response;
};

/* ---- links ---- */
enum link_state { LINK_IDLE, LINK_RESOLVING, LINK_CONNECTING, LINK_ASKING_VERSIONS, LINK_READY };
enum { LINK_ADDRESSES_MAX = 8 };

struct link {
    struct client *c;
    struct broker *broker;
    bool parks; /* for one parked call at a time; in broker.polls */
    TAILQ_ENTRY(link) entry;
    enum link_state state;
    struct link_resolving *resolving;
    struct sockaddr_storage addresses[LINK_ADDRESSES_MAX];
    int n_addresses, next_address;
    struct conn *conn;
    int32_t next_correlation_id;
    int16_t versions_version; /* of the ApiVersions request that is out */
    struct call_list queued, sent;
    struct timer timer; /* for the steps to READY, then for the oldest request in flight */
    int64_t heard_ms;
};

void link_init(struct link *l, struct broker *b, bool parks);
void link_done(struct link *l); /* no calls may be left */
void link_add(struct link *l, struct client_call_state *s);
void link_fail(struct link *l, const char *why); /* frees a parks link */
bool link_is_free(const struct link *l);

/* ---- brokers ---- */
struct api_range {
    int16_t key, min, max;
};

struct broker {
    TAILQ_ENTRY(broker) entry;
    int32_t id; /* -1: a bootstrap address that no metadata has named yet */
    char *host;
    int32_t port;
    bool known;  /* in the last metadata */
    bool silent; /* a request is out, and nothing has come for a while: others are asked whether it is there */
    struct link main;
    TAILQ_HEAD(, link) polls;
    int n_polls;
    struct call_list waiting; /* parked calls above CLIENT_PARKED_MAX */
    int failures;             /* to connect, in a row */
    int64_t retry_at_ms;
    struct api_range *apis;
    int n_apis;
};

const struct api_range *broker_api(const struct broker *b, int16_t key);
struct broker *broker_find(struct client *c, int32_t id);
struct broker *broker_upsert(struct client *c, int32_t id, struct kstr host, int32_t port);
void broker_disconnect(struct broker *b, const char *why);
void broker_poll_is_free(struct broker *b, struct link *l);

/* ---- the client ---- */
struct topic_entry {
    struct client_topic t;
    uint64_t seq; /* number of the metadata request that told it */
    bool stale;
    bool in_all;
    struct arena arena; /* everything t points to */
    UT_hash_handle hh;
    STAILQ_ENTRY(topic_entry) dead;
};

struct wanted_topic {
    char *name;
    UT_hash_handle hh;
};

struct coordinator;

struct client {
    struct loop *loop;
    struct workers *workers;
    struct client_config cfg; /* strings are owned */
    TAILQ_HEAD(broker_list, broker) brokers;
    struct broker *any; /* where TARGET_ANY looks first */
    const struct broker *told_apis;
    struct call_list routing, ending;
    struct deferred turn; /* routes and ends calls, asks for metadata: at the end of the round */
    struct timer route_timer;
    int64_t missing_since_ms; /* asked then, and nothing came from any broker since; 0 not missing */
    int64_t heard_ms;         /* when the last answer came; 0: none yet */
    uint64_t jitter;          /* seed */
    bool ends;       /* in client_free: no more calls */

    /* metadata.c */
    struct topic_entry *topics;
    STAILQ_HEAD(, topic_entry) dead_topics; /* replaced in this round */
    struct task bury;
    int32_t controller;
    uint64_t controller_seq;
    char *cluster_id;
    int64_t all_ms;    /* last refresh of all topics */
    uint64_t meta_seq; /* of the last metadata request that was started */
    struct wanted_topic *wanted;
    bool want_brokers;
    bool asking; /* ask is out */
    uint64_t ask_seq;
    uint64_t asks, asks_done; /* asks started, and ended in whatever way */
    struct client_call ask;
    struct metadata_request ask_body;

    struct coordinator *coordinators;
};

void client_stir(struct client *c); /* have c->turn run */
int64_t client_backoff_ms(struct client *c, int attempts);

/* ---- calls ---- */
void call_move(struct client_call_state *s, enum call_phase phase, struct call_list *to);
void call_end(struct client_call_state *s, int rc, int16_t version, const void *response);
void call_end_later(struct client_call_state *s, int rc); /* from places where cb must not run */
void call_retry(struct client_call_state *s, int64_t at_ms);
void call_answered(struct client_call_state *s, struct rcbuf *frame, struct slice body);
void call_lost(struct client_call_state *s); /* its connection broke after it was sent */
void call_ask_elsewhere(struct client_call_state *s); /* what was sent to a silent broker, of any broker */
void client_end_ending(struct client *c);
void client_route(struct client *c);

/* ---- metadata ---- */
void metadata_init(struct client *c);
void metadata_done(struct client *c);
struct topic_entry *metadata_topic(struct client *c, const char *name);
void metadata_want_topic(struct client *c, const char *name);
void metadata_want_brokers(struct client *c);
bool metadata_is_wanted(const struct client *c); /* and nothing is being asked */
void metadata_ask(struct client *c);             /* what is wanted, unless it is being asked already */

/* ---- coordinators ---- */
enum coordinator_known { COORDINATOR_ASKING, COORDINATOR_KNOWN, COORDINATOR_REFUSED };
enum coordinator_known coordinator_find(struct client *c, const char *group, int32_t *ret_id,
                                        enum kerr *ret_err);
void coordinator_forget(struct client *c, const char *group);
void coordinators_done(struct client *c);

#endif
