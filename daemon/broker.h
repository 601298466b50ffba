/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of everything in klogd, which alone knows all of it, and the order in which it starts and stops:
 * config -> http.listener -> loops, workers -> addresses bound -> log directories (lock, identity, clean marker) -> flusher -> registers ->
 * cluster (opens logs) -> groups -> upkeep -> connections accepted. Stopping: groups answer whom they keep
 * waiting, sessions are drained, then all that is left goes in reverse: flush, logs, marker.
 */
#ifndef KLOG_DAEMON_BROKER_H
#define KLOG_DAEMON_BROKER_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/api/services.h"
#include "daemon/config/broker_config.h"
#include "daemon/replica/throttle.h"
#include "lib/loop/loop.h"
#include "lib/loop/workers.h"

struct registers;
struct world;
struct watch;

/* What klogd's exit status says; see klogd(8). */
enum broker_exit {
    BROKER_EXIT_CLEAN = 0,
    BROKER_EXIT_USAGE = 1,   /* command line or configuration */
    BROKER_EXIT_START = 2,   /* could not start; the line before says why */
    BROKER_EXIT_STORAGE = 3, /* the last log directory failed */
    BROKER_EXIT_UNCLEAN = 4, /* a second signal, or logs that did not close well: the next start recovers */
    BROKER_EXIT_TWIN = 5,    /* another process has this broker.id */
};

struct broker {
    const struct world *world;   /* set by the caller */
    struct broker_config config; /* set once; with what changes while it runs: cluster_image.defaults */
    bool (*stop_asked)(void); /* set by the caller: while it waits for ZooKeeper, is the start to be given up? NULL: never */
    void (*stop)(void);       /* set by the caller: another process has this one's broker.id, broker_stop() is to be called soon. Any
                               * thread; NULL: it goes on, and takes part no more */
    _Atomic bool has_twin;    /* that is so */
    int64_t registers_compact_min; /* set by the caller: as registers_open_embedded() takes it; 0 */
    /* Set by the caller, or NULL: opens the registers of a cluster, in the place of zookeeper.connect's; as
     * registers_open_zookeeper(). */
    int (*open_registers)(void *arg, struct loop *lp, struct registers **ret, char *err, size_t err_size);
    void *open_registers_arg;
    int32_t id;                  /* set once */
    char cluster_id[64];         /* set once */
    struct loop **loops; /* reactors, which only become more, on loops[0], which also runs the meta callbacks and upkeep timers */
    struct thread **loop_threads;
    int n_loops;
    struct workers *workers; /* what may block */
    struct logdirs *dirs;    /* daemon/storage/logdirs.h: log.dirs; set once */
    struct registers *registers;
    struct store_wait *store_wait; /* broker.c's */
    struct cluster_endpoint *endpoints; /* daemon/meta/cluster.h: of its listeners; set once */
    size_t n_endpoints;
    struct cluster *cluster;
    struct partitions *partitions;
    struct throttle throttle_leader, throttle_follower; /* replicas that are not in sync, by their topics' settings */
    struct follow *follow;           /* daemon/follow/follow.h; NULL without other brokers */
    struct flusher *flusher;         /* daemon/storage/flusher.h */
    struct coordinator *coordinator; /* daemon/group/coordinator.h: groups and their positions */
    struct cleaner *cleaner;         /* daemon/upkeep/cleaner.h: compaction; set once, on loops[0] */
    struct scrubber *scrubber;       /* daemon/upkeep/scrubber.h: damage in logs */
    struct upkeep *upkeep;           /* daemon/upkeep/upkeep.h: retention, checkpoints, producer expiry */
    struct server *server;           /* daemon/server/server.h: listeners and sessions */
    struct watch *watch;             /* daemon/watch/watch.h; NULL without http.listener */
    struct services services;        /* what handlers use of all this */
    bool started;                    /* it served */
};

/* The caller has filled b->config. err: one line that says what, where, what to do. Blocks; on failure
 * everything is undone. */
int broker_start(struct broker *b, char *err, size_t err_size);
/* Drains, flushes, closes, writes the marker. Returns whether everything closed clean. Blocks. */
bool broker_stop(struct broker *b);

#endif
