/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hosted partition: a replica's state machine, its log, and those who wait for it to move.
 *
 * Locks, in order: registry lock, partition.change_mu, partition.mu, the flusher's, the log's own. Watchers are told under
 * partition.mu, by loop_post() and nothing else.
 */
#ifndef KLOG_DAEMON_PARTITION_H
#define KLOG_DAEMON_PARTITION_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "daemon/config/ranks.h"
#include "daemon/config/topic_config.h"
#include "daemon/replica/replica.h"
#include "daemon/storage/flusher.h"
#include "lib/base/kerr.h"
#include "lib/loop/loop.h"
#include "lib/record/batch.h"
#include "lib/store/plog.h"

struct logdirs;
struct partitions;
struct partitions_deps;
struct world;

enum watch_what {
    WATCH_HW,    /* committed and visible */
    WATCH_FLUSH, /* on this broker's disk: acks=1 */
    WATCH_LEO,   /* in the log: a follower that has all */
    WATCH_COPY,  /* as far as a follower may tell: see partition_copy_watch() */
};

/* One who waits on a partition. Owned by a delayed operation on `loop`; one a partition. Told once, then it
 * must be registered again. */
struct watcher {
    struct loop *loop;
    struct task *task; /* posted when the condition may have come true */
    enum watch_what what;
    int64_t wake_at; /* wake when that offset is reached; also on any change of leadership or deletion */
    bool of_copy;    /* also where this broker only follows */
    bool waiting;    /* in the list; guarded by partition.mu */
    LIST_ENTRY(watcher) link; /* guarded by partition.mu */
};

/* What has passed since klogd was started. Any thread reads. */
struct partition_traffic {
    atomic_ullong bytes_in, records_in; /* appended as leader; written under partition.mu */
    atomic_ullong copied_in;            /* bytes that came from the leader; written under partition.mu */
    atomic_ullong bytes_out, copied_out; /* fetched by consumers, by followers; any thread writes */
};
struct traffic {
    uint64_t bytes_in, records_in, bytes_out, copied_in, copied_out;
};

struct partition {
    struct lock change_mu; /* changes of the log by a follower, elections; held over waits for the disk */
    struct lock mu;
    struct partitions *registry;        /* set once */
    const struct partitions_deps *deps; /* set once: the registry's */
    char *topic;                        /* set once */
    int32_t id;                         /* set once */
    struct uuid topic_id;               /* set once */
    bool internal;                      /* set once: only klog itself and __admin_client write to it */
    bool lost_end, holed;               /* set once: what opening it found missing, as in struct plog_recovery, */
    int64_t holed_from;                 /* and from which offset on */
    int dir;                            /* set once: index in log.dirs, -1 none */
    struct plog *log;              /* set once; NULL when it could not be opened: the replica is then damaged */
    struct replica replica;        /* guarded by mu */
    struct topic_config *config;   /* guarded by mu */
    LIST_HEAD(, watcher) watchers; /* guarded by mu */
    int32_t n_leo_watchers;        /* guarded by mu: of those, who waits for appends */
    bool deleted;                  /* guarded by mu: being removed; answer UNKNOWN_TOPIC_OR_PARTITION, or */
    bool moved_away;               /* guarded by mu: NOT_LEADER_OR_FOLLOWER, since other brokers have it */
    bool begins_anew; /* guarded by mu: its log lacks the end of what it had, or all; damaged as long as the register counts on that */
    int64_t suspect_at; /* guarded by mu: whoever read from there on met damage, or was refused; -1 nobody */
    int64_t sound_at;   /* guarded by mu: what was suspected last, and found to be good; -1 none */
    int64_t damage_at;  /* guarded by mu: the first record known to be damaged or missing; -1 none */
    int64_t unflushed_messages;    /* guarded by mu; policy interval */
    atomic_int refs;               /* partition_ref/unref */
    bool gone;                     /* no reference is left; guarded by the registry's lock of the dead */
    struct flush_entry flush;      /* the flusher's, but ops and lane */
    struct partition_traffic traffic;
};

struct partition *partition_ref(struct partition *pt);
void partition_unref(struct partition *pt);

/* ---- append ---- */
/* What a produce to one partition came to. */
struct partition_appended {
    enum kerr err;
    int eno;
    const char *text;  /* error message or NULL; static */
    int32_t bad_index; /* record refused, -1 */
    int64_t base_offset, last_offset, log_append_time, start_offset;
    bool committed, flushed;      /* already: nobody needs to wait for it */
    int32_t leader, leader_epoch; /* for NOT_LEADER_OR_FOLLOWER */
};
/* Judges and appends one batch as leader, starts its flush. acks=-1 is committed once hw > last_offset,
 * acks=1 once it is flushed as the topic's policy says. The batch is patched in place. */
