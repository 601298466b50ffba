/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of topics: from a loop to the meta loop, into the topic's slot, checked there against the newest
 * image, written to the registers in one multi, and answered when slot and image have followed. Meta loop,
 * but for the functions that hand a change in, and its callback.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/meta/change.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum { TRIES_MAX = 5 };

/* ---- making one ---- */

static struct change *change_of(struct cluster_change *ch)
{
    return container_of(ch, struct change, pub);
}

/* A copy that C can handle: NUL becomes '?', which no name, key or value may have either. */
static char *text_of(struct kstr s)
{
    size_t n = s.n > 0 ? (size_t)s.n : 0;
    char *text = xmalloc(n + 1);

    for (size_t i = 0; i < n; i++)
        text[i] = s.p[i] == '\0' ? '?' : s.p[i];
    text[n] = '\0';
    return text;
}

struct cluster_change *cluster_change_new(struct kstr topic)
{
    struct change *ch = xcalloc(1, sizeof *ch);

    ch->pub.topic = text_of(topic);
    ch->pub.n_partitions = ch->pub.replication_factor = -1;
    return &ch->pub;
}

void cluster_change_add_op(struct cluster_change *ch, enum config_op_kind kind, struct kstr key,
                           struct kstr value)
{
    ch->ops = xreallocarray(ch->ops, (size_t)ch->n_ops + 1, sizeof *ch->ops);
    ch->ops[ch->n_ops++] = (struct config_op){ text_of(key), value.n < 0 ? NULL : text_of(value), kind };
}

void cluster_change_assign(struct cluster_change *ch, const int32_t *brokers, int32_t n)
{
    int32_t *list = xcalloc((size_t)n + 1, sizeof *list);

    for (int32_t i = 0; i < n; i++)
        list[i] = brokers[i];
    list[n] = -1;
    ch->assignment = xreallocarray(ch->assignment, (size_t)ch->n_assignment + 1, sizeof *ch->assignment);
    ch->assignment[ch->n_assignment++] = list;
}

void cluster_change_unassign(struct cluster_change *ch)
{
    for (int32_t i = 0; i < ch->n_assignment; i++)
        free(ch->assignment[i]);
    free(ch->assignment);
    ch->assignment = NULL;
    ch->n_assignment = 0;
}

static void change_free(struct change *ch)
{
    for (int32_t i = 0; i < ch->pub.n_ops; i++) {
        free(ch->pub.ops[i].key);
        free(ch->pub.ops[i].value);
    }
    free(ch->pub.ops);
    cluster_change_unassign(&ch->pub);
    free(ch->pub.topic);
    ops_done(&ch->ops);
    free(ch->part);
    free(ch);
}

void cluster_change_free(struct cluster_change *ch)
{
    change_free(change_of(ch));
}

/* ---- to the meta loop and back ---- */

static void change_answer(struct task *t)
{
    struct change *ch = container_of(t, struct change, task);

    ch->pub.cb(&ch->pub, ch->err, ch->text[0] == '\0' ? NULL : ch->text);
    change_free(ch);
}

static void change_arrive(struct task *t)
{
    struct change *ch = container_of(t, struct change, task);
    struct cluster *c = ch->cluster;

    if (ch->kind == CHANGE_BROKER) {
        TAILQ_INSERT_TAIL(&c->brokers.changes, ch, link);
        brokers_step(c);
        return;
    }
    /* What is no name never gets a slot. */
    const char *why;
    enum kerr err = topic_name_check(kstr_of(ch->pub.topic), &why);
    if (err != KERR_NONE) {
        change_end(ch, ch->kind == CHANGE_CREATE ? err : KERR_UNKNOWN_TOPIC_OR_PARTITION, "%s", why);
        return;
    }
    struct topic_slot *s = slot_get(c, ch->pub.topic);
    TAILQ_INSERT_TAIL(&s->changes, ch, link);
    slot_step(s);
}

