/* SPDX-License-Identifier: Apache-2.0 */
/* What every fuzz target defines: runs one input and aborts when a promise is broken. Returns 0. */
#ifndef KLOG_FUZZ_FUZZ_H
#define KLOG_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#endif
