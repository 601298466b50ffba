/* SPDX-License-Identifier: Apache-2.0 */
/* DescribeGroups: a group's state and members; what they subscribe to, while the group is stable, and what
 * they were assigned last. A group that is not there is Dead, and since version 6 an error too. A group that is named
 * twice is answered twice, as in Kafka, until the answer is full. On the session's loop, or when it is long on a worker. */
#include <string.h>

#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/api/services.h"
#include "lib/base/attr.h"

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

static size_t text_bytes(const char *s)
{
    return s != NULL ? strlen(s) + 1 : 0;
}

/* What describe_group will take, or a little more. */
static size_t group_answer_bytes(const struct group *g)
{
    size_t n = text_bytes(g->protocol_type) + text_bytes(g->protocol);

    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next) {
        const struct group_protocol *p = g->state == GROUP_STABLE ? group_member_protocol(m, g->protocol) : NULL;
        n += sizeof(struct describe_groups_response_members) + 6 * 16 + text_bytes(m->id) +
             text_bytes(m->instance_id) + text_bytes(m->client_id) + text_bytes(m->client_host) +
             (size_t)(p != NULL ? p->metadata_bytes : 0) + (size_t)m->assignment_bytes;
    }
    return n;
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
    enum kerr err = coordinator_enter(r->services->coordinator, group_id, false, &l);
    out->error_code = (int16_t)err;
    if (err != KERR_NONE)
        return;
    if (l.e != NULL && !request_answer_room(r, group_answer_bytes(l.e->group))) {
        coordinator_leave(&l);
        out->error_code = KERR_INVALID_REQUEST;
        out->error_message = kstr_of(GROUP_ANSWER_TOO_LARGE);
        return;
    }
    if (q->include_authorized_operations && (l.e != NULL || r->api_version < 6))
        out->authorized_operations = GROUP_OPERATIONS;
    if (l.e != NULL)
        describe_group(r, l.e->group, out);
    else
        describe_nothing(r, out);
    coordinator_leave(&l);
}

static const void *answer(struct request *r, const char **ret_why)
{
    const struct describe_groups_request *q = r->body;
    struct describe_groups_response *rsp = arena_alloc(&r->arena, sizeof *rsp);
    size_t least = 0; /* when each is only named, and refused */

    for (int32_t i = 0; i < q->n_groups; i++)
        least += sizeof GROUP_ANSWER_TOO_LARGE + 40 + (size_t)q->groups[i].n;
    if (!request_answer_room(r, least)) {
        *ret_why = GROUP_ANSWER_TOO_LARGE;
        return NULL;
    }
    wire_defaults(&wire_describe_groups_response, rsp);
    rsp->n_groups = q->n_groups;
    rsp->groups = arena_array(&r->arena, (size_t)q->n_groups, sizeof *rsp->groups);
    for (int32_t i = 0; i < q->n_groups; i++)
        describe(r, q->groups[i], &rsp->groups[i]);
    return rsp;
}

static bool is_long(struct request *r)
{
    const struct describe_groups_request *q = r->body;
    size_t n = 0;

    for (int32_t i = 0; i < MIN(q->n_groups, GROUP_ON_LOOP_NAMES); i++) {
        struct group_lease l;
        if (coordinator_enter(r->services->coordinator, q->groups[i], false, &l) != KERR_NONE)
            continue;
        n += l.e != NULL ? group_answer_bytes(l.e->group) : 0;
        coordinator_leave(&l);
    }
    return q->n_groups > GROUP_ON_LOOP_NAMES || n > GROUP_ON_LOOP_BYTES;
}

void handle_describe_groups(struct request *r)
{
    request_answer(r, is_long(r), GROUP_ON_LOOP_BYTES, answer);
}
