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

#ifndef __has_feature
#define __has_feature(x) 0
#endif
/* Of the seeds, or the places to stop at, of a test that does everything on one thread every so many'th is tried: each, but under sanitizers,
 * which take ten times as long and find the same at the next place. The thread sanitizer has nothing to look for there. Odd, so that
 * what a test does at each second place is met. */
static inline int test_step(void)
{
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
    return 21;
#elif defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
    return 5;
#else
    return 1;
#endif
}

/* A program ends with: return RUN(tests); */
#define RUN(tests) (cmocka_run_group_tests(tests, NULL, NULL) != 0)

#endif
