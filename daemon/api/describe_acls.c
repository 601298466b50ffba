/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DescribeAcls, DescribeClientQuotas, DescribeUserScramCredentials: what a cluster without an authorizer, without quotas
 * and without SCRAM users says of them; there is no request that makes any. On the session's loop.
 */
#include <stdlib.h>

#include "daemon/api/api.h"
#include "lib/base/kerr.h"

void handle_describe_acls(struct request *r)
{
    struct describe_acls_response rsp;

    wire_defaults(&wire_describe_acls_response, &rsp);
    rsp.error_code = KERR_SECURITY_DISABLED;
    rsp.error_message = kstr_of("this broker has no authorizer: everybody may do everything");
    request_reply(r, &rsp);
}

/* ---- quotas ---- */
enum match { MATCH_EXACT, MATCH_DEFAULT, MATCH_ANY };
enum { USER = 1, CLIENT_ID = 2, IP = 4 };

static int entity_bit(struct kstr type)
{
    return kstr_eqz(type, "user") ? USER : kstr_eqz(type, "client-id") ? CLIENT_ID : kstr_eqz(type, "ip") ? IP : 0;
}

static enum kerr component_check(const struct describe_client_quotas_request_components *c, int seen, const char **ret)
{
    *ret = "the entity type is none of user, client-id, ip";
    if (c->entity_type.n > 0 && entity_bit(c->entity_type) == 0)
        return KERR_UNSUPPORTED_VERSION;
    if (c->entity_type.n == 0)
        *ret = "the entity type is empty";
    else if (seen & entity_bit(c->entity_type))
        *ret = "an entity type is named twice";
    else if (c->match_type < MATCH_EXACT || c->match_type > MATCH_ANY)
        *ret = "the match type is none of 0 (exact), 1 (default), 2 (any)";
    else if (c->match_type == MATCH_EXACT && kstr_is_null(c->match))
        *ret = "an exact match (0) without what is to be matched";
    else if (c->match_type != MATCH_EXACT && !kstr_is_null(c->match))
        *ret = "only an exact match (0) has something to match";
    else
        return KERR_NONE;
    return KERR_INVALID_REQUEST;
}

static enum kerr filter_check(const struct describe_client_quotas_request *q, const char **ret)
{
    int seen = 0;

    for (int32_t i = 0; i < q->n_components; i++) {
        enum kerr err = component_check(&q->components[i], seen, ret);
        if (err != KERR_NONE)
            return err;
        seen |= entity_bit(q->components[i].entity_type);
    }
    *ret = "ip goes with neither user nor client-id";
    return (seen & IP) && seen != IP ? KERR_INVALID_REQUEST : KERR_NONE;
}

void handle_describe_client_quotas(struct request *r)
{
    struct describe_client_quotas_response rsp;
    const char *why;
    enum kerr err = filter_check(r->body, &why);

    wire_defaults(&wire_describe_client_quotas_response, &rsp);
    rsp.error_code = (int16_t)err;
    rsp.error_message = kstr_of(err == KERR_NONE ? "" : why);
    rsp.n_entries = err == KERR_NONE ? 0 : -1;
    request_reply(r, &rsp);
}

/* ---- SCRAM ---- */
static int compare_names(const void *a, const void *b)
{
    return kstr_cmp(*(const struct kstr *)a, *(const struct kstr *)b);
}

void handle_describe_user_scram_credentials(struct request *r)
{
    const struct describe_user_scram_credentials_request *q = r->body;
    struct describe_user_scram_credentials_response rsp;
    size_t n = (size_t)MAX(q->n_users, 0);
    struct kstr *names = arena_array(&r->arena, n, sizeof *names);

    for (size_t i = 0; i < n; i++)
        names[i] = q->users[i].name;
    qsort(names, n, sizeof *names, compare_names);
    wire_defaults(&wire_describe_user_scram_credentials_response, &rsp);
    rsp.error_message = kstr_of("");
    rsp.results = arena_array(&r->arena, n, sizeof *rsp.results);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && kstr_cmp(names[i], names[end]) == 0;)
            end++;
        rsp.results[rsp.n_results++] = (struct describe_user_scram_credentials_response_results){
            .user = names[i],
            .error_code = end - i > 1 ? KERR_DUPLICATE_RESOURCE : KERR_RESOURCE_NOT_FOUND,
            .error_message = kstr_of(end - i > 1 ? "the user is named twice" : "there is no such SCRAM user"),
        };
    }
    request_reply(r, &rsp);
}