void partition_append(struct partition *pt, uint8_t *batch, size_t n, int16_t acks, bool zstd_allowed,
                      bool internal_writer, struct partition_appended *ret);
/* All records for which partition_append has refused the batch (bad_index >= 0), at most max; how many. */
int32_t partition_refused(struct partition *pt, const uint8_t *batch, size_t n, bool zstd_allowed,
                          struct batch_refusal *ret, int32_t max);

/* n bytes of its log have left for a consumer or a follower. Any thread. */
void partition_note_fetched(struct partition *pt, int64_t n, bool by_follower);
void traffic_add(struct traffic *to, const struct partition_traffic *t); /* any thread */

/* ---- view ---- */
struct partition_view { /* one consistent reading of the ends */
    enum kerr err;      /* UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR */
    int32_t leader, leader_epoch;
    int64_t start_offset, hw, lso, leo, fleo;
    bool hw_is_current; /* R16 */
    bool copies;        /* it follows, and its log is a beginning of the leader's: err is NOT_LEADER_OR_FOLLOWER */
    bool has_min_isr;   /* R7 */
    bool is_zstd;       /* the topic's compression.type */
    bool throttled;     /* a follower's view: it is not in sync, and leader.replication.throttled.replicas has this replica */
};
void partition_view(struct partition *pt, struct partition_view *ret);
/* What is below hw is known to be committed, and may be deleted, compacted, forgotten as the topic's settings say. */
bool partition_view_is_settled(const struct partition_view *v);
/* KIP-320: NONE, FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH; -1 is not judged. */
enum kerr partition_epoch_check(const struct partition_view *v, int32_t client_epoch);

/* ---- waiting ---- */
/* Registers w, unless its offset is reached or the partition is gone or led elsewhere already: then returns
 * false. */
bool partition_watch(struct partition *pt, struct watcher *w);
void partition_unwatch(struct partition *pt, struct watcher *w);
void partition_wake_all(struct partition *pt);

/* ---- events ---- */
extern const struct flush_ops partition_flush_ops; /* of partition.flush */
void partition_flush_soon(struct partition *pt);   /* asks the flusher to sync it */
/* An operation on its log ended with -errno: true when that was since its log directory has failed, which everybody is
 * then told (S8). */
bool partition_note_error(struct partition *pt, int eno);
void partition_disk_failed(struct partition *pt); /* S8: answers KAFKA_STORAGE_ERROR from now on */
void partition_set_config(struct partition *pt, struct topic_config *cfg);
/* A newer register state; a new leadership is made durable in the log first (S6). False: older than what is
 * known (R15). Blocks: on a worker. */
bool partition_set_state(struct partition *pt, const struct partition_state *st);
void partition_set_broker_epoch(struct partition *pt, int64_t be);

/* ---- changes of the register: replica_tick() and what follows it, with the lock taken and waiters told ---- */
bool partition_tick(struct partition *pt, const struct replica_tick *t, struct state_change *ret);
bool partition_proposal_sent(struct partition *pt, const struct state_change *c);
/* Written: a change by which this broker leads begins an epoch, and goes through partition_set_state() instead. */
void partition_proposal_confirmed(struct partition *pt, const struct state_change *c, int64_t version);
/* Not written; or unknown, and then the register has to be read again. */
void partition_proposal_failed(struct partition *pt, bool unknown);

/* ---- damage inside the log (S10): daemon/replica/partition_mend.c ---- */
/* Reading from that offset on ended with an error of the log, or a follower asks again for what it was sent: whoever cares
 * for logs is to check it. Any thread, never blocks. */
void partition_suspect(struct partition *pt, int64_t offset);
/* The offset to check, or -1; it is forgotten here. */
int64_t partition_take_suspect(struct partition *pt);
void partition_is_sound(struct partition *pt, int64_t offset); /* a check found nothing there */
/* A check found that record damaged or missing. One of several replicas counts for nothing from now on, or hands over
 * what it leads as soon as another may lead; the only one serves what is good. Any thread. */
void partition_found_damage(struct partition *pt, int64_t offset, int eno);
/* Where nobody counts on a damaged log any more: lets go of it from the damage on, and follows again. 1, 0 when nothing was
 * to be done, or -errno: it is to be tried again. Blocks. */
