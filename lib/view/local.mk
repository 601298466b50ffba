# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libview.a
%C%_libview_a_SOURCES = \
	%D%/base64.c %D%/base64.h \
	%D%/names.c %D%/names.h \
	%D%/parse.c %D%/parse.h %D%/parse_json.c %D%/parse_int.h \
	%D%/render.c %D%/render.h \
	%D%/utf8.c %D%/utf8.h \
	%D%/view.c %D%/view.h
