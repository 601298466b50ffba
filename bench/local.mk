# SPDX-License-Identifier: Apache-2.0
# `make bench`: klog beside the least that a broker and a FUSE file system can do. Nothing here is built by `make` or installed.
EXTRA_LIBRARIES = %D%/libbench.a
%C%_libbench_a_SOURCES = %D%/bench.c %D%/bench.h
LIBS_BENCH = %D%/libbench.a $(LIBS_RECORD)

EXTRA_PROGRAMS = %D%/load %D%/null-broker %D%/null-fuse %D%/rdkafka-load
BENCH_TOOLS = %D%/load %D%/null-broker
%C%_load_SOURCES = %D%/load.c
%C%_load_LDADD = $(LIBS_BENCH)
%C%_null_broker_SOURCES = %D%/null_broker.c
%C%_null_broker_LDADD = $(LIBS_BENCH)
%C%_null_fuse_SOURCES = %D%/null_fuse.c
%C%_null_fuse_CPPFLAGS = $(AM_CPPFLAGS) $(FUSE_CFLAGS)
%C%_null_fuse_LDADD = $(LIBS_BENCH) $(FUSE_LIBS)
%C%_rdkafka_load_SOURCES = %D%/rdkafka_load.c
%C%_rdkafka_load_CPPFLAGS = $(AM_CPPFLAGS) $(RDKAFKA_CFLAGS)
%C%_rdkafka_load_LDADD = $(LIBS_BENCH) $(RDKAFKA_LIBS)
if HAVE_FUSE
BENCH_TOOLS += %D%/null-fuse
endif
if HAVE_RDKAFKA
BENCH_TOOLS += %D%/rdkafka-load
endif
EXTRA_DIST += %D%/run.sh %D%/cluster.sh %D%/wakes.py
CLEANFILES += $(EXTRA_PROGRAMS) $(EXTRA_LIBRARIES)

bench: $(PROGRAMS_UNDER_TEST) $(BENCH_TOOLS)
	BUILDDIR='$(abs_top_builddir)' bash $(srcdir)/%D%/run.sh
# Three brokers beside three of Apache Kafka.
bench-cluster: $(PROGRAMS_UNDER_TEST) $(BENCH_TOOLS)
	BUILDDIR='$(abs_top_builddir)' bash $(srcdir)/%D%/cluster.sh
.PHONY: bench bench-cluster
