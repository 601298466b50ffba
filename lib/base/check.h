/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Always-on invariant checks. A broken invariant is a bug in klog, never an
 * error of the environment: the process says which one broke and aborts, so
 * that it cannot go on to damage data.
 */
#ifndef KLOG_BASE_CHECK_H
#define KLOG_BASE_CHECK_H

#include "lib/base/attr.h"

#define KCHECK(cond)                                                        \
    do {                                                                    \
        if (unlikely(!(cond)))                                              \
            check_failed(__FILE__, __LINE__, __func__, #cond, "");          \
    } while (0)

/* The same for an invariant that documents and tests name, as "R5" or "S4". */
#define KINVARIANT(number, cond)                                            \
    do {                                                                    \
        if (unlikely(!(cond)))                                              \
            check_failed(__FILE__, __LINE__, __func__, #cond, number);      \
    } while (0)

NORETURN COLD void check_failed(const char *file, int line, const char *func, const char *cond,
                                const char *number);

#endif
