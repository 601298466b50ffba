/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading as a consumer group: as/G/pN and what follow/ makes of it. Loop's thread. Rules:
 *   A1  Byte 0 of an open file is the record at the committed position.
 *   A2  A read at position X says that every record which ends at or before X has been dealt with, and nothing else
 *       says so; closing does not.
 *   A3  What was said is committed at most once a second, before the read that tells the end of file is answered, and
 *       after the close.
 *   A4  One open file a group and partition on a mount. Who opens it next waits for the last one's commit, and a second
 *       for it to be closed: what a killed shell had started may live on for a moment and still has it open.
 *   A5  A commit that is refused is told by the next read.
 *   A6  No line is handed out on knowledge older than two seconds that the group has no members; once it has some,
 *       as/G/pN is over for good, since they may have moved the position.
 *   A7  An open file belongs to its topic's id: once that is deleted, reads give what was fetched before, then the end
 *       of file where they follow, else ESTALE; nothing more is committed.
 *   A8  A position that the log has no more, since it lost its end, is moved to where the leader epoch of the record
 *       before it ended, or to the log's end where no epoch is known; the log says so, and that is committed.
 *   A9  With a RANGE, which is settled when the partition is taken up, only its records are handed out. What it leaves out before
 *       one of them is dealt with when that one is; behind the last of them nothing is. The file ends where the range does,
 *       unless that is a time: then at the log's end, since records need not come in the order of their times.
 */
#ifndef KLOG_FUSE_READER_H
#define KLOG_FUSE_READER_H

#include "fuse/base/mount.h"
#include "fuse/cluster/groups.h"
#include "fuse/partition/pfile.h"
#include "fuse/tree/file.h"
#include "lib/client/fetch.h"
#include "lib/client/member.h"
#include "lib/client/positions.h"

struct reader;

struct reader_part {
    struct reader *reader;
    struct pfile *file;                /* owned reference */
    int64_t next;                      /* offset to fetch from */
    int32_t epoch, acked_epoch;        /* leader epochs of the records before next and acked; -1 unknown */
    bool beyond;                       /* a fetch said that next is not in the log */
    int64_t acked, sent, committed;    /* A2; on its way; stored, or refused and told */
    int64_t sent_ms, committed_ms;     /* when a commit was last sent, and answered */
    bool asking, fetching, committing; /* what is out */
    bool empty;                        /* nothing more, by an answer newer than every waiting read */
    bool stale;                        /* a read came after the fetch that is out */
    struct ends_wait ends;
    struct client_fetch fetch;
    struct position position;
    struct positions_commit commit;
    struct member_commit mcommit;
    int64_t now_ms;            /* since 1970: what times of its RANGE are counted from */
    struct position_find time; /* where its RANGE begins */
    bool ranged;               /* extent says which records (A9) */
    struct extent extent;
    bool gone; /* another member's now */
    struct pfile_waker waker;
    LIST_ENTRY(reader_part) link;
};

/* A whole record in the buffer; they stand one after the other. */
struct reader_line {
    int64_t end; /* position after its '\n' */
    struct reader_part *part;
    int64_t next;  /* what to commit when it has been dealt with */
    int32_t epoch; /* its batch's leader epoch */
};

