/* SPDX-License-Identifier: Apache-2.0 */
/* SyncGroup: unpacks the request, lets the group's state machine judge it, packs its answer. */
#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/api/services.h"
#include "lib/base/world.h"

void sync_group_answer(void *waiter, const struct group_sync_answer *a)
{
    struct group_waiter *w = waiter;
    struct sync_group_response *rsp = arena_alloc(&w->arena, sizeof *rsp);
    struct kstr assignment = kstr_bytes(a->assignment, (size_t)a->assignment_bytes);

    wire_defaults(&wire_sync_group_response, rsp);
    rsp->error_code = (int16_t)a->err;
    rsp->protocol_type = arena_kstr(&w->arena, kstr_of(a->protocol_type));
    rsp->protocol_name = arena_kstr(&w->arena, kstr_of(a->protocol));
    rsp->assignment = arena_kstr(&w->arena, assignment);
    w->response = rsp;
    group_waiter_answer(w);
}

static void refuse(struct request *r, enum kerr err)
{
    struct sync_group_response rsp;

    wire_defaults(&wire_sync_group_response, &rsp);
    rsp.error_code = (int16_t)err;
    rsp.protocol_type = rsp.protocol_name = KSTR_NULL;
    rsp.assignment = kstr_of("");
    request_reply(r, &rsp);
}

static void sync_group(struct request *r, const struct sync_group_request *q, struct group *g)
{
    struct group_sync rq = {
        .member_id = group_text(&r->arena, q->member_id),
        .instance_id = group_text(&r->arena, q->group_instance_id),
        .generation = q->generation_id,
        .protocol_type = group_text(&r->arena, q->protocol_type),
        .protocol = group_text(&r->arena, q->protocol_name),
        .member_ids = arena_array(&r->arena, (size_t)q->n_assignments, sizeof *rq.member_ids),
        .assignments = arena_array(&r->arena, (size_t)q->n_assignments, sizeof *rq.assignments),
        .n_assignments = q->n_assignments,
    };

    for (int32_t i = 0; i < q->n_assignments; i++) {
        rq.member_ids[i] = q->assignments[i].member_id;
        rq.assignments[i] = q->assignments[i].assignment;
    }
    group_sync(g, &rq, group_waiter_new(r), world_mono_ms(r->services->world));
}

static enum kerr enter(struct request *r, const struct sync_group_request *q, struct group_lease *ret)
{
    if (r->api_version >= 5 && (q->protocol_type.n < 0 || q->protocol_name.n < 0))
        return KERR_INCONSISTENT_GROUP_PROTOCOL;
    enum kerr err = group_enter_named(r->services->coordinator, q->group_id, false, ret);
    /* The member has joined, so the group is about to be there: it shall join again, not look elsewhere. */
    return err == KERR_COORDINATOR_LOAD_IN_PROGRESS ? KERR_REBALANCE_IN_PROGRESS : err;
}

void handle_sync_group(struct request *r)
{
    const struct sync_group_request *q = r->body;
    struct group_lease l;

    enum kerr err = enter(r, q, &l);
    if (err == KERR_NONE) {
        if (l.e != NULL)
            sync_group(r, q, l.e->group);
        else
            err = KERR_UNKNOWN_MEMBER_ID;
        coordinator_leave(&l);
    }
    if (err != KERR_NONE)
        refuse(r, err);
}
