/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One mount: the owner of everything in klogfs. All fields belong to the loop's thread, which also runs every
 * handler; the only other threads are the client's workers (DNS), the replier, which writes long answers, and
 * the poke thread. No handler ever blocks.
 *
 * Two clients, so that answers, which come in order on a connection, do not wait for each other: `client` asks (metadata, ends,
 * fetches; the watch's polls, whose answers wait for news, go over connections of their own), `writer` appends, and its answers
 * wait for the broker's disk.
 */
#ifndef KLOG_FUSE_MOUNT_H
#define KLOG_FUSE_MOUNT_H

#include "fuse/base/fuse_api.h"
#include "fuse/base/options.h"
#include "fuse/base/request.h"
#include "fuse/text/text.h"
#include "lib/base/world.h"
#include "lib/client/client.h"
#include "lib/client/producer.h"
#include "lib/loop/loop.h"

/* What entries and directories may be cached for: "entries appear on other mounts within a second". */
#define ENTRY_VALID_S     1.0
#define METADATA_VALID_MS 1000

struct topics;
struct ends_asker;
struct writers;
struct watch;
struct poke;
struct disk_figures;
struct meter;
struct node_table;
struct file_ops;

struct mount {
    const struct options *opt;
    struct world world;
    struct loop *loop;
    struct workers *workers;
    struct workers *replier; /* NULL: one processor, where it would only cost */
    struct client *client, *writer;
    struct producer *producer;
    struct fuse_session *se;
    struct loop_fd se_watch; /* the kernel's requests */
    struct fuse_buf se_buf;  /* the one being read */
    bool mounted, unmounted; /* unmounted: by somebody else */
    struct loop_fd signals;
    struct request_list requests; /* not yet answered */
    struct node_table *nodes;
    const struct file_ops *const *kinds;  /* what each kind of node does, by enum node_kind (kinds.c) */
    struct pfile *pfiles;                 /* by topic and partition */
    LIST_HEAD(, handle) handles;          /* open files and directories */
    LIST_HEAD(, group_user) group_users;  /* open files of as/, until their last commit is answered */
    TAILQ_HEAD(, group_wait) group_waits; /* for some of them to end */
    struct topics *topics;
    struct text_cache texts;
    struct ends_asker *ends;
    struct writers *writers;
    struct watch *watch;
    struct poke *poke; /* NULL on a read-only mount */
    struct disk_figures *disk;
    struct meter *meter; /* NULL: nobody watches */
    int64_t started_wall_ms; /* the time of files that have none of their own */
    bool stopping;
    int64_t probe_end_ms; /* missed.c */
    struct timer end_timer;
    int64_t end_deadline_ms;
};

static inline struct mount *mount_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

#endif
