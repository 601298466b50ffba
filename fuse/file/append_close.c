/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What close, flush and fsync do with an open file that was appended to: they wait for what is on its way and tell the first
 * error that no write has told; and at the last close the unfinished last line becomes a record (W4). Nobody waits for that
 * one's answer but those who read the partition next (P3 of pfile.h), so a failure is only in the log. Loop's thread.
 */
#include <stdlib.h>
#include <string.h>

#include "fuse/base/mount.h"
#include "fuse/file/append.h"
#include "fuse/file/append_int.h"
#include "fuse/partition/pfile.h"
#include "fuse/tree/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

struct append_wait {
    struct request r;
    struct handle *h; /* owned reference */
    LIST_ENTRY(append_wait) link;
};

/* ---- flush and fsync ---- */

void append_settled(struct handle *h)
{
    struct append_wait *w;
    while (h->app.sends == 0 && (w = LIST_FIRST(&h->app.waiting)) != NULL) {
        LIST_REMOVE(w, link);
        request_err(&w->r, h->app.error);
        h->app.error = 0;
        handle_unref(w->h);
        free(w);
    }
}

void append_settle(struct handle *h, fuse_req_t req)
{
    if (h->app.sends == 0) {
        fuse_reply_err(req, h->app.error);
        h->app.error = 0;
        return;
    }
    struct append_wait *w = xcalloc(1, sizeof *w);
    w->h = handle_ref(h);
    LIST_INSERT_HEAD(&h->app.waiting, w, link);
    request_begin(&w->r, h->mount, req);
    struct append *ap;
    LIST_FOREACH (ap, &h->app.on_way, way)
        append_hurry(ap);
}

/* ---- the last line ---- */

static void on_last_line_done(struct append *ap)
{
    struct pfile *f = ap->file;
    int rc;
    append_committed(ap, &rc);
    if (rc != 0)
        log_error("%s/p%d: the last line of a closed file, which had no newline, could not be appended: %s; of a line that has one, "
                  "write() tells",
                  pfile_topic(f), pfile_partition(f), strerror(request_errno(rc)));
    tail_answered(f);
    append_settled(ap->h);
    append_end(ap);
    free(ap);
}

void append_release(struct handle *h)
{
    struct appender *app = &h->app;
    if (app->tail.n == 0 || app->torn || app->lost)
        return;
    struct pfile *f = append_target(h);
    if (f == NULL) {
        log_error("%s: the last line of a closed file, which had no newline, could not be appended: no partition has a leader",
                  h->node->topic->name);
        return;
    }
    const uint32_t end = 0;
    struct append_records got = append_read(h, NULL, &end, 1, kstr_bytes(app->tail.p, app->tail.n));
    if (got.n == 0) {
        log_error("%s: the last line of a closed file, which had no newline, was not appended: %s", h->node->topic->name, got.why);
        pfile_unref(f);
        return;
    }
    struct append *ap = xcalloc(1, sizeof *ap);
    append_begin(ap, h, f, on_last_line_done);
    tail_sent(f);
    append_send(ap, got.records, 1, true);
    app->tail.n = 0;
    append_let_go(ap);
    pfile_unref(f);
}

void append_release_all(struct mount *m)
{
    struct handle *h;
    LIST_FOREACH (h, &m->handles, open_link)
        append_release(h);
}
