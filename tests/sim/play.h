/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run: a broker on host 0, raw clients on the others, faults by a plan, and the truth that all is held against. First a
 * time with faults; then everything is healed, and within a bounded time all must go on and be read; then the broker stops, and what
 * is on its disk is read by a reader that is not klog's.
 */
#ifndef KLOG_SIM_PLAY_H
#define KLOG_SIM_PLAY_H

#include "tests/sim/client.h"
#include "tests/sim/diskread.h"
#include "tests/sim/plan.h"
#include "tests/sim/simhost.h"
#include "tests/sim/truth.h"

enum {
    PLAY_BROKER_HOST = 0,
    PLAY_BROKER_PORT = 9092,
    PLAY_CLIENTS = 16,
};

/* What a seed draws of everything that is no fault. */
struct swarm {
    int64_t faults_ms; /* so long */
    int n_producers, n_consumers, n_members, n_admins, n_rude;
    bool has_lib;
    int n_dirs, n_loops, n_workers;
    bool changes_settings; /* each life has other threads, segment.bytes, ... */
    int last_dir_from;     /* ... and the last of the log directories is there from this life on */
    bool changes_policy;   /* ... and another flush.policy for topics that have none of their own */
    int64_t segment_bytes, index_interval_bytes;
    bool journal; /* simdisk_config */
    int64_t slowness; /* of the disk, in thousandths: the slower, the more is not synced when the power goes */
    uint32_t write_back, part; /* simdisk_chances */
    bool compaction, retention, lazy; /* topics with these there may be */
    int64_t registers_compact_min;
};

enum play_phase { PLAY_FAULTS, PLAY_HEALED, PLAY_DRAINING, PLAY_OVER };

struct rot_kept { /* what a bit of the registers was, until a start refuses them and they come from a backup */
    char path[64];
    int64_t at;
    uint8_t was, is;
    bool turned;
};

struct play {
    struct sim *sim;
    struct simnet *nw;
    struct simdisk *disk;
    struct simhost host;
    struct swarm swarm;
    struct plan plan;
    struct truth truth;
    struct diskread_hint hints[TRUTH_TOPICS][TRUTH_PARTITIONS];
    struct rawclient *clients[PLAY_CLIENTS];
    int n_clients;
    enum play_phase phase;
    int64_t answers[PLAY_CLIENTS]; /* that each had had when all was healed and served */
    struct rnd rnd;
    struct sim_step restart, next_fault, full_ends, fds_end, slow_ends;
    int64_t paused_until_ns;
    int64_t full_until_ns; /* so long the broker may call the disk full: it looks once a second */
    int n_faults; /* done */
    int n_ends;   /* of lives */
    struct play_broker *broker; /* of the process that runs and serves; NULL */
    bool stopped_clean;         /* the last life ended so */
    bool is_stopping;           /* it was asked to */
    bool disk_lied;             /* it has told of errors, or rotted: what is damaged now is not the broker's fault */
    const struct fault *rot_due; /* when the process has ended; NULL */
    struct rot_kept registers_rot;
    struct libclient *lib;      /* libclient.h; NULL */
    struct rawclient *sweeper;     /* reads what has rotten places, at the end */
    bool prints_lines;
    bool was_lazy;    /* a life had another flush.policy than commit, for the topic of positions, too */
    bool needs_start; /* a fault ended a log directory, or kept a log from being opened: until the next start not all need work */
    int64_t n_lives, n_crashes, n_power_cuts, n_clean_stops, n_failed_starts;
};

/* Runs one seed to its end; fails it (sim_fail) or returns. plan: NULL draws it. */
struct play_figures {
    uint64_t hash, steps, events;
    int64_t sim_ns;
    int64_t n_lives, n_crashes, n_power_cuts, acked, read;
};
enum { PLAY_TRACE = 1, PLAY_LINES = 2 }; /* what it prints: each event and line; the broker's lines alone */
void play_run(uint64_t seed, const struct plan *plan, unsigned prints, struct play_figures *ret);

/* The faults that it would have. */
void play_plan_of(uint64_t seed, struct plan *ret);

/* Counts the error codes that clients were told. */
void play_mark_error(struct play *p, int16_t api, int16_t err);

/* ---- told by simbroker.c, on its process's main fiber ---- */
void play_start_failed(struct play *p, int rc, const char *why);
void play_serving(struct play *p);
void play_stopped(struct play *p, bool clean);

#endif
