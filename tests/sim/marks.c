/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of what was come past; see marks.h. */
#include "tests/sim/marks.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "lib/base/check.h"
#include "lib/base/kerr.h"
#include "lib/wire/wire.h"

enum { MARKS_MAX = 256, APIS = 128, ERRORS = 140 };

extern struct mark __start_sim_marks[], __stop_sim_marks[];

static struct counters {
    _Atomic int64_t marks[MARKS_MAX];
    _Atomic int64_t errors[APIS][ERRORS]; /* by API and code + 1 */
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

void marks_error(int16_t api, int16_t err)
{
    if (counters != NULL && api >= 0 && api < APIS && err >= -1 && err < ERRORS - 1)
        atomic_fetch_add(&counters->errors[api][err + 1], 1);
}

int marks_print(FILE *to)
{
    int zero = 0;
    for (struct mark *m = __start_sim_marks; m < __stop_sim_marks; m++) {
        int64_t n = atomic_load(&counters->marks[m - __start_sim_marks]);
        fprintf(to, "%12lld  %s\n", (long long)n, m->name);
        zero += n == 0;
    }
    for (int api = 0; api < APIS; api++)
        for (int err = 0; err < ERRORS; err++)
            if (counters->errors[api][err] > 0)
                fprintf(to, "%12lld  %s: %s\n", (long long)counters->errors[api][err], wire_api_find((int16_t)api)->name,
                        kerr_name((enum kerr)(err - 1)));
    return zero;
}
