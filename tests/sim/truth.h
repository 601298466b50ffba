/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is true, whatever the broker says: which batches were sent and what became of them, what stood at each offset when
 * anybody saw it first, what was deleted, what groups committed. Clients tell it what they did and what they heard; each
 * thing is held against what is known already, and a contradiction ends the run (sim_fail) with the rule's number:
 *
 *   C1  what was acknowledged, or read, is there          C6  a reader's offsets go up
 *   C2  nothing is there twice                            C7  and leave out nothing
 *   C3  nothing is there that nobody sent                 C8  what was acknowledged before another was sent stands before it
 *   C4  an offset has one record, for ever                C10 ends and starts do not go back
 *   C5  a producer's batches stand in their order         C11 a group's committed position does not go back
 *   S4  what is acknowledged is on the disk already       S13 what was deleted does not come back
 *   C9  a producer's older epoch stands before its newer
 *   T1  a topic that was made is there, and a deleted one is not
 */
#ifndef KLOG_SIM_TRUTH_H
#define KLOG_SIM_TRUTH_H

#include "lib/base/uuid.h"
#include "tests/sim/batches.h"
#include "tests/sim/sim.h"

enum {
    TRUTH_TOPICS = 64, /* ever, in one run */
    TRUTH_PARTITIONS = 8,
    TRUTH_CLIENTS = 64,
    TRUTH_GROUPS = 8,
    TRUTH_PIDS = 256,
    TRUTH_NAMES = 16,
};

/* What stands at one offset. */
struct truth_record {
    int32_t client, batch, index; /* client -1: nobody has seen it yet */
    int32_t key;
    int64_t seen_ns; /* when it was known to be committed */
};

struct truth_partition {
    struct truth_record *at; /* by offset */
    int64_t n, cap;
    int64_t committed;   /* everything below was acknowledged or seen */
    int64_t start;       /* everything below has been deleted, for certain */
    int64_t start_asked; /* or may have been */
    int64_t start_seen;  /* the greatest that was told */
    int64_t end_seen;    /* likewise: high watermark */
    int64_t n_acked;     /* records */
    int64_t rotten_from, rotten_to; /* offsets of which bytes have rotted; none: rotten_to is 0 */
    bool is_sick;        /* a part of it cannot be read at all: it need not be served */
};

struct truth_topic {
    struct uuid id;
    char name[32];
    int n_partitions;        /* at least so many */
    int n_partitions_asked;  /* and at most so many */
    bool is_known;           /* the broker has shown it, or said that it was made */
    bool delete_asked;       /* it may be gone */
    bool is_deleted;         /* it is gone */
    int64_t known_ns, deleted_ns, grown_ns; /* since when that is so */
    bool compacts;           /* records may go */
    bool retains;            /* its start may move by itself */
    bool is_lazy;            /* flush.policy is not commit: a power cut may take what was acknowledged */
    bool internal;
    struct truth_partition parts[TRUTH_PARTITIONS];
};

enum truth_fate { FATE_SENT, FATE_UNKNOWN, FATE_REFUSED, FATE_ACKED };

struct truth_batch {
    int topic, partition;
    struct sim_batch_spec spec;
    uint32_t crc;
    int16_t acks;
    bool is_loose; /* its client chose what else stands in the batch, and how */
    enum truth_fate fate;
    int64_t offset; /* where it stands, as acknowledged or seen; -1 */
    int64_t sent_ns, acked_ns;
    int64_t after;  /* C8: it must stand behind this offset; -1 */
};

struct truth_client {
    struct truth_batch *batches;
    int32_t n, cap;
};

struct truth_group {
    char name[16];
    int64_t acked[TRUTH_TOPICS][TRUTH_PARTITIONS]; /* the greatest that was acknowledged; -1 */
    int64_t asked[TRUTH_TOPICS][TRUTH_PARTITIONS]; /* and that was sent */
    int32_t generation;                            /* the greatest seen */
};

/* What was asked for a name that may become a topic: until one is known to be made so, each may be. */
struct truth_name {
    char name[32];
    bool may_compact, may_retain, may_be_lazy;
};

