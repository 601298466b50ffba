/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition's log: segments, their indexes, producer state and leader-epoch cache in one
 * directory. Rules S1-S9 of docs/DISK-FORMAT.md are kept here.
 *
 * Threads: every function may be called from any thread; a log has one mutex inside (`mu`, a leaf: nothing
 * else is taken under it). Only the functions marked "blocks" may sleep on the disk; the others touch the
 * page cache and may run on a reactor. Callers serialise appends themselves (partition.mu).
 *
 * Errors: 0 or -errno; -EIO, -EROFS and the like have already marked the directory as failed (S8).
 */
#ifndef KLOG_STORE_PLOG_H
#define KLOG_STORE_PLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/kerr.h"
#include "lib/base/slice.h"
#include "lib/base/uuid.h"
#include "lib/record/batch.h"
#include "lib/store/datadir.h"

struct plog;
struct producer_state;

/* What the log needs of the topic's configuration; a copy is kept. */
struct plog_config {
    int64_t segment_bytes;
    int64_t segment_ms; /* roll after this long, by record timestamps as Kafka does */
    int32_t index_interval_bytes;
    int64_t retention_ms;    /* -1 for ever */
    int64_t retention_bytes; /* -1 unlimited */
    bool delete_policy;      /* cleanup.policy has "delete" */
    bool compact_policy;
    int64_t producer_expiry_ms; /* producer.id.expiration.ms */
    int64_t writeback_bytes; /* start writing to disk after so many bytes, without waiting (policies interval
                              * and async: 8 MiB); 0 leaves it to the kernel */
};

struct plog_recovery { /* what opening had to do, for one log line */
    bool clean;        /* nothing was scanned */
    int64_t scanned_bytes;
    int64_t cut_bytes; /* dropped at the tail, kept in *.cut */
    int64_t cut_position;
    int rebuilt_indexes;
    bool lost_end; /* it ends below where it had been on the disk */
    bool holed;    /* below its end records are missing that were not deleted, or damaged, */
    int64_t holed_from; /* from that offset on, which may be below the start */
    char cut_file[64];
    char note[1000]; /* damaged checkpoint files etc., one line, empty if none */
};

/* Opens or creates DIR/topic-partition. Blocks. */
int plog_open(struct datadir *dd, const char *topic, int32_t partition, const struct uuid *topic_id,
              const struct plog_config *cfg, int64_t now_ms, struct plog **ret, struct plog_recovery *rec);
/* As plog_open(), but what it makes anew is on the disk only after plog_sync_new(); nobody else may have the log before.
 * For many logs at once, of which each would take five fsyncs. */
int plog_open_unsynced(struct datadir *dd, const char *topic, int32_t partition, const struct uuid *topic_id,
                       const struct plog_config *cfg, int64_t now_ms, struct plog **ret, struct plog_recovery *rec);
/* 0; or -errno: those that are unsynced yet are to be closed or removed. */
int plog_sync_new(struct plog *const *logs, size_t n);
bool plog_is_unsynced(const struct plog *l);
/* Before many logs are closed clean: flushes each, with any thread, and finds out whether its checkpoint has to be written
 * (it is late then); then those are written with two syncs of the file system for all of them, instead of five a log. What
 * fails here plog_close() tries again. */
int plog_checkpoint_prepare(struct plog *l, int64_t hw);
bool plog_checkpoint_is_late(const struct plog *l);
int plog_checkpoint_together(struct plog *const *logs, size_t n);
/* clean: flush, trim, checkpoint with hw; the caller writes the directory's clean marker afterwards. Blocks.
 */
int plog_close(struct plog *l, bool clean, int64_t hw);
/* Closes and deletes the directory (renamed first, so that a crash cannot bring half of it back). Blocks. */
int plog_remove(struct plog *l);
void plog_set_config(struct plog *l, const struct plog_config *cfg);
const char *plog_name(const struct plog *l); /* "orders-0" */

/* ---- ends ---- */
struct plog_ends {
    int64_t start_offset;     /* log start offset */
    int64_t end_offset;       /* LEO: next offset to be written */
    int64_t flushed_offset;   /* FLEO: everything below survives a power cut (S4) */
    int64_t size_bytes;       /* of all .log files */
    int64_t newest_timestamp; /* wall ms of the newest append; file time after a restart; -1 when empty */
    int64_t checkpoint_hw;    /* as found on opening; 0 if none */
    int64_t text_era;         /* another one when text positions may have moved since; never negative */
};
void plog_ends(struct plog *l, struct plog_ends *ret);

