/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of several whole brokers with replicated partitions: the same object files as klogd's on hosts 0 to 4, each with a disk,
 * a clock and a handle to one store of registers that has ZooKeeper's rules (simregisters.h); raw clients on the other hosts. First
 * a time with faults, drawn as a plan; then all is healed, but for one broker that may be gone for ever; then, within a bounded time,
 * each partition that can be led is led and in sync, and every client gets its answers; at last all brokers stop, and their disks are
 * read by a reader that is not klog's.
 *
 * What is judged, beside the rules of truth.h, by the true registers and the true disks:
 *
 *   R1   a partition's epoch grows by one with its leader, the leader's incarnation and the replicas, and never by more
 *   R2   who changes a partition's state makes it conditional on its own incarnation
 *   R5   what is acknowledged to acks=all is, as that answer is written, on the disk of each member of the in-sync set that counts
 *   R8   the in-sync set does not become smaller than the floor
 *   R10  who joins it is named with its incarnation, which is checked; and has all that was acknowledged or read by then (R9)
 *   R11  who is elected is in sync, in an incarnation that is checked, and its disk provably kept what it had; unless the register notes a recovery
 *   R12  in the end all replicas have the same batches (R14), of epochs that go up
 *   R16  who leads all the time that a question takes tells of no end below what was acknowledged before it
 *   C12  liveness, as above
 */
#ifndef KLOG_SIM_FLEET_H
#define KLOG_SIM_FLEET_H

#include "tests/sim/client.h"
#include "tests/sim/diskread.h"
#include "tests/sim/plan.h"
#include "tests/sim/play.h"
#include "tests/sim/simhost.h"
#include "tests/sim/simregisters.h"
#include "tests/sim/truth.h"

enum { FLEET_BROKERS = 5, FLEET_CLIENTS = 12, FLEET_PORT = PLAY_BROKER_PORT, FLEET_REPLICAS = 8 };

/* What a seed draws of everything that is no fault. */
struct fleet_swarm {
    int n_brokers;
    int64_t faults_ms;
    int n_producers, n_consumers, n_groups, n_admins;
    int n_topics; /* names */
    int rf[4], min_isr[4], n_partitions[4]; /* by name, for ever */
    bool deletes, moves; /* topics are deleted and made anew; replicas are moved, preferred leaders elected */
    int64_t session_ms, lag_ms, fetch_wait_ms, fetch_bytes;
    int n_loops, n_fetchers;
    int64_t segment_bytes;
    bool async; /* flush.policy; else commit or interval */
    bool interval;
    bool journal;
    int64_t slowness;
    uint32_t write_back, part;
    uint32_t loss_ppm, expiry_ppm; /* simregisters_config */
    int64_t delay_ms, lag_registers_ms, jitter_ms;
    int gone; /* this broker does not come back when all is healed; -1 */
};

/* What a fault may lie in wait for, of any partition; each has a leader, and another broker that it is about. */
enum fleet_event {
    FLEET_ISR_GROWS,  /* by the other; the leader has not heard yet that it was written */
    FLEET_ISR_SHRINKS,
    FLEET_ELECTED,    /* the leader; the other led before */
    FLEET_CUTS,       /* the other has cut its log */
    FLEET_EVENTS
};
/* ... and what it does then. */
enum fleet_blow {
    FLEET_KILL_LEADER,
    FLEET_KILL_OTHER,
    FLEET_BLIND_LEADER, /* it cannot reach the registers: what it has just written has an unknown outcome */
    FLEET_PART_LEADER,  /* from the other */
    FLEET_BLIND_AND_PART, /* both */
    FLEET_BLOWS
};

struct fleet;
struct broker;

struct fleet_broker {
    struct simhost host; /* first */
    struct fleet *fleet;
    int index; /* of host; broker.id is one more */
    struct simdisk *disk;
    struct broker *broker; /* of the process that serves; NULL */
    struct fiber *main;
    bool stop, stopped_clean;
    bool needs_start; /* a log that could not be opened on a full disk stays away until the next */
    int n_ends;
    struct sim_step restart, full_ends, slow_ends;
    struct diskread_hint hints[TRUTH_TOPICS][TRUTH_PARTITIONS];
};

struct fleet {
    struct sim *sim;
    struct simnet *nw;
    struct simregisters *registers;
    struct fleet_swarm swarm;
    struct plan plan;
    struct truth truth;
    bool is_made[TRUTH_TOPICS]; /* somebody was told so */
    struct fleet_broker b[FLEET_BROKERS];
    struct fleet_client *clients[FLEET_CLIENTS];
    int n_clients;
    enum play_phase phase;
    struct sim_step next_fault, jitter;
    int n_faults;
    struct fault ambushes[8]; /* that lie in wait */
    int n_ambushes;
    struct sim_step blow; /* about to be dealt, by struck; to the leader or the other */
    struct fault struck;
    int struck_leader, struck_other;
    struct rnd rnd, jitters;
    bool prints_lines;
    int64_t n_lives, n_crashes, n_power_cuts;
};

void fleet_run(uint64_t seed, const struct plan *plan, unsigned prints, struct play_figures *ret);
void fleet_plan_of(uint64_t seed, struct plan *ret);
bool fleet_has_fault(int kind); /* its plans may have it */
bool fleet_switch_off(const char *bug); /* KLOG_BUG of daemon/replica, for all runs; false: there is no such rule */

/* ids of brokers; -1: none */
void fleet_happens(struct fleet *f, enum fleet_event ev, int leader, int other);

/* ---- fleet_clients.c ---- */
struct fleet_client;
void fleet_clients_add(struct fleet *f);
void fleet_clients_free(struct fleet *f);
void fleet_clients_stop(struct fleet *f); /* nothing new */
bool fleet_clients_are_done(const struct fleet *f); /* nothing of a producer's is under way */
/* Each has had what it asks for since fleet_clients_mark(). The name of one that has not; NULL. */
void fleet_clients_mark(struct fleet *f);
const char *fleet_clients_missing(const struct fleet *f);

/* ---- fleet_rules.c: the true registers and disks ---- */
struct fleet_state {
    int leader, leader_epoch, recovery;
    int64_t leader_be, version;
    int replicas[FLEET_REPLICAS], n_replicas, isr[FLEET_REPLICAS], n_isr;
    int64_t isr_be[FLEET_REPLICAS];
    int n_moving; /* adding or removing */
};
/* False: there is none. */
bool fleet_state_of(const struct fleet *f, const char *topic, int partition, struct fleet_state *ret);
/* The leader epoch in which that broker leads, by the registers, in its present incarnation; -1: it does not. */
int fleet_leads(const struct fleet *f, int topic, int partition, int broker);
/* Some member of the in-sync set that may lead is not gone for ever, and neither are as many replicas as acks=all needs. */
bool fleet_is_servable(const struct fleet *f, const char *topic, int partition);
/* The registers have that very topic. */
bool fleet_has_topic(const struct fleet *f, const char *name, const struct uuid *id);
void fleet_rules_begin(struct fleet *f);
void fleet_rules_acked(struct fleet *f, int broker, const struct truth_batch *b, int64_t base);
/* NULL, or what is not as it should be in the end: a partition that could be led and is not, a replica that is not in sync. */
const char *fleet_unsettled(struct fleet *f);
/* The same of logs, once nobody writes any more. */
const char *fleet_uncopied(struct fleet *f);
void fleet_check_disks(struct fleet *f);

#endif
