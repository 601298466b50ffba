/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine of one replica: who leads, in which epoch, how far the log reaches, what is
 * committed. Pure: no I/O, no clock, no locks; the caller (partition.c or a simulator) holds
 * the partition's lock, feeds events and acts on the answers. Rules R1-R19: replica/README.md.
 *
 * What came from a register or from another broker is refused with an answer. What this process itself tells is
 * asserted: an append where none may be, a cut in a log that is led.
 */
#ifndef KLOG_DAEMON_REPLICA_H
#define KLOG_DAEMON_REPLICA_H

#include "daemon/replica/state.h"
#include "lib/base/kerr.h"

enum replica_role {
    REPLICA_OFFLINE,    /* no leader is known, or it is this broker before its restart, or this is none of the replicas */
    REPLICA_TRUNCATING, /* follows, and does not know yet where its log parts from this epoch's leader's (R12) */
    REPLICA_FETCHING,   /* follows, and its log is a beginning of the leader's */
    REPLICA_LEADER,
    REPLICA_DAMAGED, /* its disk failed or lied: serves nothing, is never elected, until it has been repaired */
    REPLICA_ROLES
};

/* What became of a state that was told. */
enum replica_answer {
    REPLICA_TAKEN,
    REPLICA_KNOWN,       /* nothing new */
    REPLICA_OLD,         /* of a lower (leader epoch, version) than one seen before: refused (R15) */
    REPLICA_CONTRADICTS, /* malformed, or does not go with what was said before (R1): refused */
};

struct follower_progress { /* from its last fetch in this epoch; one immutable snapshot (R9, R10) */
    int64_t leo;           /* -1: has not fetched in this epoch */
    int64_t be;            /* its broker epoch in that fetch */
    int64_t fetched_ms;    /* when that was, and how far the leader's log went then */
    int64_t leader_leo;
    int64_t caught_up_ms; /* when it last had all that there was */
};

struct replica {
    enum replica_role role;
    int32_t me;
    int64_t be; /* this broker's epoch */
    int32_t min_isr;
    struct partition_state state;
    uint32_t isr_mask;     /* bits by index of state.replicas: the in-sync set, */
    uint32_t pending_mask; /* those of every proposal that may have been written or may yet be (R4), */
    uint32_t dead_mask;    /* those that were not registered at the last tick (R7) */
    bool in_flight;        /* a change was sent and its outcome has not been told, */
    int64_t sent_version;  /* on top of this version */
    bool unsettled;        /* an earlier one may yet be written: nobody knows its outcome (R3) */
    int32_t damaged_in;    /* the leader epoch in which it was damaged */
    bool ails;             /* records inside its log are damaged or missing: see replica_ail() */
    bool full;             /* its disk has no room for more records: see replica_set_full() */
    int64_t leo;           /* log end offset */
    int64_t fleo;          /* flushed; equals leo under policy async */
    int64_t hw;            /* never moves back within an epoch */
    int64_t leso;          /* leader epoch start offset (R9, R16) */
    int64_t since_ms;      /* the first tick of this epoch; -1 */
    struct follower_progress follower[REPLICA_MAX]; /* index as in state.replicas */
};

/* be: this broker's epoch, or 0 where there are none. The rest as the log was found; hw -1: not known. */
void replica_init(struct replica *r, int32_t me, int64_t be, int64_t leo, int64_t fleo, int64_t hw);
/* Registered anew, with a higher broker epoch: what it led it leads no more. Told before any state that was read after the
 * registration: one that names the new epoch as the leader's would pass unnoticed. */
void replica_set_broker_epoch(struct replica *r, int64_t be);
/* A register state. May move hw; a new epoch sets the role. */
enum replica_answer replica_set_state(struct replica *r, const struct partition_state *s);
/* Would that state make it the leader of a new epoch? The epoch is made durable in the log before it is told (S6). */
bool replica_would_lead(const struct replica *r, const struct partition_state *s);
void replica_set_min_isr(struct replica *r, int32_t min_isr);

/* ---- the log. Each returns true when hw moved. ---- */
bool replica_appended(struct replica *r, int64_t leo); /* LEADER, FETCHING */
bool replica_flushed(struct replica *r, int64_t fleo);

/* ---- a leader, about followers ---- */
/* May that fetch be answered (R6)? NONE, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, FENCED_LEADER_EPOCH,
 * UNKNOWN_LEADER_EPOCH, or STALE_BROKER_EPOCH: an earlier life of that broker sent it. */
enum kerr replica_fetch_check(const struct replica *r, int32_t broker_id, int64_t be, int32_t leader_epoch);
/* Did it ask for leo before, when there was more to be had? Then it could not take what it was sent. */
bool replica_asks_again(const struct replica *r, int32_t broker_id, int64_t leo);
/* A fetch that passed the check asked for leo, and the epoch of its last record is the leader's there: only then does
 * the follower have all below. One that must cut first is not told. */