/* ---- append ---- */
struct plog_appended {
    enum kerr err;  /* 45, 47, 56, ... ; NONE also for a duplicate */
    int eno;        /* for KAFKA_STORAGE_ERROR */
    bool duplicate; /* already there (same producer, epoch, sequences): offsets are the old ones */
    int64_t base_offset, last_offset;
    int64_t log_append_time; /* -1 under CreateTime */
    bool rolled;
};
/* Appends one validated batch as the leader: checks the producer's sequence, sets base offset and leader
 * epoch in place, writes, updates indexes. On error nothing of it stays (S2). log_append_time: -1, or the
 * time that was set. */
void plog_append(struct plog *l, uint8_t *batch, size_t n, const struct batch_info *info,
                 int32_t leader_epoch, int64_t now_ms, int64_t log_append_time, struct plog_appended *ret);

/* ---- append as a follower: lib/store/plog_copy.c ---- */
struct plog_copied {
    int32_t appended;   /* batches that are in the log now and were not */
    int64_t end_offset; /* of the log */
    bool rolled;
    const char *bad;    /* of -EBADMSG: what is wrong with the first that was not taken, one line, static */
    int64_t bad_offset; /* and the base offset that it has; -1 unknown */
};
/* Appends the leader's batches as they are; the bytes are not changed. Offsets may leave gaps and never go back, epochs
 * never fall. A batch that the log has already is passed over, one that is cut off at the end of the bytes too. 0, or
 * -EBADMSG: one is damaged or does not fit behind the log; -EAGAIN: a truncation has to be tried again first; -ENOSPC and
 * other errors of the disk. What came before the one that failed is in the log. */
int plog_append_copy(struct plog *l, struct slice batches, int64_t now_ms, struct plog_copied *ret);
/* Lets go of everything, and begins anew at offset `base` (above its end, or at it when the log is empty), which has the
 * text position text_base. 0, -EINVAL: base is below; -EAGAIN as above; or an error of the disk: then nothing is appended (-EAGAIN) until
 * it is called again, with the same base or a greater one, or plog_truncate() has led back to where the log ended. Blocks. */
int plog_restart(struct plog *l, int64_t base, int64_t text_base);

/* ---- flush (group commit) ---- */
struct plog_flush; /* a ticket */
/* Takes a ticket for everything appended so far; NULL when all of it is flushed. */
struct plog_flush *plog_flush_begin(struct plog *l);
/* fdatasync of the segments and, when files are new, fsync of the directory. Holds no lock. Blocks. */
int plog_flush_run(struct plog_flush *t);
/* Moves the flush point when rc is 0 (S4), frees the ticket, returns the flushed offset. On an error the
 * directory is marked failed and never tried again (S8). */
int64_t plog_flush_end(struct plog *l, struct plog_flush *t, int rc);
/* Writes the checkpoint (start offset, flush point, high watermark) if it is due: every 64 MiB flushed or 64
 * segments, or `force`. Blocks. */
int plog_checkpoint(struct plog *l, int64_t hw, bool force);

/* ---- read ---- */
struct segfile; /* one .log file, reference-counted: its descriptor lives as long as a span */
struct plog_span {
    struct segfile *file; /* NULL when empty */
    int64_t at;
    int64_t n;
    int64_t base_offset; /* of the first batch */
};
int segfile_fd(struct segfile *f);
void plog_span_release(struct plog_span *s);
/* This thread may not wait for the making of an index (seconds for a large segment): what would have to answers -EAGAIN,
 * and another thread has to ask. Once, at the thread's start. */
void plog_thread_may_not_wait(void);
/* Whole batches from the one that holds `offset`, all below limit (an exclusive offset on a batch border),
 * at most max_bytes, but at_least_one batch when asked; within one segment. Empty when offset == limit.
 * -ERANGE: offset outside [start, end]. -EBADMSG: the log is damaged there, and the batch that holds offset
 * cannot be told from garbage (CORRUPT_MESSAGE). -EAGAIN: see plog_thread_may_not_wait. Does not read the batches (for sendfile); a damaged payload
 * leaves as it is. */
int plog_read(struct plog *l, int64_t offset, int64_t limit, int64_t max_bytes, bool at_least_one,
              struct plog_span *ret);
