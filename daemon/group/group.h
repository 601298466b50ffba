/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine of one consumer group, classic protocol: members, generations, rebalances
 * (KIP-62 rebalance time-outs, KIP-134 initial delay, KIP-345 static members, KIP-394 member ids first,
 * KIP-559 protocol type, KIP-814 static leaders). Pure: no I/O, no clock, no locks, no making of ids. The
 * coordinator holds the group's lock, passes the time in, calls group_tick() when group_due_ms() has come,
 * and carries out what the machine asks of its env.
 *
 * Invariants:
 *
 *   G1  state moves only along group_next[] (group_move is the only writer).
 *
 *   G2  a parked join exists only in PREPARING, or in STABLE for a static member whose new id is being
 *       written; a parked sync exists only in COMPLETING.
 *
 *   G3  in COMPLETING and STABLE there is a leader, and it is a member.
 *
 *   G4  the generation only grows.
 *
 *   G5  each parked request is answered exactly once.
 *
 *   G6  what members and pending ids keep here is counted, and no request makes it pass GROUP_BYTES_MAX, nor that of
 *       all groups their limit; neither do the assignments of a generation. So a group's record can be read again, and
 *       what is answered about it can be sent.
 */
#ifndef KLOG_DAEMON_GROUP_H
#define KLOG_DAEMON_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

#include "lib/base/kerr.h"
#include "lib/base/slice.h"

enum { GROUP_BYTES_MAX = 24 << 20 }; /* ids and metadata of all members; and again so much for their assignments */

enum group_state {
    GROUP_EMPTY,      /* no members; may hold offsets */
    GROUP_PREPARING,  /* members (re)join */
    GROUP_COMPLETING, /* joined; the leader's assignment is awaited */
    GROUP_STABLE,
    GROUP_DEAD,
    GROUP_STATES
};
const char *group_state_name(enum group_state s); /* Kafka's: "PreparingRebalance", ... */

/* A protocol a member offers, with its metadata (subscription). Owned. */
struct group_protocol {
    char *name;
    void *metadata;
    int32_t metadata_bytes;
};

struct group_member {
    char *id;
    char *instance_id; /* NULL: dynamic */
    char *client_id, *client_host;
    int32_t session_timeout_ms, rebalance_timeout_ms;
    struct group_protocol *protocols;
    int32_t n_protocols;
    int64_t bytes;    /* counted for it, without the assignment */
    void *assignment; /* of the current generation; NULL none */
    int32_t assignment_bytes;
    int64_t session_due_ms;          /* expires when this passes, unless a request of it is parked */
    bool is_new;                     /* has not completed its first join yet */
    bool awaits_sync;                /* joined this generation, has not synced yet */
    void *parked_join, *parked_sync; /* the coordinator's waiters, NULL none */
    int64_t return_seq; /* STABLE: its parked join waits for this record, which has its new id; 0 none */
    char *former_id;    /* with return_seq: the id it had before */
    bool can_skip_assignment; /* with return_seq: JoinGroup v9+ */
    UT_hash_handle hh;        /* group.members, by id, in order of joining */
};

struct group_pending { /* a member id handed out by MEMBER_ID_REQUIRED, not joined yet */
    char *id;
    int64_t due_ms;
    UT_hash_handle hh;
};

struct group_static {        /* instance id -> member */
    const char *instance_id; /* the member's own string */
    struct group_member *member;
    UT_hash_handle hh;
};

struct group_offer { /* a protocol name that members offer */
    char *name;
    int32_t n_members, votes;
    uint64_t mark; /* of the walk that saw it last: a member may name a protocol twice */
    UT_hash_handle hh;
};

struct group {
    char *id;
    const struct group_env *env;
    void *user; /* the coordinator's */
    enum group_state state;
    int64_t state_since_ms; /* wall clock, as stored in the group's record */
    int32_t generation;
    char *protocol_type; /* NULL none */
    char *protocol;      /* chosen; NULL none */
    char *leader;        /* member id; NULL none */
    struct group_member *members;
    struct group_pending *pending;
    struct group_static *statics;
    struct group_offer *offers;
    uint64_t offer_mark;
    int32_t n_parked_joins;
    int64_t bytes;  /* of members and pending ids */
    int64_t due_ms; /* not later than the next deadline; heartbeats only move deadlines away from it */
    int64_t rebalance_due_ms; /* PREPARING: complete the join then at the latest; 0 none */
    int64_t initial_left_ms;  /* initial delay: how much longer it may still be extended; -1 not in it */
    bool joined_in_delay;     /* a new member came since the delay was last set */
    int64_t sync_due_ms;      /* COMPLETING, STABLE: who has not synced by then is removed; 0 none */
    int64_t persist_seq;      /* of the record asked for last */
    int64_t assigning_seq;    /* COMPLETING: of the record with the leader's assignment; 0 none */
};

