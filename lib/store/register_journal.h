/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the embedded registers: frames at the end of the journal, and now and then a snapshot with a new journal
 * behind it. One thread at a time; everything may block. register_files.h reads them.
 *
 * One frame holds what one fdatasync made durable. What is told to be written is there at the next start; what is
 * refused is not, or wholly. After a failure that leaves this in doubt `failed` is set, and nothing is written any more.
 */
#ifndef KLOG_STORE_REGISTER_JOURNAL_H
#define KLOG_STORE_REGISTER_JOURNAL_H

#include "lib/store/datadir.h"
#include "lib/store/register_files.h"

struct register_journal {
    const struct world *world;
    const struct store_io *io;
    int dirfd; /* not ours */
    int fd;
    struct uuid id;
    int format;       /* of the file that is written to: 1 until there was room to take an older one over */
    uint32_t seed;    /* of its frames */
    int64_t end;      /* where the next frame goes */
    int64_t room_end; /* up to here the disk has room set aside, so that topics can be deleted when it is full */
    int64_t sequence; /* of the last frame */
    int64_t snapshot_bytes;
    int64_t compact_min;  /* bytes of journal below which no snapshot is written; set once */
    int64_t compact_at;   /* not before it is as long as this again: the last try failed */
    int64_t torn_bytes;   /* what opening cut off the tail; kept in registers.journal.POSITION.cut */
    int failed;           /* -errno: what is on the disk is unknown (S8) */
    struct bytebuf frame; /* being filled */
};

/* Gives every register that is to last, parents before children. */
typedef void register_each_fn(void *arg, void (*f)(void *f_arg, const char *path, struct slice value, int64_t version),
                              void *f_arg);

/* Loads both files into the sink, or makes an empty journal when may_create says so. What was clean is dd's to know. An
 * older format is taken over: `each` then gives what was loaded. compact_min: so many bytes of journal are not worth a
 * snapshot; 0: the usual 4 MiB. -EBADMSG and one line in err when the files are damaged or missing;
 * they are left as they are. */
int register_journal_open(struct register_journal *j, struct datadir *dd, bool may_create, int64_t compact_min,
                          const struct register_sink *sink, register_each_fn *each, void *each_arg, char *err,
                          size_t err_size);
void register_journal_close(struct register_journal *j);

/* Fill a frame ... */
void register_journal_put(struct register_journal *j, const char *path, struct slice value, int64_t version);
void register_journal_drop(struct register_journal *j, const char *path);
/* ... and make it durable. -ENOSPC, -EDQUOT, -EFBIG: nothing of it stays and the journal can go on. Any other error:
 * j->failed is set. The frame is empty afterwards. */
int register_journal_commit(struct register_journal *j);

/* Writes a snapshot and starts the journal anew when it has grown enough. An error without j->failed leaves the old
 * files in use. */
int register_journal_compact_if_due(struct register_journal *j, register_each_fn *each, void *each_arg);

#endif
