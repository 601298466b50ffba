/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learning that partitions grow without asking all the time: long polls of KlogStat, each over any number of
 * partitions of one broker. Followed for streams that wait (at once) and for files the kernel knows (at most
 * ~100/s a file), whose inotify watchers are then poked. Loop's thread.
 */
#ifndef KLOG_FUSE_WATCH_H
#define KLOG_FUSE_WATCH_H

#include <stdbool.h>

struct mount;
struct pfile;
struct watch;

struct watch *watch_new(struct mount *m);
void watch_stop(struct watch *w); /* no new polls */
void watch_free(struct watch *w); /* no poll is on its way any more */
/* A stream waits, or its poll does: news of f are wanted at once. */
void watch_want(struct watch *w, struct pfile *f);
/* The kernel knows the file's plain node, or forgot it. */
void watch_kernel_knows(struct watch *w, struct pfile *f, bool knows);
/* An append of this mount has its answer, or news came: have files grown elsewhere? */
void watch_judge(struct watch *w, struct pfile *f);
/* f is about to be freed. */
void watch_drop(struct watch *w, struct pfile *f);

#endif