/* The same for a follower, which takes batches without a record, too: they say how far offsets and sequences went. */
int plog_read_to_copy(struct plog *l, int64_t offset, int64_t limit, int64_t max_bytes, bool at_least_one,
                      struct plog_span *ret);
/* pread of a span into memory; span.n bytes. */
int plog_span_read(const struct plog_span *s, uint8_t *ret);

/* ---- reading all of it, trusting none ---- */
struct plog_scan_item {
    struct slice batch;  /* whole, its checksum is right; until the next call */
    int64_t base_offset; /* of the batch: where it stands, whatever the bytes outside its checksum say */
    bool misplaced;      /* outside its checksum it says something else: offset, length or epoch are damaged */
    bool lost;           /* no batch, but n bytes that are damaged; base_offset is the first offset missing */
    int64_t segment, at, n; /* base offset of the segment, position in its .log, bytes */
};
struct plog_scan;
/* From one offset to another, in order, each batch checked as S1 says. Damage is an item like a batch. */
struct plog_scan *plog_scan_new(struct plog *l, int64_t from, int64_t to);
void plog_scan_free(struct plog_scan *s);
/* 1 and *ret, 0 at the end, -errno when the disk cannot be read. Blocks. */
int plog_scan_next(struct plog_scan *s, struct plog_scan_item *ret);

/* First record below limit with timestamp >= ts: *ret_offset, *ret_ts; -1, -1 when there is none. */
int plog_find_time(struct plog *l, int64_t ts, int64_t limit, int64_t *ret_offset, int64_t *ret_ts);
/* The record with the greatest timestamp (ListOffsets -3); -1, -1 when empty. */
int plog_max_timestamp(struct plog *l, int64_t limit, int64_t *ret_offset, int64_t *ret_ts);

/* ---- the plain view (text index) ---- */
/* Positions count bytes (value + '\n') from the first record ever; they survive retention. */
/* Position of the first byte of record `offset` (or of the end, for the end offset). Exact inside a batch
 * too. */
int plog_text_of_offset(struct plog *l, int64_t offset, int64_t *ret);
/* The batch that holds position `pos`: its first visible record's offset is >= *ret_base; *ret_pos is the
 * position at which the batch starts. -ERANGE outside the log. */
int plog_offset_of_text(struct plog *l, int64_t pos, int64_t *ret_base, int64_t *ret_pos);

/* ---- life cycle of the data ---- */
/* Deletes whole segments below hw that time or size retention lets go; the active one is rolled first when it
 * is due. Start offset is made durable before anything goes. Returns how many went, or -errno. Blocks. */
int plog_retain(struct plog *l, int64_t hw, int64_t now_ms);
/* DeleteRecords: start offset := offset (<= hw, checked by the caller). Blocks. */
int plog_delete_before(struct plog *l, int64_t offset);
/* S11: drops everything from offset on, and all of the batch that holds it. -ERANGE: the start is behind that. Blocks. */
int plog_truncate(struct plog *l, int64_t offset);
/* S10: of a damaged log whose records others have: lets go of everything from the record at `offset` on, whatever can be read
 * there; of everything, so that it begins anew at 0, when that is not above its start. Then the end says how far it came.
 * May be done again after an error. Blocks. lib/store/plog_mend.c */
int plog_mend(struct plog *l, int64_t offset);
/* Forgets producers idle for longer than producer_expiry_ms. */
void plog_expire_producers(struct plog *l, int64_t now_ms);
int32_t plog_n_producers(struct plog *l); /* that it remembers now; may change at once */
/* Calls f for each, the longest idle first, under the log's lock: f must be quick. */
void plog_producers_each(struct plog *l, void (*f)(void *arg, const struct producer_state *p), void *arg);

/* ---- leader epochs (KIP-101) ---- */
/* Records that `epoch` starts at the log's end. Durable with the next checkpoint; until then the batches of
 * the epoch say so, and a start finds it in them (S6). */
void plog_epoch_begin(struct plog *l, int32_t epoch);
int32_t plog_epoch_latest(struct plog *l); /* -1 none */
/* Where an epoch ended: epochs_end (R12). */
void plog_epoch_end(struct plog *l, int32_t epoch, int32_t *ret_epoch, int64_t *ret_end);
/* Epoch of the record at offset, -1 unknown. */
int32_t plog_epoch_at(struct plog *l, int64_t offset);

#endif
