/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that the simulator can switch off by name, to see that it finds out (tests/sim/core.h). Only its own build of the
 * files of this folder has them: in klogd each place is the constant false.
 */
#ifndef KLOG_DAEMON_REPLICA_BUG_H
#define KLOG_DAEMON_REPLICA_BUG_H

#ifdef KLOG_SIM_BUGS
#include <stdbool.h>
bool bug_is(const char *name);
#define KLOG_BUG(name) bug_is(name)
#else
#define KLOG_BUG(name) false
#endif

#endif
