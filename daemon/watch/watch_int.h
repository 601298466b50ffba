/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c (life, paths, history), metrics.c and status.c (two ways to print a survey). On the HTTP server's thread. */
#ifndef KLOG_DAEMON_WATCH_INT_H
#define KLOG_DAEMON_WATCH_INT_H

#include "daemon/watch/survey.h"
#include "lib/base/buf.h"
#include "lib/metrics/text.h"

enum {
    HISTORY_STEP_MS = 10000,
    HISTORY_MAX = 361, /* an hour and the sample before it */
};

struct sample { /* counted since the start */
    int64_t mono_ms, wall_ms;
    struct traffic traffic;
    uint64_t requests;
};

struct history { /* a ring */
    struct sample samples[HISTORY_MAX];
    size_t n, next;
};

struct watch_facts { /* of the process */
    const struct world *world;
    int64_t started_wall_ms;
};

extern const struct metric watch_metrics[];
extern const size_t n_watch_metrics;

void metrics_page(const struct watch_facts *f, const struct watch_sources *src, struct bytebuf *ret);
void status_page(const struct watch_facts *f, const struct watch_sources *src, struct bytebuf *ret);
void history_page(const struct history *h, struct bytebuf *ret);
void sample_take(const struct watch_facts *f, const struct watch_sources *src, struct sample *ret);

/* daemon/watch/status.html, made an array by the build. */
extern const unsigned char status_html[];
extern const size_t status_html_bytes;

#endif