/* ---- what the machine tells its coordinator ---- */
struct group_join_answer {
    enum kerr err;
    int32_t generation;                   /* -1 with errors */
    const char *protocol_type, *protocol; /* NULL none */
    const char *leader;                   /* "" none */
    bool skip_assignment;
    const char *member_id;
    /* List this group's members with their metadata for `protocol`; NULL: none. */
    const struct group *members_of;
};
struct group_sync_answer {
    enum kerr err;
    const char *protocol_type, *protocol;
    const void *assignment;
    int32_t assignment_bytes;
};
struct group_env {
    int64_t (*wall_ms)(struct group *g);
    /* Nothing in an answer lives after the call. */
    void (*answer_join)(struct group *g, void *waiter, const struct group_join_answer *a);
    void (*answer_sync)(struct group *g, void *waiter, const struct group_sync_answer *a);
    /* Write the group's record; call group_persisted() with seq later, never from within. */
    void (*persist)(struct group *g, int64_t seq);
    int32_t initial_delay_ms;      /* group.initial.rebalance.delay.ms */
    int32_t new_member_timeout_ms; /* a new member that cannot finish its first join (5 minutes in Kafka) */
    int32_t size_max;              /* group.max.size */
    atomic_llong *all_bytes;       /* of all groups; NULL: nobody counts */
    int64_t all_bytes_max;
};

struct group *group_new(const char *id, const struct group_env *env, void *user);
void group_free(struct group *g); /* after group_unload, or when nobody is parked */

/* ---- requests ---- */
struct group_join {
    const char *member_id;     /* "" the first time */
    const char *new_member_id; /* to use when one is needed: clientId or instanceId, "-", a uuid */
    const char *instance_id;   /* NULL none */
    const char *client_id, *client_host;
    int32_t session_timeout_ms, rebalance_timeout_ms;
    const char *protocol_type;
    struct kstr *names; /* offered protocols, in the member's order */
    struct kstr *metadata;
    int32_t n_protocols;
    bool id_required;         /* v4+: a new dynamic member must come again with its id */
    bool can_skip_assignment; /* v9+ */
};
void group_join(struct group *g, const struct group_join *rq, void *waiter, int64_t now_ms);

struct group_sync {
    const char *member_id, *instance_id;
    int32_t generation;
    const char *protocol_type, *protocol; /* NULL before v5: not checked */
    struct kstr *member_ids;              /* the leader's assignments */
    struct kstr *assignments;
    int32_t n_assignments;
};
void group_sync(struct group *g, const struct group_sync *rq, void *waiter, int64_t now_ms);

enum kerr group_heartbeat(struct group *g, const char *member_id, const char *instance_id, int32_t generation,
                          int64_t now_ms);
/* By member id, or by instance id with an empty member id (KIP-345). */
enum kerr group_leave(struct group *g, const char *member_id, const char *instance_id, int64_t now_ms);
/* May this member (or, with generation < 0, a stranger) commit offsets now? Counts as a heartbeat. */
enum kerr group_may_commit(struct group *g, const char *member_id, const char *instance_id,
                           int32_t generation, int64_t now_ms);

/* ---- time and persistence ---- */
/* Call group_tick() then. Early by as much as heartbeats have moved deadlines since the last tick; INT64_MAX:
 * nothing to wait for. */
int64_t group_due_ms(const struct group *g);
void group_tick(struct group *g, int64_t now_ms);
/* The record that was asked for as seq is committed, or could not be written. */
void group_persisted(struct group *g, int64_t seq, enum kerr err, int64_t now_ms);
/* The coordinator moves away or the group is deleted: everyone parked gets err, the state becomes DEAD. */
void group_unload(struct group *g, enum kerr err);

/* ---- restoring from the log ---- */
void group_restore(struct group *g, int32_t generation, const char *protocol_type, const char *protocol,
                   const char *leader, int64_t state_since_ms);
void group_restore_member(struct group *g, const struct group_join *as, const void *assignment,
                          int32_t assignment_bytes, int64_t now_ms);
/* A generation that a group has come to; records may claim any, and it grows from there (G4). */
enum { GROUP_RESTORED_GENERATION_MAX = 1 << 30 };
/* EMPTY or STABLE, by its members; with more of them than group.max.size it rebalances at once. */
void group_restored(struct group *g, int64_t now_ms);

/* ---- questions ---- */
int32_t group_n_members(const struct group *g);
struct group_member *group_member_find(const struct group *g, const char *id);
struct group_member *group_instance_find(const struct group *g, const char *instance_id);
const struct group_protocol *group_member_protocol(const struct group_member *m, const char *name);

#endif
