/* SPDX-License-Identifier: Apache-2.0 */
/* What simnet.c (connections) and simnic.c (what a process sees of them) share. */
#ifndef KLOG_SIM_SIMNET_INT_H
#define KLOG_SIM_SIMNET_INT_H

#include <sys/epoll.h>
#include <sys/queue.h>

#include "tests/sim/simnet.h"

enum { ACCEPT_QUEUE = 16 };

struct link {
    struct rnd rnd;
    int64_t clogged_until_ns;
};

struct simend {
    struct simnet *nw;
    uint64_t number; /* never used again */
    int host, port, peer_host, peer_port;
    struct simend *peer; /* NULL: not there yet, or gone */
    TAILQ_ENTRY(simend) link;
    struct sim_step step; /* what comes next to it */

    uint8_t *buf; /* buf[head .. head + n): sent to it and not read; the first `arrived` can be */
    size_t head, n, arrived, cap;
    size_t window;
    bool fin_sent, fin_arrived; /* of the other side */
    int err_coming, err;
    bool connecting;
    bool shut;        /* it will write no more */
    bool deaf;        /* nothing arrives any more, and nobody says so */
    bool wants_room;  /* its writer found the window full */
    bool owes_answer; /* it wrote to a host without power */
    int64_t began_ns;

    void (*changed)(struct simend *e); /* readable, writable, broken: look again */
    void (*written_to)(void *user, const uint8_t *p, size_t n);
    const struct simend_ops *ops; /* of a raw client */
    void *user;
    bool told_open, short_of_room;
};

struct listener_sock {
    int host, port;
    bool listens; /* else whoever connects is refused */
    struct simend *queue[ACCEPT_QUEUE];
    int n_queue;
    void (*changed)(struct listener_sock *l);
    void *user;
    TAILQ_ENTRY(listener_sock) link;
};

struct simnet {
    struct sim *sim;
    struct rnd rnd;
    struct link links[SIM_HOSTS][SIM_HOSTS];
    int64_t refuses_until_ns[SIM_HOSTS];
    bool is_down[SIM_HOSTS]; /* no power */
    TAILQ_HEAD(, simend) ends;
    TAILQ_HEAD(, listener_sock) listeners;
    uint64_t n_ends_ever;
};

struct simend *end_new(struct simnet *nw, int host);
void end_free(struct simend *e);
void end_connect(struct simend *e); /* to peer_host, peer_port */
void end_pair(struct simend *a, struct simend *b);
size_t end_room(const struct simend *e);
int64_t end_write(struct simend *e, const void *p, size_t n); /* count or -errno */
int64_t end_read(struct simend *e, void *p, size_t n);
uint32_t end_events(const struct simend *e);
void end_shut(struct simend *e);
void end_close(struct simend *e);
void end_lost_power(struct simend *e);

#endif
