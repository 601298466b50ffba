/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of paths below a topic (docs/filesystem.md, section 1). Pure. */
#include "fuse/tree/view.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

/* An epoch time of up to eleven digits is in seconds (until the year 5138), a longer one in milliseconds. */
#define EPOCH_SECONDS_DIGITS 11

/* Reads digits; no sign, no overflow. Returns what follows them, or NULL. */
static const char *parse_digits(const char *s, int64_t *ret, int *ret_digits)
{
    int64_t v = 0;
    int n = 0;
    for (; isdigit((unsigned char)s[n]); n++) {
        int digit = s[n] - '0';
        if (v > (INT64_MAX - digit) / 10)
            return NULL;
        v = v * 10 + digit;
    }
    if (n == 0)
        return NULL;
    *ret = v;
    if (ret_digits != NULL)
        *ret_digits = n;
    return s + n;
}

/* Exactly `width` digits, at most `max`. */
static const char *parse_field(const char *s, int width, int max, int *ret)
{
    int v = 0;
    for (int i = 0; i < width; i++) {
        if (!isdigit((unsigned char)s[i]))
            return NULL;
        v = v * 10 + s[i] - '0';
    }
    if (v > max)
        return NULL;
    *ret = v;
    return s + width;
}

/* "-90s", "-30m", "-1h", "-2d", "-500ms" */
static const char *parse_ago(const char *s, struct bound *ret)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 } };
    int64_t n;
    if (*s != '-' || (s = parse_digits(s + 1, &n, NULL)) == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t len = strlen(units[i].unit);
        if (strncmp(s, units[i].unit, len) == 0 && n <= INT64_MAX / units[i].ms) {
            *ret = (struct bound){ BOUND_AGO, n * units[i].ms };
            return s + len;
        }
    }
    return NULL;
}

/* "10:00", local time of day. No seconds: "10:00:11:30" is from ten o'clock to half past eleven. */
static const char *parse_clock(const char *s, struct bound *ret)
{
    int hour, minute;
    if ((s = parse_field(s, 2, 23, &hour)) == NULL || *s != ':' ||
        (s = parse_field(s + 1, 2, 59, &minute)) == NULL || isdigit((unsigned char)*s))
        return NULL;
    *ret = (struct bound){ BOUND_CLOCK, (hour * 60 + minute) * 60000LL };
    return s;
}

static const char *parse_fraction(const char *s, int *ret_ms)
{
    int scale = 100;
    *ret_ms = 0;
    if (*s != '.')
        return s;
    if (!isdigit((unsigned char)*++s))
        return NULL;
    for (; isdigit((unsigned char)*s); s++) {
        *ret_ms += (*s - '0') * scale;
        scale /= 10;
    }
    return s;
}

/* "Z", "+02:00", "-0530" */
static const char *parse_zone(const char *s, int *ret_minutes)
{
    if (*s == 'Z' || *s == 'z') {
        *ret_minutes = 0;
        return s + 1;
    }
    int sign = *s == '+' ? 1 : *s == '-' ? -1 : 0;
    int hour, minute;
    if (sign == 0 || (s = parse_field(s + 1, 2, 23, &hour)) == NULL)
        return NULL;
    if (*s == ':')
        s++;
    if ((s = parse_field(s, 2, 59, &minute)) == NULL)
        return NULL;
    *ret_minutes = sign * (hour * 60 + minute);
    return s;
}

/* RFC 3339: "2026-01-02T03:04:05Z", with a fraction and any zone; or only the date, midnight UTC. */
static const char *parse_rfc3339(const char *s, struct bound *ret)
{
    struct tm tm = { 0 };
    int year, ms = 0, zone = 0;
    if ((s = parse_field(s, 4, 9999, &year)) == NULL || *s != '-' ||
        (s = parse_field(s + 1, 2, 12, &tm.tm_mon)) == NULL || *s != '-' ||
        (s = parse_field(s + 1, 2, 31, &tm.tm_mday)) == NULL || tm.tm_mon == 0 || tm.tm_mday == 0)
        return NULL;
    if (*s == 'T' || *s == 't' || *s == ' ') {
        if ((s = parse_field(s + 1, 2, 23, &tm.tm_hour)) == NULL || *s != ':' ||
            (s = parse_field(s + 1, 2, 59, &tm.tm_min)) == NULL || *s != ':' ||
            (s = parse_field(s + 1, 2, 60, &tm.tm_sec)) == NULL || (s = parse_fraction(s, &ms)) == NULL ||
            (s = parse_zone(s, &zone)) == NULL)
            return NULL;
    }
    tm.tm_year = year - 1900;
    int month = --tm.tm_mon;
    int64_t at_s = (int64_t)timegm(&tm);
    if (tm.tm_mon != month) /* the 30th of February */
        return NULL;
    *ret = (struct bound){ BOUND_TIME, (at_s - zone * 60LL) * 1000 + ms };
    return s;
}

