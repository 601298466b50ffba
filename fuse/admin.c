/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mkdir makes a topic, touch TOPIC/pN lets it grow, rmdir (under -o delete) deletes it. The answer waits
 * until the metadata shows the change, so the next command finds it. Loop's thread.
 */
#include "fuse/admin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/group/group_files.h"
#include "fuse/tree/dir.h"
#include "fuse/tree/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

/* More partitions than this are a slip of the finger: touch TOPIC/p99999. */
#define PARTITIONS_MAX 10000
/* How often the metadata is looked at until it shows a change. */
#define VISIBLE_RETRY_MS 20
/* DeleteTopics takes names alone up to this version. */
#define DELETE_VERSION_BY_NAME 5

struct admin_op {
    struct request r;
    struct node *parent; /* owned reference */
    char *name;
    bool gone;  /* wait for the name to go, not to come */
    bool opens; /* an open file is wanted (O_CREAT) */
    int flags;
    int64_t deadline_ms;
    struct client_call call;
    union {
        struct create_topics_request create;
        struct delete_topics_request del;
        struct create_partitions_request grow;
    } body;
    union {
        struct create_topics_request_topics create;
        struct create_partitions_request_topics grow;
    } item;
    struct kstr del_name;
    struct lookup lookup;
    struct timer retry;
};

static void admin_free(struct admin_op *op)
{
    struct mount *m = op->r.mount;
    timer_clear(m->loop, &op->retry);
    node_unref(m, op->parent);
    free(op->name);
    free(op);
}

static void admin_end(struct admin_op *op, int err)
{
    request_err(&op->r, err);
    admin_free(op);
}

/* ---- until it shows ---- */

static void admin_look_again(struct timer *t)
{
    struct admin_op *op = container_of(t, struct admin_op, retry);
    lookup_begin(op->r.mount, &op->lookup, op->parent, op->name, 0);
}

static void on_admin_looked(struct lookup *l, int rc, struct node *n)
{
    struct admin_op *op = container_of(l, struct admin_op, lookup);
    struct mount *m = op->r.mount;
    bool waits = op->gone ? rc == 0 : rc == -ENOENT;
    if (waits && loop_now_ms(m->loop) < op->deadline_ms && request_is_open(&op->r)) {
        op->retry.cb = admin_look_again;
        timer_set(m->loop, &op->retry, loop_now_ms(m->loop) + VISIBLE_RETRY_MS);
    } else {
        fuse_req_t req = request_take(&op->r);
        if (req == NULL)
            ;
        else if (op->gone && rc == -ENOENT)
            fuse_reply_err(req, 0);
        else if (op->gone || rc != 0)
            fuse_reply_err(req, rc == 0 || rc == -ENOENT ? ETIMEDOUT : request_errno(rc));
        else if (op->opens)
            entry_reply_created(m, n, op->flags, req);
        else
            entry_reply(m, n, req);
        admin_free(op);
    }
    if (n != NULL)
        node_unref(m, n);
}

static void admin_wait_visible(struct admin_op *op)
{
    op->lookup.cb = on_admin_looked;
    lookup_begin(op->r.mount, &op->lookup, op->parent, op->name, 0);
}

/* ---- the requests ---- */

/* One result in each of the three answers. */
static enum kerr admin_result(const struct client_call *call, const void *response, struct kstr *ret_text)
{
    *ret_text = KSTR_NULL;
    if (call->request->api_key == API_CREATE_TOPICS) {
        const struct create_topics_response *r = response;
        *ret_text = r->n_topics == 1 ? r->topics[0].error_message : KSTR_NULL;
        return r->n_topics == 1 ? r->topics[0].error_code : KERR_UNKNOWN_SERVER_ERROR;
    }
    if (call->request->api_key == API_CREATE_PARTITIONS) {
        const struct create_partitions_response *r = response;
        *ret_text = r->n_results == 1 ? r->results[0].error_message : KSTR_NULL;
        return r->n_results == 1 ? r->results[0].error_code : KERR_UNKNOWN_SERVER_ERROR;
    }
    const struct delete_topics_response *r = response;
    *ret_text = r->n_responses == 1 ? r->responses[0].error_message : KSTR_NULL;
    return r->n_responses == 1 ? r->responses[0].error_code : KERR_UNKNOWN_SERVER_ERROR;
}

/* Another controller is looked for; anything else is final: what was asked for may have happened. */
static enum kerr judge_admin(struct client_call *call, int16_t version, const void *response)
{
    struct kstr text;
    enum kerr err = admin_result(call, response, &text);
    (void)version;
    return err == KERR_NOT_CONTROLLER ? err : KERR_NONE;
}

/* The protocol has one code for every trouble with a disk; that it is full is in the broker's words. */
static bool disk_is_full(enum kerr err, struct kstr text)
{
    const char *full = strerror(ENOSPC);
    return err == KERR_KAFKA_STORAGE_ERROR && text.n > 0 && memmem(text.p, (size_t)text.n, full, strlen(full)) != NULL;
}

