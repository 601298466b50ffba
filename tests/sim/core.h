/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core simulator: one partition on three to five brokers, of which only the state machines of daemon/replica are klogd's own.
 * Logs are arrays, the register is one value with compare-and-set, messages are late, lost and overtake each other. A seed takes a
 * fraction of a millisecond, so that a hundred thousand of them are tried where the large simulator (sim.h) tries some hundred.
 *
 * After each step these are judged, by a truth that no broker is asked for (core_truth.c):
 *
 *   R1   the register's epoch grows by one with each change of leader or incarnation of it; versions by one
 *   R2   a write that took effect is of a broker's current incarnation
 *   R3 R4  who is in the register's in-sync set, or may get there by a write that is under way, is in the leader's maximal set
 *   R5   what moves the watermark of a leader: the floor, and that each provably complete member has it, on disk under commit
 *   R6   a fetch that was taken, and an answer that was used, are of the other's epoch and incarnation
 *   R8   the in-sync set is not made smaller below the floor
 *   R9 R10  who joins, or is believed again, has all that is committed and is that incarnation, and has not owned up to damage
 *   R11  who is elected is a member that provably has everything, or the loss is noted in the register
 *   R12 R14  same offset and epoch, same record, and the same before it
 *   R13  no committed record is cut
 *   R15  what a broker takes for the state never goes back
 *   R16  a current watermark is at least what was committed before the epoch
 *   S10  who has damage inside its log cuts it only while the register does not count on it
 *   R18  as long as fewer brokers than the floor lose something at a time, some member provably has everything; nothing that
 *        was committed is ever missing or another record; in the end all are in sync
 *
 * Faults are a plan made before the run from a stream of its own (core_plan.c).
 */
#ifndef KLOG_SIM_CORE_H
#define KLOG_SIM_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/replica/election.h"
#include "daemon/replica/replica.h"
#include "lib/base/attr.h"
#include "tests/sim/rand.h"

enum {
    CORE_BROKERS = 5,
    CORE_LOG = 96,       /* records at most */
    CORE_EPOCHS = 96,    /* leader epochs at most; a run that needs more ends there */
    CORE_VERSIONS = 512, /* of the register at most; the same */
    CORE_FAULTS = 24,
    CORE_MESSAGES = 2048, /* under way at a time, fewer */
    CORE_REQUESTS = 128,
    CORE_EVENTS = 4096,
    CORE_VIEWS = 1024,
    CORE_BATCH = 4, /* records in an answer */
    CORE_LAG_MS = 600,
    CORE_SESSION_MS = 300,
};

/* ---- the plan ---- */
enum core_fault_kind {
    CORE_KILL,    /* broker a is killed, its page cache stays; it is back after b ms */
    CORE_CUT,     /* its power goes: what was not synced is kept up to a point; back after b ms */
    CORE_STOP,    /* it hands over and stops cleanly; back after b ms */
    CORE_PAUSE,   /* it stands still for b ms */
    CORE_EXPIRE,  /* its session is gone, and it hears of that after b ms */
    CORE_AWAY,    /* the register store is out of its reach for b ms: what it writes has an unknown outcome */
    CORE_UNKNOWN, /* the outcome of its next write is unknown: c = 0 not written, 1 written, 2 written b ms later */
    CORE_LINK,    /* nothing gets from broker a to broker c for b ms */
    CORE_DAMAGE,  /* its disk loses what was synced, from some place on */
    CORE_AIL,     /* a record inside its log goes bad */
    CORE_PREFER,  /* it gives the partition to the preferred leader, if it leads */
    CORE_FAULT_KINDS
};
struct core_fault {
    int64_t at_ms;
    enum core_fault_kind kind;
    int64_t a, b, c;
};
struct core_plan {
    uint64_t seed;
    struct core_fault faults[CORE_FAULTS];
    int n;
};
extern const char *const core_fault_names[CORE_FAULT_KINDS];
void core_plan_draw(struct core_plan *p, uint64_t seed, int n_brokers, int64_t faults_ms);
void core_plan_print(const struct core_plan *p, FILE *to);
bool core_plan_read(struct core_plan *p, FILE *from);

