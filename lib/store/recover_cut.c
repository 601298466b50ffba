/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending a log where its good part ends. What is cut off may be all that somebody has of it, so it is kept in
 * NNN.log.POSITION.cut for a day (plog_retain removes it); padding and holes are not copied, and a full disk stops nobody
 * from starting. Segments behind the end are renamed whole, the last one first, so that the next start cuts at the same
 * place if this one is interrupted. Part of opening a log: nobody else uses it yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/store/recover.h"

#define COPY_BYTES (1 << 20)
#define PAGE_BYTES 4096

static void cut_path(const struct segment *s, int64_t position, char *ret, size_t size)
{
    int n = snprintf(ret, size, "%s.%" PRId64 ".cut", segfile_path(s->log), position);
    KCHECK(n > 0 && (size_t)n < size);
}

/* The end of the last page that holds anything but zeros: what lies behind is padding, and holes are not read. */
static int find_content_end(struct plog *l, int fd, int64_t at, int64_t end, struct bytebuf *b, int64_t *ret)
{
    *ret = at;
    for (int64_t p = at; (p = l->io->seek_data(l->io, fd, p)) >= 0 && p < end;) {
        size_t n = (size_t)MIN((int64_t)COPY_BYTES, end - p);
        b->n = 0;
        int64_t got = io_pread_full(l->io, fd, bytebuf_room(b, n), n, p);
        if (got <= 0)
            return (int)got;
        for (int64_t i = got; i > 0; i--) {
            if (b->p[i - 1] == 0)
                continue;
            *ret = MIN(end, (p + i + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
            break;
        }
        p += got;
    }
    return 0;
}

static int copy_range(struct plog *l, int from, int to, int64_t at, int64_t end)
{
    struct bytebuf b = { 0 };
    int rc = 0;

    for (int64_t p = at; rc == 0 && p < end; p += COPY_BYTES) {
        size_t n = (size_t)MIN((int64_t)COPY_BYTES, end - p);
        b.n = 0;
        int64_t got = io_pread_full(l->io, from, bytebuf_room(&b, n), n, p);
        rc = got < 0 ? (int)got : io_pwrite_all(l->io, to, b.p, (size_t)got, p - at);
    }
    if (rc == 0)
        rc = l->io->fsync(l->io, to);
    bytebuf_done(&b);
    return rc;
}

/* Keeping the bytes is for people who want to look at them; a full disk does not stop recovery. */
static int keep_bytes(struct recovery *r, struct segment *s, int64_t position, int64_t size)
{
    struct plog *l = r->l;
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    char path[PATH_MAX];
    int64_t end = position;
    int rc = find_content_end(l, segfile_fd(s->log), position, size, &b, &end);

    if (rc < 0 || end == position)
        return rc;
    cut_path(s, position, path, sizeof path);
    int to = l->io->openat(l->io, l->dirfd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    rc = to < 0 ? to : copy_range(l, segfile_fd(s->log), to, position, end);
    if (to >= 0)
        l->io->close(l->io, to);
    if (rc == -ENOSPC || rc == -EDQUOT) {
        recovery_note(r, "the disk is full: the bytes cut off were not kept");
        l->io->unlinkat(l->io, l->dirfd, path, 0);
        return 0;
    }
    snprintf(r->rec->cut_file, sizeof r->rec->cut_file, "%s", strrchr(path, '/') + 1);
    return rc;
}

static int cut_segment(struct recovery *r, struct segment *s, int64_t position)
{
    struct plog *l = r->l;
    int64_t size = s->flushed; /* of the file */
    int rc = segfile_pin(s->log, false);

    if (rc < 0)
        return rc;
    rc = keep_bytes(r, s, position, size);
    if (rc == 0)
        rc = l->io->ftruncate(l->io, segfile_fd(s->log), position);
    if (rc == 0)
        rc = l->io->fsync(l->io, segfile_fd(s->log));
    segfile_unpin(s->log);
    r->rec->cut_bytes += size - position;
    s->flushed = position;
    return rc;
}

/* A whole segment goes: its log is renamed, its indexes go. */
static int drop_segment(struct recovery *r, struct segment *s)
{
    struct plog *l = r->l;
    char path[PATH_MAX];
    int rc = 0;

    if (s->flushed > 0) {
        cut_path(s, 0, path, sizeof path);
        rc = l->io->renameat(l->io, l->dirfd, segfile_path(s->log), l->dirfd, path);
        r->rec->cut_bytes += s->flushed;
    }
    if (rc == 0)
        rc = segment_unlink(s);
    segment_unref(s);
    return rc;
}

int recovery_cut(struct recovery *r, int i, int64_t position)
{
    struct plog *l = r->l;
    struct segment *s = l->segs[i];
    int rc = 0;

    /* Last first: a crash in between leaves a log that the next start cuts at the same place. */
    while (rc == 0 && l->n_segs > i + 1)
        rc = drop_segment(r, l->segs[--l->n_segs]);
    if (rc == 0 && position < s->flushed) {
        rc = cut_segment(r, s, position);
        r->rec->cut_position = position;
    }
    if (rc == 0)
        rc = io_sync_dir(l->io, l->dirfd, l->name);
    return plog_disk_error(l, rc, segfile_path(s->log));
}