static void on_admin(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct admin_op *op = call->user;
    struct kstr text = KSTR_NULL;
    (void)version;
    if (rc == 0 && (err = admin_result(call, response, &text)) != KERR_NONE)
        rc = disk_is_full(err, text) ? -ENOSPC : -kerr_errno(err);
    if (rc != 0 && text.n > 0)
        log_info("%s: %.*s", op->name, KSTR_FMT(text));
    /* Another mount was faster, or our own first attempt was: for O_CREAT the file is there, as wanted. */
    if (rc == 0 || (op->opens && err == KERR_INVALID_PARTITIONS))
        admin_wait_visible(op);
    else
        admin_end(op, rc == -EEXIST || rc == -ENOENT || rc == -EPERM ? -rc : request_errno(rc));
}

static struct admin_op *admin_begin(struct mount *m, struct node *parent, const char *name, fuse_req_t req)
{
    struct admin_op *op = xcalloc(1, sizeof *op);
    op->parent = node_ref(parent);
    op->name = xstrdup(name);
    op->deadline_ms = mount_deadline_ms(m);
    request_begin(&op->r, m, req);
    return op;
}

static void admin_send(struct admin_op *op, const struct wire_message *request, int16_t max_version)
{
    op->call = (struct client_call){ .target = TARGET_CONTROLLER,
                                     .request = request,
                                     .body = &op->body,
                                     .max_version = max_version,
                                     .deadline_ms = op->deadline_ms,
                                     .judge = judge_admin,
                                     .cb = on_admin,
                                     .user = op };
    client_call(op->r.mount->client, &op->call);
}

void admin_mkdir(struct mount *m, struct node *parent, const char *name, fuse_req_t req)
{
    if (parent->kind == NODE_GROUPS) {
        group_mkdir(m, parent, name, req);
        return;
    }
    if (parent->kind != NODE_ROOT || strcmp(name, ".status") == 0) {
        fuse_reply_err(req, EPERM);
        return;
    }
    if (!topic_name_ok(name)) {
        fuse_reply_err(req, strlen(name) > 249 ? ENAMETOOLONG : EINVAL);
        return;
    }
    struct admin_op *op = admin_begin(m, parent, name, req);
    wire_defaults(&wire_create_topics_request, &op->body.create);
    op->item.create = (struct create_topics_request_topics){ .name = kstr_of(op->name),
                                                             .num_partitions = -1,
                                                             .replication_factor = -1 };
    op->body.create.topics = &op->item.create;
    op->body.create.n_topics = 1;
    op->body.create.timeout_ms = (int32_t)m->opt->timeout_ms;
    admin_send(op, &wire_create_topics_request, -1);
}

void admin_rmdir(struct mount *m, struct node *parent, const char *name, fuse_req_t req)
{
    if (parent->kind == NODE_GROUPS) {
        group_rmdir(m, parent, name, req);
        return;
    }
    if (parent->kind != NODE_ROOT || !m->opt->delete_topics || !topic_name_ok(name)) {
        fuse_reply_err(req, EPERM);
        return;
    }
    struct admin_op *op = admin_begin(m, parent, name, req);
    op->gone = true;
    wire_defaults(&wire_delete_topics_request, &op->body.del);
    op->del_name = kstr_of(op->name);
    op->body.del.topic_names = &op->del_name;
    op->body.del.n_topic_names = 1;
    op->body.del.timeout_ms = (int32_t)m->opt->timeout_ms;
    admin_send(op, &wire_delete_topics_request, DELETE_VERSION_BY_NAME);
}

void admin_create(struct mount *m, struct node *parent, const char *name, fuse_req_t req,
                  const struct fuse_file_info *fi)
{
    int32_t p;
    if (parent->kind == NODE_GROUP) {
        group_create(m, parent, name, req, fi);
        return;
    }
    if (parent->kind != NODE_TOPIC || parent->view.parts != 0 || !view_partition_parse(name, &p) ||
        (fi != NULL && (fi->flags & O_TRUNC) != 0)) {
        fuse_reply_err(req, EPERM);
        return;
    }
    if (p >= PARTITIONS_MAX || parent->topic->gone) {
        fuse_reply_err(req, p >= PARTITIONS_MAX ? EINVAL : ESTALE);
        return;
    }
    struct admin_op *op = admin_begin(m, parent, name, req);
    op->opens = fi != NULL;
    op->flags = fi != NULL ? fi->flags : 0;
    wire_defaults(&wire_create_partitions_request, &op->body.grow);
    op->item.grow = (struct create_partitions_request_topics){ .name = kstr_of(parent->topic->name),
                                                               .count = p + 1,
                                                               .n_assignments = -1 };
    op->body.grow.topics = &op->item.grow;
    op->body.grow.n_topics = 1;
    op->body.grow.timeout_ms = (int32_t)m->opt->timeout_ms;
    admin_send(op, &wire_create_partitions_request, -1);
}

void admin_unlink(struct mount *m, struct node *parent, const char *name, fuse_req_t req)
{
    if (parent->kind == NODE_GROUP && strcmp(name, ".status") == 0)
        fuse_reply_err(req, 0); /* it goes with the group: `rm -r` takes it for one of its files */
    else if (parent->kind == NODE_GROUP)
        group_unlink(m, parent, name, req);
    else
        fuse_reply_err(req, EPERM);
}
