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

/* A program ends with: return RUN(tests); */
#define RUN(tests) (cmocka_run_group_tests(tests, NULL, NULL) != 0)

#endif