/* ---- what a run has come past ---- */
#define CORE_MARKS(X)                                                                                                    \
    X(elected) X(waited_its_turn) X(handed_over) X(given_to_the_preferred) X(recovered_balanced) X(recovered_proactively) \
    X(records_lost_by_recovery) X(isr_shrunk) X(isr_expanded) X(swapped_at_the_floor) X(believed_again)                   \
    X(write_refused) X(unknown_not_written) X(unknown_written) X(unknown_written_late) X(late_write_took_effect)          \
    X(settled) X(two_sets_count) X(fetch_of_an_old_epoch) X(fetch_of_a_new_epoch) X(fetch_of_an_old_incarnation)          \
    X(answer_of_no_use) X(old_state_refused) X(cut) X(cut_twice_in_an_epoch) X(cut_below_hw_after_recovery)               \
    X(zombie_moves_hw) X(hw_not_current) X(not_enough_replicas) X(session_expired) X(restarted_unproven)                  \
    X(synced_records_lost) X(unsynced_records_lost) X(damaged_leader) X(damaged_follower) X(ailing_leader) X(ailing_follower) X(ailing_leader_stepped_down)                                \
    X(ailing_elected) X(mended) X(confessed) X(repaired) X(began_anew)         \
    X(a_dead_member_at_the_floor) X(message_overtaken) X(a_broker_never_came_back)
enum core_mark {
#define X(name) CORE_MARK_##name,
    CORE_MARKS(X)
#undef X
        CORE_N_MARKS
};
extern const char *const core_mark_names[CORE_N_MARKS];

/* ---- the world ---- */
struct core_record {
    int32_t epoch, id;
};
struct core_log {
    struct core_record at[CORE_LOG];
    int32_t n;
    int32_t synced; /* survive a power cut */
};

struct core_message { /* a fetch, and its answer */
    int32_t from, to; /* indexes of brokers */
    int64_t be;
    int32_t epoch, offset, last_epoch;
    bool is_repair; /* the whole log is asked for */
    bool bad;       /* the answer: refused, */
    bool diverges;  /* or cut first: */
    int32_t their_epoch, their_end;
    int32_t n, hw; /* or the next records */
    struct core_record records[CORE_LOG];
};

struct core_request { /* a multi that changes the partition's state */
    struct state_change change;
    int32_t from;   /* index of a broker, */
    int64_t be;     /* and its broker epoch as it knew it */
    bool under_way; /* it may still take effect */
    bool is_late;
    enum election_what why; /* ELECTION_NOTHING: of the in-sync set or damage */
};

struct core_broker {
    int32_t id;
    uint32_t life; /* +1 each time that it ends or starts: what was meant for an earlier one is dropped */
    bool up;       /* the process runs, */
    bool running;  /* is registered, and knows it */
    int64_t paused_until, away_until;
    int next_write; /* -1, or c of CORE_UNKNOWN, once */
    int64_t late_ms;
    bool draining;
    struct replica r;
    struct core_log log;
    bool enlisting;
    int32_t hw_saved; /* checkpoint */
    bool is_damaged;  /* the disk's state */
    bool ails;        /* inside its log a record is bad, */
    int32_t ails_at;  /* this one */
    int32_t min_isr_floor;
    bool owned_up;    /* the register has heard of that damage */
    bool is_unproven; /* it ended so that it cannot prove what its disk kept; until it is registered again */
    bool syncing;
    uint32_t cuts;             /* of the log; a sync that began before one says nothing */
    struct live_broker live[CORE_BROKERS];
    size_t n_live;
    int64_t live_sequence;
    struct election_claim claims[CORE_BROKERS];
    size_t n_claims;
    bool asking; /* a fetch is out, since */
    int64_t asked_ms;
    int64_t leaderless_version, leaderless_since;
    int32_t cut_in; /* leader epoch of the last cut */
};

