/* SPDX-License-Identifier: Apache-2.0 */
/*
 * df shows the disks that hold the logs: the sum over the log directories of all brokers, each disk once. The
 * figures are kept for some seconds, and old ones are shown when no broker answers. Loop's thread.
 */
#include "fuse/cluster/statfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/cluster/each_broker.h"
#include "lib/base/mem.h"

#define FIGURES_VALID_MS 5000
#define STATFS_BLOCK     4096
#define NAME_LENGTH_MAX  249 /* a topic's */

struct disk_figures {
    int64_t asked_ms; /* 0: never */
    uint64_t total_bytes, free_bytes;
};

/* A disk as one of its directories shows it, and on which machine that is. */
struct disk {
    char *host;
    int64_t total_bytes, usable_bytes;
};

struct statfs_op {
    struct request r;
    struct each_broker ask;
    struct describe_log_dirs_request body;
    struct disk *disks;
    size_t n_disks, n_before; /* n_before: of other brokers */
    bool answered;
};

struct disk_figures *disk_figures_new(void)
{
    return xcalloc(1, sizeof(struct disk_figures));
}

void disk_figures_free(struct disk_figures *d)
{
    free(d);
}

static void reply_figures(const struct disk_figures *d, fuse_req_t req)
{
    struct statvfs st = { .f_bsize = STATFS_BLOCK, .f_frsize = STATFS_BLOCK, .f_namemax = NAME_LENGTH_MAX };
    st.f_blocks = d->total_bytes / STATFS_BLOCK;
    st.f_bfree = st.f_bavail = d->free_bytes / STATFS_BLOCK;
    fuse_reply_statfs(req, &st);
}

/* Directories on one disk show the same figures, and brokers on one machine that ask one after the other nearly the same; it is
 * counted once. */
static bool is_counted(const struct statfs_op *op, const char *host, const struct describe_log_dirs_response_results *dir)
{
    for (size_t i = 0; i < op->n_disks; i++) {
        const struct disk *d = &op->disks[i];
        if (d->total_bytes == dir->total_bytes && strcmp(d->host, host) == 0 &&
            (d->usable_bytes == dir->usable_bytes || i < op->n_before))
            return true;
    }
    return false;
}

static void on_log_dirs(struct each_broker *e, const char *host, const void *response)
{
    struct statfs_op *op = container_of(e, struct statfs_op, ask);
    const struct describe_log_dirs_response *r = response;

    op->answered = true;
    op->n_before = op->n_disks;
    for (int32_t i = 0; i < r->n_results; i++) {
        const struct describe_log_dirs_response_results *dir = &r->results[i];
        if (dir->total_bytes <= 0 || dir->usable_bytes < 0 || is_counted(op, host, dir))
            continue;
        op->disks = xreallocarray(op->disks, op->n_disks + 1, sizeof *op->disks);
        op->disks[op->n_disks++] = (struct disk){ xstrdup(host), dir->total_bytes, dir->usable_bytes };
    }
}

static void figures_take(struct disk_figures *f, const struct statfs_op *op, int64_t now_ms)
{
    f->asked_ms = now_ms;
    f->total_bytes = f->free_bytes = 0;
    for (size_t i = 0; i < op->n_disks; i++) {
        f->total_bytes += (uint64_t)op->disks[i].total_bytes;
        f->free_bytes += (uint64_t)op->disks[i].usable_bytes;
    }
}

/* What those that answered say is more than nothing. */
static void on_end(struct each_broker *e, int rc, enum kerr err)
{
    struct statfs_op *op = container_of(e, struct statfs_op, ask);
    struct mount *m = op->r.mount;
    (void)err;

    if (op->answered)
        figures_take(m->disk, op, loop_now_ms(m->loop));
    fuse_req_t req = request_take(&op->r);
    if (req != NULL && (op->answered || m->disk->asked_ms > 0))
        reply_figures(m->disk, req);
    else if (req != NULL)
        fuse_reply_err(req, request_errno(rc));
    for (size_t i = 0; i < op->n_disks; i++)
        free(op->disks[i].host);
    free(op->disks);
    free(op);
}

void statfs_ask(struct mount *m, fuse_req_t req)
{
    if (m->disk->asked_ms > 0 &&
        (m->disk->asked_ms + FIGURES_VALID_MS > loop_now_ms(m->loop) || mount_misses_brokers(m))) {
        reply_figures(m->disk, req);
        return;
    }
    struct statfs_op *op = xcalloc(1, sizeof *op);
    wire_defaults(&wire_describe_log_dirs_request, &op->body);
    op->body.n_topics = 0; /* no partitions, only the disks */
    op->ask = (struct each_broker){
        .request = &wire_describe_log_dirs_request, .body = &op->body, .answer = on_log_dirs, .end = on_end
    };
    request_begin(&op->r, m, req);
    each_broker_ask(m, &op->ask);
}
