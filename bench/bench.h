/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmark programs share: a clock, figures, a blocking connection, and requests built by hand. They use lib/ for
 * bytes and batches only, never its client: what is measured must cost as little as possible on this side.
 */
#ifndef KLOG_BENCH_H
#define KLOG_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/attr.h"
#include "lib/base/buf.h"

uint64_t now_ns(void);
NORETURN void die(const char *fmt, ...) PRINTF_LIKE(1, 2);   /* with errno's text */

/* One line on standard output: NAME VALUE UNIT. */
void figure(const char *name, double value, const char *unit);
/* Sorts the samples; prints NAME.p50 and NAME.p99 in microseconds. */
void figure_latency(const char *name, uint64_t *samples_ns, size_t n);

/* n bytes of a JSON access-log line, so that codecs have honest work; each call gives another. */
void log_line_fill(char *ret, size_t n);

int dial(const char *host_port);
void send_all(int fd, const void *p, size_t n);
/* The next reply without its size, over what ret held. */
void recv_reply(int fd, struct bytebuf *ret);

void put_i8(struct bytebuf *b, int v);
void put_i16(struct bytebuf *b, int v);
void put_i32(struct bytebuf *b, int64_t v);
void put_i64(struct bytebuf *b, int64_t v);
void put_string(struct bytebuf *b, const char *s);
void request_begin(struct bytebuf *b, int api, int version, int correlation_id);   /* empties b */
void request_end(struct bytebuf *b);                                               /* sets the size */

/* One batch of n records with that value, over what ret held. */
void batch_fill(struct bytebuf *ret, const void *value, size_t n_value, int n_records);
/* Produce version 3 with one batch for partition 0. */
void produce_request(struct bytebuf *b, const char *topic, int acks, const struct bytebuf *batch);
/* The error code in the answer to it. */
int produce_error(const struct bytebuf *reply);

#endif
