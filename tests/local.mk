# SPDX-License-Identifier: Apache-2.0
# Unit tests mirror the tree: tests/unit/ROOM/test_x.c. Their programs answer with the exit status (run-cmocka maps any
# number of failures to 1, since automake reads 77 and 99 as "skipped" and "hard error").
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-cmocka
EXTRA_DIST += tests/run-cmocka tests/unit/unit.h
UNIT_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) -I$(top_srcdir)/tests/unit
UNIT_TESTS =
include tests/unit/base/local.mk
include tests/unit/wire/local.mk
include tests/unit/record/local.mk
include tests/unit/store/local.mk
include tests/unit/loop/local.mk
include tests/unit/client/local.mk
include tests/unit/daemon/local.mk
include tests/unit/fuse/local.mk
if HAVE_CMOCKA
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif
