/* SPDX-License-Identifier: Apache-2.0 */
/* meter.c (counting, on the threads that answer) and page.c (telling, on the HTTP server's thread). */
#ifndef KLOG_FUSE_METER_INT_H
#define KLOG_FUSE_METER_INT_H

#include <linux/fuse.h>
#include <pthread.h>
#include <stdbool.h>

#include "fuse/meter/meter.h"
#include "fuse/meter/under_way.h"
#include "lib/loop/loop.h"
#include "lib/metrics/histogram.h"
#include "lib/metrics/text.h"

enum {
    KINDS = FUSE_COPY_FILE_RANGE + 1, /* by the kernel's number; 0 is all that have none here */
    ERRNOS = 134,                     /* 0 is all that have no name */
    APIS_MAX = 128,
    LANES = 2,
};

/* Counted by one thread: the first by the loop's, the second by the replier, which writes long answers. */
struct lane {
    char before[CACHE_LINE];
    struct histogram took[KINDS];
    atomic_ullong errors[KINDS][ERRNOS];
    atomic_ullong read_bytes, written_bytes;
    atomic_ullong opened, closed, opened_dirs, closed_dirs;
    char after[CACHE_LINE];
};

enum meter_phase { METER_STARTING, METER_SERVING, METER_STOPPING };

struct meter {
    struct mount *mount;
    struct http_server *http;
    int64_t started_wall_ms;
    pthread_t loop_thread;
    struct under_way under_way;
    struct lane lanes[LANES];
    struct {
        char before[CACHE_LINE];
        atomic_ullong reads;              /* taken from the kernel */
        atomic_ullong requests[APIS_MAX]; /* sent to brokers, by wire_api_at() */
        char after[CACHE_LINE];
    } taken; /* by the loop's thread */

    /* Once a second by the loop's thread. */
    struct timer beat;
    _Atomic int64_t beat_mono_ms;
    atomic_bool missed;
    _Atomic(enum meter_phase) phase;
};

extern const struct metric meter_metrics[];
extern const size_t n_meter_metrics;

const char *meter_kind_name(size_t kind); /* "read"; "other" */
/* http_handler: arg is the meter. */
struct http_answer;
void meter_answer(void *arg, const char *path, struct http_answer *ret);

#endif
