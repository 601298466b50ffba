/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mkdir .groups/G makes a group with positions at the start of each partition, touch .groups/G/pN one
 * position there; rmdir and rm delete them. Loop's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/cluster/groups.h"
#include "fuse/group/group_files.h"
#include "fuse/page/page.h"
#include "fuse/partition/pfile.h"
#include "fuse/tree/dir.h"
#include "lib/base/mem.h"

struct group_row {
    struct group_op *op;
    struct pfile *file; /* owned reference */
    struct ends_wait ends;
};

struct group_op {
    struct request r;
    struct node *parent; /* owned reference */
    char *name;
    char group[GROUP_NAME_MAX + 1];
    int32_t only; /* this partition; -1: all */
    bool deletes;
    bool opens; /* an open file is wanted (O_CREAT) */
    int flags;
    struct group_wait wait;
    struct topics_wait metadata;
    /* making */
    struct group_row *rows;
    struct position *positions;
    int32_t n, waiting;
    int rc;
    struct positions_commit commit;
    /* deleting */
    struct client_call call;
    struct offset_delete_request body;
    struct offset_delete_request_topics topic;
    struct offset_delete_request_partitions *partitions;
};

static void group_op_end(struct group_op *op, int err)
{
    struct mount *m = op->r.mount;
    request_err(&op->r, err);
    for (int32_t i = 0; op->rows != NULL && i < op->n; i++)
        pfile_unref(op->rows[i].file);
    free(op->rows);
    free(op->positions);
    free(op->partitions);
    node_unref(m, op->parent);
    free(op->name);
    free(op);
}

/* ---- making ---- */

static void group_reply_made(struct group_op *op)
{
    struct mount *m = op->r.mount;
    struct view view = { 0 };
    memcpy(view.group, op->group, sizeof view.group);
    struct node *n =
        node_get(m, op->parent, op->name, op->only < 0 ? NODE_GROUP : NODE_POSITION, NULL, &view, op->only);
    fuse_req_t req = request_take(&op->r);
    dir_added(op->parent, dir_entry_hash(op->name, NULL));
    if (n->page != NULL)
        page_touch(n->page);
    if (req != NULL && op->opens)
        entry_reply_created(m, n, op->flags, req);
    else if (req != NULL)
        entry_reply(m, n, req);
    node_unref(m, n);
    group_op_end(op, 0);
}

static void on_made(struct positions_commit *pc, int rc, enum kerr err)
{
    struct group_op *op = container_of(pc, struct group_op, commit);
    if (rc != 0)
        group_op_end(op, group_errno(rc, err));
    else
        group_reply_made(op);
}

static void group_commit(struct group_op *op)
{
    struct mount *m = op->r.mount;
    for (int32_t i = 0; i < op->n; i++)
        op->positions[i] = (struct position){ .topic = op->parent->topic->name,
                                              .topic_id = op->parent->topic->id,
                                              .partition = pfile_partition(op->rows[i].file),
                                              .offset = op->rows[i].file->ends.start_offset,
                                              .leader_epoch = -1 };
    op->commit = (struct positions_commit){ .group = op->group,
                                            .member_id = "",
                                            .generation = -1,
                                            .positions = op->positions,
                                            .n = (size_t)op->n,
                                            .deadline_ms = mount_deadline_ms(m),
                                            .cb = on_made };
    positions_commit(m->writer, &op->commit);
}

static void group_row_done(struct group_op *op, int rc)
{
    if (rc != 0)
        op->rc = rc;
    if (--op->waiting > 0)
        return;
    if (op->rc != 0)
        group_op_end(op, request_errno(op->rc));
    else
        group_commit(op);
}

static void on_row_ends(struct ends_wait *w, int rc)
{
    group_row_done(container_of(w, struct group_row, ends)->op, rc);
}

static void group_make(struct group_op *op, int32_t first, int32_t n)
{
    op->rows = xcalloc((size_t)n + 1, sizeof *op->rows);
    op->positions = xcalloc((size_t)n + 1, sizeof *op->positions);
    op->n = n;
    op->waiting = n + 1; /* 1: until all have been asked */
    for (int32_t i = 0; i < n; i++) {
        op->rows[i].op = op;
        op->rows[i].file = pfile_get(op->r.mount, op->parent->topic, first + i);
        op->rows[i].ends.cb = on_row_ends;
    }
    for (int32_t i = 0; i < n; i++)
        ends_ask(op->rows[i].file, &op->rows[i].ends);
    group_row_done(op, 0);
}

/* ---- deleting ---- */

static enum kerr deleted_error(const struct offset_delete_response *r)
{
    if (r->error_code != KERR_NONE)
        return (enum kerr)r->error_code;
    for (int32_t i = 0; i < r->n_topics; i++) {
        for (int32_t k = 0; k < r->topics[i].n_partitions; k++) {
            if (r->topics[i].partitions[k].error_code != KERR_NONE)
                return (enum kerr)r->topics[i].partitions[k].error_code;
        }
    }
    return KERR_NONE;
}

static enum kerr judge_deleted(struct client_call *call, int16_t version, const void *response)
{
    (void)call;
    (void)version;
    return deleted_error(response);
}

