/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group member from inside. One loop's thread; no locks.
 *
 *   member.c         the state table, birth and end, what each error means
 *   member_join.c    JoinGroup, SyncGroup, the committed offsets: from waiting to owning
 *   member_plan.c    what the leader does: topics of all members, their partitions, who gets what
 *   member_beat.c    heartbeats, and the session's end when none gets through
 *   member_commit.c  the row of commits
 */
#ifndef KLOG_CLIENT_MEMBER_INT_H
#define KLOG_CLIENT_MEMBER_INT_H

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/client/assign.h"
#include "lib/client/member.h"

enum member_state {
    MEMBER_IDLE,      /* not started */
    MEMBER_WAITING,   /* for a back-off to pass, then joins again */
    MEMBER_JOINING,   /* JoinGroup is out; the coordinator answers when all members have come */
    MEMBER_PLANNING,  /* leads: the topics' partitions are asked for */
    MEMBER_SYNCING,   /* SyncGroup is out */
    MEMBER_LOADING,   /* the committed offsets of what it was given are asked for */
    MEMBER_OWNING,    /* the owner reads */
    MEMBER_RELEASING, /* the owner finishes, then the last commits go out */
    MEMBER_LEAVING,   /* LeaveGroup is out */
    MEMBER_OVER,
};

/* What an error of the coordinator asks of a member. */
enum member_reaction {
    REACT_NONE,
    REACT_REJOIN,    /* the group rebalances: what it has is still its own until it has joined again */
    REACT_LOST,      /* its generation is over: what it had is gone */
    REACT_FORGOTTEN, /* the same, and its id is no longer known */
    REACT_AGAIN,     /* passes by itself */
    REACT_FATAL,
};

struct plan_topic {
    struct member *m;
    char *name;
    int32_t n_partitions; /* as planned with */
    struct client_refresh refresh;
    bool asked; /* refresh is out */
};

TAILQ_HEAD(member_commits, member_commit);

struct member {
    struct client *c;
    struct loop *loop;
    const struct member_ops *ops;
    void *user;
    enum member_state state;

    /* settings; strings are owned */
    char *group, *instance_id;
    struct kstr *topics;
    size_t n_topics;
    int32_t session_timeout_ms, heartbeat_ms, rebalance_timeout_ms;
    int64_t retry_backoff_ms, metadata_ms;

    /* who it is */
    char *id;           /* "" before it was given one */
    int32_t generation; /* -1: of none, or of one that is over */
    bool leads;
    bool assigned_before; /* leads, but the coordinator keeps to the old assignment (KIP-814) */

    /* joining and syncing */
    int attempts; /* in a row without success */
    struct timer retry;
    struct client_call call; /* JoinGroup, SyncGroup, LeaveGroup: never two at a time */
    union {
        struct join_group_request join;
        struct sync_group_request sync;
        struct leave_group_request leave;
    } body;
    struct bytebuf subscription;
    struct join_group_request_protocols protocols[ASSIGNORS];
    char *protocol;     /* of this generation */
    struct arena round; /* what one round from JoinGroup to SyncGroup needs */

    /* leading */
    struct assign_member *members;
    size_t n_members;
    struct plan_topic *plan;
    size_t n_plan, n_plan_asked;
    bool plan_failed;
    struct timer look; /* for new partitions */

    /* owning */
    struct arena owned; /* parts and their strings */
    struct position *parts;
    size_t n_parts;
    size_t n_with_id; /* loading: of so many the topic's id was looked for */
    bool asks_id;     /* load_refresh is out */
    struct client_refresh load_refresh;
    struct positions_fetch fetch;
    bool released;

    /* heartbeats */
    struct timer beat_timer;
    struct client_call beat;
    struct heartbeat_request beat_body;
    int64_t beat_ms;  /* when the last heartbeat was begun */
    int64_t heard_ms; /* when the coordinator last took this member for one */

    /* commits */
    struct member_commits waiting, sent;
    struct positions_commit commit;
    struct deferred commit_turn;

    /* the end */
    bool closing;
    struct timer close_timer;
    struct deferred over_turn;
    int over_rc;
    enum kerr over_err;
};

/* member.c */
void member_move(struct member *m, enum member_state to);
enum member_reaction member_react(int rc, enum kerr err);
void member_set_id(struct member *m, const char *id, size_t n);
void member_lose(struct member *m, enum member_reaction r); /* LOST or FORGOTTEN; whatever the state */
void member_revoke(struct member *m, bool lost);            /* owning: -> releasing */
void member_leave(struct member *m);                        /* from whatever state */
void member_end(struct member *m, int rc, enum kerr err);
void member_released_check(struct member *m);
int64_t member_deadline(const struct member *m, int64_t ms);

/* member_join.c */
void join_start(struct member *m);
void join_again(struct member *m); /* after a back-off */
void join_sync(struct member *m);  /* the plan is made, or there was none to make */
void join_stop(struct member *m);  /* cancels whatever is out */
void join_on_retry(struct timer *t);

/* member_plan.c */
void plan_start(struct member *m, const struct join_group_response *r);
void plan_stop(struct member *m);
void plan_on_look(struct timer *t);
void plan_watch(struct member *m); /* owning: look for new partitions now and then */

/* member_beat.c */
void beat_start(struct member *m);
void beat_stop(struct member *m);
void beat_on_timer(struct timer *t);

/* member_commit.c */
void commit_on_turn(struct deferred *d);
bool commit_is_idle(const struct member *m);
void commit_cancel_all(struct member *m);

#endif
