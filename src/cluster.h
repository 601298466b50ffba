/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster on this machine: a ZooKeeper and some klogd, each with a directory below one that the user names.
 *
 *   DIR/zookeeper/zoo.cfg, data/, zookeeper.log
 *   DIR/broker-N/klogd.properties, data/, klogd.log        N from 1
 *
 * The files of settings are the only memory: they are made where they are missing and never changed, so that a user may.
 * Processes are found by their command lines, which have the names of those files: no file of pids can be out of date.
 * Whatever goes wrong is said on standard error here. One thread; all of it may block.
 */
#ifndef KLOG_SRC_CLUSTER_H
#define KLOG_SRC_CLUSTER_H

#include <sys/types.h>

#include "src/cli.h"
#include "src/session.h"

enum { CLUSTER_BROKERS_MAX = 99 };

struct cluster_broker {
    int32_t id, port; /* port 0: its settings name no listener of their own */
    char *address;    /* "HOST:PORT" of its first listener */
    char *rack;       /* NULL none */
    char *home, *conf, *log;
};

struct cluster {
    const struct args *args;
    char *dir; /* absolute */
    char *zookeeper, *zookeeper_conf, *zookeeper_log;
    int32_t zookeeper_port; /* 0: there are no settings yet */
    struct cluster_broker *brokers;
    size_t n_brokers;
    int64_t timeout_ms; /* for each step */
};

/* What every subcommand takes. */
#define CLUSTER_OPTIONS                                                                                         \
    { "dir", 'd', "DIR", "where the cluster is (default: /var/lib/klog-cluster, as another user than root "     \
                         "~/.local/share/klog/cluster)" },                                                      \
    {                                                                                                           \
        "timeout", 0, "SECONDS", "for each step (default 60)"                                                   \
    }

/* What is in the directory that the options name; nothing of it need be there. CLI_OK, CLI_FAILED or CLI_USAGE after saying why.
 * cluster_done in either case. */
int cluster_read(struct cluster *c, const struct args *a);
/* The same, and there have to be brokers. */
int cluster_read_made(struct cluster *c, const struct args *a);
void cluster_done(struct cluster *c);

struct cluster_wanted {
    int64_t n_brokers; /* -1: those that are there, 3 where none is */
    int64_t port, zookeeper_port; /* of the first broker and of ZooKeeper, for what is made anew */
    const char *racks; /* "A,B,C", given out in turn; NULL none */
};
/* Makes what is missing. CLI_OK or CLI_FAILED. */
int cluster_make(struct cluster *c, const struct cluster_wanted *w);
/* NULL after saying that there is none of that id. */
const struct cluster_broker *cluster_broker_of(const struct cluster *c, int64_t id);

/* ---- processes ---- */
char *cluster_find_klogd(void); /* of the same installation or build as this klog, else the one on PATH; the caller's to free */
pid_t cluster_zookeeper_pid(const struct cluster *c); /* 0 when it does not run */
pid_t cluster_broker_pid(const struct cluster_broker *b);
bool cluster_zookeeper_serves(const struct cluster *c); /* a second at most */
/* Nothing where it runs already; returns when it serves. CLI_OK or CLI_FAILED. */
int cluster_start_zookeeper(const struct cluster *c);
int cluster_start_broker(const struct cluster *c, const struct cluster_broker *b);
struct cluster_ending {
    pid_t pid; /* 0: it did not run */
    int pidfd; /* -1: nothing is left to wait for */
    int err;   /* errno: why it could not be signalled; 0 */
};
struct cluster_ending cluster_end_zookeeper(const struct cluster *c, int sig);
struct cluster_ending cluster_end_broker(const struct cluster_broker *b, int sig);
/* True when it has ended, or did not run; waits for that until `until_ms` (clock_mono_ms). Closes what was opened. */
bool cluster_ended(struct cluster_ending *e, int64_t until_ms);

/* ---- what it says of itself ---- */
/* Waits until every broker knows of all that run. CLI_OK or CLI_FAILED. */
int cluster_wait_until_whole(struct cluster *c);
/* Prints a row for ZooKeeper and one for each broker; CLI_FAILED when one of them does not run and answer, or a partition has no
 * leader. */
int cluster_print(struct cluster *c);

#endif
