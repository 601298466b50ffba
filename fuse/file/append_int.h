/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records on their way to the brokers, as append.c and append_close.c send them: a write has several batches when its lines do
 * not fit into one, and has ended when all of them have. Only the files of appending include this. Loop's thread.
 */
#ifndef KLOG_FUSE_APPEND_INT_H
#define KLOG_FUSE_APPEND_INT_H

#include <stdbool.h>
#include <sys/queue.h>

#include "fuse/text/lines.h"
#include "lib/client/producer.h"
#include "lib/view/parse.h"

struct handle;
struct mount;
struct pfile;
struct writers;

/* What a record and its batch have around the value, at most. */
#define RECORD_OVERHEAD_MAX 16
#define HEADER_OVERHEAD_MAX 10
#define LINE_OVERHEAD_MAX   (BATCH_OVERHEAD + RECORD_OVERHEAD_MAX)

/* Lines of a write as records, in the form of the open file's view. */
struct append_records {
    struct producer_record *records; /* the writers' own, until the next append_read */
    size_t n;                        /* so many lines were read; the next is not of the form, when it is fewer than given */
    const char *why;                 /* then: why; static */
};

struct append {
    struct mount *mount;
    struct handle *h;   /* owned reference */
    struct pfile *file; /* owned reference; where records without a key go */
    void (*done)(struct append *ap); /* the last part has ended, and nobody holds it */
    /* private */
    STAILQ_HEAD(, part) parts;
    uint32_t *order; /* which line each record sent is of; NULL: they are sent in their order */
    size_t n_order;
    int outstanding;        /* parts on their way, and one for each append_hold */
    LIST_ENTRY(append) way; /* handle->app.on_way */
};

/* Held once: nothing ends before append_let_go. */
void append_begin(struct append *ap, struct handle *h, struct pfile *f, void (*done)(struct append *ap));
void append_end(struct append *ap); /* gives back what it has; nothing is on its way any more */
void append_hold(struct append *ap);
void append_let_go(struct append *ap); /* done may run */

/* Sends records in as few batches as the topic's limit allows. flush: without waiting for more to go with them. */
void append_send(struct append *ap, const struct producer_record *records, size_t n, bool flush);
void append_hurry(struct append *ap);
/* Takes back what was not sent. True: all of it. Only while it is held. */
bool append_withdraw(struct append *ap);
bool append_is_one_batch(const struct append *ap);

/* Records committed from the first on without a gap, as far as is known. *ret_rc: what stopped the others, 0 when none. */
size_t append_committed(const struct append *ap, int *ret_rc);

/* The partition that the handle appends to, with a reference; for `any` one that has a leader. NULL: none has. */
struct pfile *append_target(struct handle *h);
/* Reads the first n lines of a write, of which `first` is joined from what the open file held before; a plain line is a value.
 * Texts point into buf, first and the writers' parser. */
struct append_records append_read(struct handle *h, const char *buf, const uint32_t *ends, size_t n, struct kstr first);

/* ---- room: so many bytes may wait for brokers ---- */
struct room_wait {
    void (*cb)(struct room_wait *w);
    bool waiting;                /* private */
    TAILQ_ENTRY(room_wait) link; /* private */
};
bool append_has_room(const struct mount *m);
void append_wait_room(struct mount *m, struct room_wait *w); /* cb once there is room again */

/* ---- append_close.c ---- */
/* Something of h has ended: who waits for the last of it is told. */
void append_settled(struct handle *h);

#endif
