# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_view
%C%_test_view_SOURCES = %D%/test_view.c
%C%_test_view_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_view_LDADD = fuse/libklogfs.a $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_lines
%C%_test_lines_SOURCES = %D%/test_lines.c
%C%_test_lines_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_lines_LDADD = fuse/libklogfs.a $(LIBS_BASE) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_text
%C%_test_text_SOURCES = %D%/test_text.c
%C%_test_text_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_text_LDADD = fuse/libklogfs.a $(LIBS_RECORD) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test_options
%C%_test_options_SOURCES = %D%/test_options.c
%C%_test_options_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_options_LDADD = fuse/libklogfs.a $(LIBS_BASE) $(CMOCKA_LIBS)

if HAVE_FUSE
UNIT_TESTS += %D%/test_stat_call
%C%_test_stat_call_SOURCES = %D%/test_stat_call.c
%C%_test_stat_call_CPPFLAGS = $(UNIT_CPPFLAGS) $(FUSE_CFLAGS)
%C%_test_stat_call_LDADD = fuse/libklogfs.a lib/wire/libwire.a $(LIBS_BASE) $(CMOCKA_LIBS)
endif
