/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A raw client: a state machine over one connection to the broker. It asks with lib/wire's structs (whose engine is no part of
 * what the checkers check), keeps what it has asked in order, and gives up a connection that keeps silent. What it does next is
 * drawn as it runs, from what it and the others know by then.
 */
#ifndef KLOG_SIM_CLIENT_H
#define KLOG_SIM_CLIENT_H

#include "lib/base/arena.h"
#include "lib/wire/wire.h"
#include "tests/sim/simnet.h"
#include "tests/sim/truth.h"

struct rawclient;
struct play; /* tests/sim/play.h: the run that it is part of */

struct asked {
    int16_t api, version;
    int32_t correlation;
    int64_t sent_ns, patience_ns;
    int64_t a, b, c;             /* the kind's own */
    TAILQ_ENTRY(asked) link;
};

struct client_kind {
    const char *name;
    size_t size; /* of the struct that begins with struct rawclient */
    void (*start)(struct rawclient *c);
    void (*opened)(struct rawclient *c);
    void (*answered)(struct rawclient *c, struct asked *q, void *answer, struct arena *a);
    /* The broker has written that answer; it may never arrive. May be NULL. */
    void (*written)(struct rawclient *c, struct asked *q, void *answer);
    void (*closed)(struct rawclient *c); /* what was asked has no answer now: lost() was called for each */
    void (*lost)(struct rawclient *c, struct asked *q);
    void (*tick)(struct rawclient *c); /* client_tick_in */
};

struct rawclient {
    struct play *play; /* NULL: a client of several brokers (fleet.h) */
    struct sim *sim;
    struct simnet *nw;
    struct truth *truth;
    const struct client_kind *kind;
    int number, host, to_host; /* its own, and the broker's */
    struct rnd rnd;
    struct sim_step timer;
    struct simend *end; /* NULL: no connection */
    bool is_open;
    bool gets_nothing; /* no answers, by its nature */
    bool reads_nothing;
    bool stops; /* the end of the run is near: begin nothing new */
    struct bytebuf in, out;
    size_t out_at;
    struct bytebuf tap; /* written by the broker and not looked at yet */
    int n_tapped;       /* of `asked`, answers that were seen being written */
    TAILQ_HEAD(, asked) asked;
    int n_asked;
    int32_t next_correlation;
    int64_t n_answers, n_closed;
};

struct rawclient *rawclient_new(struct play *play, const struct client_kind *kind, int number, int host);
/* Of another broker than play.h's. stream: of its random numbers. */
struct rawclient *rawclient_new_to(const struct rawclient *like, const struct client_kind *kind, uint64_t stream);
void rawclient_free(struct rawclient *c);

void client_connect(struct rawclient *c);
void client_close(struct rawclient *c); /* calls lost() and closed() */
void client_tick_in(struct rawclient *c, int64_t ns);
struct sim *client_sim(const struct rawclient *c);
struct truth *client_truth(const struct rawclient *c);

/* Sends a request; the client's own notes (a, b, c) can be set in what is returned. NULL: it did not fit its version. */
struct asked *client_ask(struct rawclient *c, const struct wire_message *m, int version, const void *body);
void client_forget(struct rawclient *c, struct asked *q); /* it gets no answer */
void client_send_bytes(struct rawclient *c, const void *p, size_t n);

/* ---- what several kinds ask ---- */
struct asked *client_ask_metadata(struct rawclient *c);
void client_heard_metadata(struct rawclient *c, const struct asked *q, const struct metadata_response *rsp);
/* A topic that may be there and is not the broker's own; -1. */
int client_draw_topic(struct rawclient *c);

extern const struct client_kind client_producer, client_consumer, client_admin, client_member, client_rude;
/* Reads what has rotten places from its start to what was committed when it began, once. */
extern const struct client_kind client_sweeper;
bool client_sweeper_is_done(const struct rawclient *c);

#endif
