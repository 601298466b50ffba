# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_metrics
%C%_test_metrics_SOURCES = %D%/test_metrics.c
%C%_test_metrics_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_metrics_LDADD = $(LIBS_METRICS) $(CMOCKA_LIBS)
