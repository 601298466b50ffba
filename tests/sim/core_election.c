/* SPDX-License-Identifier: Apache-2.0 */
/* The core simulator's own build of daemon/replica/election.c, in which rules can be switched off. */
#define KLOG_SIM_BUGS
#include "daemon/replica/election.c"
