/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run has come past: counters with names, of places in the simulator and of errors that clients were told. A table of
 * them over many seeds says what was never tried. Counters lie in memory that a parent may share with its children.
 */
#ifndef KLOG_SIM_MARKS_H
#define KLOG_SIM_MARKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct mark {
    const char *name;
    int index; /* into the counters; set at the start */
};

#define MARK(text)                                                                                      \
    do {                                                                                                \
        static struct mark mark_ __attribute__((section("sim_marks"), used, aligned(8))) = { text, 0 }; \
        marks_hit(&mark_);                                                                              \
    } while (0)
#define MARK_IF(cond, text) \
    do {                    \
        if (cond)           \
            MARK(text);     \
    } while (0)

void marks_share(void); /* once, before any fork */
void marks_hit(struct mark *m);
void marks_fault(int kind); /* enum fault_kind */
void marks_error(int16_t api, int16_t err);
/* A line of the broker's: which branch of recovery, cleaning, retention it tells of. */
void marks_line(const char *line);
/* Prints the table; returns how many marks are 0. Names of logplay.c's begin with "log: ", of several brokers' with
 * "fleet: ". */
enum marks_of { MARKS_BROKER, MARKS_LOG, MARKS_FLEET };
int marks_print(FILE *to, enum marks_of which);

#endif
