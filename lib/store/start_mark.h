/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of NNN.start, which says that everything below offset NNN of its log has been deleted, and whose it is.
 * docs/DISK-FORMAT.md has them. Pure. */
#ifndef KLOG_STORE_START_MARK_H
#define KLOG_STORE_START_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/slice.h"

#define START_SUFFIX ".start"
#define START_BYTES  32

struct start_mark {
    int64_t offset;
    uint32_t identity;
};

void start_encode(uint8_t ret[START_BYTES], const struct start_mark *m);
/* False: its name is all that it says. Earlier versions made it empty; and its bytes, which are not waited for, may not be on
 * the disk after a power cut. */
bool start_decode(struct slice s, struct start_mark *ret);

#endif
