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

static const char *const level_words[] = { "debug", "info", "warn", "error" };
static const char *const level_marks[] = { "DEBUG", "INFO ", "WARN ", "ERROR" };

void log_set_level(enum log_level level)
{
    atomic_store(&level_min, (int)level);
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

void log_line(enum log_level level, const char *fmt, ...)
{
    char line[2048];
    struct timespec ts;
    struct tm tm;
    va_list ap;
    int saved = errno;

    if (!log_enabled(level))
        return;
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(line + n, sizeof line - n, ".%03ldZ %s ", ts.tv_nsec / 1000000, level_marks[level]);
    errno = saved;                                  /* for %m */
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof line - n - 1, fmt, ap);
    va_end(ap);
    size_t text = n;
    n = MIN(n + (size_t)MAX(m, 0), sizeof line - 2);
    keep_to_one_line(line + text, n - text);
    line[n++] = '\n';
    while (write(STDERR_FILENO, line, n) < 0 && errno == EINTR)
        ;
    errno = saved;
}
