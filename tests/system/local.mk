# SPDX-License-Identifier: Apache-2.0
# Real processes behind a real mount. 0xx start and stop, 1xx the mount, 2xx shell tools and clients, 3xx the broker.
SYSTEM_TESTS += \
    %D%/001-start-and-stop.t