struct reader {
    struct mount *mount;
    struct node *node; /* owned reference */
    struct handle *h;  /* the open file; NULL after its release */
    struct group_user user; /* what others know of it */
    bool follow;
    int error; /* to be told by the next read, positive (A5) */
    LIST_HEAD(, reader_part) parts;
    int64_t at; /* follow: where the next read is */
    /* the buffer: text from position `start` on, lines[first, n_lines) */
    struct bytebuf text;
    size_t head; /* of the text that is still there */
    int64_t start;
    struct reader_line *lines;
    size_t first, n_lines, cap_lines;
    TAILQ_HEAD(, reader_op) ops;     /* reads that wait */
    TAILQ_HEAD(, reader_poll) polls; /* and polls, which are answered as soon as it is known */
    TAILQ_HEAD(, reader_open) heirs; /* opens that wait for the end of this one (A4) */
    struct timer timer;
    /* as/G/pN (reader_open.c) */
    struct reader_open *opening;
    struct group_ask ask;
    struct group_look look;
    bool asking, looking;        /* what is out */
    int64_t looked_ms, alone_ms; /* when that was asked; up to when there were no members (A6) */
    bool topic_gone;             /* A7 */
    /* as/G/all (reader_member.c) */
    struct member *member;
    bool assigned, releasing, leaving;
    bool dealt;         /* releasing: the line in hand is done, or was waited for long enough */
    bool orphaned;      /* the buffer is of partitions that went; the next read cuts it off */
    bool busy;          /* in a call that may come back here */
    int64_t delivered;  /* up to where bytes were handed out */
    bool polled;        /* the last poll was told: readable */
    int64_t polled_end; /* and of bytes up to here */
    struct timer release_timer;
};

extern const struct file_ops reader_ops;

struct reader *reader_new(struct handle *h);
/* Something has changed: waiting reads go on as far as they can. */
void reader_go(struct reader *g);
/* No new reads; what was said is committed. The end comes when all is answered. */
void reader_close(struct reader *g);
void readers_end(struct mount *m); /* all of them: the mount ends */
bool readers_pending(const struct mount *m);

/* Has every partition asked that may have more; true: none has, by answers newer than reader_look_again. */
bool reader_is_dry(struct reader *g);
void reader_look_again(struct reader *g);
/* No partition that it has will ever give more (A9). */
bool reader_is_past(const struct reader *g);
/* Wakes the reader when one of its partitions grows. */
void reader_park(struct reader *g);
/* All before `at` has been dealt with (A2). */
void reader_ack(struct reader *g, int64_t at);
static inline int64_t reader_end(const struct reader *g)
{
    return g->start + (int64_t)(g->text.n - g->head);
}
/* Drops from the buffer what partitions that went have left there, but for the line that is being read. */
void reader_cut(struct reader *g, int64_t at);
/* All that was said is stored; sends what is not. */
bool reader_is_committed(struct reader *g);

/* ---- reader_open.c ---- */
void reader_open(struct handle *h, fuse_req_t req);
void reader_open_go(struct reader *g); /* while g->opening: answers when all is known */
void reader_heirs_go(struct reader *g);
void reader_lose(struct reader *g);     /* A6: the group has members */
bool reader_is_alone(struct reader *g); /* A6; asks when that is not known: reader_go when it is */

/* ---- reader_poll.c ---- */
void reader_poll(struct handle *h, fuse_req_t req, struct fuse_pollhandle *ph);
void reader_polls_go(struct reader *g);

/* ---- reader_member.c ---- */
void reader_join(struct reader *g);
void reader_leave(struct reader *g);
void reader_try_release(struct reader *g);
void readers_stop(struct mount *m); /* members end without leaving, before their client does */

/* ---- reader_part.c ---- */
void part_stop(struct reader_part *p); /* it is another member's now */
void parts_topic_gone(struct reader *g); /* A7 */
void parts_gone(struct reader *g);     /* all of them */
void parts_reap(struct reader *g);     /* frees those that went and wait for nothing */
struct reader_part *part_new(struct reader *g, int32_t partition, const struct position *committed);
void part_free(struct reader_part *p); /* nothing of it may be out but a fetch */
void part_fetch(struct reader_part *p);
/* Commits what was said, now or when a second has passed (A3). True: all of it is stored. */
bool part_commit(struct reader_part *p, bool now);
/* All of its RANGE was fetched (A9). */
static inline bool part_is_past(const struct reader_part *p)
{
    return p->ranged && p->next >= p->extent.to;
}
static inline bool part_is_idle(const struct reader_part *p)
{
    return !p->asking && !p->committing;
}

#endif
