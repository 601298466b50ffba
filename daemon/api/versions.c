/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ApiVersions: what this broker speaks. The first request of most clients, and the only one that is
 * answered in every version there may ever be.
 */
#include <ctype.h>

#include "daemon/api/api.h"
#include "lib/base/kerr.h"
#include "lib/base/varint.h"

static size_t count_apis(void)
{
    size_t n = 0;
    while (api_at(n) != NULL)
        n++;
    return n;
}

/* KIP-511: [a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])? */
static bool software_is_valid(struct kstr s)
{
    if (s.n <= 0 || !isalnum((unsigned char)s.p[0]) || !isalnum((unsigned char)s.p[s.n - 1]))
        return false;
    for (int32_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '-' && s.p[i] != '.')
            return false;
    return true;
}

static void list_apis(struct request *r, struct api_versions_response *rsp)
{
    rsp->api_keys = arena_array(&r->arena, count_apis(), sizeof *rsp->api_keys);
    const struct api *a;
    for (size_t i = 0; (a = api_at(i)) != NULL; i++) {
        if (wire_api_find(a->key)->klog_only && !request_client_is_klog(r))
            continue;
        rsp->api_keys[rsp->n_api_keys++] = (struct api_versions_response_api_keys){
            .api_key = a->key,
            .min_version = a->min_version,
            .max_version = a->max_version,
        };
    }
}

void handle_api_versions(struct request *r)
{
    const struct api_versions_request *q = r->body;
    struct api_versions_response rsp;
    wire_defaults(&wire_api_versions_response, &rsp);
    if (r->api_version >= 3) {
        if (software_is_valid(q->client_software_name) && software_is_valid(q->client_software_version))
            request_client_software(r, q->client_software_name, q->client_software_version);
        else
            rsp.error_code = KERR_INVALID_REQUEST;
    }
    if (rsp.error_code == KERR_NONE)
        list_apis(r, &rsp);
    request_reply(r, &rsp);
}

void api_versions_unsupported(struct request *r)
{
    const struct api *self = api_find(API_API_VERSIONS);
    struct bytebuf b = { 0 };
    uint8_t *p = bytebuf_extend(&b, 12);
    put_be16(p, KERR_UNSUPPORTED_VERSION);
    put_be32(p + 2, 1);
    put_be16(p + 6, (uint16_t)self->key);
    put_be16(p + 8, (uint16_t)self->min_version);
    put_be16(p + 10, (uint16_t)self->max_version);
    request_reply_raw(r, &b);
}
