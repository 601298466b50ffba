/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of times and durations; when.h has it by examples. Each form is a function that returns what follows the text it
 * has read, or NULL when that is not its form; the forms are tried one after the other. Nothing is guessed: what is too long,
 * out of range or no day of the calendar is no time. Any thread, but for the variable TZ that localtime reads.
 */
#include "lib/base/when.h"

#include <string.h>
#include <time.h>

#include "lib/base/attr.h"

/* A plain number below this is in seconds (until the year 5138), above it in milliseconds (from 1973 on). */
#define SECONDS_BELOW 100000000000LL
#define DAY_MS        86400000LL

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Where a time may end: with the text, or where a range goes on. */
static bool is_end(const char *s)
{
    return *s == '\0' || *s == ':';
}

/* Digits, without a sign. */
static const char *read_number(const char *s, int64_t *ret)
{
    int64_t v = 0;
    if (!is_digit(*s))
        return NULL;
    for (; is_digit(*s); s++) {
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s - '0', &v))
            return NULL;
    }
    *ret = v;
    return s;
}

/* Exactly `width` digits, from min to max. */
static const char *read_field(const char *s, int width, int min, int max, int *ret)
{
    int v = 0;
    for (int i = 0; i < width; i++) {
        if (!is_digit(s[i]))
            return NULL;
        v = v * 10 + s[i] - '0';
    }
    if (v < min || v > max)
        return NULL;
    *ret = v;
    return s + width;
}

/* "90s": a number and its unit, in ms. */
static const char *read_span(const char *s, int64_t *ret_ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", DAY_MS } };
    int64_t n;
    if ((s = read_number(s, &n)) == NULL)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        size_t len = strlen(units[i].unit);
        if (strncmp(s, units[i].unit, len) == 0)
            return __builtin_mul_overflow(n, units[i].ms, ret_ms) ? NULL : s + len;
    }
    return NULL;
}

/* ---- the forms of a time ---- */

static const char *read_ago(const char *s, struct when *ret)
{
    ret->kind = WHEN_AGO;
    return *s == '-' ? read_span(s + 1, &ret->ms) : NULL;
}

static const char *read_epoch(const char *s, struct when *ret)
{
    ret->kind = WHEN_AT;
    if ((s = read_number(s, &ret->ms)) != NULL && ret->ms < SECONDS_BELOW)
        ret->ms *= 1000;
    return s;
}

/* ":30" at the very end. "10:00:11:30" is a range, from ten o'clock to half past eleven. */
static const char *read_last_seconds(const char *s, int *ret)
{
    int second;
    const char *end = *s == ':' ? read_field(s + 1, 2, 0, 59, &second) : NULL;
    if (end == NULL || *end != '\0')
        return s;
    *ret = second;
    return end;
}

static const char *read_clock(const char *s, struct when *ret)
{
    int hour, minute, second = 0;
    if ((s = read_field(s, 2, 0, 23, &hour)) == NULL || *s != ':' ||
        (s = read_field(s + 1, 2, 0, 59, &minute)) == NULL)
        return NULL;
    s = read_last_seconds(s, &second);
    *ret = (struct when){ WHEN_TODAY, ((hour * 60 + minute) * 60 + second) * 1000LL };
    return s;
}

/* ".678", cut to ms; nothing is no fraction. */
static const char *read_fraction(const char *s, int *ret_ms)
{
    int weight = 100;
    *ret_ms = 0;
    if (*s != '.')
        return s;
    if (!is_digit(*++s))
        return NULL;
    for (; is_digit(*s); s++, weight /= 10)
        *ret_ms += (*s - '0') * weight;
    return s;
}

/* "Z", "+02:00", "-0530"; nothing: local. */
static const char *read_zone(const char *s, struct when *w)
{
    int hour, minute, sign = *s == '+' ? 1 : -1;
    if (is_end(s))
        return s;
    w->kind = WHEN_AT;
    if (*s == 'Z' || *s == 'z')
        return s + 1;
    if ((*s != '+' && *s != '-') || (s = read_field(s + 1, 2, 0, 23, &hour)) == NULL ||
        (s = read_field(s + (*s == ':'), 2, 0, 59, &minute)) == NULL)
        return NULL;
    w->ms -= sign * (hour * 60 + minute) * 60000LL;
    return s;
}

/* "03:04:05.678+01:00", behind a day. */
static const char *read_time_of_day(const char *s, struct when *w)
{
    int hour, minute, second, ms;
    if ((s = read_field(s, 2, 0, 23, &hour)) == NULL || *s != ':' ||
        (s = read_field(s + 1, 2, 0, 59, &minute)) == NULL || *s != ':' ||
        (s = read_field(s + 1, 2, 0, 60, &second)) == NULL || (s = read_fraction(s, &ms)) == NULL)
        return NULL;
    w->ms += ((hour * 60 + minute) * 60 + second) * 1000LL + ms;
    return read_zone(s, w);
}

