/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated machine with a disk, and the process that runs on it: its clock, threads, network and files as one struct
 * world. A life begins with simhost_start and ends in one of three ways: the process returns from its main function; it is
 * killed (what it has written stays); the machine loses power (what it had not synced may be gone).
 */
#ifndef KLOG_SIM_SIMHOST_H
#define KLOG_SIM_SIMHOST_H

#include "lib/base/world.h"
#include "tests/sim/simclock.h"
#include "tests/sim/simdisk.h"
#include "tests/sim/simexec.h"
#include "tests/sim/simnet.h"

enum simhost_end {
    HOST_RETURNED, /* from its main */
    HOST_DIED,     /* by machine->die */
    HOST_KILLED,
    HOST_POWER_CUT,
};

struct simhost {
    struct sim_process process; /* first */
    struct sim *sim;
    struct simnet *nw;
    struct simdisk *disk;
    struct simclock clock;
    struct simexec exec;
    struct simnic nic;
    struct machine machine;
    struct random random;
    struct rnd bytes;  /* of random */
    struct world world; /* valid while it is up */
    int64_t fd_limit;
    int cores;
    int64_t wall_offset_ms; /* its wall clock keeps it without power */
    enum simhost_end how;   /* it ends, or has ended */
    int die_status;
    int64_t calls_to_crash; /* of its network; -1: none */
    void (*ended)(struct simhost *h); /* the process is gone; its disk is as it left it */
    void (*rewrote)(struct simhost *h, const char *path, int64_t at); /* as in simdisk_hooks; may be NULL, and the next */
    void (*renamed)(struct simhost *h, const char *from, const char *to, bool unsynced);
    void (*shrunk)(struct simhost *h, const char *path, bool is_gone);
    void *user;
    void (*main)(struct simhost *h);
};

void simhost_init(struct simhost *h, struct sim *s, struct simnet *nw, struct simdisk *disk, int number);
/* main runs on a fiber of its own; when it returns the process ends. */
void simhost_start(struct simhost *h, void (*main)(struct simhost *h));
/* Ends the process now. Does not return when called by it. */
void simhost_end(struct simhost *h, enum simhost_end how);
/* SIGSTOP, and SIGCONT after that time. */
void simhost_pause(struct simhost *h, int64_t for_ns);

#endif