static void change_submit(struct cluster *c, struct cluster_change *pub, enum change_kind kind)
{
    struct change *ch = change_of(pub);

    KCHECK(pub->loop != NULL && pub->cb != NULL);
    ch->cluster = c;
    ch->kind = kind;
    ch->task.cb = change_arrive;
    loop_post(c->deps.loop, &ch->task);
}

void cluster_create_topic(struct cluster *c, struct cluster_change *ch)
{
    change_submit(c, ch, CHANGE_CREATE);
}

void cluster_delete_topic(struct cluster *c, struct cluster_change *ch)
{
    change_submit(c, ch, CHANGE_DELETE);
}

void cluster_grow_topic(struct cluster *c, struct cluster_change *ch)
{
    change_submit(c, ch, CHANGE_GROW);
}

void cluster_configure_topic(struct cluster *c, struct cluster_change *ch)
{
    change_submit(c, ch, CHANGE_CONFIGURE);
}

void cluster_reassign_partition(struct cluster *c, struct cluster_change *ch)
{
    change_submit(c, ch, CHANGE_REASSIGN);
}

void cluster_elect_leader(struct cluster *c, struct cluster_change *ch)
{
    change_submit(c, ch, CHANGE_ELECT);
}

void cluster_configure_broker(struct cluster *c, struct cluster_change *ch)
{
    change_submit(c, ch, CHANGE_BROKER);
}

void change_end(struct change *ch, enum kerr err, const char *fmt, ...)
{
    va_list ap;

    ch->err = err;
    if (fmt != NULL) {
        va_start(ap, fmt);
        vsnprintf(ch->text, sizeof ch->text, fmt, ap);
        va_end(ap);
    }
    ch->task.cb = change_answer;
    loop_post(ch->pub.loop, &ch->task);
}

static void change_leave(struct topic_slot *s, struct change *ch)
{
    KCHECK(TAILQ_FIRST(&s->changes) == ch);
    TAILQ_REMOVE(&s->changes, ch, link);
}

bool change_is_begun(const struct change *ch)
{
    return ch->begun;
}

void changes_fail(struct cluster *c, struct topic_slot *s, enum kerr err, const char *text)
{
    struct change *ch;
    (void)c;

    while ((ch = TAILQ_FIRST(&s->changes)) != NULL) {
        TAILQ_REMOVE(&s->changes, ch, link);
        change_end(ch, err, "%s", text);
    }
}

/* ---- writing ---- */

enum kerr change_kerr_of(int rc)
{
    switch (rc) {
    case -EEXIST:
        return KERR_TOPIC_ALREADY_EXISTS;
    case -ENOENT:
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    case -ESTALE:
        return KERR_INVALID_UPDATE_VERSION;
    default:
        return KERR_KAFKA_STORAGE_ERROR;
    }
}

static bool is_of_partition(const struct change *ch)
{
    return ch->kind == CHANGE_REASSIGN || ch->kind == CHANGE_ELECT;
}

/* A partition's register changes by itself: what was asked for is looked at again, as things are by now. */
static bool change_again(struct topic_slot *s, struct change *ch)
{
    if (!is_of_partition(ch) || ++ch->tries > TRIES_MAX)
        return false;
    ops_done(&ch->ops);
    ch->sent = 0;
    ch->begun = false;
    slot_wrote(s);
    return true;
}

/* Which of the topic's registers a change touches. */
static unsigned touched_by(const struct change *ch)
{
    if (is_of_partition(ch))
        return 0;
    return ch->kind == CHANGE_CONFIGURE ? TOPIC_CONFIG : ch->kind == CHANGE_GROW ? TOPIC_SHAPE : TOPIC_SHAPE | TOPIC_CONFIG;
}

