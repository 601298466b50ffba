/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See admin.h. On the session's loop, all of it: the cluster answers each change with a task on that loop.
 *
 * A struct admin lives while changes are out that point to it (n_refs), longer than its request, which is freed by
 * the one answer: when every item has its result, when time is up, or when the broker stops. What ends after that
 * finds `answered` and is dropped; the change itself goes on. n_left counts one for admin_begin(), so that no item
 * can answer before admin_wait() says that all have been given.
 */
#include "daemon/api/admin.h"

#include <string.h>

#include "daemon/api/services.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

struct admin_item {
    struct admin *admin;
    int32_t i;
};

static void admin_unref(struct admin *a)
{
    if (--a->n_refs > 0)
        return;
    free(a->done);
    free(a);
}

bool admin_refuses(struct request *r, int32_t n)
{
    if (n <= ADMIN_ITEMS_MAX)
        return false;
    request_close(r, "the request names more than 10000 things at once");
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const struct kstr *x = *(const struct kstr *const *)a, *y = *(const struct kstr *const *)b;

    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    int by_text = x->n <= 0 ? 0 : memcmp(x->p, y->p, (size_t)x->n);
    return by_text != 0 ? by_text : (x > y) - (x < y);
}

/* Equal ones stand together, in the order they came. */
static const struct kstr **sort_names(struct arena *a, const struct kstr *names, int32_t n)
{
    const struct kstr **sorted = arena_array(a, (size_t)n + 1, sizeof(*sorted));

    for (int32_t i = 0; i < n; i++)
        sorted[i] = &names[i];
    qsort(sorted, (size_t)MAX(n, 0), sizeof(*sorted), compare_names);
    return sorted;
}

const bool *admin_duplicates(struct arena *a, const struct kstr *names, int32_t n)
{
    bool *ret = arena_array(a, (size_t)n + 1, sizeof *ret);
    const struct kstr **sorted = sort_names(a, names, n);

    for (int32_t i = 1; i < n; i++)
        if (kstr_eq(*sorted[i - 1], *sorted[i]))
            ret[sorted[i - 1] - names] = ret[sorted[i] - names] = true;
    return ret;
}

const bool *admin_repeated(struct arena *a, const struct kstr *names, int32_t n)
{
    bool *ret = arena_array(a, (size_t)n + 1, sizeof *ret);
    const struct kstr **sorted = sort_names(a, names, n);

    for (int32_t i = 1; i < n; i++)
        ret[sorted[i] - names] = kstr_eq(*sorted[i - 1], *sorted[i]);
    return ret;
}

struct admin *admin_begin(struct request *r, const struct admin_ops *ops, void *rsp, int32_t n)
{
    struct admin *a = xcalloc(1, sizeof *a);

    a->r = r;
    a->ops = ops;
    a->rsp = rsp;
    a->n = n;
    a->n_left = n + 1;
    a->n_refs = 1;
    a->done = xcalloc((size_t)n + 1, sizeof *a->done);
    return a;
}

static void answer(struct admin *a)
{
    KCHECK(!a->answered);
    a->answered = true;
    timer_clear(a->r->loop, &a->timer);
    a->r->finish = NULL;
    a->ops->reply(a);
    a->r = NULL; /* freed by the reply */
}

static void item_end(struct admin *a, int32_t i, enum kerr err, const char *text,
                     const struct cluster_change *ch)
{
    if (a->answered)
        return;
    KCHECK(!a->done[i]);
    a->done[i] = true;
    a->ops->result(a, i, err, text, ch);
    if (--a->n_left == 0)
        answer(a);
}

void admin_fail(struct admin *a, int32_t i, enum kerr err, const char *text)
{
    item_end(a, i, err, text, NULL);
}

static void change_ended(struct cluster_change *ch, enum kerr err, const char *text)
{
    struct admin_item *item = ch->user;

    item_end(item->admin, item->i, err, text, ch);
    admin_unref(item->admin);
    free(item);
}

void admin_change(struct admin *a, int32_t i, struct cluster_change *ch,
                  void (*start)(struct cluster *, struct cluster_change *))
{
    struct admin_item *item = xcalloc(1, sizeof *item);

    item->admin = a;
    item->i = i;
    a->n_refs++;
    ch->loop = a->r->loop;
    ch->cb = change_ended;
    ch->user = item;
    start(a->r->services->cluster, ch);
}

/* The changes go on; only nobody waits for them any more. */
static void give_up(struct admin *a)
{
    for (int32_t i = 0; i < a->n; i++)
        if (!a->done[i])
            a->ops->result(a, i, KERR_REQUEST_TIMED_OUT,
                           "the change goes on, but took longer than the request allows", NULL);
    answer(a);
}

static void time_out(struct timer *t)
{
    give_up(container_of(t, struct admin, timer));
}

static void finish_now(struct request *r)
{
    give_up(r->op);
}

void admin_wait(struct admin *a, int32_t timeout_ms)
{
    if (--a->n_left == 0) {
        answer(a);
    } else {
        a->timer.cb = time_out;
        timer_set_in(a->r->loop, &a->timer, timeout_ms);
        a->r->op = a;
        a->r->finish = finish_now;
    }
    admin_unref(a);
}

struct kstr admin_text(struct admin *a, enum kerr err, const char *text)
{
    if (err == KERR_NONE)
        return KSTR_NULL;
    return kstr_of(arena_strdup(&a->r->arena, text != NULL ? text : kerr_text(err)));
}
