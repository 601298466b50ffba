# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_view %D%/test_render %D%/test_parse
%C%_test_view_SOURCES = %D%/test_view.c
%C%_test_view_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_view_LDADD = $(LIBS_VIEW) $(CMOCKA_LIBS)
%C%_test_render_SOURCES = %D%/test_render.c
%C%_test_render_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_render_LDADD = $(LIBS_VIEW) $(CMOCKA_LIBS)
%C%_test_parse_SOURCES = %D%/test_parse.c
%C%_test_parse_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_parse_LDADD = $(LIBS_VIEW) $(CMOCKA_LIBS)
