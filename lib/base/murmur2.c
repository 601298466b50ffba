/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MurmurHash2 of 32 bits, byte for byte as the Java client computes it: little endian on every machine, its
 * seed mixed with the length. Keys find their partition by it, so it may never change. Pure; any thread.
 */
#include "lib/base/murmur2.h"

#include <endian.h>
#include <string.h>

uint32_t murmur2(const void *key, size_t n)
{
    const uint32_t m = 0x5bd1e995;
    const uint8_t *p = key;
    uint32_t h = 0x9747b28c ^ (uint32_t)n;

    for (; n >= 4; p += 4, n -= 4) {
        uint32_t k;
        memcpy(&k, p, 4);
        k = le32toh(k) * m;
        k = (k ^ (k >> 24)) * m;
        h = (h * m) ^ k;
    }
    for (size_t i = n; i > 0; i--)
        h ^= (uint32_t)p[i - 1] << (8 * (i - 1));
    if (n > 0)
        h *= m;
    h = (h ^ (h >> 13)) * m;
    return h ^ (h >> 15);
}
