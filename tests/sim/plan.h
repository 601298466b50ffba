/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The faults of a run, made before it from a stream of their own: each has a time and what it does, so that a failing run can
 * be repeated without some of them. As text, a line each: "MS NAME A B C".
 */
#ifndef KLOG_SIM_PLAN_H
#define KLOG_SIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum fault_kind {
    FAULT_KILL,         /* kill -9 now */
    FAULT_KILL_AT_DISK, /* at the a-th call from now on that changes the disk */
    FAULT_KILL_AT_NET,  /* at the a-th call into the network */
    FAULT_CUT,          /* the power goes: now, */
    FAULT_CUT_AT_DISK,  /* or so */
    FAULT_CUT_AT_NET,
    FAULT_STOP,         /* a clean stop */
    FAULT_PAUSE,        /* the process stands still for a ms */
    FAULT_CLOCK,        /* the wall clock jumps by a ms */
    FAULT_CLOG,         /* nothing goes from host a to host b for c ms */
    FAULT_CONNECTION,   /* one connection breaks */
    FAULT_REFUSE,       /* new connections are refused for a ms */
    FAULT_FULL,         /* only a more bytes fit on the disk, for b ms */
    FAULT_SYNC,         /* the a-th sync from now on fails */
    FAULT_EIO,          /* the a-th call of class b fails */
    FAULT_FDS,          /* only a more descriptors, for b ms */
    FAULT_SLOW,         /* the disk takes a thousandths of its times for b ms */
    FAULT_ROT,          /* kill -9, and bytes rot before the next start (rot.h) */
    FAULT_ALONE_KINDS,  /* so many kinds has a broker alone */
    /* Of several brokers only (fleet.h), where c is the broker of those above that have no c. */
    FAULT_PART = FAULT_ALONE_KINDS, /* the brokers in mask a are parted from the others for c ms; b: 0, 1 outwards or 2 inwards only */
    FAULT_AWAY,   /* broker c cannot reach the registers for a ms */
    FAULT_EXPIRE, /* the session of broker c is over */
    FAULT_STORE,  /* nobody reaches the registers for a ms */
    FAULT_AMBUSH, /* when next a (enum fleet_event) happens: b (enum fleet_blow), for c ms */
    FAULT_KINDS
};

struct fault {
    int64_t at_ms;
    enum fault_kind kind;
    int64_t a, b, c;
};

enum { PLAN_MAX = 64 };

struct plan {
    struct fault faults[PLAN_MAX];
    int n;
    int64_t down_ms[PLAN_MAX]; /* how long the i-th end of a life lasts */
};

extern const char *const fault_names[FAULT_KINDS];
/* Of that seed: which kinds there are at all, how many, when. */
void plan_draw(struct plan *p, uint64_t seed, int64_t faults_ms, int n_hosts);
void plan_print(const struct plan *p, uint64_t seed, FILE *to);
/* What plan_print wrote; false: it is none. */
bool plan_read(struct plan *p, uint64_t *ret_seed, FILE *from);

#endif
