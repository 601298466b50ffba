/* SPDX-License-Identifier: Apache-2.0 */
/* follow/pN: reads that wait for more; see stream.c. */
#ifndef KLOG_FUSE_STREAM_H
#define KLOG_FUSE_STREAM_H

struct mount;
struct pfile;

/* f->ends have news: waiting reads go on, polls are told. */
void streams_wake(struct pfile *f);
/* The partition is gone: waiting reads end. */
void streams_gone(struct pfile *f);
/* The mount ends: waiting reads see end of file. */
void streams_end(struct mount *m);

#endif