struct truth {
    struct sim *sim;
    struct truth_name names[TRUTH_NAMES];
    int n_names;
    struct truth_topic topics[TRUTH_TOPICS];
    int n_topics;
    struct truth_client clients[TRUTH_CLIENTS];
    struct truth_group groups[TRUTH_GROUPS];
    bool positions_may_go; /* a power cut may have taken some: their topic was lazy */
    int64_t cut_ns; /* the last power cut */
    int64_t n_sent, n_acked, n_read; /* records */
    int64_t pids[TRUTH_PIDS];
    int n_pids;
};

void truth_init(struct truth *t, struct sim *s);
void truth_done(struct truth *t);

/* ---- topics ---- */
int truth_topic_by_id(const struct truth *t, const struct uuid *id); /* -1 */
int truth_topic_live(const struct truth *t, const char *name);       /* the newest of that name that may be there; -1 */
/* The broker shows a topic, or says that it was made. asked_ns: when the question was sent. */
void truth_topic_asked(struct truth *t, const char *name, bool compacts, bool retains, bool is_lazy);
int truth_topic_shown(struct truth *t, const char *name, const struct uuid *id, int n_partitions, int64_t asked_ns);
void truth_topic_grown(struct truth *t, int topic, int n_partitions);
/* It shows all topics, and this is not among them. */
void truth_topic_missing(struct truth *t, int topic, int64_t asked_ns);
void truth_topic_deleted(struct truth *t, int topic);

/* ---- batches ---- */
/* The next batch of that client, drawn by the caller; its number is in spec->batch. */
struct truth_batch *truth_new_batch(struct truth *t, int client, int topic, int partition, const struct sim_batch_spec *spec,
                                    int16_t acks);
struct truth_batch *truth_batch(struct truth *t, int client, int32_t batch);
void truth_acked(struct truth *t, struct truth_batch *b, int64_t base_offset);
void truth_refused(struct truth *t, struct truth_batch *b); /* none of it is there, or will be */
void truth_unknown(struct truth *t, struct truth_batch *b);

/* Of a lazy topic, after a power cut: sound batches are on the disk up to there, and nobody owes what was behind. */
void truth_lost(struct truth *t, int topic, int partition, int64_t end);
/* An answer to what was asked then may tell of what the power cut has taken since. */
bool truth_is_stale(const struct truth *t, int topic, int64_t asked_ns);

/* ---- rot ---- */
/* What stands at these offsets may be missing from now on, and must not be wrong. sick: the disk answers with an error. */
void truth_rotten(struct truth *t, int topic, int partition, int64_t from, int64_t to, bool sick);
/* The broker says that it cannot give what is at that offset. Returns the offset to go on at; ends the run when nothing there
 * has rotted. */
int64_t truth_damage_told(struct truth *t, int topic, int partition, int64_t offset);

/* ---- reading ---- */
/* A batch that was read as committed. expected: the offset that was asked for; -1: any. start: everything below it had been
 * deleted when the question was sent. Returns the offset behind it; or -1: bytes that have rotted, of which their checksum
 * tells, and nothing behind them can be told apart. */
int64_t truth_read(struct truth *t, int topic, int partition, const uint8_t *p, size_t n, int64_t expected, int64_t start);
void truth_start_asked(struct truth *t, int topic, int partition, int64_t offset);
void truth_start_acked(struct truth *t, int topic, int partition, int64_t low_watermark);
/* at_least: what was known, `start` and `end_seen`, when the question was sent. */
void truth_start_shown(struct truth *t, int topic, int partition, int64_t start, int64_t at_least);
void truth_end_shown(struct truth *t, int topic, int partition, int64_t hw, int64_t at_least);
/* An id for a producer that nobody had before. */
void truth_producer_id(struct truth *t, int64_t pid, int16_t epoch);

/* ---- groups ---- */
void truth_commit_asked(struct truth *t, int group, int topic, int partition, int64_t offset);
void truth_commit_acked(struct truth *t, int group, int topic, int partition, int64_t offset);
/* at_least: what was acknowledged when the question was sent; offset -1: none is committed. */
void truth_commit_shown(struct truth *t, int group, int topic, int partition, int64_t offset, int64_t at_least);

#endif
