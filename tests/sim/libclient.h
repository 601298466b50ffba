/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer that is lib/client's, on a host of its own: klogfs and klog produce with it. A process in the simulated world as the
 * broker is, with one loop. Each record it sends is one "batch" of the truth; which of them go together is lib/client's
 * business, and so is sending again. What it says of a record is held against what is read.
 */
#ifndef KLOG_SIM_LIBCLIENT_H
#define KLOG_SIM_LIBCLIENT_H

#include "tests/sim/play.h"

struct libclient *libclient_new(struct play *p);
void libclient_free(struct libclient *lc); /* NULL is fine */
/* Sends nothing more. */
void libclient_stop(struct libclient *lc);
int libclient_pending(const struct libclient *lc);

#endif
