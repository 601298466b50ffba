# SPDX-License-Identifier: Apache-2.0
# Real brokers under faults. The judge of what clients saw is built and judged in `make check`; `make chaos` takes two minutes,
# `make chaos-long` as many seconds as CHAOS_SECONDS says, two hours if nothing does. CHAOS_FAULTS='kill power' are the only ones then.
check_PROGRAMS += %D%/history
%C%_history_SOURCES = %D%/history.c
%C%_history_LDADD = $(LIBS_BASE)
TESTS += %D%/history.sh
EXTRA_DIST += %D%/history.sh %D%/chaos.sh %D%/chaos.py %D%/clients.py %D%/failover.py
CHAOS_SECONDS = 7200
chaos: $(PROGRAMS_UNDER_TEST) %D%/history
	BUILDDIR='$(abs_top_builddir)' bash $(srcdir)/%D%/chaos.sh 60 $(CHAOS_FAULTS)
chaos-long: $(PROGRAMS_UNDER_TEST) %D%/history
	BUILDDIR='$(abs_top_builddir)' bash $(srcdir)/%D%/chaos.sh $(CHAOS_SECONDS) $(CHAOS_FAULTS)
.PHONY: chaos chaos-long
