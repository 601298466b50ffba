/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the embedded register store, read and judged, changed by nobody here: DIR/registers.snapshot, all
 * registers at one moment, and DIR/registers.journal, what changed since. docs/DISK-FORMAT.md has the bytes. One
 * thread at a time; blocks. register_journal.h writes them.
 *
 * Snapshot and journal are one store's (its id is in both), and go on from each other (sequences): an older copy of
 * either is refused. A frame is written only after the one before it was synced, so a sound frame behind a broken one
 * proves damage, and a broken last one was never acknowledged, unless the stop was clean: then nothing is torn.
 */
#ifndef KLOG_STORE_REGISTER_FILES_H
#define KLOG_STORE_REGISTER_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/slice.h"
#include "lib/base/uuid.h"
#include "lib/store/io.h"

#define REGISTERS_JOURNAL  "registers.journal"
#define REGISTERS_SNAPSHOT "registers.snapshot"

#define REGISTER_PATH_MAX    1024
#define REGISTER_VALUE_MAX   (256 * 1024)
#define REGISTER_FILE_MAX    (INT64_C(1) << 30)
#define REGISTER_VERSION_MAX (INT64_MAX / 2) /* also of sequences: both only count up */

/* Where entries go, in the order in which they happened. -EBADMSG: one cannot be (a child without parent, ...). */
struct register_sink {
    void *arg;
    int (*put)(void *arg, const char *path, struct slice value, int64_t version);
    int (*drop)(void *arg, const char *path);
    void (*change)(void *arg, int64_t sequence); /* may be NULL; comes before the entries of each frame */
};

struct register_files {
    bool have_snapshot, have_journal;
    int format;       /* of the journal; 0 there is none */
    struct uuid id;   /* of the store; zero in format 1 */
    int64_t sequence; /* of the last change */
    int64_t end;      /* where the next frame goes in the journal */
    int64_t last;     /* where the last frame begins; == end when there is none */
    int64_t torn_bytes;     /* behind the end: a change that was never finished */
    int64_t snapshot_bytes; /* 0 none */
    uint32_t seed;    /* what CRCs of frames begin with */
    struct bytebuf journal; /* its bytes */
};

/* Loads both files into the sink. clean_sequence: the stop before was clean and this was the last change; -1: clean, but
 * not said; REGISTERS_NOT_CLEAN. Neither file there: 0, and nothing found. -EBADMSG and one line in err when they are
 * damaged, incomplete, of another version, or do not belong together. Done with register_files_done(). */
#define REGISTERS_NOT_CLEAN (-2)
int register_files_read(const struct store_io *io, int dirfd, int64_t clean_sequence, const struct register_sink *sink,
                        struct register_files *ret, char *err, size_t err_size);
void register_files_done(struct register_files *f);

/* The two contents alone, for those above and for tests. */
int register_snapshot_decode(struct slice s, const struct register_sink *sink, struct register_files *f, char *err,
                             size_t err_size);
int register_journal_decode(struct slice s, int64_t clean_sequence, const struct register_sink *sink,
                            struct register_files *f, char *err, size_t err_size);

/* For people: a journal as it is, whatever snapshot belongs to it, and whether or not it was closed clean. */
int register_journal_decode_alone(struct slice s, const struct register_sink *sink, struct register_files *ret, char *err,
                                  size_t err_size);

/* ---- for register_journal.c ---- */
enum {
    REGISTERS_FORMAT = 2,
    REGISTERS_JOURNAL_HEAD_BYTES = 48,
    REGISTERS_SNAPSHOT_HEAD_BYTES = 40,
    REGISTERS_FRAME_HEAD_BYTES = 20, /* up to the entries */
};
void register_add_put(struct bytebuf *b, const char *path, struct slice value, int64_t version);
void register_add_drop(struct bytebuf *b, const char *path);
/* ret: REGISTERS_JOURNAL_HEAD_BYTES; returns the seed of its frames. */
uint32_t register_journal_head(const struct uuid *id, int64_t base_sequence, uint8_t *ret);
/* b begins with REGISTERS_SNAPSHOT_HEAD_BYTES to fill in, then entries. */
void register_snapshot_seal(struct bytebuf *b, const struct uuid *id, int64_t sequence);
/* b begins with REGISTERS_FRAME_HEAD_BYTES to fill in, then entries. */
void register_frame_seal(struct bytebuf *b, uint32_t seed, int64_t sequence);

#endif
