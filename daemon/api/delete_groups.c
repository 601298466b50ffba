/* SPDX-License-Identifier: Apache-2.0 */
/* DeleteGroups: groups without members, with all their positions. One answer when the last is gone from the
 * log. A group that is named twice is deleted and answered once. */
#include <stdatomic.h>

#include <uthash.h>

#include "daemon/api/admin.h"
#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/api/services.h"

struct delete_groups { /* in the waiter's arena */
    struct group_waiter *w;
    struct delete_groups_response rsp;
    atomic_int n_left; /* groups under way, and one for the handler: shards end on threads of their own */
};
struct delete_one {
    struct delete_groups *all;
    int16_t *code;
};

struct name { /* of a group that the request has named */
    UT_hash_handle hh;
};

static void one_less(struct delete_groups *d)
{
    if (atomic_fetch_sub(&d->n_left, 1) == 1)
        group_waiter_answer(d->w);
}

static void on_deleted(void *arg, struct group_entry *e, enum kerr err, int64_t base_offset)
{
    struct delete_one *one = arg;

    (void)e;
    (void)base_offset;
    *one->code = (int16_t)err;
    one_less(one->all);
}

static enum kerr begin(const struct group_lease *l, struct delete_groups *d, int16_t *code)
{
    if (l->e == NULL)
        return KERR_GROUP_ID_NOT_FOUND;
    if (l->e->group->state != GROUP_EMPTY || l->e->group->pending != NULL)
        return KERR_NON_EMPTY_GROUP;
    struct delete_one *one = arena_alloc(&d->w->arena, sizeof *one);
    one->all = d;
    one->code = code;
    atomic_fetch_add(&d->n_left, 1);
    group_delete(l->e, on_deleted, one);
    return KERR_NONE;
}

static void delete_group(struct request *r, struct delete_groups *d, struct kstr group_id,
                         struct delete_groups_response_results *out)
{
    struct group_lease l;

    out->group_id = arena_kstr(&d->w->arena, group_id);
    enum kerr err = coordinator_enter(r->services->coordinator, group_id, false, &l);
    if (err == KERR_NONE) {
        err = begin(&l, d, &out->error_code);
        if (err != KERR_NONE)
            out->error_code = (int16_t)err;
        coordinator_leave(&l);
    } else {
        out->error_code = (int16_t)err;
    }
}

static bool is_repeated(struct arena *a, struct name **seen, struct kstr id)
{
    struct name *one = NULL;

    HASH_FIND(hh, *seen, id.p, (unsigned)id.n, one);
    if (one != NULL)
        return true;
    one = arena_alloc(a, sizeof *one);
    HASH_ADD_KEYPTR(hh, *seen, id.p, (unsigned)id.n, one);
    return false;
}

void handle_delete_groups(struct request *r)
{
    const struct delete_groups_request *q = r->body;
    if (admin_refuses(r, q->n_groups_names))
        return;
    struct group_waiter *w = group_waiter_new(r);
    struct delete_groups *d = arena_alloc(&w->arena, sizeof *d);
    struct name *seen = NULL;

    d->w = w;
    atomic_init(&d->n_left, 1);
    wire_defaults(&wire_delete_groups_response, &d->rsp);
    d->rsp.results = arena_array(&w->arena, (size_t)q->n_groups_names, sizeof *d->rsp.results);
    w->response = &d->rsp;
    for (int32_t i = 0; i < q->n_groups_names; i++)
        if (!is_repeated(&r->arena, &seen, q->groups_names[i]))
            delete_group(r, d, q->groups_names[i], &d->rsp.results[d->rsp.n_results++]);
    HASH_CLEAR(hh, seen);
    one_less(d);
}
