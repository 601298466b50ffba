/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registers on disk: DIR/registers.snapshot, all of them at one moment, and DIR/registers.journal, what
 * changed since. One thread at a time; everything may block. docs/DISK-FORMAT.md has the bytes.
 *
 * One frame holds what one fdatasync made durable. A frame is written only after the one before it was
 * synced, so a sound frame behind a broken one proves damage, and a broken last one was never acknowledged.
 */
#ifndef KLOG_DAEMON_REGISTER_JOURNAL_H
#define KLOG_DAEMON_REGISTER_JOURNAL_H

#include "daemon/meta/register_tree.h"
#include "lib/base/buf.h"

struct register_journal {
    int dirfd; /* not ours */
    int fd;
    int64_t end;      /* where the next frame goes */
    int64_t room_end; /* up to here the disk has room set aside, so that topics can be deleted when it is full */
    int64_t sequence; /* of the last frame */
    int64_t snapshot_bytes;
    int64_t cut_bytes;    /* what opening dropped from the tail */
    struct bytebuf frame; /* being filled */
};

/* Loads both files into t, or makes an empty journal. -EBADMSG and one line in err when the files are
 * damaged. */
int register_journal_open(struct register_journal *j, int dirfd, struct register_tree *t, char *err,
                          size_t err_size);
void register_journal_close(struct register_journal *j);

/* Fill a frame ... */
void register_journal_put(struct register_journal *j, const char *path, struct slice value, int64_t version);
void register_journal_drop(struct register_journal *j, const char *path);
/* ... and make it durable. -ENOSPC, -EDQUOT: nothing of it stays and the journal can go on. Any other error:
 * what is on the disk is unknown, write no more. The frame is empty afterwards. */
int register_journal_commit(struct register_journal *j);

/* Writes a snapshot and starts the journal anew when it has grown enough. An error leaves the old files in
 * use. */
int register_journal_compact_if_due(struct register_journal *j, struct register_tree *t);

#endif
