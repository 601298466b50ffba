# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libmetrics.a
%C%_libmetrics_a_CPPFLAGS = $(AM_CPPFLAGS) $(MICROHTTPD_CFLAGS)
%C%_libmetrics_a_SOURCES = \
	%D%/histogram.c %D%/histogram.h \
	%D%/http.c %D%/http.h \
	%D%/text.c %D%/text.h
