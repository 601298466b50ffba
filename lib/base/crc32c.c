/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three ways to the same sum: ISA-L for long input, the processor's own instruction for short input (it beats ISA-L
 * below some 256 bytes), and a table where there is neither.
 */
#include "lib/base/crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#endif

#include "lib/base/attr.h"

enum { POLYNOMIAL_REVERSED = (int)0x82f63b78, SHORT_BYTES = 256 };

static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_fill(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = (c >> 1) ^ ((c & 1) ? (uint32_t)POLYNOMIAL_REVERSED : 0);
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xff];
}

static uint32_t crc_by_table(uint32_t crc, const uint8_t *p, size_t n)
{
    pthread_once(&table_once, table_fill);
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t lo, hi;
        memcpy(&lo, p, 4);
        memcpy(&hi, p + 4, 4);
        lo = le32toh(lo) ^ crc;
        hi = le32toh(hi);
        crc = table[7][lo & 0xff] ^ table[6][(lo >> 8) & 0xff] ^ table[5][(lo >> 16) & 0xff] ^ table[4][lo >> 24] ^
              table[3][hi & 0xff] ^ table[2][(hi >> 8) & 0xff] ^ table[1][(hi >> 16) & 0xff] ^ table[0][hi >> 24];
    }
    for (; n > 0; p++, n--)
        crc = (crc >> 8) ^ table[0][(crc ^ *p) & 0xff];
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_by_instruction(uint32_t crc, const uint8_t *p, size_t n)
{
    uint64_t c = crc;

    for (; n >= 8; p += 8, n -= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        c = __builtin_ia32_crc32di(c, v);
    }
    for (; n > 0; p++, n--)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p);
    return (uint32_t)c;
}

static bool have_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#else
static uint32_t crc_by_instruction(uint32_t crc, const uint8_t *p, size_t n)
{
    return crc_by_table(crc, p, n);
}

static bool have_instruction(void)
{
    return false;
}
#endif

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
    crc = ~crc;
#ifdef HAVE_ISAL
    if (n > SHORT_BYTES && n <= INT32_MAX)
        return ~crc32_iscsi((unsigned char *)(uintptr_t)p, (int)n, crc);
#endif
    return ~(have_instruction() ? crc_by_instruction(crc, p, n) : crc_by_table(crc, p, n));
}
