/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of everything in klogd, and the order in which it starts and stops:
 * config -> log directories (lock, identity, clean marker) -> registers -> cluster (opens logs) ->
 * flusher, upkeep -> listeners. Stopping goes backwards: listeners, sessions drained, flush, logs, marker.
 */
#ifndef KLOG_DAEMON_BROKER_H
#define KLOG_DAEMON_BROKER_H

#include "daemon/broker_config.h"
#include "lib/loop/loop.h"
#include "lib/loop/workers.h"
#include "lib/store/datadir.h"

struct broker {
    struct broker_config config;     /* set once at start; dynamic keys guarded by config_mu */
    int32_t id;                      /* set once */
    char cluster_id[64];             /* set once */
    struct loop **loops;             /* reactors; set once. loops[0] also runs the meta callbacks and upkeep timers */
    int n_loops;
    struct workers *workers;         /* what may block */
    struct datadir **dirs;           /* log.dirs; set once */
    int n_dirs;
    struct registers *registers;
    struct cluster *cluster;
    struct partitions *partitions;
    struct flusher *flusher;         /* daemon/upkeep/flusher.h */
    struct upkeep *upkeep;           /* daemon/upkeep/upkeep.h: retention, checkpoints, producer expiry */
    struct server *server;           /* daemon/server/server.h: listeners and sessions */
    int64_t started_ms;
};

/* err: one line that says what, where, what to do. */
int broker_start(struct broker *b, char *err, size_t err_size);
void broker_stop(struct broker *b);  /* clean: drain, flush, close, marker */

#endif
