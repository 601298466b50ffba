/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of a log whose leader, text or end is another than before (rule X3 of ptext.h): has it lost its tail (a
 * power cut under flush.policy=async, an older copy of the data directory), was it compacted, or is all as it was?
 * OffsetForLeaderEpoch tells how far the log that was known is there still, and the text position of that place how its
 * text lies now. Answers of KlogStat wait until that is settled, so nobody reads by the new ends with old positions.
 * Loop's thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum {
    CHECKS_MAX = 10,    /* in a row that found the log moved on once more */
};

struct ends_check {
    struct pfile *file; /* owned reference */
    struct ends ends;   /* the news */
    int64_t asked_ns;
    bool settled;
    int64_t common; /* offset up to which the log is the one that was known */
    struct ends_wait_list waiting;
    struct client_call call;
    union {
        struct offset_for_leader_epoch_request epoch;
        struct klog_find_text_request find;
    } body;
    struct offset_for_leader_epoch_request_topics topic;
    struct offset_for_leader_epoch_request_partitions partition;
};

bool ends_are_doubtful(const struct pfile *f, const struct ends *e)
{
    return f->ends_known && (e->leader_epoch != f->ends.leader_epoch || e->era != f->ends.era);
}

bool ends_same_log(const struct ends *a, const struct ends *b)
{
    return a->leader_epoch == b->leader_epoch && a->era >> 32 == b->era >> 32;
}

static void check_end(struct ends_check *c, int rc)
{
    struct pfile *f = c->file;
    f->checks_in_vain = c->settled ? 0 : f->checks_in_vain + 1;
    if (rc == 0 && f->checks_in_vain > CHECKS_MAX)
        rc = -EIO;
    struct ends_wait_list waiting = STAILQ_HEAD_INITIALIZER(waiting);
    struct ends_wait *w;
    f->check = NULL;
    STAILQ_CONCAT(&waiting, &c->waiting);
    free(c);
    while ((w = STAILQ_FIRST(&waiting)) != NULL) {
        STAILQ_REMOVE_HEAD(&waiting, link);
        if (rc != 0)
            w->cb(w, rc);
        else /* some came after the question that was answered (P2) */
            ends_ask(f, w);
    }
    pfile_unref(f);
}

/* ---- what was found ---- */

static void log_lost_tail(struct ends_check *c, int64_t text)
{
    struct pfile *f = c->file;
    log_warn("%s/p%d: the log has lost its tail: records %" PRId64 " to %" PRId64
             ", which were seen here, are gone; readers go on at %" PRId64,
             pfile_topic(f), pfile_partition(f), c->common, f->ends.end_offset - 1, c->common);
    ptexts_lost(f, text, c->common);
    f->told_end = MIN(f->told_end, c->common);
    f->watched_end = MIN(f->watched_end, c->common);
}

/* The log's start stands where it stood: then nothing behind it was moved. */
static bool starts_alike(const struct ends *a, const struct ends *b)
{
    return a->start_offset == b->start_offset && a->start_text == b->start_text;
}

/* text: the position of the common end. */
static void check_settle(struct ends_check *c, int64_t text)
{
    struct pfile *f = c->file;
    struct ends *known = &f->ends;
    if (c->common < known->end_offset) {
        log_lost_tail(c, text);
    } else if (text != known->end_text) { /* the broker counts from elsewhere */
        int64_t by = text - known->end_text;
        ptexts_shift(f, by);
        known->start_text += by;
    }
    if (c->ends.era != known->era && !starts_alike(&c->ends, known))
        ptexts_moved(f, text);
    ends_set(f, &c->ends, c->asked_ns);
    c->settled = true;
    check_end(c, 0);
}

/* ---- where its text is ---- */

static enum kerr judge_find(struct client_call *call, int16_t version, const void *response)
{
    (void)call;
    (void)version;
    const struct klog_find_text_response *r = response;
    return r->error_code == KERR_FENCED_LEADER_EPOCH ? KERR_NONE : (enum kerr)r->error_code;
}

static void on_common_text(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct ends_check *c = call->user;
    const struct klog_find_text_response *r = response;
    (void)err;
    (void)version;
    if (rc != 0)
        check_end(c, rc);
    else if (r->error_code != KERR_NONE) /* it has moved on: asked anew, and judged anew */
        check_end(c, 0);
    else
        check_settle(c, r->text_position);
}

