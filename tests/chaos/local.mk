# SPDX-License-Identifier: Apache-2.0
# Real brokers under faults. The judge of what clients saw is built and judged in `make check`; `make chaos` takes a minute.
check_PROGRAMS += %D%/history
%C%_history_SOURCES = %D%/history.c
%C%_history_LDADD = $(LIBS_BASE)
TESTS += %D%/history.sh
EXTRA_DIST += %D%/history.sh
