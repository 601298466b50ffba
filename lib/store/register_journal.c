/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See register_journal.h. Orders that matter: a snapshot is durable before the journal that it replaces goes; a new
 * journal's descriptor is the one it was written through, so that no later failure can leave frames in a file without a
 * name; a torn tail goes, durably, before anything is written behind it.
 */
#include "lib/store/register_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/world.h"

#define COMPACT_MIN (INT64_C(4) << 20)
#define ROOM_BYTES  (INT64_C(256) << 10)

static bool is_full(int rc)
{
    return rc == -ENOSPC || rc == -EDQUOT;
}

/* Behind the end, where no reader sees it. No file system must be able to. */
static void keep_room(struct register_journal *j)
{
    if (j->room_end - j->end >= ROOM_BYTES / 2)
        return;
    if (j->io->fallocate(j->io, j->fd, true, j->end, ROOM_BYTES) == 0)
        j->room_end = j->end + ROOM_BYTES;
}

/* ---- replacing a file ---- */

/* As io_replace_file(), but an open descriptor stays, and an error after the rename is final: which of the two files a
 * power cut would leave is unknown then. */
static int replace_file(struct register_journal *j, const char *name, const void *p, size_t n, int *ret_fd)
{
    const struct store_io *io = j->io;
    char tmp[64];

    snprintf(tmp, sizeof tmp, "%s.tmp", name);
    int fd = io->openat(io, j->dirfd, tmp, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        return fd;
    int rc = io_pwrite_all(io, fd, p, n, 0);
    if (rc == 0)
        rc = io->fsync(io, fd);
    if (rc == 0)
        rc = io->renameat(io, j->dirfd, tmp, j->dirfd, name);
    if (rc < 0) {
        io->close(io, fd);
        io->unlinkat(io, j->dirfd, tmp, 0);
        return rc;
    }
    rc = io->fsync(io, j->dirfd); /* through its own descriptor: there may be none left for another */
    if (rc < 0) {
        j->failed = rc;
        io->close(io, fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

static int journal_make(struct register_journal *j)
{
    uint8_t head[REGISTERS_JOURNAL_HEAD_BYTES];
    uint32_t seed = register_journal_head(&j->id, j->sequence, head);
    int fd;

    int rc = replace_file(j, REGISTERS_JOURNAL, head, sizeof head, &fd);
    if (rc < 0)
        return rc;
    if (j->fd >= 0)
        j->io->close(j->io, j->fd);
    j->fd = fd;
    j->format = REGISTERS_FORMAT;
    j->seed = seed;
    j->end = sizeof head;
    j->room_end = j->compact_at = 0;
    keep_room(j);
    return 0;
}

/* ---- snapshots ---- */

static void snapshot_add(void *arg, const char *path, struct slice value, int64_t version)
{
    register_add_put(arg, path, value, version);
}

static int compact(struct register_journal *j, register_each_fn *each, void *each_arg)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    int fd;

    memset(bytebuf_extend(&b, REGISTERS_SNAPSHOT_HEAD_BYTES), 0, REGISTERS_SNAPSHOT_HEAD_BYTES);
    each(each_arg, snapshot_add, &b);
    if ((int64_t)b.n > REGISTER_FILE_MAX)
        return -EFBIG;
    register_snapshot_seal(&b, &j->id, j->sequence);
    int rc = replace_file(j, REGISTERS_SNAPSHOT, b.p, b.n, &fd);
    if (rc < 0)
        return rc;
    j->io->close(j->io, fd);
    j->snapshot_bytes = (int64_t)b.n;
    return journal_make(j);
}

int register_journal_compact_if_due(struct register_journal *j, register_each_fn *each, void *each_arg)
{
    int64_t due = MIN(MAX(j->compact_min, 2 * j->snapshot_bytes), REGISTER_FILE_MAX / 2);

    if (j->failed < 0 || j->end < MAX(due, j->compact_at))
        return 0;
    int rc = compact(j, each, each_arg);
    if (rc < 0)
        j->compact_at = j->end + j->compact_min / 4; /* it is tried again after so much more */
    return rc;
}

/* ---- opening ---- */

/* Kept for people; the start does not depend on it. */
static void keep_torn(struct register_journal *j, const struct register_files *f)
{
    char name[64];

    snprintf(name, sizeof name, REGISTERS_JOURNAL ".%" PRId64 ".cut", f->end);
    int rc = io_replace_file(j->io, j->dirfd, ".", name, f->journal.p + f->end, (size_t)f->torn_bytes);
    log_warn(REGISTERS_JOURNAL ": %" PRId64 " bytes at its end (position %" PRId64
                               ") were no whole change, as after a crash, and were cut off; they %s %s%s%s",
             f->torn_bytes, f->end, rc == 0 ? "are kept in" : "could not be kept in", name, rc == 0 ? "" : ": ",
             rc == 0 ? "" : strerror(-rc));
}

/* A torn tail was never acknowledged. The last frame is written again (S9): it may have been in the page cache only, and
 * it counts from now on. */
static int settle_tail(struct register_journal *j, const struct register_files *f)
{
    const struct store_io *io = j->io;

    j->fd = io->openat(io, j->dirfd, REGISTERS_JOURNAL, O_RDWR, 0);
    if (j->fd < 0)
        return j->fd;
    int rc = 0;
    if (f->torn_bytes > 0) {
        keep_torn(j, f);
        rc = io->ftruncate(io, j->fd, f->end);
    }
    if (rc == 0)
        rc = io_pwrite_all(io, j->fd, f->journal.p + f->last, (size_t)(f->end - f->last), f->last);
    if (rc == 0)
        rc = io->fsync(io, j->fd);
    if (rc == 0)
        keep_room(j);
    return rc;
}

/* What an earlier version wrote is written anew. Without room for it the old files go on being used. */
static int take_over(struct register_journal *j, register_each_fn *each, void *each_arg)
{
    if (uuid_is_zero(&j->id))
        uuid_random(j->world->random, &j->id);
    int rc = compact(j, each, each_arg);
    if (!is_full(rc))
        return rc;
    log_warn("registers: no room to write them in the format of this version; the older one goes on being used");
    return 0;
}

static int open_found(struct register_journal *j, const struct register_files *f, register_each_fn *each,
                      void *each_arg, char *err, size_t err_size)
{
    const char *what = "settle the end of " REGISTERS_JOURNAL;

    j->id = f->id;
    j->format = f->format;
    j->seed = f->seed;
    j->sequence = f->sequence;
    j->snapshot_bytes = f->snapshot_bytes;
    j->end = f->end;
    j->torn_bytes = f->torn_bytes;
    int rc = settle_tail(j, f);
    if (rc == 0 && j->format < REGISTERS_FORMAT) {
        what = "write the registers in the format of this version";
        rc = take_over(j, each, each_arg);
    }
    if (rc < 0)
        snprintf(err, err_size, "cannot %s: %s", what, strerror(-rc));
    return rc;
}

static int open_new(struct register_journal *j, const struct datadir *dd, bool may_create, char *err, size_t err_size)
{
    if (!may_create) {
        snprintf(err, err_size,
                 "%s/" REGISTERS_JOURNAL " is missing, but there is data: it says what topics there are; put back a copy of "
                 "it and of " REGISTERS_SNAPSHOT ", in the directory that log.dirs names first",
                 datadir_path(dd));
        return -EBADMSG;
    }
    uuid_random(j->world->random, &j->id);
    int rc = journal_make(j);
    if (rc < 0)
        snprintf(err, err_size, "cannot make %s/" REGISTERS_JOURNAL ": %s", datadir_path(dd), strerror(-rc));
    return rc;
}

static void frame_begin(struct register_journal *j)
{
    j->frame.n = 0;
    memset(bytebuf_extend(&j->frame, REGISTERS_FRAME_HEAD_BYTES), 0, REGISTERS_FRAME_HEAD_BYTES);
}

int register_journal_open(struct register_journal *j, struct datadir *dd, bool may_create, int64_t compact_min,
                          const struct register_sink *sink, register_each_fn *each, void *each_arg, char *err,
                          size_t err_size)
{
    CLEANUP(register_files_done) struct register_files f = { 0 };
    int64_t clean = datadir_was_clean(dd) ? datadir_clean_note(dd) : REGISTERS_NOT_CLEAN;

    *j = (struct register_journal){
        .world = datadir_world(dd), .io = datadir_io(dd), .dirfd = datadir_fd(dd), .fd = -1,
        .compact_min = compact_min > 0 ? compact_min : COMPACT_MIN,
    };
    int rc = register_files_read(j->io, j->dirfd, clean, sink, &f, err, err_size);
    if (rc == 0)
        rc = f.have_journal ? open_found(j, &f, each, each_arg, err, err_size)
                            : open_new(j, dd, may_create, err, err_size);
    if (rc < 0) {
        register_journal_close(j);
        return rc;
    }
    frame_begin(j);
    return 0;
}

void register_journal_close(struct register_journal *j)
{
    if (j->fd >= 0)
        j->io->close(j->io, j->fd);
    j->fd = -1;
    bytebuf_done(&j->frame);
}

/* ---- writing ---- */

void register_journal_put(struct register_journal *j, const char *path, struct slice value, int64_t version)
{
    register_add_put(&j->frame, path, value, version);
}

void register_journal_drop(struct register_journal *j, const char *path)
{
    register_add_drop(&j->frame, path);
}

/* No more than can be read again. */
static int frame_write(struct register_journal *j)
{
    if (j->end + (int64_t)j->frame.n > REGISTER_FILE_MAX)
        return -EFBIG;
    register_frame_seal(&j->frame, j->seed, j->sequence + 1);
    int rc = io_pwrite_all(j->io, j->fd, j->frame.p, j->frame.n, j->end);
    if (is_full(rc)) {
        int cut = j->io->ftruncate(j->io, j->fd, j->end);
        j->room_end = 0;
        if (cut < 0) /* half a frame stays */
            j->failed = cut;
    } else if (rc < 0) {
        j->failed = rc;
    } else if ((rc = j->io->fdatasync(j->io, j->fd)) < 0) {
        j->failed = is_full(rc) ? -EIO : rc; /* S8: what the disk has is unknown */
    }
    return j->failed < 0 ? j->failed : rc;
}

int register_journal_commit(struct register_journal *j)
{
    if (j->frame.n == REGISTERS_FRAME_HEAD_BYTES)
        return 0; /* only ephemeral registers and checks */

    int rc = j->failed < 0 ? j->failed : frame_write(j);
    if (rc == 0) {
        j->end += (int64_t)j->frame.n;
        j->sequence++;
        keep_room(j);
    }
    frame_begin(j);
    return rc;
}
