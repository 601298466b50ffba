/* SPDX-License-Identifier: Apache-2.0 */
/* See register_batch.h. A multi under way is a struct sent; it owns nothing but its own list of operations. */
#include "daemon/meta/register_batch.h"

#include <errno.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

enum { BATCH_BYTES_MAX = REGISTERS_MULTI_MAX / 4, TRIES_TOGETHER = 2 };

/* Operations of several requests; each knows where its own have gone. A condition that several have is there once. */
struct sent {
    struct register_batch *batch;
    struct register_op *ops;
    int n_ops, cap;
    size_t bytes;
    struct register_request *of[REGISTER_BATCH_MAX];
    int *at[REGISTER_BATCH_MAX]; /* of each of the request's operations, index in ops */
    int n;
};

static void sent_free(struct sent *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->at[i]);
    free(s->ops);
    free(s);
}

/* Two operations on one register do not go together unless they are the same condition. -1: it is not there; -2: it clashes. */
static int find_op(const struct sent *s, const struct register_op *op)
{
    for (int i = 0; i < s->n_ops; i++) {
        const struct register_op *o = &s->ops[i];
        if (strcmp(o->path, op->path) != 0)
            continue;
        return o->kind == REGISTER_CHECK && op->kind == REGISTER_CHECK && o->version == op->version ? i : -2;
    }
    return -1;
}

static bool fits(const struct sent *s, const struct register_request *q)
{
    if (s->n == 0)
        return true;
    if (s->n == REGISTER_BATCH_MAX || q->tries >= TRIES_TOGETHER || s->of[0]->tries >= TRIES_TOGETHER ||
        s->bytes + registers_multi_bytes(q->ops, q->n) > BATCH_BYTES_MAX)
        return false;
    for (int i = 0; i < q->n; i++)
        if (find_op(s, &q->ops[i]) == -2)
            return false;
    return true;
}

static void put(struct sent *s, struct register_request *q)
{
    int *at = xcalloc((size_t)q->n, sizeof *at);
    int n_before = s->n_ops;

    for (int i = 0; i < q->n; i++) {
        at[i] = n_before == 0 ? -1 : find_op(s, &q->ops[i]); /* alone it goes as it is, whatever it is */
        if (at[i] >= 0)
            continue;
        if (s->n_ops == s->cap) {
            s->cap = s->cap == 0 ? 16 : 2 * s->cap;
            s->ops = xreallocarray(s->ops, (size_t)s->cap, sizeof *s->ops);
        }
        at[i] = s->n_ops;
        s->ops[s->n_ops++] = q->ops[i];
    }
    s->bytes += registers_multi_bytes(q->ops, q->n);
    s->of[s->n] = q;
    s->at[s->n++] = at;
}

/* The operation that failed the whole: index in ops; -1: it is not known, or there is none. */
static int culprit(const struct sent *s)
{
    int ret = -1;

    for (int i = 0; i < s->n_ops; i++) {
        if (s->ops[i].rc == 0 || s->ops[i].rc == -ECANCELED)
            continue;
        if (ret >= 0)
            return -1;
        ret = i;
    }
    return ret;
}

static bool has_op(const struct sent *s, int i, int op)
{
    for (int k = 0; k < s->of[i]->n; k++)
        if (s->at[i][k] == op)
            return true;
    return false;
}

static void answer(const struct sent *s, int i, int rc)
{
    struct register_request *q = s->of[i];

    for (int k = 0; k < q->n; k++) {
        q->ops[k].rc = s->ops[s->at[i][k]].rc;
        q->ops[k].new_version = s->ops[s->at[i][k]].new_version;
    }
    q->cb(q->arg, rc);
}

static void on_answer(void *arg, int rc)
{
    struct sent *s = arg;
    struct register_batch *b = s->batch;
    bool is_final = s->n == 1 || rc == 0 || rc == -EREMOTEIO; /* of what may have happened nothing is sent twice (R3) */
    int blame = is_final ? -1 : culprit(s);

    for (int i = 0; i < s->n; i++) {
        struct register_request *q = s->of[i];
        if (is_final || (blame >= 0 && has_op(s, i, blame))) {
            answer(s, i, rc);
            continue;
        }
        q->tries = blame < 0 ? TRIES_TOGETHER : q->tries + 1;
        register_batch_add(b, q);
    }
    sent_free(s);
}

static void flush(struct task *t)
{
    struct register_batch *b = container_of(t, struct register_batch, flush);
    struct register_request *q;

    while (!TAILQ_EMPTY(&b->waiting)) {
        struct sent *s = xcalloc(1, sizeof *s);
        s->batch = b;
        while ((q = TAILQ_FIRST(&b->waiting)) != NULL && fits(s, q)) {
            TAILQ_REMOVE(&b->waiting, q, link);
            put(s, q);
        }
        registers_multi(b->registers, s->ops, s->n_ops, on_answer, s);
    }
}

void register_batch_init(struct register_batch *b, struct registers *r, struct loop *lp)
{
    *b = (struct register_batch){ .registers = r, .loop = lp, .flush.cb = flush };
    TAILQ_INIT(&b->waiting);
}

void register_batch_done(struct register_batch *b)
{
    KCHECK(TAILQ_EMPTY(&b->waiting));
    loop_cancel(b->loop, &b->flush);
}

void register_batch_add(struct register_batch *b, struct register_request *q)
{
    TAILQ_INSERT_TAIL(&b->waiting, q, link);
    loop_post(b->loop, &b->flush);
}
