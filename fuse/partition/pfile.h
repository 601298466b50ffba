/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition as a file: what all its nodes and open files share. It belongs to a topic's id: of one made anew under
 * the name there is another. Loop's thread only.
 *
 * How it is read by position is said by ptext.h's rules, X1 to X5. Rules:
 *   P2  End of file is only told from ends that were asked for after the read came (to a millisecond), so what any client
 *       was told is committed is seen by the next read.
 *   P3  Reads and sizes wait for the unfinished last lines that closed files sent before.
 */
#ifndef KLOG_FUSE_PFILE_H
#define KLOG_FUSE_PFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uthash.h>

#include "fuse/base/fuse_api.h"
#include "fuse/cluster/topics.h"
#include "fuse/partition/ptext.h"

struct mount;
struct handle;

struct ends { /* where a partition begins and ends; KlogStat's answer */
    int32_t leader_epoch;
    int64_t start_offset, end_offset;
    int64_t start_text, end_text;
    int64_t size_bytes; /* on the broker's disk */
    int64_t newest_ms;  /* the newest record's time, -1 none */
    int64_t era;        /* text positions of two eras need not be of one log (compaction moved them) */
};

struct ends_wait {
    void (*cb)(struct ends_wait *w, int rc);
    STAILQ_ENTRY(ends_wait) link; /* private */
};
STAILQ_HEAD(ends_wait_list, ends_wait);

struct tails_wait {
    void (*cb)(struct tails_wait *w);
    uint64_t need;               /* private */
    LIST_ENTRY(tails_wait) link; /* private */
};

/* Somebody who waits for news of the file; taken off the list before cb. */
struct pfile_waker {
    void (*cb)(struct pfile_waker *w);
    bool waiting;                 /* private */
    LIST_ENTRY(pfile_waker) link; /* private */
};

/* A node of the file that the kernel knows, so that inotify may watch it. */
struct known_node {
    uint64_t id; /* what the kernel calls it */
    const char *path; /* below the topic: "p0", "json/p0"; the node's own */
    TAILQ_ENTRY(known_node) link;
};

struct pfile_key {
    struct topic *topic;
    int64_t partition; /* wide, so that the key has no padding */
};

struct pfile {
    struct pfile_key key;
    struct mount *mount;
    int refs;

    struct lens plain;         /* the view that shows it as it is */
    LIST_HEAD(, lens) lenses;  /* and the others */
    LIST_HEAD(, ptext) texts;  /* of all of them */
    int moves;                 /* how often compaction was seen to have moved positions */
    int checks_in_vain;        /* in a row (ends_check.c) */
    struct ends_check *check;  /* of the answer that said that the log is another one; NULL: none */

    struct ends ends;    /* as of ends_ns */
    int64_t ends_ns;     /* when that was asked for */
    bool ends_known;     /* ends hold an answer, however old */
    struct ends_wait_list ends_waiting; /* for the next question */
    bool ends_queued;
    STAILQ_ENTRY(pfile) ends_link;

    uint64_t tails_sent, tails_done; /* last lines of closed files (P3) */
    LIST_HEAD(, tails_wait) tails_waiting;
    int own_sends;       /* appends of this mount on their way */
    int64_t own_records; /* acknowledged ones that no news has shown yet */
    uint64_t own_node;   /* the node that all of those came by; 0: several */

    LIST_HEAD(, pfile_waker) wakers;   /* who wait for more */
    struct topic_listener on_gone;     /* the topic is deleted: that is news, too */
    int64_t watched_end;               /* end offset the watch has seen, -1 none */
    int64_t told_end;                  /* up to where the file was shown, or inotify watchers were told; -1: not shown yet */
    bool watching;                     /* in a poll on its way */
    bool news_failed;                  /* the last one had an error for it */
    TAILQ_ENTRY(pfile) watch_link;     /* among the watched */
    bool in_watch;
    bool kernel_knows;                   /* nodes that read it by position have look-ups: inotify may watch them */
    TAILQ_HEAD(, known_node) known_nodes; /* those, the oldest first */

    UT_hash_handle hh; /* mount->pfiles */
};

struct pfile *pfile_get(struct mount *m, struct topic *t,
                        int32_t partition); /* found or made, with a reference */
struct pfile *pfile_find(struct mount *m, struct topic *t, int32_t partition); /* borrowed; NULL: nobody has it */
struct pfile *pfile_ref(struct pfile *f);
void pfile_unref(struct pfile *f); /* NULL is fine */

