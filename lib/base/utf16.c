/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 counted as Java counts (see utf16.h). Every input has a length: a byte that begins no well-formed
 * character (cut short, too long an encoding, out of Unicode) counts as one unit, and reading goes on behind
 * it. Surrogates written as three bytes are let through. No byte at or behind n is read. Pure; any thread.
 */
#include "lib/base/utf16.h"

int32_t utf16_next(const uint8_t *p, int32_t n, uint16_t ret[2], int32_t *ret_n)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    int32_t len = p[0] < 0xc2 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 1;
    uint32_t c = len == 1 ? p[0] : p[0] & (0xffu >> (len + 1));

    for (int32_t i = 1; i < len; i++) {
        if (i >= n || (p[i] & 0xc0) != 0x80) {
            ret[0] = p[0];
            *ret_n = 1;
            return 1;
        }
        c = c << 6 | (p[i] & 0x3f);
    }
    if (len > 1 && c < smallest[len])
        c = p[0], len = 1;
    *ret_n = c >= 0x10000 ? 2 : 1;
    ret[0] = (uint16_t)(c >= 0x10000 ? 0xd800 + ((c - 0x10000) >> 10) : c);
    ret[1] = (uint16_t)(0xdc00 + (c & 0x3ff));
    return len;
}

int32_t utf16_length(struct kstr s)
{
    int32_t n = 0;

    for (int32_t i = 0; i < s.n;) {
        uint16_t units[2];
        int32_t n_units;
        i += utf16_next((const uint8_t *)s.p + i, s.n - i, units, &n_units);
        n += n_units;
    }
    return n;
}

struct kstr utf8_prefix(struct kstr s, int32_t max_bytes)
{
    if (s.n <= max_bytes)
        return s;
    int32_t n = max_bytes;
    for (int32_t back = 0; back < 3 && n > 0 && ((uint8_t)s.p[n] & 0xc0) == 0x80; back++)
        n--;
    return kstr_bytes(s.p, (size_t)(((uint8_t)s.p[n] & 0xc0) == 0x80 ? max_bytes : n));
}
