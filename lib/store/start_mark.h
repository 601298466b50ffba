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

/* Earlier versions made it empty: its name was all that it said. */
static inline bool start_is_bare(struct slice s)
{
    return s.n == 0;
}

void start_encode(uint8_t ret[START_BYTES], const struct start_mark *m);
bool start_decode(struct slice s, struct start_mark *ret);

#endif
