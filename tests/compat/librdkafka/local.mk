# SPDX-License-Identifier: Apache-2.0
# librdkafka's own tests, fetched and built outside the tests (they have no network); most of the time they wait, so more of them run than there
# are processors.
EXTRA_DIST += %D%/tests %D%/prepare %D%/one.sh %D%/kafka-topics.sh %D%/rows
prepare_librdkafka = BUILDDIR='$(abs_top_builddir)' bash $(srcdir)/%D%/prepare tests/librdkafka
check-librdkafka: $(PROGRAMS_UNDER_TEST)
	@$(prepare_librdkafka) ci
	@$(MAKE) $(AM_MAKEFLAGS) -j$$(($$(nproc) * 3)) check-TESTS TESTS="$$(cat tests/librdkafka/list)"
librdkafka-all:
	@$(prepare_librdkafka) all
librdkafka-rows:
	@mkdir -p tests/compat/results
	bash $(srcdir)/%D%/rows tests/librdkafka >tests/compat/results/librdkafka.tsv
clean-local: clean-librdkafka
clean-librdkafka:
	rm -rf tests/librdkafka tests/compat/results/librdkafka.tsv
.PHONY: check-librdkafka librdkafka-all librdkafka-rows clean-librdkafka