static const char *read_date(const char *s, struct when *ret)
{
    struct tm tm = { 0 };
    int year, month;
    if ((s = read_field(s, 4, 0, 9999, &year)) == NULL || *s != '-' ||
        (s = read_field(s + 1, 2, 1, 12, &month)) == NULL || *s != '-' ||
        (s = read_field(s + 1, 2, 1, 31, &tm.tm_mday)) == NULL)
        return NULL;
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    *ret = (struct when){ WHEN_LOCAL, (int64_t)timegm(&tm) * 1000 };
    if (tm.tm_mon != month - 1) /* the 30th of February */
        return NULL;
    return *s == 'T' || *s == 't' || *s == ' ' ? read_time_of_day(s + 1, ret) : s;
}

const char *when_parse(const char *text, struct when *ret)
{
    static const char *(*const forms[])(const char *, struct when *) = { read_ago, read_date, read_clock, read_epoch };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct when w;
        const char *end = forms[i](text, &w);
        if (end != NULL && is_end(end)) {
            *ret = w;
            return end;
        }
    }
    return NULL;
}

/* ---- what a time is ---- */

/* How far the wall's clock is ahead of UTC then, in ms. */
static int64_t ahead_ms(int64_t ms)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    localtime_r(&s, &tm);
    return tm.tm_gmtoff * 1000LL;
}

/*
 * An hour that the wall's clock shows twice, when it is put back, is the first of the two; one that it leaves out counts as if it
 * had not been put forward yet. mktime() is not asked: its answer for these depends on what it was asked before.
 */
static int64_t local_ms(int64_t as_if_utc_ms)
{
    int64_t before = ahead_ms(as_if_utc_ms - DAY_MS), after = ahead_ms(as_if_utc_ms + DAY_MS);
    bool is_after = ahead_ms(as_if_utc_ms - before) != before && ahead_ms(as_if_utc_ms - after) == after;
    return as_if_utc_ms - (is_after ? after : before);
}

/* Midnight of the day that it is now, as if the calendar showed UTC. */
static int64_t today_ms(int64_t now_ms)
{
    time_t s = (time_t)(now_ms / 1000);
    struct tm tm;
    localtime_r(&s, &tm);
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    return (int64_t)timegm(&tm) * 1000;
}

int64_t when_ms(struct when w, int64_t now_ms)
{
    tzset(); /* localtime_r() would not see that the machine's zone has changed */
    switch (w.kind) {
    case WHEN_AGO:
        return now_ms - w.ms;
    case WHEN_TODAY:
        return local_ms(today_ms(now_ms) + w.ms);
    case WHEN_LOCAL:
        return local_ms(w.ms);
    case WHEN_AT:
        break;
    }
    return w.ms;
}

bool time_parse(const char *text, int64_t now_ms, int64_t *ret_ms)
{
    struct when w;
    const char *end = when_parse(text, &w);
    if (end == NULL || *end != '\0')
        return false;
    *ret_ms = MAX(when_ms(w, now_ms), 0);
    return true;
}

/* ---- how long ---- */

/* "PT1H30M": numbers with units, the largest first, days before the T. */
static bool parse_iso_duration(const char *s, int64_t *ret_ms)
{
    static const struct {
        char letter;
        bool after_t;
        int64_t ms;
    } units[] = { { 'D', false, DAY_MS }, { 'H', true, 3600000 }, { 'M', true, 60000 }, { 'S', true, 1000 } };
    size_t next = 0; /* each unit once */
    bool after_t = false;
    int64_t sum = 0, n, span;

    for (s++; *s != '\0'; s++) {
        if (*s == 'T' && !after_t) {
            after_t = true;
            continue;
        }
        if ((s = read_number(s, &n)) == NULL)
            return false;
        while (next < ARRAY_LEN(units) && (units[next].letter != *s || units[next].after_t != after_t))
            next++;
        if (next == ARRAY_LEN(units) || __builtin_mul_overflow(n, units[next++].ms, &span) ||
            __builtin_add_overflow(sum, span, &sum))
            return false;
    }
    *ret_ms = sum;
    return next > 0 && s[-1] != 'T';
}

bool duration_parse(const char *text, int64_t *ret_ms)
{
    int64_t ms;
    const char *end;

    if (text[0] == 'P')
        return parse_iso_duration(text, ret_ms);
    if ((end = read_span(text, &ms)) == NULL || *end != '\0')
        return false;
    *ret_ms = ms;
    return true;
}
