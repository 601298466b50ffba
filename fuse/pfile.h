/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition as a file: what all its nodes and open files share. Loop's thread only.
 *
 * Byte 0 of the file is the text position `base`. P1: while any file is open the base does not move, so no
 * position changes its content and the size never shrinks; compaction moves what it leaves, and who reads on
 * finds it by its offset (fetch.c). P2: end of file is only told from ends that were asked for after the read
 * came (to a millisecond), so what any client was told is committed is seen by the next read. P3: reads and
 * sizes wait for the unfinished last lines that closed files sent before.
 */
#ifndef KLOG_FUSE_PFILE_H
#define KLOG_FUSE_PFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uthash.h>

#include "fuse/fuse_api.h"
#include "fuse/text.h"
#include "fuse/topics.h"

struct mount;
struct handle;

struct ends { /* where a partition begins and ends; KlogStat's answer */
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

/* Somebody who waits for the file to grow; taken off the list before cb. */
struct pfile_waker {
    void (*cb)(struct pfile_waker *w);
    bool waiting;                 /* private */
    LIST_ENTRY(pfile_waker) link; /* private */
};

struct pfile_key {
    struct topic *topic;
    int64_t partition; /* wide, so that the key has no padding */
};

struct pfile {
    struct pfile_key key;
    struct mount *mount;
    int refs;

    int opens;  /* open files of every view */
    bool based; /* base is fixed (P1) */
    int64_t base;

    struct ends ends;    /* as of ends_ns */
    int64_t ends_ns;     /* when that was asked for */
    bool ends_known;     /* ends hold an answer, however old */
    struct ends_wait_list ends_waiting; /* for the next question */
    bool ends_queued;
    STAILQ_ENTRY(pfile) ends_link;

    struct chunk_list chunks;
    int64_t chunks_era; /* the ends' when the base was fixed: positions in chunks and of fetches are of it */
    LIST_HEAD(, fetch) fetches; /* on their way */

    uint64_t tails_sent, tails_done; /* last lines of closed files (P3) */
    LIST_HEAD(, tails_wait) tails_waiting;
    int own_sends;       /* appends of this mount on their way */
    int64_t own_records; /* acknowledged ones that no news has shown yet */

    LIST_HEAD(, stream_reader) parked; /* streams that wait for more */
    LIST_HEAD(, pfile_waker) wakers;   /* others that wait for more */
    LIST_HEAD(, handle) polled;        /* streams whose poll wants to be told */
    int64_t watched_end;               /* end offset the watch has seen, -1 none */
    int64_t told_end;                  /* up to where inotify watchers were told, -1 nothing */
    bool watching;                     /* in a poll on its way */
    TAILQ_ENTRY(pfile) watch_link;     /* among the watched */
    bool in_watch;
    bool kernel_knows; /* its plain node has look-ups: inotify may watch it */

    UT_hash_handle hh; /* mount->pfiles */
};

struct pfile *pfile_get(struct mount *m, struct topic *t,
                        int32_t partition); /* found or made, with a reference */
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

/* w's cb when the file has grown, or its topic is gone; once. */
void pfile_wake_me(struct pfile *f, struct pfile_waker *w);
void pfile_unwake(struct pfile_waker *w);

/* An open file came or went (P1). */
void pfile_opened(struct pfile *f);
void pfile_closed(struct pfile *f);
/* Text position of byte 0: fixed by the first who asks while files are open. The ends must be known. */
int64_t pfile_base(struct pfile *f);
/* Size in bytes of the file; the ends must be known. */
int64_t pfile_size(struct pfile *f);

/* ---- ends (ends.c) ---- */
struct ends_asker;
struct ends_asker *ends_asker_new(struct mount *m);
void ends_asker_free(struct ends_asker *a);
/* f->ends not older than this call (P2). cb: 0, -ENOENT (no such partition), -ETIMEDOUT, ... It never
 * runs before this returns. Questions of one round go out as one request a broker. */
void ends_ask(struct pfile *f, struct ends_wait *w);
/* News of the watch, asked for at asked_ns. */
void ends_set(struct pfile *f, const struct ends *e, int64_t asked_ns);

/* ---- last lines of closed files (pfile_write.c) ---- */
/* cb when all that was sent before has its answer; may run before this returns. */
void tails_ask(struct pfile *f, struct tails_wait *w);

/* ---- fetching (fetch.c) ---- */
struct fetch_wait {
    void (*cb)(struct fetch_wait *w, int rc);
    LIST_ENTRY(fetch_wait) link; /* private */
};
/* Has the text at position `at` fetched into f->chunks; ends must be known and at inside them. cb: 0,
 * -ERANGE: the ends are old, ask again; -EBADMSG: damaged; -ETIMEDOUT, ... Never runs before this returns. */
void fetch_text(struct pfile *f, int64_t at, int32_t max_bytes, struct fetch_wait *w);
/* Has what is missing in [at, until) fetched, one fetch after the other, for nobody yet. */
void fetch_ahead(struct pfile *f, int64_t at, int64_t until, int32_t max_bytes);
/* Does a chunk say which offset comes at `at`? Then that is read on from, wherever it is by now. */
bool fetch_goes_on(struct pfile *f, int64_t at);

#endif
