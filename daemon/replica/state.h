/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition's register as values, and what follows from one value alone: who is in it, who could lead. Pure; any
 * thread. Whoever wrote a register may have broken the rules, so that states are judged (state_is_sound) and never
 * asserted.
 */
#ifndef KLOG_DAEMON_STATE_H
#define KLOG_DAEMON_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLICA_MAX 32 /* replicas of one partition */

/* The partition's register as this broker last read or wrote it (R1): immutable in between. A broker epoch is the
 * version of the register /klog/broker_epoch/ID: each registration of that broker has a higher one. */
struct partition_state {
    int32_t leader;    /* broker id, -1 none */
    int64_t leader_be; /* the leader's broker epoch when it was elected: one that restarted leads no more (R1) */
    int32_t leader_epoch;
    int32_t recovery; /* the leader epoch of the last election that may have lost records; 0 none (R13) */
    int32_t replicas[REPLICA_MAX], n_replicas;
    int32_t isr[REPLICA_MAX], n_isr;
    int64_t isr_be[REPLICA_MAX]; /* by index of isr: the broker epoch in which the member was seen to have all; 0: it says
                                    itself that it has not */
    int64_t version;             /* register version, for compare-and-set */
};

/* A registered broker. */
struct live_broker {
    int32_t id;
    int64_t be;   /* broker epoch */
    int64_t base; /* since that broker epoch its disk has provably kept all that it acknowledged: at most be */
};

/* A change of a partition's register: one multi of a check for each of `check` and a set of the state. */
struct state_change {
    struct partition_state to; /* to.version: what the register has to have now */
    struct {
        int32_t id;
        int64_t be; /* the version that /klog/broker_epoch/ID has to have (R2, R10) */
    } check[REPLICA_MAX];      /* the writer's own is the first */
    int32_t n_checks;
};

/* Place among the replicas, or in the in-sync set; -1 none. */
int32_t state_replica_index(const struct partition_state *s, int32_t id);
int32_t state_isr_index(const struct partition_state *s, int32_t id);
/* Does it keep to what each state must: no replica twice, leader and in-sync set are replicas, numbers in range? */
bool state_is_sound(const struct partition_state *s);
/* R8: fewer than this are never left in the in-sync set. */
int32_t state_isr_floor(const struct partition_state *s, int32_t min_isr);

/* NULL: it is not registered. */
const struct live_broker *live_find(const struct live_broker *live, size_t n, int32_t id);
/* Its leader is registered and has not restarted since it was elected. */
bool state_is_led(const struct partition_state *s, const struct live_broker *live, size_t n);
/* R11, as far as registers tell: a damaged replica is known to its own broker only, until it says so. */
bool state_may_lead(const struct partition_state *s, const struct live_broker *live, size_t n, int32_t id);
/* The first of the replicas, but `not`, that may lead; NULL none. */
const struct live_broker *state_successor(const struct partition_state *s, const struct live_broker *live, size_t n,
                                          int32_t not);
/* Where nobody may lead, and records are given up: the registered replica that has most, as far as the register tells. Members of
 * the in-sync set before others, who has owned up to damage last; the first of the replicas of equal ones. NULL none. */
const struct live_broker *state_least_loss(const struct partition_state *s, const struct live_broker *live, size_t n);

/* A change that changes nothing yet, conditional on s and on the writer's own incarnation. */
void state_change_begin(struct state_change *ret, const struct partition_state *s, int32_t me, int64_t be);
void state_change_check(struct state_change *c, int32_t id, int64_t be);
/* In the next epoch: led as before, or by b, or by nobody where b is NULL. False: there is no next epoch. */
bool state_change_next_epoch(struct state_change *c);
bool state_change_leader(struct state_change *c, const struct live_broker *b);

#endif