int partition_mend(struct partition *pt);

/* ---- the registry of hosted partitions: daemon/replica/partitions.c ---- */
struct partitions_deps {
    const struct world *world;
    int32_t me; /* this broker's id */
    struct logdirs *dirs;
    struct flusher *flusher;
    /* Is there a note that this topic was deleted, so that records of it that are still there may go? Blocks; on a worker. */
    bool (*was_deleted)(void *arg, const struct uuid *topic_id);
    /* Of a partition that is not hosted here, by its topic's id or, with a zero id, its name: NOT_LEADER_OR_FOLLOWER when the
     * cluster has it, else UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID. Any thread. NULL: there are no other brokers. */
    enum kerr (*elsewhere)(void *arg, struct kstr topic, const struct uuid *topic_id, int32_t id);
    void *arg;
};
struct partitions *partitions_new(const struct partitions_deps *deps);
/* Closes every log with its checkpoints; dir_clean[i] becomes false for a log directory where that was not
 * possible. No other thread may use partitions any more. */
void partitions_close(struct partitions *ps, bool *dir_clean);
void partitions_free(struct partitions *ps);
/* This broker was registered, with that broker epoch: before any partition is added, and each time anew. */
void partitions_set_broker_epoch(struct partitions *ps, int64_t be);
struct partition *partitions_get(struct partitions *ps, struct kstr topic,
                                 int32_t id); /* a reference, or NULL */
/* By the topic's id; with a zero id by its name. NULL: *ret_err says why (UNKNOWN_TOPIC_ID: the id is of no topic here,
 * whatever stands under the name by now). */
struct partition *partitions_get_named(struct partitions *ps, struct kstr topic, const struct uuid *topic_id, int32_t id,
                                       enum kerr *ret_err);
/* What to answer about a partition that partitions_get() did not find. */
enum kerr partitions_missing(struct partitions *ps, struct kstr topic, int32_t id);
struct partition *partitions_get_by_id(struct partitions *ps, const struct uuid *id, int32_t partition);
/* The topic's name by its id, copied into ret; false: not hosted here. */
#define TOPIC_NAME_MAX 249
bool partitions_topic_name(struct partitions *ps, const struct uuid *id, char ret[TOPIC_NAME_MAX + 1]);
/* Opens or creates logs of a topic, which then join the registry. Blocks: on a worker. One that cannot be opened joins as
 * damaged; the first -errno is returned. at_start: it may have a log, so that one that is not found may be in a log directory
 * that has failed; was_here: it had one before, so that a missing one is a loss. */
struct partition_new {
    int32_t id;
    const struct partition_state *st;
    bool at_start;
    bool was_here;
};
int partitions_add(struct partitions *ps, const char *topic, const struct uuid *topic_id, struct topic_config *cfg,
                   const struct partition_new *new, size_t n);
/* From now on it takes and shows nothing (UNKNOWN_TOPIC_OR_PARTITION; NOT_LEADER_OR_FOLLOWER of one that has moved away); waiters are
 * woken. Does not block. */
void partitions_retire(struct partitions *ps, const char *topic, int32_t id);
/* Leaves the registry, wakes waiters, deletes the log after the last reference. Blocks: on a worker. 0, or -errno
 * when something of the log is still there. */
int partitions_remove(struct partitions *ps, const char *topic, int32_t id);
/* Calls f for each, without a lock held: f may block. One may just be being removed. */
void partitions_each(struct partitions *ps, void (*f)(void *arg, struct partition *pt), void *arg);
/* Some partition is to be checked or mended. Any thread, never blocks. */
void partitions_want_care(struct partitions *ps);
/* Waits for that, or until `until_ms` (monotonic) or partitions_end_care(). False: that one was called. One thread. */
bool partitions_wait_for_care(struct partitions *ps, int64_t until_ms, bool *ret_wanted);
void partitions_end_care(struct partitions *ps);
/* Of all partitions, those that have left too: never less than it was. */
void partitions_traffic(struct partitions *ps, struct traffic *ret);
/* How often this broker, as leader, has taken a replica out of an in-sync set, and into one. */
struct isr_changes {
    uint64_t shrinks, expands;
};
void partitions_note_isr(struct partitions *ps, int32_t before, int32_t after); /* members; any thread */
struct isr_changes partitions_isr_changes(const struct partitions *ps);
/* A log directory failed: its partitions are damaged. */
void partitions_dir_failed(struct partitions *ps, int dir);

#endif
