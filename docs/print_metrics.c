/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the rows of the table of metrics in docs/WATCHING.md, from what klogd prints; after changing one: make watching. */
#include <stdio.h>

#include "daemon/watch/watch_int.h"

int main(void)
{
    for (size_t i = 0; i < n_watch_metrics; i++) {
        const struct metric *m = &watch_metrics[i];
        printf("| `%s` | %s | ", m->name, metric_type_name(m->type));
        for (int k = 0; k < METRIC_LABELS_MAX && m->labels[k] != NULL; k++)
            printf("%s%s", k > 0 ? ", " : "", m->labels[k]);
        printf(" | %s |\n", m->help);
    }
    return 0;
}
