/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition's log from inside. Locks, in order:
 *   slow_mu    what waits for the disk: checkpoint, retention, truncation, close
 *   append_mu  writers of the active segment: append, roll, its index tails
 *   mark_mu    writing partition.flushed (plog_mark.c)
 *   fix_mu     reading or rebuilding what is known of sealed segments
 *   mu         the numbers below; a leaf but for the file cache's own, never held over a read or write
 * Segments are reference-counted: who has one may go on reading after it left the log.
 */
#ifndef KLOG_STORE_PLOG_INT_H
#define KLOG_STORE_PLOG_INT_H

#include <limits.h>

#include "lib/store/checkpoint.h"
#include "lib/store/datadir_int.h"
#include "lib/store/epochs.h"
#include "lib/store/flush_mark.h"
#include "lib/store/plog.h"
#include "lib/store/producers.h"
#include "lib/store/segment.h"

#define BORDERS   64
#define READ_ENDS 8

struct border { /* where a recent batch ended: readers at the tail start and stop at such places */
    int64_t offset;
    int64_t segment; /* its base offset */
    int64_t position;
    int64_t text; /* text position */
};

/* Where the log is to be cut: the batch border at or below the offset asked for, in segment number i, and the sum
 * of what stays of that segment. */
struct cut {
    int i;
    struct segment *seg;
    struct segment_sum sum;
    int64_t text_base;
};

struct pending_snapshot {
    struct bytebuf bytes; /* of the file */
    int64_t offset;       /* -1: there is none */
    bool empty;           /* no producer was known */
};

struct plog {
    struct datadir *dd;        /* set once */
    const struct store_io *io; /* set once */
    struct filecache *files;   /* set once */
    int dirfd;                 /* set once: of the data directory */
    char name[NAME_MAX + 1];   /* set once: "orders-0", the directory's name */
    uint32_t identity;         /* set once: topic id and partition, in the files that are this log's (S12) */
    struct segfile *mark;      /* set once: partition.flushed */

    struct lock slow_mu, append_mu, mark_mu, fix_mu, mu;

    /* guarded by mu */
    struct plog_config cfg;
    struct segment **segs; /* by base offset; the last is active; n_segs > 0; changed under append_mu too */
    int n_segs, cap_segs;
    int64_t start_offset, end_offset;
    int64_t size_bytes;
    int64_t newest_ms;
    int64_t active_since_ms;          /* first append to the active segment, wall clock; -1 none */
    struct log_point flushed;         /* S4 */
    int64_t flushed_bytes;            /* since the last checkpoint */
    uint32_t generation;              /* counts truncations: what was learnt before one is void */
    uint32_t swaps;                   /* counts segments that the cleaner exchanged */
    uint64_t dir_changes, dir_synced; /* names made, names made when the directory was last fsynced (S5) */
    uint64_t dir_checkpointed;        /* names made at the last checkpoint */
    struct producers producers;
    struct epochs epochs;
    bool epochs_dirty;                  /* not yet in the file */
    bool epoch_is_new;                  /* the latest epoch has no batch yet, and need not be in the file */
    bool end_is_apart;                  /* the log may end behind its last batch: the next one has missing offsets before it */
    int64_t gap_end;                    /* where the last batch ends that has missing offsets before it; -1 none */
    struct border borders[BORDERS];     /* a ring */
    uint32_t n_borders;                 /* ever added */
    struct border read_ends[READ_ENDS]; /* a ring: where reads ended, and so where readers go on; no text */
    uint32_t n_read_ends;

    bool mark_kept;       /* guarded by mark_mu: partition.flushed is on the disk, of whatever moment */
    int64_t written_back; /* guarded by append_mu: bytes of the active segment whose write-back was started */

    /* guarded by slow_mu */
    uint8_t saved[CHECKPOINT_BYTES]; /* the checkpoint file as it is; all zero when unknown */
    uint8_t late[CHECKPOINT_BYTES];  /* the one to be written with those of other logs */
    bool save_late, is_late;         /* a checkpoint goes there; there is one */
    int64_t snapshot_offset;         /* newest producer state on disk; -1 none */
    bool snapshot_empty;             /* it was empty and has no file */
    struct pending_snapshot pending; /* one that the flush point has not reached yet */
    struct cut half_cut;             /* its files are cut, or part of them, and memory is not: nothing is appended, claimed or
                                      * deleted until a truncation has got through; seg NULL: none. Written under append_mu
                                      * and mark_mu too */
    int64_t restart_base;            /* a restart has begun its segment there and has not got through: nothing is appended until it is
                                      * done, or a truncation has taken the segment away; -1 none. Written under append_mu too */
    bool cleaning;                   /* the cleaner's manifest may be there */
    int64_t start_marker;            /* NNN.start there is; -1 none */

