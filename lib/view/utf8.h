/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as RFC 3629 has it: no surrogates, nothing above U+10FFFF, no longer form than needed. Pure; any thread. */
#ifndef KLOG_VIEW_UTF8_H
#define KLOG_VIEW_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool utf8_ok(const uint8_t *p, size_t n);
/* Writes a code point that is not a surrogate; returns its bytes, 1 to 4. */
size_t utf8_put(uint8_t *p, uint32_t code);

#endif
