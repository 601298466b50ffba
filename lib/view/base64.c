/* SPDX-License-Identifier: Apache-2.0 */
/* Base64; see base64.h. Pure. */
#include "lib/view/base64.h"

static const char digits[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const uint8_t *p, size_t n, uint8_t *ret)
{
    for (; n >= 3; n -= 3, p += 3, ret += 4) {
        uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
        ret[0] = (uint8_t)digits[v >> 18];
        ret[1] = (uint8_t)digits[v >> 12 & 63];
        ret[2] = (uint8_t)digits[v >> 6 & 63];
        ret[3] = (uint8_t)digits[v & 63];
    }
    if (n == 0)
        return;
    uint32_t v = (uint32_t)p[0] << 16 | (n == 2 ? (uint32_t)p[1] << 8 : 0);
    ret[0] = (uint8_t)digits[v >> 18];
    ret[1] = (uint8_t)digits[v >> 12 & 63];
    ret[2] = n == 2 ? (uint8_t)digits[v >> 6 & 63] : '=';
    ret[3] = '=';
}

static int digit_value(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Bits that stand for no byte have to be 0. */
ssize_t base64_decode(const uint8_t *p, size_t n, uint8_t *ret)
{
    size_t out = 0;
    if (n % 4 != 0)
        return -1;
    for (size_t i = 0; i < n; i += 4) {
        int pad = i + 4 < n || p[i + 3] != '=' ? 0 : p[i + 2] == '=' ? 2 : 1;
        uint32_t v = 0;
        for (int k = 0; k < 4; k++) {
            int d = k >= 4 - pad ? 0 : digit_value(p[i + (size_t)k]);
            if (d < 0)
                return -1;
            v = v << 6 | (uint32_t)d;
        }
        if ((v & ((1u << (8 * pad)) - 1)) != 0)
            return -1;
        for (int k = 0; k < 3 - pad; k++)
            ret[out++] = (uint8_t)(v >> (16 - 8 * k));
    }
    return (ssize_t)out;
}
