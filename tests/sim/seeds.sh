#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Some seeds of the simulator, each as often as it takes to see that it gives the same run again; SEEDS=A..B for others.
exec "$BUILDDIR/tests/sim/sim" --seeds "${SEEDS:-1..200}" --jobs "$(nproc)" --twice 5
