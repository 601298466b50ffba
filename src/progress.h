/* SPDX-License-Identifier: Apache-2.0 */
/* A bar on standard error, only where that is a terminal, redrawn at most ten times a second. One thread. */
#ifndef KLOG_SRC_PROGRESS_H
#define KLOG_SRC_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *f; /* NULL: nothing is shown */
    int64_t done, total;
    int64_t drawn_ms;
    bool on_screen;
};

void progress_init(struct progress *p, FILE *f, bool show, int64_t total);
void progress_add(struct progress *p, int64_t n, const char *what);
void progress_clear(struct progress *p); /* wipes the bar, so that a line can be printed */
/* "1.2 GB" */
const char *size_text(int64_t bytes, char *ret, size_t size);

#endif
