/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KLOG_SRC_TIMEARG_H
#define KLOG_SRC_TIMEARG_H

#include <stdbool.h>
#include <stdint.h>

/* A time as people write it, in milliseconds since 1970: "1700000000000" (ms), "1700000000" (s), "-30m",
 * "-2d" (ago), "10:00" (today, local time), "2026-01-02", "2026-01-02T03:04:05[.678][Z|+01:00]" (local
 * without a zone). Pure: the clock is given. False when it is none of these. */
bool time_parse(const char *text, int64_t now_ms, int64_t *ret_ms);
/* How long: "90s", "30m", "1h", "2d", "500ms", or as in ISO 8601: "P2D", "PT1H30M", "P1DT12H". */
bool duration_parse(const char *text, int64_t *ret_ms);

#endif
