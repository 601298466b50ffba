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
#include "tests/sim/fleet.h"
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
    { "were no whole batches and were cut off", "line: a torn end was cut off" },
    { "they were zeros", "line: and was zeros" },
    { "is damaged: rebuilt from the log", "line: the leader epochs were found anew" },
    { "is damaged: scanned from the start", "line: a checkpoint was damaged" },
    { "kept: records from offset", "line: damage was found, and kept" },
    { "has no segment: it begins at offset", "line: a directory without a segment" },
    { "the disk is full", "line: recovery on a full disk" },
    { "; it goes on there", "line: the log goes on at its start" },
    { "cannot open the log", "line: a log could not be opened" },
    { "cannot delete the log", "line: a log could not be deleted" },
    { "the topic was deleted; removing what is left", "line: what was left of a deleted topic" },
    { "removed what was left of a deleted partition", "line: what was left of a deleted partition" },
    { "partition.metadata is missing", "line: partition.metadata is missing" },
    { "belongs to no segment", "line: a file of no segment" },
    { "registers.journal: ", "line: a torn end of the registers" },
    { "a change was refused", "line: the registers are full" },
    { "cannot be created: ", "line: positions have no topic" },
    { "records were deleted by request", "line: records were deleted" },
    { "retention removed", "line: retention" },
    { "cleaned up to offset", "line: cleaning" },
    { "cleaning failed", "line: cleaning failed" },
    { "it is tried again later", "line: upkeep failed" },
    { "new connections wait or are turned away", "line: no descriptor for a connection" },
    { "log directory ", "line: a log directory failed" },
    { "did not take their answers", "line: a stop cuts connections off" },
    { "is deleted, partitions=", "line: a topic was deleted" },
};

void marks_line(const char *line)
{
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (counters != NULL && strstr(line, lines[i].text) != NULL)
            atomic_fetch_add(&counters->lines[i], 1);
}

/* Those of a log without a broker begin so. */
static bool is_of_log(const struct mark *m)
{
    return strncmp(m->name, "log: ", 5) == 0;
}

/* And those of one that follows: it has no table of its own. */
static bool is_of_copies(const struct mark *m)
{
    return strncmp(m->name, "copies: ", 8) == 0;
}

static bool is_of_fleet(const struct mark *m)
{
    return strncmp(m->name, "fleet: ", 7) == 0;
}

static bool is_of(const struct mark *m, enum marks_of which)
{
    if (is_of_copies(m) || is_of_log(m) || is_of_fleet(m))
        return (is_of_log(m) && which == MARKS_LOG) || (is_of_fleet(m) && which == MARKS_FLEET);
    return which == MARKS_BROKER;
}

/* Those that such a run draws. */
static bool has_fault(int kind, enum marks_of which)
{
    return which == MARKS_FLEET ? fleet_has_fault(kind) : kind < FAULT_ALONE_KINDS;
}

int marks_print(FILE *to, enum marks_of which)
{
    int zero = 0;
    for (struct mark *m = __start_sim_marks; m < __stop_sim_marks; m++) {
        int64_t n = atomic_load(&counters->marks[m - __start_sim_marks]);
        if (!is_of(m, which))
            continue;
        fprintf(to, "%12lld  %s\n", (long long)n, m->name);
        zero += n == 0;
    }
    if (which == MARKS_LOG)
        return zero;
    for (int i = 0; i < FAULT_KINDS; i++) {
        if (!has_fault(i, which))
            continue;
        fprintf(to, "%12lld  fault: %s\n", (long long)counters->faults[i], fault_names[i]);
        zero += counters->faults[i] == 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(lines) && which == MARKS_BROKER; i++) {
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
