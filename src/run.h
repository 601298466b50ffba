/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog run from inside: records of a group's partitions go to COMMAND, and are committed when it exits 0. One
 * thread, one loop.
 *
 *   cmd_run.c      the command line
 *   run_group.c    membership, workers, signals, and the end
 *   run_part.c     one partition: a state machine from one commit to the next
 *   run_fetch.c    where its records come from
 *   run_batch.c    what COMMAND is given, and where that goes when it refuses it
 *   run_child.c    one process of COMMAND
 *
 * Rules:
 *   W1  Of a partition one batch at a time is dealt with, and the next one is begun only when the position after it
 *       is committed: whatever is killed, that batch alone comes again.
 *   W2  A position is committed only when COMMAND exited 0 after it was given every record before it, or when those
 *       were written to the dead letters: nothing is skipped.
 *   W3  Partitions are given back only when nothing of theirs is being dealt with.
 *   W4  A partition belongs to its topic's id: nothing of a deleted topic is committed in one made anew under its name,
 *       which is begun at the group's position in it, or else at its start.
 *   W5  A position that the log has no more, since it lost its end, is moved to where the leader epoch of the record
 *       before it ended, or to the log's end where none is known; that is said, and nothing before it is given again.
 */
#ifndef KLOG_SRC_RUN_H
#define KLOG_SRC_RUN_H

#include <signal.h>

#include "lib/client/member.h"
#include "lib/client/producer.h"
#include "lib/client/records.h"
#include "src/session.h"

/* Exit statuses beside CLI_OK, CLI_FAILED and CLI_USAGE; the last two are those of env(1) and xargs(1). */
enum { RUN_REFUSED = 3, RUN_NOT_EXECUTABLE = 126, RUN_NOT_FOUND = 127 };

struct run_settings {
    const char *group;
    const char *const *topics;
    size_t n_topics;
    char *const *command; /* NULL-terminated */
    int64_t batch_max;    /* records; 1 with each */
    bool each;
    int64_t workers;
    int64_t retries, backoff_ms;
    const char *dead_letters; /* topic; NULL none */
    int32_t n_dead_letters;   /* its partitions */
    bool follow;
    const char *instance; /* of a static member; NULL: a dynamic one */
    int64_t session_timeout_ms;
    int64_t from; /* POSITION_START, POSITION_END, or a time in ms: where a group without a position begins */
};

/* ---- a process ---- */
struct child {
    /* the caller fills these */
    char *const *command;
    struct kstr input;      /* all of its standard input; copied */
    const char *const *env; /* "NAME=VALUE" beside what klog itself has; NULL-terminated; copied */
    void (*ended)(struct child *c, int status); /* as waitpid tells it */
    /* private */
    struct loop *loop;
    struct loop_fd exit;
    pid_t pid; /* 0: none runs */
};
/* 0, or -errno: it could not be started, and `ended` is not called. The process gets this signal mask. */
int child_start(struct loop *lp, struct child *c, const sigset_t *mask);
void child_signal(struct child *c, int signal); /* to its whole process group */
/* "exit status 3", "killed by signal 9" */
const char *child_status_text(int status, char *ret, size_t size);

/* ---- a partition ---- */
enum part_state {
    PART_AWAY,       /* not this member's */
    PART_FINDING,    /* where to begin, or to end */
    PART_FETCHING,   /* there is nothing to work on yet */
    PART_READY,      /* has a batch, waits for a worker */
    PART_WORKING,    /* COMMAND has the batch */
    PART_PAUSING,    /* COMMAND refused it, and will get it again */
    PART_BURYING,    /* it goes to the dead letters */
    PART_COMMITTING, /* it was dealt with */
    PART_DONE,       /* everything up to its end was */
};

struct run_record {
    int64_t offset, timestamp;
    struct kstr key, value;
    struct slice headers; /* undecoded */
};

struct run_batch {
    struct bytebuf text; /* as COMMAND gets it: lines */
    struct arena arena;
    struct run_record *kept; /* the records, where they are needed again; room for kept_cap */
    size_t kept_cap;
    int64_t n;           /* records */
    int64_t first, last; /* offsets */
    int64_t next;        /* to commit */
    int32_t epoch;       /* leader epoch of the record before it; -1 unknown */
    int64_t attempts;    /* that failed */
    int last_status;
};