/* `rm -r` of a group removes its files, and so its last position, before the directory, which must be there until then. */
static int group_linger(struct group_op *op, int err)
{
    struct mount *m = op->r.mount;
    if (op->only >= 0) {
        if (err == 0)
            op->parent->emptied_ms = loop_now_ms(m->loop);
        return err;
    }
    struct node *n = node_named(m, op->parent, op->name, 0);
    bool lingers = n != NULL && node_lingers(m, n);
    if (n != NULL)
        n->emptied_ms = 0;
    return err == ENOENT && lingers ? 0 : err;
}

static void on_deleted(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct group_op *op = call->user;
    (void)version;
    if (rc == 0 && (err = deleted_error(response)) != KERR_NONE)
        rc = -kerr_errno(err);
    int errno_of = group_errno(rc, rc == 0 ? KERR_NONE : err);
    if (errno_of == 0)
        dir_removed(op->parent, dir_entry_hash(op->name, NULL));
    group_op_end(op, group_linger(op, errno_of));
}

static void group_delete(struct group_op *op, int32_t first, int32_t n)
{
    op->partitions = xcalloc((size_t)n + 1, sizeof *op->partitions);
    for (int32_t i = 0; i < n; i++)
        op->partitions[i].partition_index = first + i;
    op->topic = (struct offset_delete_request_topics){ .name = kstr_of(op->parent->topic->name),
                                                       .partitions = op->partitions,
                                                       .n_partitions = n };
    wire_defaults(&wire_offset_delete_request, &op->body);
    op->body.group_id = kstr_of(op->group);
    op->body.topics = &op->topic;
    op->body.n_topics = 1;
    op->call = (struct client_call){ .target = TARGET_COORDINATOR,
                                     .topic = op->group,
                                     .request = &wire_offset_delete_request,
                                     .body = &op->body,
                                     .max_version = -1,
                                     .deadline_ms = mount_deadline_ms(op->r.mount),
                                     .judge = judge_deleted,
                                     .cb = on_deleted,
                                     .user = op };
    client_call(op->r.mount->writer, &op->call);
}

/* ---- both ---- */

static void on_group_metadata(struct topics_wait *w, int rc)
{
    struct group_op *op = container_of(w, struct group_op, metadata);
    const struct topic *t = op->parent->topic;
    const struct client_topic *ct = rc == 0 ? client_topic(op->r.mount->client, t->name) : NULL;
    int32_t first = MAX(op->only, 0), n = op->only >= 0 ? 1 : ct == NULL ? 0 : ct->n_partitions;
    if (rc != 0 || ct == NULL || t->gone)
        group_op_end(op, rc != 0 && rc != -ENOENT ? request_errno(rc) : ESTALE);
    else if (op->deletes)
        group_delete(op, first, n);
    else if (first >= ct->n_partitions)
        group_op_end(op, EPERM); /* as for any name that means nothing */
    else
        group_make(op, first, n);
}

static void on_group_settled(struct group_wait *w, int rc)
{
    struct group_op *op = container_of(w, struct group_op, wait);
    if (rc != 0)
        group_op_end(op, EIO);
    else if (group_is_read(op->r.mount, op->group, op->parent->topic, op->only))
        group_op_end(op, EBUSY);
    else
        topics_ask(op->r.mount, &op->metadata, op->parent->topic->name, 0);
}

static void group_begin(struct mount *m, struct node *parent, const char *name, const char *group,
                        int32_t only, bool deletes, const struct fuse_file_info *fi, fuse_req_t req)
{
    struct group_op *op = xcalloc(1, sizeof *op);
    op->parent = node_ref(parent);
    op->name = xstrdup(name);
    memcpy(op->group, group, strlen(group) + 1);
    op->only = only;
    op->deletes = deletes;
    op->opens = fi != NULL;
    op->flags = fi != NULL ? fi->flags : 0;
    op->metadata.cb = on_group_metadata;
    request_begin(&op->r, m, req);
    op->wait = (struct group_wait){ .group = op->group, .cb = on_group_settled };
    group_wait(m, &op->wait);
}

void group_mkdir(struct mount *m, struct node *parent, const char *name, fuse_req_t req)
{
    if (!group_name_ok(name))
        fuse_reply_err(req, strlen(name) > GROUP_NAME_MAX ? ENAMETOOLONG : EINVAL);
    else
        group_begin(m, parent, name, name, -1, false, NULL, req);
}

void group_create(struct mount *m, struct node *parent, const char *name, fuse_req_t req,
                  const struct fuse_file_info *fi)
{
    int32_t p;
    if (!view_partition_parse(name, &p))
        fuse_reply_err(req, EPERM);
    else
        group_begin(m, parent, name, parent->view.group, p, false, fi, req);
}

void group_rmdir(struct mount *m, struct node *parent, const char *name, fuse_req_t req)
{
    if (!group_name_ok(name))
        fuse_reply_err(req, ENOENT);
    else
        group_begin(m, parent, name, name, -1, true, NULL, req);
}

void group_unlink(struct mount *m, struct node *parent, const char *name, fuse_req_t req)
{
    int32_t p;
    if (!view_partition_parse(name, &p))
        fuse_reply_err(req, EPERM);
    else
        group_begin(m, parent, name, parent->view.group, p, true, NULL, req);
}
