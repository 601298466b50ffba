/* SPDX-License-Identifier: Apache-2.0 */
/* print-metrics klogd|klogfs: the rows of that program's table of metrics in docs/WATCHING.md; after changing one: make watching. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/metrics/text.h"

#define METRIC(row, name, type, labels, help) { name, METRIC_##type, labels, help },
static const struct metric klogd[] = {
#include "daemon/watch/metrics.def"
};
static const struct metric klogfs[] = {
#include "fuse/meter/metrics.def"
};

static void print(const struct metric *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct metric *m = &table[i];
        printf("| `%s` | %s | ", m->name, metric_type_name(m->type));
        for (int k = 0; k < METRIC_LABELS_MAX && m->labels[k] != NULL; k++)
            printf("%s%s", k > 0 ? ", " : "", m->labels[k]);
        printf(" | %s |\n", m->help);
    }
}

int main(int argc, char **argv)
{
    const char *program = argc == 2 ? argv[1] : "";
    bool of_mount = strcmp(program, "klogfs") == 0;
    if (!of_mount && strcmp(program, "klogd") != 0) {
        fprintf(stderr, "usage: print-metrics klogd|klogfs\n");
        return 2;
    }
    print(of_mount ? klogfs : klogd, of_mount ? ARRAY_LEN(klogfs) : ARRAY_LEN(klogd));
    return 0;
}
