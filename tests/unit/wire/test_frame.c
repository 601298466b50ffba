/* SPDX-License-Identifier: Apache-2.0 */
/* Headers byte for byte, good and bad (frame.c F1, F2). */
#include "unit.h"

#include "lib/base/attr.h"
#include "lib/wire/wire.h"

static int read_request(const char *bytes, size_t n, struct wire_request_header *h, struct slice *body)
{
    *body = (struct slice){ NULL, 99 };
    return wire_request_header_read(slice_of(bytes, n), h, body);
}

static void an_old_request_header_has_no_tags(void **state)
{
    (void)state;
    struct wire_request_header h;
    struct slice body;

    assert_int_equal(read_request("\0\3\0\1\0\0\0\7\0\2meBODY", 16, &h, &body), 0);
    assert_int_equal(h.api_key, API_METADATA);
    assert_int_equal(h.api_version, 1);
    assert_int_equal(h.correlation_id, 7);
    assert_true(kstr_eqz(h.client_id, "me"));
    assert_int_equal(body.n, 4);
    assert_memory_equal(body.p, "BODY", 4);
}

static void a_flexible_request_header_keeps_the_plain_client_id(void **state)
{
    (void)state;
    struct wire_request_header h;
    struct slice body;

    assert_int_equal(read_request("\0\3\0\x9\0\0\0\7\0\2me\0B", 14, &h, &body), 0);
    assert_true(kstr_eqz(h.client_id, "me"));
    assert_int_equal(body.n, 1);
    assert_int_equal(read_request("\0\3\0\x9\0\0\0\7\0\2me\1\x63\2xxB", 18, &h, &body), 0);
    assert_int_equal(body.n, 1);
    assert_int_equal(read_request("\0\x12\0\3\0\0\0\7\xff\xff\0B", 12, &h, &body), 0);
    assert_true(kstr_is_null(h.client_id));
    assert_int_equal(body.n, 1);
}

static void a_broken_request_header_is_refused(void **state)
{
    (void)state;
    struct wire_request_header h;
    struct slice body;

    for (size_t n = 0; n < 13; n++)
        assert_int_equal(read_request("\0\3\0\x9\0\0\0\7\0\2me\0", n, &h, &body), -EBADMSG);
    assert_int_equal(read_request("\0\3\0\1\0\0\0\7\x7f\xffxx", 12, &h, &body), -EBADMSG);
    assert_int_equal(read_request("\0\3\0\1\0\0\0\7\xff\xfexx", 12, &h, &body), -EBADMSG);
    assert_int_equal(read_request("\0\3\0\x9\0\0\0\7\0\0\1\0\xff\xff\xff\xff\x0f", 17, &h, &body), -EBADMSG);
}

static void an_unsupported_version_is_told_apart_with_its_correlation_id(void **state)
{
    (void)state;
    struct wire_request_header h;
    struct slice body;

    assert_int_equal(read_request("\0\x12\0\x63\1\2\3\4 whatever", 17, &h, &body), -EPROTONOSUPPORT);
    assert_int_equal(h.api_key, API_API_VERSIONS);
    assert_int_equal(h.api_version, 99);
    assert_int_equal(h.correlation_id, 0x01020304);
    assert_int_equal(read_request("\0\x12\xff\xff\1\2\3\4", 8, &h, &body), -EPROTONOSUPPORT);
    assert_int_equal(read_request("\x7f\xff\0\0\1\2\3\4", 8, &h, &body), -EPROTONOSUPPORT);
    assert_int_equal(h.correlation_id, 0x01020304);
}

static void a_request_header_is_written_as_it_is_read(void **state)
{
    (void)state;
    struct wire_request_header in = { API_METADATA, 9, 5, kstr_of("me") };
    struct wire_out out = { 0 };

    wire_request_header_write(&in, &out);
    wire_frame_close(&out);
    assert_int_equal(out.b.n, 17);
    assert_memory_equal(out.b.p, "\0\0\0\x0d\0\3\0\x9\0\0\0\5\0\2me\0", 17);
    wire_out_done(&out);

    in = (struct wire_request_header){ API_METADATA, 1, 5, KSTR_NULL };
    wire_request_header_write(&in, &out);
    wire_frame_close(&out);
    assert_int_equal(out.b.n, 14);
    assert_memory_equal(out.b.p, "\0\0\0\x0a\0\3\0\1\0\0\0\5\xff\xff", 14);
    wire_out_done(&out);
}

static void a_response_header_has_tags_when_flexible_except_for_api_versions(void **state)
{
    (void)state;
    static const struct {
        int16_t key, version;
        size_t n;
    } rows[] = {
        { API_METADATA, 8, 8 },     { API_METADATA, 9, 9 },     { API_API_VERSIONS, 0, 8 },
        { API_API_VERSIONS, 3, 8 }, { API_API_VERSIONS, 4, 8 }, { API_SASL_HANDSHAKE, 1, 8 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wire_out out = { 0 };
        struct slice body;
        int32_t id = 0;

        wire_response_header_write(rows[i].key, rows[i].version, 1234, &out);
        assert_int_equal(out.b.n, rows[i].n);
        bytebuf_add(&out.b, "BODY", 4);
        struct slice frame = slice_of(out.b.p + 4, out.b.n - 4);
        assert_int_equal(wire_response_header_read(rows[i].key, rows[i].version, frame, &id, &body), 0);
        assert_int_equal(id, 1234);
        assert_int_equal(body.n, 4);
        assert_int_equal(
            wire_response_header_read(rows[i].key, rows[i].version, slice_of(frame.p, 3), &id, &body),
            -EBADMSG);
        wire_out_done(&out);
    }
}

/* What Kafka answers to a version of ApiVersions that it does not know: error 35 in the form of version 0. */
static void the_answer_to_an_unknown_api_versions_version_is_version_0(void **state)
{
    (void)state;
    struct wire_out out = { 0 };
    struct api_versions_response_api_keys key = { API_API_VERSIONS, 0, 4 };
    struct api_versions_response r;

    wire_defaults(&wire_api_versions_response, &r);
    r.error_code = 35;
    r.api_keys = &key;
    r.n_api_keys = 1;
    wire_response_header_write(API_API_VERSIONS, 0, 9, &out);
    assert_int_equal(wire_encode(&wire_api_versions_response, 0, &r, &out, NULL), 0);
    wire_frame_close(&out);
    assert_int_equal(out.b.n, 20);
    assert_memory_equal(out.b.p, "\0\0\0\x10\0\0\0\x9\0\x23\0\0\0\1\0\x12\0\0\0\4", 20);
    wire_out_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_request_header_has_no_tags),
        cmocka_unit_test(a_flexible_request_header_keeps_the_plain_client_id),
        cmocka_unit_test(a_broken_request_header_is_refused),
        cmocka_unit_test(an_unsupported_version_is_told_apart_with_its_correlation_id),
        cmocka_unit_test(a_request_header_is_written_as_it_is_read),
        cmocka_unit_test(a_response_header_has_tags_when_flexible_except_for_api_versions),
        cmocka_unit_test(the_answer_to_an_unknown_api_versions_version_is_version_0),
    };
    return RUN(tests);
}
