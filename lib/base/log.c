/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines (see log.h). The level is a global, set once by main and read everywhere. A line is made on the
 * stack and written with one write(2), so that lines of threads do not mix and nothing is left behind when
 * the process aborts. No memory is taken and errno is kept: it may be called where either has just failed.
 * Any thread. A standard error that takes no more is ignored: there is nobody left to tell.
 */
#include "lib/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int level_min = LOG_LEVEL_INFO;
static void (*sink)(void *arg, enum log_level level, const char *line); /* NULL: standard error */
static void *sink_arg;

static enum log_style style = LOG_STYLE_PEOPLE;
static const char *style_program = "klog";

static const int level_numbers[] = { 7, 6, 4, 3 }; /* syslog's */
enum { SYSLOG_DAEMON = 3 << 3 };
static const char *const level_words[] = { "debug", "info", "warn", "error" };
static const char *const level_marks[] = { "DEBUG", "INFO ", "WARN ", "ERROR" };

void log_set_level(enum log_level level)
{
    atomic_store(&level_min, (int)level);
}

void log_set_style(enum log_style s, const char *program)
{
    style = s;
    if (program != NULL)
        style_program = program;
}

void log_set_sink(void (*f)(void *arg, enum log_level level, const char *line), void *arg)
{
    sink = f;
    sink_arg = arg;
}

bool log_level_parse(const char *text, enum log_level *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(level_words); i++)
        if (strcmp(text, level_words[i]) == 0) {
            *ret = (enum log_level)i;
            return true;
        }
    return false;
}

bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&level_min, memory_order_relaxed);
}

/* Names come from clients: what could end the line, or move a terminal's cursor, shows as '?'. */
static void keep_to_one_line(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] < ' ' || p[i] == 0x7f)
            p[i] = '?';
}

/* "2026-01-02T03:04:05.678Z INFO  "; returns its length. */
static size_t put_head(enum log_level level, char *p, size_t size)
{
    struct timespec ts;
    struct tm tm;

    if (style == LOG_STYLE_JOURNAL)
        return (size_t)snprintf(p, size, "<%d>", level_numbers[level]);
    if (style == LOG_STYLE_SYSLOG)
        return (size_t)snprintf(p, size, "<%d>%.32s[%ld]: ", SYSLOG_DAEMON + level_numbers[level], style_program,
                                (long)getpid());
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(p, size, "%Y-%m-%dT%H:%M:%S", &tm);
    return n + (size_t)snprintf(p + n, size - n, ".%03ldZ %s ", ts.tv_nsec / 1000000, level_marks[level]);
}

static void put_out(char *line, size_t n)
{
    line[n++] = '\n';
    while (write(STDERR_FILENO, line, n) < 0 && errno == EINTR)
        ;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    char line[2048];
    va_list ap;
    int saved = errno;

    if (!log_enabled(level))
        return;
    size_t head = sink == NULL ? put_head(level, line, sizeof line) : 0;
    errno = saved;                                  /* for %m */
    va_start(ap, fmt);
    int m = vsnprintf(line + head, sizeof line - head - 1, fmt, ap);
    va_end(ap);
    size_t n = MIN(head + (size_t)MAX(m, 0), sizeof line - 2);
    keep_to_one_line(line + head, n - head);
    if (sink == NULL)
        put_out(line, n);
    else
        sink(sink_arg, level, line);
    errno = saved;
}
