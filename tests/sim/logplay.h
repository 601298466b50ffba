/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of another kind: a single log (lib/store/plog.h) in a simulated process, without a broker around it. Its owner
 * appends, truncates and reads, while other fibers flush, write checkpoints, and retain: what a follower will do, which no
 * broker alone does. The process is killed or loses power at any call, its disk is full or fails; then it is opened again,
 * and a reader that is not klog's holds its files against what the owner knows:
 *
 *   C2  a batch that was sent again is known; none is taken for one sent again    C5  sequences go on
 *   C4  each batch is the bytes that were appended there                          R12 and of its leader epoch
 *   S2  files are written where they end                                          S9  a start shows what is on the disk
 *   S4  what is called flushed is on the disk, whenever that is said              S11 claims are lowered before bytes go
 *   S10 nothing that was flushed is lost, nor after a kill what was appended      S13 what was deleted stays deleted
 */
#ifndef KLOG_SIM_LOGPLAY_H
#define KLOG_SIM_LOGPLAY_H

#include "tests/sim/play.h"

/* copies: batches come as a leader's, too, with offsets left out, and the log may begin anew elsewhere. */
void logplay_run(uint64_t seed, bool copies, unsigned prints, struct play_figures *ret);

#endif
