/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines on standard error for people: "2026-01-02T03:04:05.678Z INFO  text key=value".
 * lib/ itself logs only at debug level; programs log. Thread-safe; one write(2) a line, which
 * stays one: control characters in it show as '?', and what is longer than 2 kB is cut.
 */
#ifndef KLOG_BASE_LOG_H
#define KLOG_BASE_LOG_H

#include <stdbool.h>

#include "lib/base/attr.h"

/* How a line begins: for people "TIME LEVEL "; "<N>" with syslog's number of the level, as journald reads it from standard error; or
 * "<N>PROGRAM[PID]: ", as syslog's socket wants it. */
enum log_style { LOG_STYLE_PEOPLE, LOG_STYLE_JOURNAL, LOG_STYLE_SYSLOG };
enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

void log_set_level(enum log_level level);
void log_set_style(enum log_style style, const char *program); /* program: for syslog; kept. While nobody logs */
bool log_level_parse(const char *text, enum log_level *ret); /* "debug", "info", "warn", "error" */
bool log_enabled(enum log_level level);
/* For tests: lines go there, without time, level and newline; NULL: to standard error again. While nobody logs. */
void log_set_sink(void (*f)(void *arg, enum log_level level, const char *line), void *arg);
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define log_debug(...) (log_enabled(LOG_LEVEL_DEBUG) ? log_line(LOG_LEVEL_DEBUG, __VA_ARGS__) : (void)0)
#define log_info(...)  log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)

#endif
