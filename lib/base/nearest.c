/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Levenshtein's distance over one row on the stack; see nearest.h. Words over 128 bytes are not compared, so
 * that the work for what an outsider sends is bounded. Pure; any thread.
 */
#include "lib/base/nearest.h"

#include <stdint.h>
#include <string.h>
#include <sys/param.h>

enum { WORD_BYTES_MAX = 128 };

static size_t edit_distance(const char *a, const char *b)
{
    size_t row[WORD_BYTES_MAX + 1], n = strlen(b);

    if (n > WORD_BYTES_MAX || strlen(a) > WORD_BYTES_MAX)
        return SIZE_MAX;
    for (size_t k = 0; k <= n; k++)
        row[k] = k;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t k = 1; k <= n; k++) {
            size_t change = diagonal + (a[i - 1] != b[k - 1]);
            diagonal = row[k];
            row[k] = MIN(change, MIN(row[k], row[k - 1]) + 1);
        }
    }
    return row[n];
}

struct nearest nearest_to(const char *wrong)
{
    size_t n = strlen(wrong), far = MAX(n / 3, n > 3 ? (size_t)2 : 1); /* 2: two letters that changed places */
    return (struct nearest){ .wrong = wrong, .distance = far + 1 };
}

bool nearest_try(struct nearest *n, const char *word)
{
    size_t d = edit_distance(n->wrong, word);
    if (d >= n->distance)
        return false;
    n->distance = d;
    return true;
}
