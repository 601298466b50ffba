/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel request that is answered later. Loop's thread only. Rules:
 *   Q1  Every request is answered exactly once, whatever happens to what it waits for: the result, a time-out, an
 *       interrupt and the end of the mount all come here, the first answers, the others find it answered.
 *   Q2  An interrupted request is answered soon, while what was begun for it goes on and ends by its own deadline; so
 *       nobody in the kernel ever waits unkillably.
 *   Q3  Soon is not at once. The kernel does not say whether the signal kills or a handler returns from it, and no
 *       program expects EINTR of stat() or of reading a file (the kernel passes it on whatever SA_RESTART says): who
 *       asks for what takes a round trip gets its answer. Only who may wait for ever (streams) is interrupted at once.
 */
#ifndef KLOG_FUSE_REQUEST_H
#define KLOG_FUSE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "fuse/base/fuse_api.h"
#include "lib/base/slice.h"
#include "lib/loop/loop.h"

struct mount;
struct text_span;

struct request {
    struct mount *mount;
    fuse_req_t req; /* NULL: answered */
    void (*interrupted)(struct request *r);
    int64_t patience_ms;       /* from the interrupt to interrupted() */
    struct timer patience;     /* is set: it was interrupted */
    bool starting, early;      /* the interrupt came before the request */
    TAILQ_ENTRY(request) link; /* mount->requests, while it is not answered */
};
TAILQ_HEAD(request_list, request);

/* With an answer within a round trip or the time-out: EINTR when it is not there soon after an interrupt. */
void request_begin(struct request *r, struct mount *m, fuse_req_t req);
/* interrupted() runs patience_ms after the interrupt; with 0 it may run before this returns. */
void request_begin_with(struct request *r, struct mount *m, fuse_req_t req, int64_t patience_ms,
                        void (*interrupted)(struct request *r));
bool request_is_open(const struct request *r);
/* Hands the kernel's request out for a reply; NULL when it was answered already. */
fuse_req_t request_take(struct request *r);

/* Answers; nothing happens when it was answered already. err: positive or negative errno, 0 for success. */
void request_err(struct request *r, int err);
void request_buf(struct request *r, const void *p, size_t n);
/* A long one is written by the replier, while the loop receives what comes next. */
void request_text(struct request *r, const struct text_span *span);
void request_written(struct request *r, size_t n);
void request_attr(struct request *r, const struct stat *st, double valid_s);
/* What a program is told (positive errno) for how the brokers' part of it ended. */
int request_errno(int rc);
/* EINTR to everything that still waits (at the end of the mount). */
void requests_end(struct mount *m);

#endif
