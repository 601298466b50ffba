/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which partition of __consumer_offsets a group belongs to: Kafka's hash of its id, which is Java's of the string in UTF-16,
 * so that a group is where any other broker would look for it. Pure.
 */
#include <stdlib.h>

#include "daemon/group/coordinator.h"
#include "lib/base/check.h"
#include "lib/base/utf16.h"

int32_t coordinator_partition_of(struct kstr group_id, int32_t n)
{
    const uint8_t *p = (const uint8_t *)group_id.p;
    uint32_t h = 0;

    KCHECK(n > 0);
    for (int32_t i = 0; i < group_id.n;) {
        uint16_t units[2];
        int32_t n_units;
        i += utf16_next(p + i, group_id.n - i, units, &n_units);
        for (int32_t k = 0; k < n_units; k++)
            h = h * 31 + units[k];
    }
    int32_t hash = (int32_t)h;
    return hash == INT32_MIN ? 0 : abs(hash) % n;
}
