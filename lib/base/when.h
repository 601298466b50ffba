/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times as people write them, the same in `klog` and in names of the mount:
 *
 *   1700000000, 1700000000123       seconds or milliseconds since 1970
 *   -90s -30m -1h -2d -500ms        so long ago
 *   10:00                           today; 10:00:30 only where nothing follows, since ranges are cut at ':'
 *   2026-01-02                      the beginning of that day
 *   2026-01-02T03:04:05.678+01:00   RFC 3339; the zone may be Z, and 'T' a space
 *
 * What names no zone is local time, as `date`, `ls -l` and journalctl have it: 10:00, a day, a day and time without a zone.
 * Local is what TZ and /etc/localtime say to the program that reads it, klogfs for names of a mount. Of an hour that comes twice
 * the first is meant. Pure but for that; when "now" is, is said by who asks.
 */
#ifndef KLOG_BASE_WHEN_H
#define KLOG_BASE_WHEN_H

#include <stdbool.h>
#include <stdint.h>

enum when_kind {
    WHEN_AT,    /* ms since 1970 */
    WHEN_AGO,   /* ms before now */
    WHEN_TODAY, /* what the clock on the wall shows, in ms since midnight */
    WHEN_LOCAL, /* what calendar and clock show, in ms since 1970 as if they showed UTC */
};

struct when {
    enum when_kind kind;
    int64_t ms;
};

/* Reads a time that ends with the text or before a ':'. Returns what follows it; NULL: that is no time. */
const char *when_parse(const char *text, struct when *ret);
/* In ms since 1970; below 0: before it. */
int64_t when_ms(struct when w, int64_t now_ms);

/* A whole text that is a time; before 1970 is 0, as on the mount: below are names of ends. */
bool time_parse(const char *text, int64_t now_ms, int64_t *ret_ms);
/* How long: "90s", "30m", "1h", "2d", "500ms", or as in ISO 8601: "P2D", "PT1H30M", "P1DT12H". */
bool duration_parse(const char *text, int64_t *ret_ms);

#endif
