/* SPDX-License-Identifier: Apache-2.0 */
/* JoinGroup: unpacks the request, lets the group's state machine judge it, packs its answer. */
#include <string.h>

#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/api/services.h"
#include "lib/base/utf16.h"
#include "lib/base/world.h"

enum { UUID_TEXT_BYTES = 36 };

/* ---- the answer ---- */

static struct kstr copy(struct group_waiter *w, const char *s)
{
    return s == NULL ? KSTR_NULL : kstr_of(arena_strdup(&w->arena, s));
}

static void list_members(struct group_waiter *w, const struct group *g, const char *protocol,
                         struct join_group_response *rsp)
{
    int32_t i = 0;

    rsp->n_members = group_n_members(g);
    rsp->members = arena_array(&w->arena, (size_t)rsp->n_members, sizeof *rsp->members);
    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next) {
        const struct group_protocol *p = group_member_protocol(m, protocol);
        struct kstr metadata = p != NULL ? kstr_bytes(p->metadata, (size_t)p->metadata_bytes) : kstr_of("");
        rsp->members[i++] = (struct join_group_response_members){
            .member_id = copy(w, m->id),
            .group_instance_id = copy(w, m->instance_id),
            .metadata = arena_kstr(&w->arena, metadata),
        };
    }
}

static void fill(struct join_group_response *rsp, int16_t version, enum kerr err, struct kstr member_id)
{
    wire_defaults(&wire_join_group_response, rsp);
    rsp->error_code = (int16_t)err;
    rsp->member_id = member_id;
    rsp->leader = kstr_of("");
    rsp->protocol_type = KSTR_NULL;
    rsp->protocol_name = version >= 7 ? KSTR_NULL : kstr_of("");
}

void join_group_answer(void *waiter, const struct group_join_answer *a)
{
    struct group_waiter *w = waiter;
    struct join_group_response *rsp = arena_alloc(&w->arena, sizeof *rsp);

    fill(rsp, w->api_version, a->err, copy(w, a->member_id));
    rsp->generation_id = a->generation;
    rsp->leader = copy(w, a->leader);
    rsp->skip_assignment = a->skip_assignment;
    rsp->protocol_type = copy(w, a->protocol_type);
    if (a->protocol != NULL)
        rsp->protocol_name = copy(w, a->protocol);
    if (a->members_of != NULL)
        list_members(w, a->members_of, a->protocol, rsp);
    w->response = rsp;
    group_waiter_answer(w);
}

static void refuse(struct request *r, enum kerr err)
{
    const struct join_group_request *q = r->body;
    struct join_group_response rsp;

    fill(&rsp, r->api_version, err, q->member_id);
    request_reply(r, &rsp);
}

/* ---- the request ---- */

/* As Kafka writes it: "/127.0.0.1". */
static const char *client_host(struct request *r)
{
    const char *peer = request_peer(r), *colon = strrchr(peer, ':');

    return arena_printf(&r->arena, "/%.*s", (int)(colon != NULL ? colon - peer : (ptrdiff_t)strlen(peer)),
                        peer);
}

/* "NAME-" and a random UUID, in its usual form; of a long name what fits into a string of the protocol. */
static const char *new_member_id(struct request *r, struct kstr name)
{
    struct uuid u;

    uuid_random(r->services->world->random, &u);
    name = utf8_prefix(name, INT16_MAX - UUID_TEXT_BYTES - 1);
    const uint8_t *b = u.b;
    return arena_printf(&r->arena,
                        "%.*s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                        KSTR_FMT(name), b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
                        b[11], b[12], b[13], b[14], b[15]);
}

static void unpack(struct request *r, const struct join_group_request *q, struct group_join *rq)
{
    struct kstr name = q->group_instance_id.n >= 0 ? q->group_instance_id : r->client_id;

    *rq = (struct group_join){
        .member_id = group_text(&r->arena, q->member_id),
        .new_member_id = new_member_id(r, name),
        .instance_id = group_text(&r->arena, q->group_instance_id),
        .client_id = arena_printf(&r->arena, "%.*s", KSTR_FMT(r->client_id)),
        .client_host = client_host(r),
        .session_timeout_ms = q->session_timeout_ms,
        .rebalance_timeout_ms = r->api_version >= 1 ? MAX(q->rebalance_timeout_ms, 0) : q->session_timeout_ms,
        .protocol_type = group_text(&r->arena, q->protocol_type),
        .names = arena_array(&r->arena, (size_t)q->n_protocols, sizeof *rq->names),
        .metadata = arena_array(&r->arena, (size_t)q->n_protocols, sizeof *rq->metadata),
        .n_protocols = q->n_protocols,
        .id_required = r->api_version >= 4,
        .can_skip_assignment = r->api_version >= 9,
    };
    for (int32_t i = 0; i < q->n_protocols; i++) {
        rq->names[i] = q->protocols[i].name;
        rq->metadata[i] = q->protocols[i].metadata;
    }
}

static enum kerr join(struct request *r, const struct join_group_request *q, const struct group_lease *l)
{
    const struct broker_config *cfg = r->services->config;
    struct group_join rq;

    if (q->session_timeout_ms < cfg->group_min_session_timeout_ms ||
        q->session_timeout_ms > cfg->group_max_session_timeout_ms)
        return KERR_INVALID_SESSION_TIMEOUT;
    if (l->e == NULL)
        return KERR_UNKNOWN_MEMBER_ID;
    unpack(r, q, &rq);
    group_join(l->e->group, &rq, group_waiter_new(r), world_mono_ms(r->services->world));
    return KERR_NONE;
}

void handle_join_group(struct request *r)
{
    const struct join_group_request *q = r->body;
    struct group_lease l;

    /* Only who has no id yet can begin a group. */
    enum kerr err = group_enter_named(r->services->coordinator, q->group_id, q->member_id.n == 0, &l);
    if (err == KERR_NONE) {
        err = join(r, q, &l);
        coordinator_leave(&l);
    }
    if (err != KERR_NONE)
        refuse(r, err);
}
