/* SPDX-License-Identifier: Apache-2.0 */
/* Ways for a thread to wait for a loop. */
#ifndef KLOG_LOOP_THREAD_H
#define KLOG_LOOP_THREAD_H

struct loop;

/* Runs f(arg) on the loop's thread and waits for it. Not from a loop's thread. */
void loop_call(struct loop *lp, void (*f)(void *arg), void *arg);

#endif
