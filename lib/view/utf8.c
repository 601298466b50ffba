/* SPDX-License-Identifier: Apache-2.0 */
/* Judging and writing UTF-8; see utf8.h. ASCII, eight bytes at a time, is the common case. Pure. */
#include "lib/view/utf8.h"

#include <string.h>

/* Bytes of the character that begins with the lead byte, the mask of its bits in there, and the least code point. */
static size_t lead_length(uint8_t c, uint32_t *ret_code, uint32_t *ret_least)
{
    if (c < 0xc2)
        return 0; /* a byte that continues, or a form that is too long */
    if (c < 0xe0) {
        *ret_code = c & 0x1f;
        *ret_least = 0x80;
        return 2;
    }
    if (c < 0xf0) {
        *ret_code = c & 0x0f;
        *ret_least = 0x800;
        return 3;
    }
    *ret_code = c & 0x07;
    *ret_least = 0x10000;
    return c < 0xf5 ? 4 : 0;
}

/* Bytes of the character at p, which is not ASCII; 0: it is none. */
static size_t char_length(const uint8_t *p, size_t n)
{
    uint32_t code, least;
    size_t len = lead_length(p[0], &code, &least);
    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    return code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : len;
}

bool utf8_ok(const uint8_t *p, size_t n)
{
    while (n > 0) {
        uint64_t x;
        size_t len = 1;
        if (n >= 8) {
            memcpy(&x, p, 8);
            len = (x & 0x8080808080808080) == 0 ? 8 : 1;
        }
        if (len == 1 && p[0] >= 0x80 && (len = char_length(p, n)) == 0)
            return false;
        p += len;
        n -= len;
    }
    return true;
}

size_t utf8_put(uint8_t *p, uint32_t code)
{
    if (code < 0x80) {
        p[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        p[0] = (uint8_t)(0xc0 | code >> 6);
        p[1] = (uint8_t)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        p[0] = (uint8_t)(0xe0 | code >> 12);
        p[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        p[2] = (uint8_t)(0x80 | (code & 0x3f));
        return 3;
    }
    p[0] = (uint8_t)(0xf0 | code >> 18);
    p[1] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
    p[2] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    p[3] = (uint8_t)(0x80 | (code & 0x3f));
    return 4;
}