struct core {
    struct core_plan plan;
    bool trace;
    int64_t now_ms;
    int n_brokers;
    int32_t min_isr;
    bool commit; /* flush policy: commit, else async */
    bool lossy;  /* more may be lost than the rules cover */
    enum recovery recovery;
    int64_t heal_ms; /* faults begin before, */
    int64_t end_ms;
    int dead_for_ever; /* index of a broker that does not come back when all is healed; -1 */
    struct core_broker b[CORE_BROKERS];

    /* the register store */
    struct partition_state history[CORE_VERSIONS]; /* by version */
    int32_t version;
    int64_t be[CORE_BROKERS], base[CORE_BROKERS];
    bool registered[CORE_BROKERS];
    uint32_t session[CORE_BROKERS];
    int64_t live_sequence;
    struct election_claim claims[CORE_BROKERS];
    size_t n_claims;
    struct core_view { /* what a broker has read and not been given yet */
        int32_t version;
        int64_t live_sequence;
        struct live_broker live[CORE_BROKERS];
        size_t n_live;
        struct election_claim claims[CORE_BROKERS];
        size_t n_claims;
    } views[CORE_VIEWS];
    uint32_t n_views;

    /* what is on its way */
    struct core_event {
        int64_t at;
        uint64_t order;
        int kind, who;
        uint32_t life;
        int32_t x, y;
    } events[CORE_EVENTS];
    int n_events;
    uint64_t n_ordered;
    struct core_message messages[CORE_MESSAGES];
    uint32_t n_messages;
    struct core_request requests[CORE_REQUESTS];
    uint32_t n_requests;
    int n_under_way;
    int64_t link_cut_until[CORE_BROKERS][CORE_BROKERS];
    struct rnd net, store, disk, client, order;

    /* the truth */
    struct core_record committed[CORE_LOG];
    int32_t n_committed;
    int32_t committed_at[CORE_EPOCHS]; /* n_committed when that epoch began */
    struct {
        int32_t id, epoch_before;
    } made[CORE_EPOCHS][CORE_LOG]; /* id 0: not made */
    int32_t n_ids;
    int32_t lost_in; /* leader epoch of the last election with loss */
    bool lost[CORE_BROKERS]; /* has lost something, and may still count as in sync with it */
    bool is_healthy;         /* enough members have had everything since the last election with loss */
    int64_t hw_seen[CORE_BROKERS];
    struct {
        int32_t epoch;
        int64_t version;
        uint32_t life;
    } seen[CORE_BROKERS];
    uint64_t steps;
    bool full; /* out of room: ends without a verdict on liveness */
};

/* What broke, in the last run. */
struct core_failure {
    char rule[16];
    char text[256];
};
extern struct core_failure core_failure;
extern const char *core_bug; /* the rule that is switched off, NULL none */
extern int64_t *core_marks;  /* CORE_N_MARKS counters */

/* True: all rules held. */
bool core_run(struct core *c, const struct core_plan *plan, bool trace);
/* The plan of a seed. */
void core_plan_of(uint64_t seed, struct core_plan *ret);

/* ---- between the files ---- */
NORETURN void core_fail(const struct core *c, const char *rule, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void core_say(const struct core *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void core_mark(enum core_mark m)
{
    core_marks[m]++;
}
static inline const struct partition_state *core_register(const struct core *c)
{
    return &c->history[c->version];
}
/* May that broker's disk lose something now, by what the rules cover? Counts it. */
bool core_may_lose(struct core *c, int who);

/* the truth is told */
void core_truth_begin(struct core *c);
void core_truth_written(struct core *c, const struct core_request *q, const struct partition_state *before);
void core_truth_made(struct core *c, int who, int32_t offset);      /* a leader's record */
void core_truth_copied(struct core *c, int who, int32_t offset);    /* a follower's */
void core_truth_cut(struct core *c, int who, int32_t from, int32_t to);
void core_truth_mended(const struct core *c, int who);
void core_truth_fetched(struct core *c, int leader, const struct core_message *m);
void core_truth_used(struct core *c, int follower, const struct core_message *m);
void core_truth_step(struct core *c);
bool core_truth_is_settled(const struct core *c); /* nothing that core_truth_end() asks for is missing */
void core_truth_end(const struct core *c);

#endif
