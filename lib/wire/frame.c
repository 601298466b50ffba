/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands around a message: the size of the frame and the header. Pure; any thread.
 *
 * F1. A request's client id is never compact, even where the rest of the header is flexible.
 * F2. A response to ApiVersions has no tags in its header in any version: the client reads it before it
 *     knows what the broker speaks.
 */
#include <errno.h>

#include "lib/base/check.h"
#include "lib/wire/engine.h"
#include "lib/wire/rd.h"
#include "lib/wire/wr.h"

enum { SIZE_BYTES = 4 };

static struct slice rest_of(const struct rd *r)
{
    return (struct slice){ r->p, rd_left(r) };
}

static bool request_has_tags(const struct wire_api *api, int version)
{
    return version >= api->request->flexible_version;
}

static bool response_has_tags(const struct wire_api *api, int version)
{
    return version >= api->response->flexible_version && api->key != API_API_VERSIONS;
}

static void read_client_id(struct rd *r, struct kstr *ret)
{
    int16_t n = rd_i16(r);

    if (n < -1)
        rd_fail(r);
    if (n >= 0)
        *ret = (struct kstr){ (const char *)rd_take(r, (size_t)n), r->bad ? 0 : n };
}

int wire_request_header_read(struct slice frame, struct wire_request_header *ret, struct slice *ret_body)
{
    struct rd r = rd_of(frame);

    *ret = (struct wire_request_header){ .api_key = rd_i16(&r), .client_id = KSTR_NULL };
    ret->api_version = rd_i16(&r);
    ret->correlation_id = rd_i32(&r);
    if (r.bad)
        return -EBADMSG;
    const struct wire_api *api = wire_api_find(ret->api_key);
    if (api == NULL || ret->api_version < api->request->min_version ||
        ret->api_version > api->request->max_version)
        return -EPROTONOSUPPORT;
    read_client_id(&r, &ret->client_id);
    if (request_has_tags(api, ret->api_version))
        rd_skip_tags(&r);
    if (r.bad)
        return -EBADMSG;
    *ret_body = rest_of(&r);
    return 0;
}

void wire_request_header_write(const struct wire_request_header *h, struct wire_out *out)
{
    const struct wire_api *api = wire_api_find(h->api_key);

    KCHECK(api != NULL && out->b.n == 0);
    KCHECK(h->client_id.n <= INT16_MAX);
    wr_i32(&out->b, 0);
    wr_i16(&out->b, h->api_key);
    wr_i16(&out->b, h->api_version);
    wr_i32(&out->b, h->correlation_id);
    wr_i16(&out->b, kstr_is_null(h->client_id) ? -1 : (int16_t)h->client_id.n);
    if (h->client_id.n > 0)
        wr_bytes(&out->b, h->client_id.p, (size_t)h->client_id.n);
    if (request_has_tags(api, h->api_version))
        wr_u8(&out->b, 0);
}

void wire_response_header_write(int16_t api_key, int16_t api_version, int32_t correlation_id,
                                struct wire_out *out)
{
    const struct wire_api *api = wire_api_find(api_key);

    KCHECK(api != NULL && out->b.n == 0);
    wr_i32(&out->b, 0);
    wr_i32(&out->b, correlation_id);
    if (response_has_tags(api, api_version))
        wr_u8(&out->b, 0);
}

int wire_response_header_read(int16_t api_key, int16_t api_version, struct slice frame,
                              int32_t *ret_correlation_id, struct slice *ret_body)
{
    const struct wire_api *api = wire_api_find(api_key);
    struct rd r = rd_of(frame);

    KCHECK(api != NULL);
    int32_t id = rd_i32(&r);
    if (response_has_tags(api, api_version))
        rd_skip_tags(&r);
    if (r.bad)
        return -EBADMSG;
    *ret_correlation_id = id;
    *ret_body = rest_of(&r);
    return 0;
}

void wire_frame_close(struct wire_out *out)
{
    KCHECK(out->b.n >= SIZE_BYTES);
    size_t n = out->b.n - SIZE_BYTES + out->gap_bytes;

    KCHECK(n <= INT32_MAX);
    put_be32(out->b.p, (uint32_t)n);
}
