/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics as Prometheus reads them (text format 0.0.4). A program has one table of its metrics; samples may be added in any
 * order and come out metric by metric, as the format asks. Every metric of the table is printed, also one without samples.
 * Pure; one thread.
 */
#ifndef KLOG_METRICS_TEXT_H
#define KLOG_METRICS_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/metrics/histogram.h"

enum { METRIC_LABELS_MAX = 3 };
enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric {
    const char *name;
    enum metric_type type;
    const char *labels[METRIC_LABELS_MAX]; /* NULL after the last */
    const char *help;                      /* one line, without a backslash */
};
const char *metric_type_name(enum metric_type t);

struct metrics_text;
/* table has n rows and outlives it. A metric takes at most samples_max samples; more are left out, and counted. */
struct metrics_text *metrics_text_new(const struct metric *table, size_t n, size_t samples_max);
void metrics_text_free(struct metrics_text *t);

/* A sample of the metric in that row. Values of its labels in their order, NULL for one that this sample does not have. They may
 * be any bytes: what is not UTF-8 becomes U+FFFD. */
struct metric_labels {
    const char *value[METRIC_LABELS_MAX];
};
#define LABELS(...) (&(const struct metric_labels){ { __VA_ARGS__ } })
#define NO_LABELS   (&(const struct metric_labels){ { NULL } })
void metrics_add(struct metrics_text *t, size_t row, const struct metric_labels *l, int64_t v);
void metrics_add_double(struct metrics_text *t, size_t row, const struct metric_labels *l, double v);
/* Bounds and sum are printed in milliseconds where per_second is 1000, in seconds where it is 1. */
void metrics_add_histogram(struct metrics_text *t, size_t row, const struct metric_labels *l, const struct histogram_sum *h,
                           int per_second);
size_t metrics_left_out(const struct metrics_text *t, size_t row);
void metrics_print(const struct metrics_text *t, struct bytebuf *ret);

/* s between quotes in JSON, any bytes: what is not UTF-8 becomes U+FFFD, and no byte is left that HTML would see as markup. */
void metrics_json_string(struct bytebuf *b, const char *s);

#endif
