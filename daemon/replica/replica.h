/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine of one replica: who leads, in which epoch, how far the log reaches, what is
 * committed. Pure: no I/O, no clock, no locks; the caller (partition.c or a simulator) holds
 * the partition's lock, feeds events and acts on the answers. Rules R1-R19: replica/README.md.
 */
#ifndef KLOG_DAEMON_REPLICA_H
#define KLOG_DAEMON_REPLICA_H

#include <stdbool.h>
#include <stdint.h>

#define REPLICA_MAX 32 /* replicas of one partition */

enum replica_role { REPLICA_OFFLINE, REPLICA_FOLLOWER, REPLICA_LEADER, REPLICA_DAMAGED, REPLICA_ROLES };

/* The partition's register as this broker last read or wrote it (R1): immutable in between. */
struct partition_state {
    int32_t leader; /* broker id, -1 none */
    int32_t leader_epoch;
    int32_t replicas[REPLICA_MAX], n_replicas;
    int32_t isr[REPLICA_MAX], n_isr;
    int64_t version; /* register version, for compare-and-set */
};

struct follower_progress { /* from its last fetch in this epoch; R9, R10 */
    int32_t broker_id;
    int64_t leo; /* -1: has not fetched in this epoch */
};

struct replica {
    enum replica_role role;
    int32_t me;
    int32_t min_isr;
    struct partition_state state;
    int32_t pending_isr[REPLICA_MAX], n_pending;    /* asked for, not confirmed (R4) */
    int64_t leo;                                    /* log end offset */
    int64_t fleo;                                   /* flushed; equals leo under policy async */
    int64_t hw;                                     /* never moves back within an epoch */
    int64_t leso;                                   /* leader epoch start offset (R9, R16) */
    struct follower_progress follower[REPLICA_MAX]; /* index as in state.replicas */
};

void replica_init(struct replica *r, int32_t me, int64_t leo, int64_t fleo, int64_t hw);
/* A register state. False, and nothing is changed: a lower (epoch, version) (R15), or one that contradicts
 * what the same epoch said before (R1). The one that is known already changes nothing either. May move hw. */
bool replica_set_state(struct replica *r, const struct partition_state *s);
void replica_set_min_isr(struct replica *r, int32_t min_isr);
/* Events; each returns true when hw moved. */
bool replica_appended(struct replica *r, int64_t leo);
bool replica_flushed(struct replica *r, int64_t fleo);
bool replica_follower_fetched(struct replica *r, int32_t broker_id, int64_t leo);
bool replica_learn_hw(struct replica *r, int64_t leader_hw); /* a follower hears the leader's */
/* The log was cut at leo (R12). Below the high watermark the replica is damaged (R13): returns false. */
bool replica_truncated(struct replica *r, int64_t leo);
void replica_damage(struct replica *r); /* its disk failed or lied; for good */

/* A change of the in-sync set is about to be sent to the register (R4, R8). False: the rules forbid it. */
bool replica_propose_isr(struct replica *r, const int32_t *isr, int32_t n);
/* A re-read showed that it did not happen; returns true when hw moved. */
bool replica_proposal_failed(struct replica *r);

/* Questions. */
bool replica_leads(const struct replica *r);
bool replica_has_min_isr(const struct replica *r); /* R7, at the entry of acks=all */
bool replica_committed(const struct replica *r, int64_t last_offset);
bool replica_may_join(const struct replica *r, int32_t broker_id); /* R9 */
bool replica_hw_is_current(const struct replica *r); /* R16: hw has reached the start of this epoch */
int32_t replica_isr_floor(const struct replica *r);  /* R8 */

#endif
