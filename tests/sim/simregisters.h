/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A register store for several brokers in one process, with ZooKeeper's manners: one tree, a handle a broker, and between them
 * everything that registers.h lets happen, drawn from a seed.
 *
 * - Requests and answers travel for some milliseconds, in order. Reads see what the handle's server has applied, which lags behind
 *   until a sync or a write of one's own; a watch fires as that server applies the change, so before any answer that shows it.
 * - Several changes before a watch was told are one call; a call may name a register above the one that changed.
 * - A connection is lost: what was under way ends with -EREMOTEIO, and some of it (the first so many) happens all the same, now or
 *   later, but before the handle is connected again.
 * - A session that is not heard of for its time-out is over by the server's clock: its ephemeral registers go, and the handle hears
 *   of it when it is connected again.
 *
 * Time is the loops'. All handles on one thread (fibers count as one); calls of registers.h may come from others.
 */
#ifndef KLOG_SIM_SIMREGISTERS_H
#define KLOG_SIM_SIMREGISTERS_H

#include "daemon/meta/register_tree.h"

struct simregisters_config {
    uint64_t seed;
    int64_t session_timeout_ms;
    int64_t delay_max_ms;  /* of a request, and of an answer; 0: none */
    int64_t lag_max_ms;    /* of a server behind the newest change */
    int64_t away_max_ms;   /* how long a lost connection stays lost */
    uint32_t loss_ppm;     /* of requests: the connection is lost while it is under way */
    uint32_t expiry_ppm;   /* of requests: the session is over before it arrives */
    int64_t (*now_ms)(void *arg); /* the servers' clock; NULL: that of the first handle's world */
    void *now_arg;
};

struct simregisters *simregisters_new(const struct simregisters_config *c);
void simregisters_free(struct simregisters *sr); /* handles are closed, or died */

/* A broker's handle; who: its number, one living handle each. registers_close() ends the session in an orderly way. */
void simregisters_open(struct simregisters *sr, struct loop *lp, int who, struct registers **ret);
/* Its process is no more: nothing of its loop is touched again, and the session is left to its time-out. A registers_close()
 * after it, where the loop is still there, only frees. */
void simregisters_died(struct simregisters *sr, int who);

/* Faults by hand; nothing when who has no living handle. */
void simregisters_cut(struct simregisters *sr, int who, int64_t away_ms); /* who < 0: all of them, as if the leader was lost */
void simregisters_expire(struct simregisters *sr, int who);
void simregisters_calm(struct simregisters *sr); /* no faults from now on, nobody away for longer than a moment */

/* The truth, for checkers. */
const struct register_tree *simregisters_tree(const struct simregisters *sr);
/* Before each change is applied (tree as it was), and only for what will happen: ops as they were asked for. */
void simregisters_on_write(struct simregisters *sr, void (*f)(void *arg, int who, const struct register_op *ops, int n),
                           void *arg);
struct simregisters_counts { /* what was come past */
    uint64_t writes, refused, reads, stale_reads, cuts, lost_done, lost_late, lost_not_done, expiries, events, merged_events;
};
struct simregisters_counts simregisters_counts(const struct simregisters *sr);

#endif
