/* SPDX-License-Identifier: Apache-2.0 */
/* Heartbeat: a member lives, and learns whether its group rebalances. */
#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/api/services.h"
#include "lib/base/world.h"

static enum kerr heartbeat(struct request *r, const struct heartbeat_request *q)
{
    struct group_lease l;

    enum kerr err = group_enter_named(r->services->coordinator, q->group_id, false, &l);
    if (err == KERR_COORDINATOR_LOAD_IN_PROGRESS)
        return KERR_NONE; /* nobody can tell yet; no reason to disturb it */
    if (err != KERR_NONE)
        return err;
    err = l.e == NULL ? KERR_UNKNOWN_MEMBER_ID
                      : group_heartbeat(l.e->group, group_text(&r->arena, q->member_id),
                                        group_text(&r->arena, q->group_instance_id), q->generation_id,
                                        world_mono_ms(r->services->world));
    coordinator_leave(&l);
    return err;
}

void handle_heartbeat(struct request *r)
{
    struct heartbeat_response rsp;

    wire_defaults(&wire_heartbeat_response, &rsp);
    rsp.error_code = (int16_t)heartbeat(r, r->body);
    request_reply(r, &rsp);
}