bool replica_follower_fetched(struct replica *r, int32_t broker_id, int64_t be, int64_t leo, int64_t now_ms);

/* ---- a follower ---- */
/* May an answer to the fetch at `offset` in that epoch be used, or has something changed since it was asked (R6)? One that
 * says where to cut is of use before the log has agreed with the leader's only: a late one may speak of an earlier log of
 * the same length. */
bool replica_may_use_answer(const struct replica *r, int32_t leader_epoch, int64_t offset);
bool replica_may_cut(const struct replica *r, int32_t leader_epoch, int64_t offset);
/* The leader of this epoch found nothing to cut: TRUNCATING to FETCHING (R12). */
void replica_agreed(struct replica *r);
/* Where to cut: the leader's records of an epoch that it knows, and of those before, end at their_end; own_end is where this
 * log's of that epoch and before end. Asked again and again, both come to the last record that they share (R12). */
int64_t replica_cut_at(const struct replica *r, int64_t own_end, int64_t their_end);
/* TRUNCATING: the log was cut at leo, where it parted from the leader's (R12); cut_epoch: the highest leader epoch of what
 * was cut, -1 nothing. Below the high watermark the replica is damaged (R13), unless a later election may have lost
 * records: returns false. */
bool replica_truncated(struct replica *r, int64_t leo, int32_t cut_epoch);
/* The leader has nothing below start any more, so the log was emptied and begins there. */
void replica_restarted_at(struct replica *r, int64_t start);
bool replica_learn_hw(struct replica *r, int64_t leader_hw); /* FETCHING; hears the leader's; true: it moved */

/* ---- damage ---- */
/* Its disk failed or lied. Until replica_repaired() each tick of a partition whose register may still count on it
 * proposes to take that back. */
void replica_damage(struct replica *r);
/* Inside its log something is damaged or missing, while its end is where it was. A follower is damaged by that; who leads, or is
 * elected since nobody else may be, serves what is good, and each tick proposes to hand over to another that may lead. Until
 * replica_repaired(). */
void replica_ail(struct replica *r);
/* An append failed for want of room, or one went well. It has all that it acknowledged, and can take no more: the leader hands over
 * to one that is in sync, as soon as there is one and not within REPLICA_FULL_AGAIN_MS of its epoch, so that full disks do not pass
 * a partition round and round; a follower takes itself out of the in-sync set, as far as the floor allows. */
enum { REPLICA_FULL_AGAIN_MS = 5000 };
void replica_set_full(struct replica *r, bool full);
/* Nobody counts on it, as far as its register was read: what is bad of its log may go. */
bool replica_may_be_repaired(const struct replica *r);
/* Its log is a beginning of the leader's again, perhaps an empty one, and durable. False, and it stays damaged: the register may
 * still count on the old one, or it is the leader itself. */
bool replica_repaired(struct replica *r, int64_t leo, int64_t fleo, int64_t hw);

/* ---- changes of the register ---- */
struct replica_tick {
    int64_t now_ms;     /* monotonic */
    int64_t lag_max_ms; /* replica.lag.time.max.ms */
    const struct live_broker *live;
    size_t n_live;
};
/* At least twice in lag_max_ms, and when brokers come or go. True: the register should be changed so: a follower
 * joins (R9, R10) or is found complete again, one that is dead or lags is left out as far as the floor allows (R8), an
 * unknown outcome is settled (R3), damage is owned up to, a leader with a damaged log hands over. */
bool replica_tick(struct replica *r, const struct replica_tick *t, struct state_change *ret);
/* It is about to be sent (R4). False: things have changed, do not send it. One at a time; each that was sent is followed by
 * one of the other three. */
bool replica_proposal_sent(struct replica *r, const struct state_change *c);
/* It was written, and the register has that version now. Returns true when hw moved. */
bool replica_proposal_confirmed(struct replica *r, const struct state_change *c, int64_t version);
/* It was not written, for certain: the register, or a broker epoch, has another version. Read the register again. Returns
 * true when hw moved. */
bool replica_proposal_failed(struct replica *r);
/* Nobody knows (R3). Both sets count until a higher version is seen; the next tick proposes again to bring one about. */
void replica_proposal_unknown(struct replica *r);

/* ---- questions ---- */
bool replica_leads(const struct replica *r);
bool replica_follows(const struct replica *r);     /* it fetches from state.leader, to cut or to append */
bool replica_has_min_isr(const struct replica *r); /* R7, at the entry of acks=all: living members count */
bool replica_committed(const struct replica *r, int64_t last_offset);
/* R9: has it shown all that is committed, and the start of this epoch? */
bool replica_has_all(const struct replica *r, int32_t broker_id);
bool replica_hw_is_current(const struct replica *r); /* R16: hw has reached the start of this epoch */
int32_t replica_isr_floor(const struct replica *r);  /* R8 */
/* Who holds the watermark back is in sync, or may be (R4). */
bool replica_is_in_max_isr(const struct replica *r, int32_t broker_id);

#endif
