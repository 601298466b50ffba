/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waking inotify watchers of files that grew elsewhere: the kernel only tells of changes made through this
 * mount, so a thread of its own makes one that changes nothing (mtime now), which its watchers see as
 * IN_MODIFY. That call comes back to this process as a request and may wait for an append to the same file;
 * hence the thread.
 */
#ifndef KLOG_FUSE_POKE_H
#define KLOG_FUSE_POKE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct poke;

struct poke *poke_new(const char *mountpoint);
void poke_stop(struct poke *p); /* pokes no more */
void poke_free(struct poke *p); /* joins: the mount must be gone or still be served by somebody else */
/* Loop's thread: pokes the node `id` of TOPIC/NAME ("p0", "json/p0") soon. Watchers are a node's, and a path may have led to several; the
 * thread's own look-up of the name is answered with the one it is to poke. */
void poke_file(struct poke *p, const char *topic, const char *name, uint64_t id);
/* The node that the thread is poking; 0: none. p may be NULL. */
uint64_t poke_target(const struct poke *p);
/* Does the request come from the thread? p may be NULL. */
bool poke_is_caller(const struct poke *p, pid_t pid);

#endif
