/* SPDX-License-Identifier: Apache-2.0 */
/* Times as people write them; see timearg.h. Any thread (but for the TZ variable that localtime reads). */
#include "src/timearg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/attr.h"

/* A plain number below this is seconds (until the year 5138), above it milliseconds (from 1973 on). */
#define SECONDS_BELOW 100000000000LL

static int64_t unit_ms(char unit)
{
    switch (unit) {
    case 's':
        return 1000;
    case 'm':
        return 60000;
    case 'h':
        return 3600000;
    case 'd':
        return 86400000;
    default:
        return 0;
    }
}

/* "-90s", "-30m", "-1h", "-2d" */
static bool parse_ago(const char *text, int64_t now_ms, int64_t *ret)
{
    char *end;

    errno = 0;
    long long n = strtoll(text + 1, &end, 10);
    if (errno != 0 || end == text + 1 || n < 0 || end[0] == '\0' || end[1] != '\0')
        return false;
    int64_t unit = unit_ms(end[0]), span;
    if (unit == 0 || __builtin_mul_overflow(n, unit, &span) || span > now_ms)
        return false;
    *ret = now_ms - span;
    return true;
}

static bool parse_number(const char *text, int64_t *ret)
{
    if (text[strspn(text, "0123456789")] != '\0' || text[0] == '\0' || strlen(text) > 15)
        return false;
    int64_t v = strtoll(text, NULL, 10);
    *ret = v < SECONDS_BELOW ? v * 1000 : v;
    return true;
}

/* ".678": up to nine digits, cut to ms. Returns what follows. */
static const char *parse_fraction(const char *p, int64_t *ret_ms)
{
    *ret_ms = 0;
    if (*p != '.')
        return p;
    int64_t weight = 100;
    for (p++; *p >= '0' && *p <= '9'; p++, weight /= 10)
        *ret_ms += (*p - '0') * weight;
    return p;
}

/* "" (local), "Z", "+01:00". */
static bool parse_zone(const char *p, struct tm *tm, int64_t *ret_s)
{
    int hours, minutes, n = 0;

    tm->tm_isdst = -1;
    if (*p == '\0') {
        *ret_s = mktime(tm);
        return true;
    }
    *ret_s = timegm(tm);
    if (strcmp(p, "Z") == 0)
        return true;
    if ((*p != '+' && *p != '-') || sscanf(p + 1, "%2d:%2d%n", &hours, &minutes, &n) != 2 || p[1 + n] != '\0')
        return false;
    int64_t shift = (hours * 60 + minutes) * 60;
    *ret_s -= *p == '+' ? shift : -shift;
    return true;
}

static bool parse_date(const char *text, int64_t *ret)
{
    struct tm tm = { 0 };
    int64_t s, ms = 0;
    const char *p = strptime(text, "%Y-%m-%d", &tm);

    if (p == NULL)
        return false;
    if (*p == 'T' || *p == ' ') {
        p = strptime(p + 1, "%H:%M:%S", &tm);
        if (p == NULL)
            return false;
        p = parse_fraction(p, &ms);
    }
    int month = tm.tm_mon;
    if (!parse_zone(p, &tm, &s) || tm.tm_mon != month) /* the 30th of February */
        return false;
    *ret = s * 1000 + ms;
    return true;
}

/* "10:00", "10:00:30": today. */
static bool parse_clock(const char *text, int64_t now_ms, int64_t *ret)
{
    time_t now = now_ms / 1000;
    struct tm tm;
    const char *p;

    if (localtime_r(&now, &tm) == NULL)
        return false;
    tm.tm_sec = 0;
    p = strptime(text, "%H:%M", &tm);
    if (p != NULL && *p == ':')
        p = strptime(p, ":%S", &tm);
    if (p == NULL || *p != '\0')
        return false;
    tm.tm_isdst = -1;
    *ret = (int64_t)mktime(&tm) * 1000;
    return true;
}

/* "PT1H30M": numbers with units, days before the T. */
static bool parse_iso_duration(const char *p, int64_t *ret_ms)
{
    static const struct {
        char letter;
        bool after_t;
        int64_t ms;
    } units[] = {
        { 'D', false, 86400000 }, { 'H', true, 3600000 }, { 'M', true, 60000 }, { 'S', true, 1000 }
    };
    size_t next = 0; /* each unit once, the largest first */
    bool after_t = false;

    *ret_ms = 0;
    for (p++; *p != '\0'; p++) {
        if (*p == 'T' && !after_t) {
            after_t = true;
            continue;
        }
        char *end;
        errno = 0;
        long long n = *p >= '0' && *p <= '9' ? strtoll(p, &end, 10) : -1;
        if (n < 0 || errno != 0)
            return false;
        for (p = end;
             next < ARRAY_LEN(units) && (units[next].letter != *p || units[next].after_t != after_t);)
            next++;
        int64_t span;
        if (next == ARRAY_LEN(units) || __builtin_mul_overflow(n, units[next++].ms, &span) ||
            __builtin_add_overflow(*ret_ms, span, ret_ms))
            return false;
    }
    return next > 0 && p[-1] != 'T';
}

bool duration_parse(const char *text, int64_t *ret_ms)
{
    char *end;

    if (text[0] == 'P')
        return parse_iso_duration(text, ret_ms);
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (errno != 0)
        return false;
    int64_t unit = strcmp(end, "ms") == 0 ? 1 : end[0] != '\0' && end[1] == '\0' ? unit_ms(end[0]) : 0;
    return unit != 0 && !__builtin_mul_overflow(n, unit, ret_ms);
}

bool time_parse(const char *text, int64_t now_ms, int64_t *ret_ms)
{
    if (text[0] == '-')
        return parse_ago(text, now_ms, ret_ms);
    return parse_number(text, ret_ms) || parse_date(text, ret_ms) || parse_clock(text, now_ms, ret_ms);
}