static const char *parse_epoch(const char *s, struct bound *ret)
{
    int64_t v;
    int digits;
    if ((s = parse_digits(s, &v, &digits)) == NULL)
        return NULL;
    *ret = (struct bound){ BOUND_TIME, digits <= EPOCH_SECONDS_DIGITS ? v * 1000 : v };
    return s;
}

/* The forms overlap at the front, so the most particular comes first. */
static const char *parse_time(const char *s, struct bound *ret)
{
    static const char *(*const forms[])(const char *, struct bound *) = { parse_ago, parse_rfc3339,
                                                                          parse_clock, parse_epoch };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const char *end = forms[i](s, ret);
        if (end != NULL && (*end == '\0' || *end == ':'))
            return end;
    }
    return NULL;
}

static const char *parse_bound(const char *s, struct bound *ret)
{
    int64_t v;
    if (strncmp(s, "start", 5) == 0) {
        *ret = (struct bound){ BOUND_START, 0 };
        return s + 5;
    }
    if (strncmp(s, "end", 3) == 0) {
        *ret = (struct bound){ BOUND_END, 0 };
        return s + 3;
    }
    enum bound_kind kind = *s == '-' ? BOUND_LAST : *s == '+' ? BOUND_FIRST : BOUND_OFFSET;
    if ((s = parse_digits(s + (kind != BOUND_OFFSET), &v, NULL)) == NULL)
        return NULL;
    *ret = (struct bound){ kind, v };
    return s;
}

bool range_parse(const char *text, struct range *ret)
{
    struct range r = { { BOUND_NONE, 0 }, { BOUND_NONE, 0 } };
    bool time = *text == '@';
    const char *(*bound)(const char *, struct bound *) = time ? parse_time : parse_bound;
    const char *s = text + time;
    if (*s != ':' && (s = bound(s, &r.from)) == NULL)
        return false;
    if (*s == ':' && (s = bound(s + 1, &r.to)) == NULL)
        return false;
    if (*s != '\0')
        return false;
    *ret = r;
    return true;
}

static bool view_enter_group(const struct view *v, const char *name, struct view *ret)
{
    if (!group_name_ok(name))
        return false;
    if (ret != v)
        *ret = *v;
    memcpy(ret->group, name, strlen(name) + 1);
    ret->parts = (ret->parts & ~VIEW_AS_OPEN) | VIEW_AS;
    return true;
}

/* Which part `name` asks for; 0: none. json and tsv are two forms of the same thing: one excludes the other.
 */
static unsigned view_part_of(const char *name, struct range *ret_range, unsigned *ret_excludes)
{
    static const struct {
        const char *name;
        unsigned part, excludes;
    } words[] = {
        { "follow", VIEW_FOLLOW, VIEW_FOLLOW },
        { "json", VIEW_JSON, VIEW_JSON | VIEW_TSV },
        { "tsv", VIEW_TSV, VIEW_JSON | VIEW_TSV },
        { "as", VIEW_AS_OPEN, VIEW_AS | VIEW_AS_OPEN },
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(name, words[i].name) == 0) {
            *ret_excludes = words[i].excludes;
            return words[i].part;
        }
    }
    *ret_excludes = VIEW_RANGE;
    return range_parse(name, ret_range) ? VIEW_RANGE : 0;
}

bool view_enter(const struct view *v, const char *name, struct view *ret)
{
    if (v->parts & VIEW_AS_OPEN)
        return view_enter_group(v, name, ret);
    unsigned excludes;
    struct range range = v->range;
    unsigned part = view_part_of(name, &range, &excludes);
    if (part == 0 || (v->parts & excludes) != 0)
        return false;
    if (ret != v)
        *ret = *v;
    ret->parts |= part;
    ret->range = range;
    return true;
}

bool view_is_built(const struct view *v)
{
    return (v->parts & ~(unsigned)(VIEW_FOLLOW | VIEW_AS | VIEW_AS_OPEN)) == 0;
}
