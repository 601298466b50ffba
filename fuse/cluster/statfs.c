/* SPDX-License-Identifier: Apache-2.0 */
/*
 * df shows the disks that hold the logs: the sum over the log directories of the broker that answers. The
 * figures are kept for some seconds, and old ones are shown when no broker answers. Loop's thread.
 */
#include "fuse/cluster/statfs.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "lib/base/mem.h"

#define FIGURES_VALID_MS 5000
#define STATFS_BLOCK     4096
#define NAME_LENGTH_MAX  249 /* a topic's */

struct disk_figures {
    int64_t asked_ms; /* 0: never */
    uint64_t total_bytes, free_bytes;
};

struct statfs_op {
    struct request r;
    struct client_call call;
    struct describe_log_dirs_request body;
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

/* Directories on one disk show the same figures; it is counted once. */
static void figures_take(struct disk_figures *d, const struct describe_log_dirs_response *r, int64_t now_ms)
{
    uint64_t total = 0, left = 0;
    for (int32_t i = 0; i < r->n_results; i++) {
        const struct describe_log_dirs_response_results *dir = &r->results[i];
        bool counted = dir->total_bytes <= 0 || dir->usable_bytes < 0;
        for (int32_t j = 0; j < i && !counted; j++)
            counted = r->results[j].total_bytes == dir->total_bytes &&
                      r->results[j].usable_bytes == dir->usable_bytes;
        if (!counted) {
            total += (uint64_t)dir->total_bytes;
            left += (uint64_t)dir->usable_bytes;
        }
    }
    d->asked_ms = now_ms;
    d->total_bytes = total;
    d->free_bytes = left;
}

static void on_log_dirs(struct client_call *call, int rc, enum kerr err, int16_t version,
                        const void *response)
{
    struct statfs_op *op = call->user;
    struct mount *m = op->r.mount;
    (void)err;
    (void)version;
    if (rc == 0)
        figures_take(m->disk, response, loop_now_ms(m->loop));
    fuse_req_t req = request_take(&op->r);
    if (req != NULL && (rc == 0 || m->disk->asked_ms > 0))
        reply_figures(m->disk, req);
    else if (req != NULL)
        fuse_reply_err(req, request_errno(rc));
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
    op->call = (struct client_call){ .target = TARGET_ANY,
                                     .request = &wire_describe_log_dirs_request,
                                     .body = &op->body,
                                     .max_version = -1,
                                     .deadline_ms = mount_deadline_ms(m),
                                     .cb = on_log_dirs,
                                     .user = op };
    request_begin(&op->r, m, req);
    client_call(m->client, &op->call);
}