static void change_written(void *arg, int rc)
{
    struct change *ch = arg;
    struct topic_slot *s = ch->slot;

    s->dirty.what |= rc == 0 ? touched_by(ch) : TOPIC_ALL;
    if (is_of_partition(ch))
        topic_wants_add(&s->dirty, ch->pub.partition);
    if (rc == -ESTALE && change_again(s, ch))
        return;

    if (rc == 0 && !change_sent_all(ch)) {
        change_send(s->cluster, ch, change_written);
        return;
    }
    if (rc < 0 && ch->undoing) {
        log_error("topic %s: cannot take back what failed: %s", s->name, strerror(-rc));
    } else if (rc < 0) {
        enum kerr err = change_kerr_of(rc);
        change_leave(s, ch);
        if (err == KERR_KAFKA_STORAGE_ERROR)
            change_end(ch, err, "the registers cannot be written: %s", strerror(-rc));
        else
            change_end(ch, err, NULL);
    }
    slot_wrote(s);
}

void change_write(struct topic_slot *s, struct change *ch)
{
    ch->begun = true;
    ch->slot = s;
    slot_begin_write(s);
    change_send(s->cluster, ch, change_written);
}

void change_begin(struct topic_slot *s, struct change *ch)
{
    static enum kerr (*const prepare[])(struct cluster *, struct change *) = {
        [CHANGE_CREATE] = change_prepare_create,
        [CHANGE_DELETE] = change_prepare_delete,
        [CHANGE_GROW] = change_prepare_grow,
        [CHANGE_CONFIGURE] = change_prepare_configure,
        [CHANGE_REASSIGN] = change_prepare_reassign,
        [CHANGE_ELECT] = change_prepare_elect,
    };

    enum kerr err = prepare[ch->kind](s->cluster, ch);
    if (err == KERR_NONE && !ch->pub.validate_only) {
        change_write(s, ch);
        return;
    }
    change_leave(s, ch);
    change_end(ch, err, NULL); /* the text is there already */
}

/* ---- following ---- */

/* Deletes in reverse what the change created. */
static void change_undo(struct topic_slot *s, struct change *ch)
{
    struct register_ops_list undo = { 0 };
    const struct cluster *c = s->cluster;

    for (int i = ch->ops.n - 1; i >= 0; i--)
        if (ch->ops.ops[i].kind == REGISTER_CREATE)
            ops_add(&undo, REGISTER_DELETE, xstrdup(ch->ops.ops[i].path), NULL, REGISTER_ANY_VERSION);
    if (ch->kind == CHANGE_CREATE) {
        char id[UUID_TEXT_LEN + 1];
        uuid_text(&ch->pub.topic_id, id);
        ops_add(&undo, REGISTER_CREATE, xasprintf("/admin/delete_topics/%s", id), xstrdup(ch->pub.topic), 0);
        for (size_t i = 0; !c->deps.alone && i < c->image->n_brokers; i++) /* they may have made logs of it */
            ops_add(&undo, REGISTER_CREATE, xasprintf("/admin/delete_topics/%s/%d", id, c->image->brokers[i].id), NULL, 0);
    }
    ops_done(&ch->ops);
    ch->ops = undo;
    ch->sent = 0;
    ch->undoing = true;
    change_write(s, ch);
}

void change_synced(struct topic_slot *s, struct change *ch, int open_rc)
{
    bool creates = ch->kind == CHANGE_CREATE || ch->kind == CHANGE_GROW;

    if (open_rc < 0 && creates && !ch->undoing) {
        ch->err = kerr_of_errno(-open_rc);
        snprintf(ch->text, sizeof ch->text, "the logs cannot be opened: %s", strerror(-open_rc));
        log_error("topic %s: %s", s->name, ch->text);
        change_undo(s, ch);
        return;
    }
    change_leave(s, ch);
    change_end(ch, open_rc < 0 && !ch->undoing ? KERR_KAFKA_STORAGE_ERROR : ch->err, NULL);
}

void change_gone(struct topic_slot *s, struct change *ch)
{
    if (ch->kind != CHANGE_DELETE && !ch->undoing)
        return;
    change_leave(s, ch);
    change_end(ch, ch->err, NULL);
}
