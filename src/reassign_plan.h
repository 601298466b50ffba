/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which replicas go where: as few as possible are moved until no broker that shall be empty has any, racks hold as few replicas of
 * one partition as they can, and brokers have as many as each other, give or take one. Pure; the same input gives the same plan.
 */
#ifndef KLOG_SRC_REASSIGN_PLAN_H
#define KLOG_SRC_REASSIGN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLAN_REPLICAS_MAX = 32 };

struct plan_broker {
    int32_t id;
    int32_t rack;  /* a number for each rack; -1: none */
    bool empties;  /* has nothing in the end */
    bool receives; /* may be given replicas */
    /* made by the plan */
    int32_t n_replicas, n_first;
};

struct plan_part {
    int32_t replicas[PLAN_REPLICAS_MAX], n; /* in: as they are; out: as they shall be. The first one is the preferred leader */
    bool changed;
    int32_t n_moved; /* replicas on brokers that had none of the partition */
};

struct plan {
    struct plan_broker *brokers; /* all that are there; a replica elsewhere counts as one to be moved */
    size_t n_brokers;
    struct plan_part *parts;
    size_t n_parts;
    int32_t n_replicas; /* wanted of each partition; 0: as many as it has */
    bool balance;       /* else only what has to be moved is */
};

/* The index of a partition for which there are too few brokers, or -1: the plan is made. */
int64_t plan_make(struct plan *p);

#endif
