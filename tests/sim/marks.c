/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of what was come past; see marks.h. */
#include "tests/sim/marks.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/kerr.h"
#include "lib/wire/wire.h"
#include "tests/sim/plan.h"

enum { MARKS_MAX = 256, APIS = 128, ERRORS = 140, LINES_MAX = 64 };

extern struct mark __start_sim_marks[], __stop_sim_marks[];

static struct counters {
    _Atomic int64_t marks[MARKS_MAX];
    _Atomic int64_t errors[APIS][ERRORS]; /* by API and code + 1 */
    _Atomic int64_t lines[LINES_MAX];
    _Atomic int64_t faults[FAULT_KINDS];
} *counters;

void marks_share(void)
{
    counters = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    KCHECK(counters != MAP_FAILED && __stop_sim_marks - __start_sim_marks <= MARKS_MAX);
}

void marks_hit(struct mark *m)
{
    if (counters != NULL)
        atomic_fetch_add(&counters->marks[m - __start_sim_marks], 1);
}

void marks_fault(int kind)
{
    if (counters != NULL)
        atomic_fetch_add(&counters->faults[kind], 1);
}

void marks_error(int16_t api, int16_t err)
{
    if (counters != NULL && api >= 0 && api < APIS && err >= -1 && err < ERRORS - 1)
        atomic_fetch_add(&counters->errors[api][err + 1], 1);
}

/* What the broker says of what it does when things are not as they should be. */
static const struct {
    const char *text, *name;
} lines[] = {
    { "were no whole batches and were cut off", "log: a torn end was cut off" },
    { "they were zeros", "log: and was zeros" },
    { "is damaged: rebuilt from the log", "log: an index was rebuilt" },
    { "has no segment: it begins at offset", "log: a directory without a segment" },
    { "the disk is full", "log: recovery on a full disk" },
    { "; it goes on there", "log: the log goes on at its start" },
    { "cannot open the log", "log: a log could not be opened" },
    { "cannot delete the log", "log: a log could not be deleted" },
    { "the topic was deleted; removing what is left", "log: what was left of a deleted topic" },
    { "removed what was left of a deleted partition", "log: what was left of a deleted partition" },
    { "partition.metadata is missing", "log: partition.metadata is missing" },
    { "belongs to no segment", "log: a file of no segment" },
    { "registers.journal: ", "log: a torn end of the registers" },
    { "a change was refused", "log: the registers are full" },
    { "cannot be created: ", "log: positions have no topic" },
    { "records were deleted by request", "log: records were deleted" },
    { "retention removed", "log: retention" },
    { "cleaned up to offset", "log: cleaning" },
    { "cleaning failed", "log: cleaning failed" },
    { "it is tried again later", "log: upkeep failed" },
    { "new connections wait or are turned away", "log: no descriptor for a connection" },
    { "log directory ", "log: a log directory failed" },
    { "did not take their answers", "log: a stop cuts connections off" },
    { "is deleted, partitions=", "log: a topic was deleted" },
};

void marks_line(const char *line)
{
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (counters != NULL && strstr(line, lines[i].text) != NULL)
            atomic_fetch_add(&counters->lines[i], 1);
}

int marks_print(FILE *to)
{
    int zero = 0;
    for (struct mark *m = __start_sim_marks; m < __stop_sim_marks; m++) {
        int64_t n = atomic_load(&counters->marks[m - __start_sim_marks]);
        fprintf(to, "%12lld  %s\n", (long long)n, m->name);
        zero += n == 0;
    }
    for (int i = 0; i < FAULT_KINDS; i++) {
        fprintf(to, "%12lld  fault: %s\n", (long long)counters->faults[i], fault_names[i]);
        zero += counters->faults[i] == 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        fprintf(to, "%12lld  %s\n", (long long)counters->lines[i], lines[i].name);
        zero += counters->lines[i] == 0;
    }
    for (int api = 0; api < APIS; api++)
        for (int err = 0; err < ERRORS; err++)
            if (counters->errors[api][err] > 0)
                fprintf(to, "%12lld  %s: %s\n", (long long)counters->errors[api][err], wire_api_find((int16_t)api)->name,
                        kerr_name((enum kerr)(err - 1)));
    return zero;
}
