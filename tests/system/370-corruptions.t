# SPDX-License-Identifier: Apache-2.0
# A few random corruptions of a data directory, the same every time; tests/crash/511-corruptions.t does more.
# timeout: 120
SEEDS=${SEEDS:-25} SEED=${SEED:-1}
. "$SRCDIR/tests/crash/511-corruptions.t"
