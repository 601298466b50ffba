/* SPDX-License-Identifier: Apache-2.0 */
/* LeaveGroup: one member (up to version 2), or several, also by the instance ids that an admin knows (3). */
#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/api/services.h"
#include "lib/base/world.h"

static enum kerr leave(struct request *r, const struct group_lease *l, struct kstr member_id,
                       struct kstr instance_id)
{
    return l->e == NULL ? KERR_UNKNOWN_MEMBER_ID
                        : group_leave(l->e->group, group_text(&r->arena, member_id),
                                      group_text(&r->arena, instance_id), world_mono_ms(r->services->world));
}

static void leave_all(struct request *r, const struct leave_group_request *q, const struct group_lease *l,
                      struct leave_group_response *rsp)
{
    rsp->n_members = q->n_members;
    rsp->members = arena_array(&r->arena, (size_t)q->n_members, sizeof *rsp->members);
    for (int32_t i = 0; i < q->n_members; i++) {
        const struct leave_group_request_members *m = &q->members[i];
        rsp->members[i] = (struct leave_group_response_members){
            .member_id = m->member_id,
            .group_instance_id = m->group_instance_id,
            .error_code = (int16_t)leave(r, l, m->member_id, m->group_instance_id),
        };
    }
}

void handle_leave_group(struct request *r)
{
    const struct leave_group_request *q = r->body;
    struct leave_group_response rsp;
    struct group_lease l;

    wire_defaults(&wire_leave_group_response, &rsp);
    rsp.error_code = (int16_t)group_enter_named(r->services->coordinator, q->group_id, false, &l);
    if (rsp.error_code == KERR_NONE) {
        if (r->api_version >= 3)
            leave_all(r, q, &l, &rsp);
        else
            rsp.error_code = (int16_t)leave(r, &l, q->member_id, KSTR_NULL);
        coordinator_leave(&l);
    }
    request_reply(r, &rsp);
}
