/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster of make-believe brokers on real sockets, in the test's own loop. They answer ApiVersions,
 * Metadata, FindCoordinator, InitProducerId, Produce (with the checks of an idempotent producer), Fetch,
 * ListOffsets, and what one member of a consumer group asks (fakegroup.c), and misbehave as a script says.
 * Nothing is on disk.
 */
#ifndef KLOG_TESTS_FAKEBROKER_H
#define KLOG_TESTS_FAKEBROKER_H

#include "lib/base/kerr.h"
#include "lib/loop/conn.h"
#include "lib/wire/wire.h"

enum {
    FAKE_BROKERS = 3,
    FAKE_TOPICS = 4,
    FAKE_PARTITIONS = 4,
    FAKE_STEPS = 64,
    FAKE_HELD = 64,
    FAKE_WINDOW = 5,
    FAKE_PEERS = 4,
    FAKE_POSITIONS = 16
};

enum fake_do {
    FAKE_ERROR,       /* answer with the error, do nothing else */
    FAKE_DROP,        /* close the connection instead of doing anything */
    FAKE_DO_AND_DROP, /* do it, then close the connection without an answer */
    FAKE_DO_AND_FAIL, /* Produce: do it, then answer with the error */
    FAKE_HOLD,        /* do it, keep the answer until fake_release */
    FAKE_DEAF,        /* do nothing, never answer */
};

struct fake_step {
    int16_t api;
    enum fake_do what;
    enum kerr err;
};

struct fake_log {
    struct bytebuf bytes; /* batches as stored */
    char **values;        /* of the records, NUL-terminated */
    int n, cap;
    int64_t start;
    int64_t pid;
    int16_t epoch;
    int32_t next_sequence;
    struct {
        int32_t sequence;
        int64_t offset;
    } window[FAKE_WINDOW];
    int n_window;
};

struct fake_topic {
    const char *name;
    struct uuid id; /* zero: it has none */
    int n_partitions;
    int32_t leaders[FAKE_PARTITIONS]; /* -1: none */
    struct fake_log logs[FAKE_PARTITIONS];
};

/* A group with one real member, which is told of made-up ones. */
struct fake_peer {
    const char *id, *topic; /* it subscribes to */
    char got[128];          /* what the leader's SyncGroup gave it: "t/0,t/1" */
};

struct fake_position {
    char topic[32];
    int32_t partition;
    int64_t offset;
    int32_t leader_epoch;
    char metadata[32];
    enum kerr err; /* OffsetFetch tells it instead */
};

struct fake_group {
    bool gives_ids; /* JoinGroup without an id is answered with one (KIP-394) */
    int ids;        /* given */
    char id[64];    /* of the member; "" none */
    bool is_known;  /* the id was used to join */
    int32_t generation;
    bool rebalances;      /* heartbeats say so, until the member joins again */
    const char *leader;   /* NULL: the member */
    const char *protocol; /* NULL: the first that it offers */
    bool skip_assignment;
    const char *assignment; /* for a follower: "t/0,t/1" */
    struct fake_peer peers[FAKE_PEERS];
    int n_peers;
    char got[128]; /* what the member's own SyncGroup gave itself */
    struct fake_position positions[FAKE_POSITIONS];
    int n_positions;
    int n_left;
    /* of the last JoinGroup */
    int32_t session_timeout_ms, rebalance_timeout_ms;
    char instance_id[32], offered[128], subscribed[128];
};

struct fake_cluster;

struct fake_broker {
    struct fake_cluster *cluster;
    int32_t id;
    int port;
    struct loop_fd accept;
    struct fake_conn *conns;
    int n_accepted; /* connections ever */
    bool down;      /* does not listen */
    bool left;      /* not in the metadata */
};

struct fake_held {
    struct conn *conn;
    struct rcbuf *answer;
};

struct fake_cluster {
    struct loop *loop;
    struct fake_broker brokers[FAKE_BROKERS];
    int n_brokers;
    int32_t controller;
    struct fake_topic topics[FAKE_TOPICS];
    int n_topics;
    struct fake_step steps[FAKE_STEPS]; /* the first that fits a request is taken out */
    int n_steps;
    struct fake_held held[FAKE_HELD];
    int n_held;
    int requests[128]; /* by API key */
    int16_t last_version[128];
    int16_t produce_max_version, api_versions_max; /* what is offered */
    bool no_produce;
    int32_t max_message_bytes;
    const char *bad_value; /* a batch with such a record is refused: INVALID_RECORD */
    int64_t next_pid;
    int in_flight, in_flight_max; /* Produce requests unanswered, in one partition or many */
    char software[64];            /* of the last ApiVersions request */
    int16_t max_version[128];     /* offered, where it is not 0 */
    struct fake_group group;
};

void fake_cluster_init(struct fake_cluster *fc, struct loop *lp, int n_brokers);
void fake_cluster_done(struct fake_cluster *fc);
struct fake_topic *fake_topic_add(struct fake_cluster *fc, const char *name, int n_partitions,
                                  int32_t leader);
void fake_script(struct fake_cluster *fc, int16_t api, enum fake_do what, enum kerr err);
void fake_broker_stop(struct fake_broker *b);  /* closes its connections, refuses new ones */
void fake_broker_start(struct fake_broker *b); /* on the same port */
void fake_broker_kick(struct fake_broker *b);  /* closes its connections */
void fake_release(struct fake_cluster *fc);    /* sends the held answers, in order */
const char *fake_addresses(const struct fake_cluster *fc, char *buf, size_t n);

#endif
