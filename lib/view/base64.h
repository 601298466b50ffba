/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 as RFC 4648 has it, section 4, with padding. Pure; any thread. */
#ifndef KLOG_VIEW_BASE64_H
#define KLOG_VIEW_BASE64_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

static inline size_t base64_size(size_t n) /* of the text for n bytes */
{
    return (n + 2) / 3 * 4;
}
/* Writes base64_size(n) bytes to ret. */
void base64_encode(const uint8_t *p, size_t n, uint8_t *ret);
/* Writes at most n / 4 * 3 bytes to ret, which may be p; returns how many, or -1: that is no base64 (or not the only
 * one for these bytes). */
ssize_t base64_decode(const uint8_t *p, size_t n, uint8_t *ret);

#endif
