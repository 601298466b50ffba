/* SPDX-License-Identifier: Apache-2.0 */
/* DescribeGroups: a group's state and members; what they subscribe to, while the group is stable, and what
 * they were assigned last. A group that is not there is Dead, and since version 6 an error too. */
#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/broker.h"

static struct kstr copy(struct request *r, const char *s)
{
    return s == NULL ? kstr_of("") : kstr_of(arena_strdup(&r->arena, s));
}

static struct kstr copy_bytes(struct request *r, const void *p, int32_t n)
{
    return n > 0 ? arena_kstr(&r->arena, kstr_bytes(p, (size_t)n)) : kstr_of("");
}

static void describe_member(struct request *r, const struct group *g, const struct group_member *m,
                            struct describe_groups_response_members *out)
{
    const struct group_protocol *p = g->state == GROUP_STABLE ? group_member_protocol(m, g->protocol) : NULL;

    *out = (struct describe_groups_response_members){
        .member_id = copy(r, m->id),
        .group_instance_id = m->instance_id != NULL ? copy(r, m->instance_id) : KSTR_NULL,
        .client_id = copy(r, m->client_id),
        .client_host = copy(r, m->client_host),
        .member_metadata = p != NULL ? copy_bytes(r, p->metadata, p->metadata_bytes) : kstr_of(""),
        .member_assignment = copy_bytes(r, m->assignment, m->assignment_bytes),
    };
}

static void describe_group(struct request *r, const struct group *g,
                           struct describe_groups_response_groups *out)
{
    int32_t i = 0;

    out->group_state = kstr_of(group_state_name(g->state));
    out->protocol_type = copy(r, g->protocol_type);
    out->protocol_data = copy(r, g->state == GROUP_STABLE ? g->protocol : NULL);
    out->n_members = group_n_members(g);
    out->members = arena_array(&r->arena, (size_t)out->n_members, sizeof *out->members);
    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next)
        describe_member(r, g, m, &out->members[i++]);
}

static void describe_nothing(struct request *r, struct describe_groups_response_groups *out)
{
    out->group_state = kstr_of(group_state_name(GROUP_DEAD));
    if (r->api_version < 6)
        return;
    out->error_code = KERR_GROUP_ID_NOT_FOUND;
    out->error_message = kstr_of(kerr_text(KERR_GROUP_ID_NOT_FOUND));
}

static void describe(struct request *r, struct kstr group_id, struct describe_groups_response_groups *out)
{
    const struct describe_groups_request *q = r->body;
    struct group_lease l;

    *out = (struct describe_groups_response_groups){
        .group_id = group_id,
        .error_message = KSTR_NULL,
        .group_state = kstr_of(""),
        .protocol_type = kstr_of(""),
        .protocol_data = kstr_of(""),
        .authorized_operations = INT32_MIN,
    };
    enum kerr err = coordinator_enter(r->broker->coordinator, group_id, false, &l);
    out->error_code = (int16_t)err;
    if (err != KERR_NONE)
        return;
    if (q->include_authorized_operations && (l.e != NULL || r->api_version < 6))
        out->authorized_operations = GROUP_OPERATIONS;
    if (l.e != NULL)
        describe_group(r, l.e->group, out);
    else
        describe_nothing(r, out);
    coordinator_leave(&l);
}

void handle_describe_groups(struct request *r)
{
    const struct describe_groups_request *q = r->body;
    struct describe_groups_response rsp;

    wire_defaults(&wire_describe_groups_response, &rsp);
    rsp.n_groups = q->n_groups;
    rsp.groups = arena_array(&r->arena, (size_t)q->n_groups, sizeof *rsp.groups);
    for (int32_t i = 0; i < q->n_groups; i++)
        describe(r, q->groups[i], &rsp.groups[i]);
    request_reply(r, &rsp);
}
