/* SPDX-License-Identifier: Apache-2.0 */
/* Text as Java counts it, where Kafka's rules depend on that: in units of UTF-16. Pure; any thread. */
#ifndef KLOG_BASE_UTF16_H
#define KLOG_BASE_UTF16_H

#include <stdint.h>

#include "lib/base/slice.h"

/* The first code point of n > 0 bytes of UTF-8, in one or two units; returns its bytes. Bytes that are not UTF-8 count
 * singly. */
int32_t utf16_next(const uint8_t *p, int32_t n, uint16_t ret[2], int32_t *ret_n);
/* Java's String.length(); 0 for null. */
int32_t utf16_length(struct kstr s);
/* As much of s as fits into max_bytes without cutting a character. */
struct kstr utf8_prefix(struct kstr s, int32_t max_bytes);

#endif
