/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that do not fit into one multi. The first part makes the topic's register say that the topic, or what is added to
 * it, is unfinished; the last one takes that back, or deletes the register. Each is conditional on this
 * broker's own epoch (R2). What a crash leaves in between is never shown, and whoever sees that the writer has gone
 * clears it away (cluster_sweep.c). Meta loop.
 */
#include <string.h>

#include "daemon/meta/change.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

/* The fence, then what it fences. */
static bool has_fence(const struct change *ch)
{
    return ch->ops.n > 1 && ch->ops.ops[0].kind == REGISTER_CHECK;
}

static void insert(struct register_ops_list *l, int at, struct register_op op)
{
    ops_add(l, op.kind, (char *)(uintptr_t)op.path, NULL, op.version);
    l->ops[l->n - 1].value = op.value;
    op = l->ops[l->n - 1];
    memmove(&l->ops[at + 1], &l->ops[at], (size_t)(l->n - 1 - at) * sizeof op);
    l->ops[at] = op;
}

static struct register_op *find(struct change *ch, enum register_op_kind kind, const char *path)
{
    for (int i = 0; i < ch->ops.n; i++)
        if (ch->ops.ops[i].kind == kind && strcmp(ch->ops.ops[i].path, path) == 0)
            return &ch->ops.ops[i];
    return NULL;
}

static struct slice text_slice(char *text)
{
    return slice_of(text, strlen(text));
}

static void replace_value(struct register_op *op, char *text)
{
    free((uint8_t *)(uintptr_t)op->value.p);
    op->value = text_slice(text);
}

void change_divide(struct cluster *c, struct change *ch, const struct cluster_topic *t, int32_t from)
{
    struct topic_register whole = { .id = t != NULL ? t->id : ch->pub.topic_id,
                                    .unfinished_from = -1,
                                    .extra = t != NULL ? t->extra : NULL };
    struct topic_register part = whole;
    CLEANUP(freep) char *path = xasprintf("/brokers/topics/%s", ch->pub.topic);

    if (registers_multi_bytes(ch->ops.ops, ch->ops.n) <= c->deps.multi_max)
        return;
    KCHECK(has_fence(ch));
    part.unfinished_from = from;
    part.writer = c->deps.id;
    part.writer_be = c->broker_epoch;
    if (t == NULL)
        replace_value(find(ch, REGISTER_CREATE, path), topic_register_encode(&part));
    else
        insert(&ch->ops, 1, (struct register_op){ .kind = REGISTER_SET, .path = xstrdup(path),
                                                  .value = text_slice(topic_register_encode(&part)),
                                                  .version = t->version });
    if (ch->kind != CHANGE_DELETE)
        ops_add(&ch->ops, REGISTER_SET, xstrdup(path), topic_register_encode(&whole), t == NULL ? 0 : t->version + 1);
}

/* Ends the part before what does not fit any more. */
static int part_end(struct cluster *c, struct change *ch, int from, size_t bytes)
{
    int to = from;

    for (; to < ch->ops.n; to++) {
        bytes += registers_multi_bytes(&ch->ops.ops[to], 1);
        if (bytes > c->deps.multi_max && to > from)
            break;
    }
    return to;
}

void change_send(struct cluster *c, struct change *ch, void (*cb)(void *arg, int rc))
{
    bool fenced = has_fence(ch);
    int from = MAX(ch->sent, fenced ? 1 : 0);
    size_t bytes = fenced ? registers_multi_bytes(ch->ops.ops, 1) : 0;
    int to = part_end(c, ch, from, bytes);

    ch->part = xreallocarray(ch->part, (size_t)(to - from) + 1, sizeof *ch->part);
    ch->n_part = 0;
    if (fenced)
        ch->part[ch->n_part++] = ch->ops.ops[0];
    for (int i = from; i < to; i++)
        ch->part[ch->n_part++] = ch->ops.ops[i];
    ch->sent = to;
    registers_multi(c->deps.registers, ch->part, ch->n_part, cb, ch);
}

bool change_sent_all(const struct change *ch)
{
    return ch->sent == ch->ops.n;
}