static void find_common_text(struct ends_check *c)
{
    struct pfile *f = c->file;
    const struct ends *e = &c->ends;
    if (c->common == e->end_offset || c->common <= e->start_offset) {
        check_settle(c, c->common == e->end_offset ? e->end_text : e->start_text);
        return;
    }
    wire_defaults(&wire_klog_find_text_request, &c->body.find);
    c->body.find.topic = kstr_of(pfile_topic(f));
    c->body.find.topic_id = f->key.topic->id;
    c->body.find.partition = pfile_partition(f);
    c->body.find.current_leader_epoch = e->leader_epoch;
    c->body.find.by = FIND_BY_OFFSET;
    c->body.find.value = c->common;
    c->call = (struct client_call){ .target = TARGET_LEADER,
                                    .topic = pfile_topic(f),
                                    .topic_id = f->key.topic->id,
                                    .partition = pfile_partition(f),
                                    .request = &wire_klog_find_text_request,
                                    .body = &c->body.find,
                                    .max_version = -1,
                                    .deadline_ms = mount_deadline_ms(f->mount),
                                    .judge = judge_find,
                                    .cb = on_common_text,
                                    .user = c };
    client_call(f->mount->client, &c->call);
}

/* ---- how far it is the same ---- */

static const struct offset_for_leader_epoch_response_partitions *
epoch_answer(const struct offset_for_leader_epoch_response *r)
{
    return r->n_topics == 1 && r->topics[0].n_partitions == 1 ? &r->topics[0].partitions[0] : NULL;
}

static enum kerr judge_epoch(struct client_call *call, int16_t version, const void *response)
{
    const struct offset_for_leader_epoch_response_partitions *p = epoch_answer(response);
    (void)call;
    (void)version;
    return p == NULL || p->error_code == KERR_FENCED_LEADER_EPOCH ? KERR_NONE : (enum kerr)p->error_code;
}

static void on_epoch_end(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct ends_check *c = call->user;
    const struct offset_for_leader_epoch_response_partitions *p = rc == 0 ? epoch_answer(response) : NULL;
    (void)err;
    (void)version;
    if (rc != 0) {
        check_end(c, rc);
        return;
    }
    if (p != NULL && p->error_code == KERR_FENCED_LEADER_EPOCH) {
        check_end(c, 0);
        return;
    }
    if (p != NULL && p->error_code == KERR_NONE && p->end_offset >= 0)
        c->common = MIN(c->common, p->end_offset);
    find_common_text(c);
}

static void ask_epoch_end(struct ends_check *c, int32_t epoch)
{
    struct pfile *f = c->file;
    wire_defaults(&wire_offset_for_leader_epoch_request, &c->body.epoch);
    c->partition = (struct offset_for_leader_epoch_request_partitions){ .partition = pfile_partition(f),
                                                                       .current_leader_epoch = c->ends.leader_epoch,
                                                                       .leader_epoch = epoch };
    c->topic = (struct offset_for_leader_epoch_request_topics){ .topic = kstr_of(pfile_topic(f)),
                                                               .partitions = &c->partition,
                                                               .n_partitions = 1 };
    c->body.epoch.topics = &c->topic;
    c->body.epoch.n_topics = 1;
    c->call = (struct client_call){ .target = TARGET_LEADER,
                                    .topic = pfile_topic(f),
                                    .topic_id = f->key.topic->id,
                                    .partition = pfile_partition(f),
                                    .request = &wire_offset_for_leader_epoch_request,
                                    .body = &c->body.epoch,
                                    .max_version = -1,
                                    .deadline_ms = mount_deadline_ms(f->mount),
                                    .judge = judge_epoch,
                                    .cb = on_epoch_end,
                                    .user = c };
    client_call(f->mount->client, &c->call);
}

/* ---- the beginning ---- */

/* The last epoch of which both may have records; -1: all of them. A leader that begins anew takes a new epoch, so one
 * that was opened anew and has no newer one comes from an older copy: its own records are not those that were known. */
static int32_t epoch_in_doubt(const struct ends *known, const struct ends *e)
{
    bool reopened = known->era >> 32 != e->era >> 32;
    if (e->leader_epoch > known->leader_epoch)
        return known->leader_epoch;
    return reopened ? e->leader_epoch - 1 : -1;
}


void ends_check(struct pfile *f, const struct ends *e, int64_t asked_ns, struct ends_wait_list *waiting)
{
    struct ends_check *c = f->check;
    if (c != NULL) {
        if (waiting != NULL)
            STAILQ_CONCAT(&c->waiting, waiting);
        return;
    }
    c = f->check = xcalloc(1, sizeof *c);
    c->file = pfile_ref(f);
    c->ends = *e;
    c->asked_ns = asked_ns;
    c->common = ends_same_log(&f->ends, e) ? f->ends.end_offset : MIN(f->ends.end_offset, e->end_offset);
    STAILQ_INIT(&c->waiting);
    if (waiting != NULL)
        STAILQ_CONCAT(&c->waiting, waiting);
    int32_t epoch = epoch_in_doubt(&f->ends, e);
    if (epoch >= 0)
        ask_epoch_end(c, epoch);
    else
        find_common_text(c);
}
