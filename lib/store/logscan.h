/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the batches of a .log file and says what it finds where: good batches, damage with good batches
 * after it, a torn or empty tail. Reads in 256 KiB pieces and reserves nothing by a size in the data.
 * One thread a scan.
 */
#ifndef KLOG_STORE_LOGSCAN_H
#define KLOG_STORE_LOGSCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/record/batch.h"
#include "lib/store/io.h"

#define BATCH_BYTES_MAX (1 << 30) /* no batch on disk is larger: a larger length is damage */

enum scan_what {
    SCAN_END,     /* the end of the file */
    SCAN_BATCH,   /* a whole batch whose checksum and place are right (rule S1) */
    SCAN_DAMAGED, /* `n` bytes that are none; a good batch follows them */
    SCAN_TAIL,    /* `n` bytes up to the end of the file, nothing good in them */
};

struct scan_item {
    enum scan_what what;
    int64_t at;            /* position in the file */
    int64_t n;             /* bytes it takes */
    struct batch_header h; /* of SCAN_BATCH; of damage when header_ok */
    bool header_ok;        /* damage: the header fits what follows, payload or checksum are wrong */
};

struct logscan {
    const struct store_io *io;
    int fd;
    int64_t at, end;      /* next position; end of what is looked at */
    int64_t next_offset;  /* the next batch's base offset is not below this */
    int64_t limit_offset; /* no offset of the segment reaches this; INT64_MAX for the active one */
    int64_t gaps_below;   /* below that offset a gap before the last batch of an active segment is believed, too */
    int32_t epoch;        /* of the last batch; -1 */
    bool after_damage;    /* the last item was SCAN_DAMAGED: how many offsets it had is not known */
    bool check_crc;       /* false: headers only, for logs that are known to be good */
    struct bytebuf window;
    int64_t window_at;
    int64_t window_n; /* bytes of the file in the window */
};

void logscan_init(struct logscan *s, const struct store_io *io, int fd, int64_t at, int64_t end,
                  int64_t next_offset);
void logscan_done(struct logscan *s);
/* The next item. 0, or -errno of a read. */
int logscan_next(struct logscan *s, struct scan_item *ret);
/* The bytes of the batch just found; they live until the next call. 0 or -errno. */
int logscan_bytes(struct logscan *s, const struct scan_item *it, struct slice *ret);

/* Could this be the header of a batch of at most `room` bytes? The checksum is not looked at. */
bool batch_header_plausible(const struct batch_header *h, int64_t room);

#endif
