/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KLOG_BASE_MURMUR2_H
#define KLOG_BASE_MURMUR2_H

#include <stddef.h>
#include <stdint.h>

/* MurmurHash2, 32 bits, with the seed the Java client uses, so that keys go to the same partitions:
 * partition = (murmur2(key) & 0x7fffffff) % partitions. */
uint32_t murmur2(const void *p, size_t n);

#endif
