# SPDX-License-Identifier: Apache-2.0
# Kills, crowds and sizes. KILLS=10 and SEED=N shorten or repeat the kill loop, GROUP_SECONDS=60 makes
# the mixed group longer, SEEDS=1000 the corruptions more, ROUNDS=50 those under a cluster's load.
CRASH_TESTS += %D%/510-mixed-group.t %D%/501-kill-loop.t %D%/502-kill-under-a-mount.t %D%/503-idle-connections.t %D%/504-two-gigabytes.t \
    %D%/505-ten-million-lines.t %D%/506-random-bytes.t %D%/507-klog-run-killed.t %D%/508-large-groups.t %D%/511-corruptions.t %D%/512-cluster-kills.t
EXTRA_DIST += %D%/509-positions-expire.t %D%/515-ten-thousand-followers.t %D%/520-three-brokers-at-length.t %D%/corruption.py %D%/kill_loop.py %D%/large_groups.py %D%/mixed_group.py %D%/run_loop.py
CRASH_TESTS += %D%/531-damage-again-and-again.t
EXTRA_DIST += %D%/521-a-rack-is-lost.t
