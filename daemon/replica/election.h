/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who leads a partition, as each of its brokers decides it for itself: there is no controller. A pure function of the
 * register, of who is registered, and of what this broker knows of itself; whoever is too late or was wrong about others
 * fails the compare-and-set, so that an election at any moment is safe and only its speed depends on what is known.
 */
#ifndef KLOG_DAEMON_ELECTION_H
#define KLOG_DAEMON_ELECTION_H

#include "daemon/replica/state.h"

enum { ELECTION_RANK_MS = 20 }; /* so much later than the one before it in the list of replicas a broker stands */

/* What is done where no member of the in-sync set provably has everything (R11). */
enum recovery {
    RECOVERY_MANUAL,    /* nothing */
    RECOVERY_BALANCED,  /* when all members are back: the one with the longest log */
    RECOVERY_PROACTIVE, /* the first one there is: unclean.leader.election.enable=true */
};

/* What an in-sync member says of its log while there is no leader, for RECOVERY_BALANCED. One of an earlier broker epoch says
 * nothing. */
struct election_claim {
    int32_t id;
    int64_t be;
    int32_t last_epoch; /* of its log's last record; -1: it has none, or is damaged */
    int64_t leo;        /* 0 then */
};

struct election_input {
    const struct partition_state *state;
    const struct live_broker *live; /* who is registered; this broker is judged by its own entry too */
    size_t n_live;
    int32_t me;
    int64_t be;            /* this broker's epoch as it knows it itself */
    bool damaged;          /* this replica is */
    bool ails;             /* it is, inside its log only: better than nobody */
    bool draining;         /* controlled shutdown: takes no leadership, and gives away what it has */
    enum recovery recovery;
    int64_t leaderless_ms; /* for how long this state has been seen to have no leader that lives */
    const struct election_claim *claims;
    size_t n_claims;
};

enum election_what {
    ELECTION_NOTHING,   /* until the register, the brokers or this broker change */
    ELECTION_WAIT,      /* ask again in wait_ms */
    ELECTION_CLAIM,     /* publish this replica's claim, then ask again when the claims change */
    ELECTION_TAKE,      /* write the change: this broker leads */
    ELECTION_TAKE_LOSS, /* the same, and records may be lost by it: count it and say so */
    ELECTION_HAND_OVER, /* write the change: change.to.leader leads */
};

struct election {
    enum election_what what;
    int64_t wait_ms;
    struct state_change change; /* TAKE, TAKE_LOSS, HAND_OVER */
};

void election_decide(const struct election_input *in, struct election *ret);

/* Should this broker, which leads, give the partition back to the first of its replicas? It may, and to.leader_epoch is
 * raised; whether that one is caught up (replica_has_all) and has been there for long enough is for the caller to know.
 * False: it leads itself already, or may not be elected. */
bool election_to_preferred(const struct election_input *in, struct state_change *ret);

#endif
