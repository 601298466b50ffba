/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KLOG_BASE_CRC32C_H
#define KLOG_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli) as Kafka's record batches have it; start with crc = 0. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);

#endif
