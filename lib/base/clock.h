/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KLOG_BASE_CLOCK_H
#define KLOG_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_mono_ns(void);
int64_t clock_mono_ms(void);
int64_t clock_wall_ms(void);  /* milliseconds since 1970, as record timestamps are */

#endif
