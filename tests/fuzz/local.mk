# SPDX-License-Identifier: Apache-2.0
# Fuzz targets. For a new one: fuzz_NAME.c here (it includes tests/fuzz/fuzz.h), its seeds in corpus/NAME/, its program in
# FUZZ_TESTS, and its SOURCES and LDADD below. `make check` replays each corpus, with mutations;
# `make fuzz-smoke` runs each target under libFuzzer for FUZZ_SECONDS.
FUZZ_TESTS = %D%/fuzz_wire %D%/fuzz_batch %D%/fuzz_recover %D%/fuzz_registers %D%/fuzz_datadir %D%/fuzz_groups %D%/fuzz_view
FUZZ_SECONDS = 30
EXTRA_DIST += %D%/corpus

%C%_fuzz_wire_SOURCES = %D%/fuzz_wire.c %D%/fuzz.h %D%/main.c
%C%_fuzz_wire_LDADD = $(LIBS_WIRE)
%C%_fuzz_batch_SOURCES = %D%/fuzz_batch.c %D%/fuzz.h %D%/main.c
%C%_fuzz_batch_LDADD = $(LIBS_RECORD)
%C%_fuzz_recover_SOURCES = %D%/fuzz_recover.c %D%/fuzz.h %D%/main.c
%C%_fuzz_recover_LDADD = $(LIBS_STORE)
%C%_fuzz_view_SOURCES = %D%/fuzz_view.c %D%/fuzz.h %D%/main.c
%C%_fuzz_view_LDADD = $(LIBS_VIEW)
%C%_fuzz_groups_SOURCES = %D%/fuzz_groups.c %D%/fuzz.h %D%/main.c
%C%_fuzz_groups_LDADD = daemon/libklogd.a lib/wire/libwire.a $(LIBS_RECORD)

%C%_fuzz_datadir_SOURCES = %D%/fuzz_datadir.c %D%/fuzz.h %D%/main.c
%C%_fuzz_datadir_LDADD = $(LIBS_STORE)
%C%_fuzz_registers_SOURCES = %D%/fuzz_registers.c %D%/fuzz.h %D%/main.c
%C%_fuzz_registers_LDADD = $(LIBS_KLOGD)

check_PROGRAMS += $(FUZZ_TESTS)
TESTS += $(FUZZ_TESTS)

# A build of its own, with clang and coverage; libFuzzer's main replaces that of main.c.
FUZZ_FLAGS = -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
fuzz-smoke:
	$(MKDIR_P) fuzz-build
	test -f fuzz-build/Makefile || { cd fuzz-build && $(abs_srcdir)/configure -q CC=clang CFLAGS='$(FUZZ_FLAGS)'; }
	cd fuzz-build && $(MAKE) Makefile # configure, when it runs anew, is to link programs with a main
	cd fuzz-build && $(MAKE) $(FUZZ_TESTS) LDFLAGS=-fsanitize=fuzzer,address,undefined
	cd fuzz-build && for p in $(FUZZ_TESTS); do \
		t=$${p##*/fuzz_}; mkdir -p found/$$t && \
		./$$p -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -artifact_prefix=found/crash-$$t- \
			found/$$t $(abs_srcdir)/%D%/corpus/$$t || exit 1; \
	done
fuzz-clean:
	rm -rf fuzz-build
.PHONY: fuzz-smoke fuzz-clean
