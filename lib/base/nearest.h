/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean ...?": the word of a list that is nearest to one that is in none. Pure, any thread. A guess that is
 * further away than a third of the word is no help, and is not made.
 */
#ifndef KLOG_BASE_NEAREST_H
#define KLOG_BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

struct nearest { /* the best so far */
    const char *wrong;
    size_t distance; /* a candidate must be nearer than this */
};
struct nearest nearest_to(const char *wrong);
/* Is `word` nearer than all before it? Words over 128 bytes never are. */
bool nearest_try(struct nearest *n, const char *word);

#endif