    bool made;             /* set once: its directory was not there */
    bool unsynced;         /* made by plog_open_unsynced(), which nobody has synced yet */
    int64_t checkpoint_hw; /* set once */
    uint32_t opening;      /* set once: by chance, one opening of the log from another */
};

/* ---- plog.c ---- */
struct segment *plog_active(const struct plog *l);         /* under mu or append_mu */
struct log_point plog_point(const struct plog *l);         /* the end; under mu */
void plog_push_segment(struct plog *l, struct segment *s); /* under mu */
/* Index of the segment that holds offset, or would; under mu. */
int plog_find_segment(const struct plog *l, int64_t offset);
void plog_note_border(struct plog *l); /* the end is one; under mu */
bool plog_get_border(const struct plog *l, int64_t offset, const struct segment *s,
                     struct border *ret);              /* under mu */
int64_t plog_segment_end(const struct plog *l, int i); /* offset; under mu */
void plog_path(const struct plog *l, const char *file, char *ret, size_t size);
/* Rolls: a new active segment from `base` on, the end or, where offsets are skipped, above it. Under append_mu. 0 or
 * -errno. */
int plog_roll(struct plog *l, int64_t base);
/* What decides about a roll, as if batches that are not there yet had been appended. */
struct filling {
    int64_t base;            /* of the segment */
    int64_t size;            /* of its .log */
    int64_t first_timestamp; /* max timestamp of its first batch, -1 none */
};
struct filling plog_filling(const struct plog *l); /* of the active segment; under mu or append_mu */
/* Does the batch, which gets that base offset, go into a new segment? Under mu. */
bool plog_roll_is_due(const struct plog *l, const struct filling *f, const struct batch_header *h,
                      int64_t base_offset, int64_t now_ms);
/* To the end of the active segment's file. 0, and the file is pinned until who calls has taken the batches in; or -errno. Under append_mu. */
int plog_write_batches(struct plog *l, struct segment *s, const uint8_t *batch, size_t n, int64_t writeback_bytes);
/* A batch is in the file: now it is in the log. Under mu. */
void plog_take_in(struct plog *l, const struct batch_header *h, int64_t text_bytes, int64_t now_ms);
/* Makes the .log (and .text header) of a segment. */
int plog_create_files(struct plog *l, struct segment *s);
/* S8: tells the directory about an error unless it is only a full disk. */
int plog_disk_error(struct plog *l, int rc, const char *what);

int plog_flush_all(struct plog *l);

/* ---- plog_retain.c ---- */
/* Deletes the segments that end at or below `start`, which becomes the start offset. How many went, or -errno. Under
 * slow_mu. */
int plog_delete_front(struct plog *l, int64_t start);

/* ---- plog_truncate.c ---- */
enum cut_by {
    CUT_BY_INDEX,
    CUT_BY_SCAN,        /* where good batches end that can be read */
    CUT_BEFORE_SEGMENT, /* all of the segment that holds the offset goes, and nothing of it is read */
};
/* Under slow_mu; the caller judges errors. */
int plog_truncate_by(struct plog *l, int64_t offset, enum cut_by by);

/* ---- plog_mark.c ---- */
bool plog_read_mark(struct plog *l, struct flush_mark *ret); /* false, and offset -1: it cannot be used */
/* Not synced; under mark_mu once the log is open. */
int plog_write_mark(struct plog *l, const struct log_point *flushed);
/* Before anybody counts on a flush or a checkpoint of this log for the first time: from then on a power cut leaves the old mark
 * or the new one, never none, and a start can tell what nobody was promised from damage. 1: it may be a new name. Blocks. */
int plog_keep_mark(struct plog *l);

/* ---- recover.c ---- */
/* had_dir: the partition's directory was there before. */
int plog_recover(struct plog *l, bool clean, bool had_dir, int64_t now_ms, struct plog_recovery *rec);

