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

#define REPLICA_MAX 32               /* replicas of one partition */

enum replica_role { REPLICA_OFFLINE, REPLICA_FOLLOWER, REPLICA_LEADER, REPLICA_DAMAGED, REPLICA_ROLES };

/* The partition's register as this broker last read or wrote it (R1): immutable in between. */
struct partition_state {
    int32_t leader;                  /* broker id, -1 none */
    int32_t leader_epoch;
    int32_t replicas[REPLICA_MAX], n_replicas;
    int32_t isr[REPLICA_MAX], n_isr;
    int64_t version;                 /* register version, for compare-and-set */
};

struct follower_progress {           /* from its last fetch in this epoch; R9, R10 */
    int32_t broker_id;
    int64_t leo;                     /* -1: has not fetched in this epoch */
};

struct replica {
    enum replica_role role;
    int32_t me;
    int32_t min_isr;
    struct partition_state state;
    int64_t leo;                     /* log end offset */
    int64_t fleo;                    /* flushed; equals leo under policy async */
    int64_t hw;                      /* never moves back within an epoch */
    int64_t leso;                    /* leader epoch start offset (R9, R16) */
    struct follower_progress follower[REPLICA_MAX];
};

void replica_init(struct replica *r, int32_t me, int64_t leo, int64_t fleo, int64_t hw);
/* A newer register state. Lower (epoch, version) is refused (R15): returns false and changes nothing. */
bool replica_set_state(struct replica *r, const struct partition_state *s);
void replica_set_min_isr(struct replica *r, int32_t min_isr);
/* Events; each returns true when hw moved. */
bool replica_appended(struct replica *r, int64_t leo);
bool replica_flushed(struct replica *r, int64_t fleo);
bool replica_follower_fetched(struct replica *r, int32_t broker_id, int64_t leo);
void replica_truncated(struct replica *r, int64_t leo);
/* Questions. */
bool replica_leads(const struct replica *r);
bool replica_has_min_isr(const struct replica *r);       /* R7, at the entry of acks=all */
bool replica_committed(const struct replica *r, int64_t last_offset);

#endif