enum part_find { FIND_FROM, FIND_END, FIND_START, FIND_LOG_END, FIND_TOPIC, FIND_POSITION };

struct run_part {
    struct run *r;
    char *topic;
    int32_t partition;
    enum part_state state;
    TAILQ_ENTRY(run_part) entry, ready;
    struct uuid topic_id; /* zero: the brokers tell none */
    int64_t committed; /* -1 none */
    int64_t end;       /* where it ends without follow; -1 not known yet */

    struct records records;
    bool dry; /* all fetched records were taken */
    bool fetching;
    bool is_unreachable; /* and that was said */
    bool is_missing;     /* the topic is gone, and that was said */
    struct client_fetch fetch;
    struct position_find find;
    struct client_refresh look; /* FIND_TOPIC */
    bool looking;
    struct positions_fetch ask; /* FIND_POSITION */
    struct position asked;
    struct timer again;
    enum part_find finds;

    struct run_batch batch;
    struct child child;
    struct timer pause;
    struct producer_send send;
    struct member_commit commit;
};

/* run_part.c */
void part_init(struct run_part *p, struct run *r, const char *topic, int32_t partition);
void part_free(struct run_part *p);
void part_take(struct run_part *p, const struct position *from); /* AWAY: it is ours now */
void part_give_back(struct run_part *p);               /* at once, or as soon as it is not busy */
void part_work(struct run_part *p);                    /* READY: a worker is free */
bool part_is_busy(const struct run_part *p);           /* something of it is being dealt with */
void part_go_on(struct run_part *p); /* FINDING, FETCHING, COMMITTING: to whatever comes next */
void part_seek(struct run_part *p);  /* FETCHING: the position is not in the log -> FINDING */
void part_refind(struct run_part *p); /* FETCHING: what `finds` says -> FINDING */
void part_anew(struct run_part *p);  /* FETCHING, COMMITTING: its topic is gone -> FINDING */
void part_commit(struct run_part *p);
/* It failed for good: the run stops with this status, this partition's batch is not committed. */
void part_fail(struct run_part *p, int status);
/* "klog run: orders partition 0: " and the text. */
void part_complain(const struct run_part *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* run_fetch.c */
void fetch_init(struct run_part *p);
void fetch_find(struct run_part *p); /* FINDING: what is not known yet of where to begin and end */
void fetch_more(struct run_part *p); /* if all that was fetched was taken, and there may be more */
void fetch_stop(struct run_part *p);

/* run_batch.c */
void batch_init(struct run_batch *b);
void batch_done(struct run_batch *b);
void batch_clear(struct run_batch *b);
/* Adds what has been fetched, up to what a batch may hold. 0, or -errno at damaged records. */
int batch_gather(struct run_part *p);
void batch_give(struct run_part *p); /* to COMMAND */
void batch_bury(struct run_part *p); /* to the dead letters */

/* ---- the run ---- */
TAILQ_HEAD(run_parts, run_part);

struct run {
    const struct args *args;
    struct session *s;
    struct run_settings set;
    struct member *m;
    struct producer *letters;
    struct run_parts parts, ready;
    int64_t n_working;
    bool owns;      /* between `assigned` and the answer to `revoked` */
    bool releasing; /* revoked, not answered yet */
    bool stopping;  /* no more is begun */
    bool closing;   /* the member leaves */
    bool ended;     /* it has left, or was refused */
    bool over;
    int status;
    struct loop_fd signals;
    sigset_t old_mask; /* COMMAND's */
    int n_signals;
    struct deferred turn; /* looks what is to do, at the end of the round */
    int64_t n_records, n_buried,
        n_refusals; /* dealt with; of these to the dead letters; times COMMAND failed */
};

/* run_group.c */
int run_records(struct session *s, const struct run_settings *set); /* the exit status */
bool run_goes_on(const struct run *r);                              /* may anything be begun? */
/* No more is begun; what was begun ends. The first status other than CLI_OK stands. */
void run_stop(struct run *r, int status);
void run_stir(struct run *r); /* something changed */

#endif
