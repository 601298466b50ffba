# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_engine %D%/test_frame %D%/test_golden
%C%_test_engine_SOURCES = %D%/test_engine.c
%C%_test_engine_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_engine_LDADD = $(LIBS_WIRE) $(CMOCKA_LIBS)
%C%_test_frame_SOURCES = %D%/test_frame.c
%C%_test_frame_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_frame_LDADD = $(LIBS_WIRE) $(CMOCKA_LIBS)
%C%_test_golden_SOURCES = %D%/test_golden.c
%C%_test_golden_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_golden_LDADD = $(LIBS_WIRE) $(CMOCKA_LIBS)
EXTRA_DIST += tests/fixtures/wire
