/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka.h does not compile alone; include this instead, first. */
#ifndef KLOG_UNIT_H
#define KLOG_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A directory for one test's files, whose name begins with `name`: in memory where that is to be had, since hundreds of brokers and logs
 * in `make check` would wait for the disk most of their time, and what a sync is worth is for tests/sim's disk to say. */
static inline void test_dir_make(char *ret, size_t size, const char *name)
{
    snprintf(ret, size, "/dev/shm/%s.XXXXXX", name);
    if (mkdtemp(ret) != NULL)
        return;
    snprintf(ret, size, "%s.XXXXXX", name);
    if (mkdtemp(ret) == NULL)
        fail_msg("%s: %s", ret, strerror(errno));
}

/* A program ends with: return RUN(tests); */
#define RUN(tests) (cmocka_run_group_tests(tests, NULL, NULL) != 0)

#endif
