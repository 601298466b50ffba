# SPDX-License-Identifier: Apache-2.0
# The partition's protocol as a model for spin: it holds, and breaks with a rule left out. Two minutes.
EXTRA_DIST += %D%/partition.py %D%/run.sh %D%/runs
check-model:
	CC='$(CC)' bash $(srcdir)/%D%/run.sh
.PHONY: check-model