/* ---- listing.c ---- */
struct listing {   /* what is in the directory */
    int64_t *logs; /* base offsets, rising */
    int n_logs;
    int64_t *snapshots; /* offsets, rising */
    int n_snapshots;
    int64_t *starts; /* offsets that NNN.start files are named by, rising */
    int n_starts;
};
int listing_read(const struct store_io *io, int dirfd, const char *dir, struct listing *ret);
/* Removes files beside segments that are not there. Only when the log is opened. */
void listing_remove_orphans(const struct store_io *io, int dirfd, const char *dir, const struct listing *ls);
void listing_done(struct listing *ls);

/* ---- plog_checkpoint.c ---- */
int plog_write_checkpoint(struct plog *l, int64_t hw); /* under slow_mu */
uint32_t plog_sealed_sum(const struct plog *l, int n); /* over the first n segments, for the checkpoint; under mu */
int plog_save_checkpoint(struct plog *l, const struct checkpoint *c); /* under slow_mu */
/* S6 for a file of the partition. */
int plog_replace(struct plog *l, const char *file, const void *p, size_t n);
int plog_write_epochs(struct plog *l);             /* under slow_mu */
/* Makes offset a start that survives the loss of the checkpoint (NNN.start). Under slow_mu. */
int plog_mark_start(struct plog *l, int64_t offset);
void snapshot_path(const struct plog *l, int64_t offset, char *ret, size_t size);
void plog_drop_pending(struct plog *l); /* the snapshot that waits for the flush point; under slow_mu */
#define SNAPSHOTS_KEPT 3

/* ---- segload.c ---- */
/* Sees to it that what is known of a sealed segment is right, reading or rebuilding it. 0 or -errno. */
int plog_load_segment(struct plog *l, struct segment *s);
/* Its index files contradict its log: makes them anew. -EBADMSG when that has been done already. */
int plog_repair_segment(struct plog *l, struct segment *s);

/* ---- segcheck.c ---- */
/* Are the batches in [from, *to) of the segment those that were written there? 0, and *to lowered to the first that is
 * not; -EBADMSG when that is the one at `from`, and *to is where good ones follow. Looks at headers, and at each only
 * once a life. */
int plog_check_range(struct plog *l, struct segment *s, int64_t from, int64_t *to);
/* Is its .log, of `size` bytes, another file than the one that its .text (of which s->sum counts the entries) was
 * written with? Reads headers. */
bool plog_is_foreign(struct plog *l, struct segment *s, int64_t size);
void plog_set_foreign(struct plog *l, struct segment *s);

/* ---- locate.c ---- */
/* A question that takes several steps without a lock: an error it meets may only mean that the log's front or
 * end went meanwhile. */
struct stamp {
    int64_t start_offset;
    uint32_t generation, swaps;
};
struct stamp plog_stamp(struct plog *l);
bool plog_moved_since(struct plog *l, const struct stamp *st);

struct place { /* a batch */
    int64_t position;
    struct batch_header h;
};
/* First batch of the segment whose last offset is >= offset, looking below position `end`. 1, 0 when there is
 * none, -errno; -EBADMSG: the log is damaged there. */
int plog_locate(struct plog *l, struct segment *s, int64_t offset, int64_t end, struct place *ret);
/* The same without mending an index that lies: -EBADMSG then. */
int plog_locate_as_is(struct plog *l, struct segment *s, int64_t offset, int64_t end, struct place *ret);
/* Headers one after the other: small batches come 4 KiB at a time. Begins with at = n = 0. 0, or -EBADMSG. */
struct header_window {
    int64_t at, n;
    uint8_t p[4096];
};
int header_window_get(struct header_window *w, struct segment *s, int64_t position, int64_t end,
                      struct batch_header *ret);
/* One header. */
int plog_header_at(struct plog *l, struct segment *s, int64_t position, int64_t end,
                   struct batch_header *ret);
/* plog_text.c: text of the batches of a segment before `position`, a batch border above 0; -EBADMSG when .text
 * lies, which is not mended. */
int plog_text_before(struct plog *l, struct segment *s, int64_t position, int64_t *ret);
/* The whole batch into b (emptied first). */
int plog_load_batch(struct plog *l, struct segment *s, const struct place *at, struct bytebuf *b);

#endif
