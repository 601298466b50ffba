/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a process whose invariant broke: one line that says which, where and in which version, then
 * abort, so that the core shows it. Nothing is flushed, unlocked or freed: what the process believes is
 * wrong by now. Any thread. What comes from a socket, a file or the kernel never gets here; it is answered
 * with an error.
 */
#include "lib/base/check.h"

#include <stdlib.h>

#include "lib/base/log.h"

void check_failed(const char *file, int line, const char *func, const char *cond, const char *number)
{
    log_error("invariant %s%sbroken: %s at=%s:%d in=%s version=%s; this is a bug in klog, please report it",
              number, number[0] != '\0' ? " " : "", cond, file, line, func, PACKAGE_VERSION);
    abort();
}
