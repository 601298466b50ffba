/* SPDX-License-Identifier: Apache-2.0 */
/* klogd's main in a simulated process: what daemon/main.c does, without a command line and signals. */
#ifndef KLOG_SIM_SIMBROKER_H
#define KLOG_SIM_SIMBROKER_H

#include "tests/sim/simhost.h"

struct play;
void simbroker_main(struct simhost *h); /* h->user: the play */
/* As SIGTERM does. No effect before it serves. */
void simbroker_ask_stop(struct play *p);

#endif