static inline const char *pfile_topic(const struct pfile *f)
{
    return f->key.topic->name;
}
static inline int32_t pfile_partition(const struct pfile *f)
{
    return (int32_t)f->key.partition;
}

/* Its leader and replicas as last heard; NULL: not known. Valid until the loop's next round. */
const struct client_partition *pfile_metadata(const struct pfile *f);

/* w's cb when the file has grown, its topic is gone, or the mount ends; once. */
void pfile_wake_me(struct pfile *f, struct pfile_waker *w);
void pfile_unwake(struct pfile_waker *w);
/* Tells those who wait that there is news, of one file or of every file. */
void pfile_wake(struct pfile *f);
void pfiles_wake(struct mount *m);

/* ---- ends (ends.c) ---- */
struct ends_asker;
struct ends_asker *ends_asker_new(struct mount *m);
void ends_asker_free(struct ends_asker *a);
/* f->ends not older than this call (P2). cb: 0, -ENOENT (no such partition), -ETIMEDOUT, ... It never
 * runs before this returns. Questions of one round go out as one request a broker. */
void ends_ask(struct pfile *f, struct ends_wait *w);
/* Are these of another log than the ends that are known, or of one that was cut or compacted? */
bool ends_are_doubtful(const struct pfile *f, const struct ends *e);
/* Were both told by one leader, of a log that was not opened anew in between? That one never loses what it had, so the smaller
 * end is the older. */
bool ends_same_log(const struct ends *a, const struct ends *b);
/* For ends that are doubtful (ends_check.c): finds out what became of the log and sets the ends. Those who wait (NULL: nobody)
 * are answered afterwards. */
void ends_check(struct pfile *f, const struct ends *e, int64_t asked_ns, struct ends_wait_list *waiting);
/* News of the watch, asked for at asked_ns. */
void ends_set(struct pfile *f, const struct ends *e, int64_t asked_ns);

/* ---- last lines of closed files (P3) ---- */
/* cb when all that was sent before has its answer; may run before this returns. */
void tails_ask(struct pfile *f, struct tails_wait *w);
void tail_sent(struct pfile *f);
void tail_answered(struct pfile *f);

/* ---- fetching (fetch.c) ---- */
struct fetch_wait {
    void (*cb)(struct fetch_wait *w, int rc);
    int64_t hole_end; /* in cb: there is nothing at the position, what follows is at this one; 0: it is here */
    struct text_edge edge; /* before: what the reader knows of the place; in cb, with a hole_end: of that place */
    LIST_ENTRY(fetch_wait) link; /* private, */
    int64_t at;                  /* as these are */
    struct text_wait print;
};
LIST_HEAD(fetch_wait_list, fetch_wait);
/* Has the text at position `at` fetched into t->chunks; ends must be known and at inside them. edge: what the reader
 * knows of the place, at `at` or before it. cb: 0, -ERANGE: the ends are old, ask again; -EBADMSG: damaged;
 * -ETIMEDOUT, ... Never runs before this returns. */
void fetch_text(struct ptext *t, int64_t at, struct text_edge edge, int32_t max_bytes, struct fetch_wait *w);
/* Has what is missing in [at, until) fetched, one fetch after the other, for nobody yet. */
void fetch_ahead(struct ptext *t, int64_t at, int64_t until, int32_t max_bytes);
/* A call of KlogFindText: the record at an offset, or at a text position, and where its batch begins. */
struct find_call {
    struct client_call call;
    struct klog_find_text_request body;
};
enum { FIND_BY_POSITION, FIND_BY_OFFSET }; /* KlogFindText's `by` */
/* cb as client_call's, with x as its user. epoch: of the leader it is for. */
void find_text(struct pfile *f, struct find_call *c, int8_t by, int64_t value, int32_t epoch, int64_t deadline_ms,
               void (*cb)(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response), void *user);
/* What a program is told for a broker's refusal: -errno, -ERANGE where the ends that are known are old. */
int rc_of_kerr(enum kerr err);
/* Does a chunk or the edge say which offset comes at `at`? Then reading goes on from that offset, wherever it is by now. */
bool fetch_goes_on(struct ptext *t, int64_t at, struct text_edge edge);
/* What the chunks know of the place, for who goes on there. */
struct text_edge fetch_edge(struct ptext *t, int64_t at);

#endif
