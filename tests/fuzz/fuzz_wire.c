/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every message as it comes from the network. Input: one byte 'q', then a request frame; or 's', api key and
 * version (two bytes each), then a response frame. What decodes must encode, decode to the same message, and
 * encode to the same bytes again.
 */
#include "tests/fuzz/fuzz.h"

#include "lib/base/arena.h"
#include "lib/base/check.h"
#include "lib/base/varint.h"
#include "lib/wire/wire.h"

static void check_round_trip(const struct wire_message *m, int version, const void *msg, struct arena *a)
{
    struct wire_out once = { 0 }, twice = { 0 };
    void *again = arena_alloc(a, wire_msg_size(m));

    KCHECK(wire_encode(m, version, msg, &once, NULL) == 0);
    KCHECK(wire_decode(m, version, slice_of(once.b.p, once.b.n), a, again) == 0);
    KCHECK(wire_equal(m, version, msg, again));
    KCHECK(wire_encode(m, version, again, &twice, NULL) == 0);
    KCHECK(once.b.n == twice.b.n && (once.b.n == 0 || memcmp(once.b.p, twice.b.p, once.b.n) == 0));
    wire_out_done(&once);
    wire_out_done(&twice);
}

static void check_body(const struct wire_message *m, int version, struct slice body)
{
    struct arena a;
    struct bytebuf json = { 0 };

    arena_init(&a);
    void *msg = arena_alloc(&a, wire_msg_size(m));
    if (wire_decode(m, version, body, &a, msg) == 0) {
        check_round_trip(m, version, msg, &a);
        wire_print_json(m, version, msg, &json);
        KCHECK(json.n >= 2 && json.p[json.n - 1] == '}');
    }
    bytebuf_done(&json);
    arena_done(&a);
}

static void check_request(struct slice frame)
{
    struct wire_request_header h;
    struct slice body;

    if (wire_request_header_read(frame, &h, &body) == 0)
        check_body(wire_api_find(h.api_key)->request, h.api_version, body);
}

static void check_response(struct slice in)
{
    if (in.n < 4)
        return;
    int16_t version = (int16_t)get_be16(in.p + 2);
    const struct wire_api *api = wire_api_find((int16_t)get_be16(in.p));
    int32_t correlation_id;
    struct slice body;

    if (api == NULL || version < api->response->min_version || version > api->response->max_version)
        return;
    if (wire_response_header_read(api->key, version, slice_of(in.p + 4, in.n - 4), &correlation_id, &body) ==
        0)
        check_body(api->response, version, body);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n > 0 && p[0] == 'q')
        check_request(slice_of(p + 1, n - 1));
    else if (n > 0 && p[0] == 's')
        check_response(slice_of(p + 1, n - 1));
    return 0;
}
