/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network between simulated hosts. A connection is two queues of bytes, each with a window: what is written arrives later,
 * in pieces, in order within a connection and in no order between two; a full window takes nothing more.
 *
 * A process sees it as struct net (lib/loop/net.h) through its nic; a raw client holds ends of connections itself.
 * Host h has the address 10.0.0.(h + 1).
 */
#ifndef KLOG_SIM_SIMNET_H
#define KLOG_SIM_SIMNET_H

#include "lib/loop/net.h"
#include "tests/sim/fiber.h"
#include "tests/sim/sim.h"

enum { SIM_HOSTS = 16 };

struct simnet;
struct simnet *simnet_new(struct sim *s);
void simnet_free(struct simnet *nw);

/* ---- ends of connections, for raw clients ---- */
struct simend;
struct simend_ops {
    void (*opened)(void *user);
    void (*readable)(void *user); /* again after each arrival; call simend_read */
    void (*writable)(void *user); /* room after simend_write took less than it was given */
    void (*gone)(void *user, int err); /* by the other side or the network; 0: orderly. The end is freed afterwards */
    /* What the other side has just written; it will arrive later, or not at all. May be NULL. */
    void (*written_to)(void *user, const uint8_t *p, size_t n);
};
struct simend *simend_connect(struct simnet *nw, int from_host, int to_host, int port, const struct simend_ops *ops, void *user);
size_t simend_read(struct simend *e, void *p, size_t n);          /* 0: nothing there now */
size_t simend_write(struct simend *e, const void *p, size_t n);   /* what was taken */
void simend_close(struct simend *e); /* no callback after it */

/* ---- a process's network ---- */
struct simnic {
    struct net net; /* first */
    struct simnet *nw;
    struct sim_process *process;
    struct fibers *fibers;
    const struct store_io *io; /* for sendfile */
    struct simsock **socks;
    int n_socks;
    int n_open;
    /* All may be NULL. */
    bool (*may_open)(void *arg);   /* takes a descriptor; false: there is none left */
    void (*was_closed)(void *arg); /* gives it back */
    void (*at_call)(void *arg, const char *what); /* before each call; the process may end there */
    void *arg;
};
void simnic_init(struct simnic *nic, struct simnet *nw, struct sim_process *p, struct fibers *fibers, const struct store_io *io);
/* The process is gone. power: the host as well, so that nobody hears of it. */
void simnic_ended(struct simnic *nic, bool power);
void simnet_host_up(struct simnet *nw, int host);

/* ---- faults ---- */
/* Nothing goes from one to the other for so long; what is under way comes afterwards. */
void simnet_clog(struct simnet *nw, int from, int to, int64_t for_ns);
/* One connection of that host breaks: bytes under way are lost, each side hears of it at a time of its own, or never. False:
 * it has none. */
bool simnet_cut_one(struct simnet *nw, int host);
/* New connections to that host are refused for so long. */
void simnet_refuse(struct simnet *nw, int host, int64_t for_ns);
int simnet_connections(const struct simnet *nw, int host);

#endif
