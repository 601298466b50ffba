/* SPDX-License-Identifier: Apache-2.0 */
/* The engine over every message in every version, and its rules one by one (decode.c D1-D4, encode.c E1-E3).
 */
#include "unit.h"

#include "lib/base/arena.h"
#include "lib/base/varint.h"
#include "lib/wire/wire.h"
#include "lib/wire/wr.h"

enum { SEEDS = 40 };

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

/* A copy that ends where its memory ends, so that a sanitizer sees any read past it. */
static struct slice exact_copy(const void *p, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    assert_non_null(copy);
    if (n > 0)
        memcpy(copy, p, n);
    return (struct slice){ copy, n };
}

static int decode_exact(const struct wire_message *m, int version, const void *p, size_t n, void *ret)
{
    struct slice in = exact_copy(p, n);
    int rc = wire_decode(m, version, in, &arena, ret);

    free((void *)(uintptr_t)in.p);
    return rc;
}

typedef void visitor(const struct wire_message *m, int version);

static void each_version(const struct wire_message *m, visitor *visit)
{
    for (int v = m->min_version; v <= m->max_version; v++)
        visit(m, v);
}

static void each_message(visitor *visit)
{
    static const struct wire_message *const in_records[] = {
        &wire_consumer_protocol_subscription,
        &wire_consumer_protocol_assignment,
        &wire_offset_commit_key,
        &wire_offset_commit_value,
        &wire_group_metadata_key,
        &wire_group_metadata_value,
    };
    const struct wire_api *api;

    for (size_t i = 0; (api = wire_api_at(i)) != NULL; i++) {
        each_version(api->request, visit);
        each_version(api->response, visit);
    }
    for (size_t i = 0; i < ARRAY_LEN(in_records); i++)
        each_version(in_records[i], visit);
}

static void *new_message(const struct wire_message *m)
{
    return arena_alloc(&arena, wire_msg_size(m));
}

static void round_trip(const struct wire_message *m, int version)
{
    for (uint64_t i = 0; i < SEEDS; i++) {
        uint64_t seed = i * 1000 + (uint64_t)version;
        struct wire_out out = { 0 }, again = { 0 };
        void *made = new_message(m), *read = new_message(m);

        wire_random(m, version, &seed, &arena, made);
        const char *field = "";
        if (wire_encode(m, version, made, &out, &field) != 0)
            fail_msg("%s v%d: %s was refused", m->name, version, field);
        if (wire_decode(m, version, slice_of(out.b.p, out.b.n), &arena, read) != 0)
            fail_msg("%s v%d, seed %d: not decoded", m->name, version, (int)i);
        if (!wire_equal(m, version, made, read))
            fail_msg("%s v%d, seed %d: came back different", m->name, version, (int)i);
        assert_int_equal(wire_encode(m, version, read, &again, NULL), 0);
        assert_int_equal(again.b.n, out.b.n);
        assert_memory_equal(again.b.p, out.b.p, out.b.n);
        wire_out_done(&out);
        wire_out_done(&again);
        arena_done(&arena);
    }
}

static void every_message_comes_back_as_it_was_sent(void **state)
{
    (void)state;
    each_message(round_trip);
}

static void cut_short(const struct wire_message *m, int version)
{
    for (uint64_t seed = 0; seed < 3; seed++) {
        uint64_t s = seed;
        struct wire_out out = { 0 };
        void *made = new_message(m), *read = new_message(m);

        wire_random(m, version, &s, &arena, made);
        assert_int_equal(wire_encode(m, version, made, &out, NULL), 0);
        for (size_t n = 0; n < out.b.n; n++)
            if (decode_exact(m, version, out.b.p, n, read) != -EBADMSG)
                fail_msg("%s v%d: %zu of %zu bytes were taken", m->name, version, n, out.b.n);
        bytebuf_add(&out.b, "", 1);
        assert_int_equal(decode_exact(m, version, out.b.p, out.b.n, read), -EBADMSG);
        wire_out_done(&out);
        arena_done(&arena);
    }
}

static void a_message_cut_at_any_byte_or_too_long_is_refused(void **state)
{
    (void)state;
    each_message(cut_short);
}

static void print_random(const struct wire_message *m, int version)
{
    struct bytebuf b = { 0 };
    uint64_t seed = 7;
    void *made = new_message(m);

    wire_random(m, version, &seed, &arena, made);
    wire_print_json(m, version, made, &b);
    assert_true(b.n >= 2 && b.p[0] == '{' && b.p[b.n - 1] == '}');
    for (size_t i = 0; i < b.n; i++)
        assert_true(b.p[i] >= 0x20);
    bytebuf_done(&b);
}

/* As librdkafka 2.15 asks for all topics: an array count of four bytes where one is due. */
static void what_a_client_sent_may_be_too_long(void **state)
{
    (void)state;
    static const uint8_t bytes[] = { 0, 0, 0, 0, 1, 0, 0 };
    struct metadata_request q;
    struct arena a;

    arena_init(&a);
    assert_int_equal(wire_decode(&wire_metadata_request, 12, slice_of(bytes, sizeof bytes), &a, &q),
                     -EBADMSG);
    assert_int_equal(wire_decode_request(&wire_metadata_request, 12, slice_of(bytes, sizeof bytes), &a, &q),
                     0);
    assert_int_equal(q.n_topics, -1);
    for (size_t n = 0; n < 4; n++)
        assert_int_equal(wire_decode_request(&wire_metadata_request, 12, slice_of(bytes, n), &a, &q),
                         -EBADMSG);
    arena_done(&a);
}

static void every_message_prints_as_one_line(void **state)
{
    (void)state;
    each_message(print_random);
}

/* Counts and lengths that the bytes cannot hold. `at` is where the message of zero bytes is made wrong. */
static void a_count_larger_than_the_bytes_left_reserves_nothing(void **state)
{
    (void)state;
    static const struct {
        const struct wire_message *m;
        int version;
        size_t n;
        uint8_t bytes[16];
    } bombs[] = {
        { &wire_metadata_request, 1, 4, { 0x7f, 0xff, 0xff, 0xff } },
        { &wire_metadata_request, 1, 4, { 0xff, 0xff, 0xff, 0xfe } },
        { &wire_metadata_request, 1, 6, { 0x00, 0x00, 0x00, 0x02, 0x00, 0x00 } },
        { &wire_metadata_request, 9, 5, { 0xff, 0xff, 0xff, 0xff, 0x0f } },
        { &wire_api_versions_request, 3, 5, { 0xff, 0xff, 0xff, 0xff, 0x0f } },
        { &wire_produce_request, 3, 12, { 0xff, 0xff, 0, 1, 0, 0, 0, 0, 0x40, 0, 0, 0 } },
        { &wire_fetch_response, 4, 8, { 0, 0, 0, 0, 0x10, 0, 0, 0 } },
        { &wire_describe_groups_request, 0, 4, { 0x3f, 0xff, 0xff, 0xff } },
    };

    for (size_t i = 0; i < ARRAY_LEN(bombs); i++) {
        void *ret = new_message(bombs[i].m);
        size_t used = arena.used_bytes;
        assert_int_equal(decode_exact(bombs[i].m, bombs[i].version, bombs[i].bytes, bombs[i].n, ret),
                         -EBADMSG);
        assert_int_equal(arena.used_bytes, used);
    }
}

static void a_large_message_of_small_elements_takes_bounded_memory(void **state)
{
    (void)state;
    enum { TOPICS = 20 << 20 }; /* 2 bytes each on the wire, some 50 in memory */
    struct bytebuf b = { 0 };
    struct metadata_request ret;

    put_be32(bytebuf_extend(&b, 4), TOPICS);
    memset(bytebuf_extend(&b, 2 * (size_t)TOPICS), 0, 2 * (size_t)TOPICS);
    assert_int_equal(wire_decode(&wire_metadata_request, 1, slice_of(b.p, b.n), &arena, &ret), -EMSGSIZE);
    assert_int_equal(arena.used_bytes, 0);
    bytebuf_done(&b);
}

static void null_is_refused_where_the_version_does_not_allow_it(void **state)
{
    (void)state;
    struct metadata_request md;
    struct heartbeat_request hb;

    assert_int_equal(decode_exact(&wire_metadata_request, 0, "\xff\xff\xff\xff", 4, &md), -EBADMSG);
    assert_int_equal(decode_exact(&wire_metadata_request, 1, "\xff\xff\xff\xff", 4, &md), 0);
    assert_int_equal(md.n_topics, -1);
    assert_int_equal(decode_exact(&wire_heartbeat_request, 0, "\xff\xff\0\0\0\1\0\0", 8, &hb), -EBADMSG);
    assert_int_equal(decode_exact(&wire_heartbeat_request, 0, "\0\0\0\0\0\1\0\0", 8, &hb), 0);
    assert_int_equal(decode_exact(&wire_heartbeat_request, 0, "\xff\xfe\0\0\0\1\0\0", 8, &hb), -EBADMSG);
}

static void a_field_outside_the_version_reads_as_its_default(void **state)
{
    (void)state;
    struct metadata_request md;
    struct fetch_response fr;

    memset(&md, 0xaa, sizeof md);
    assert_int_equal(decode_exact(&wire_metadata_request, 1, "\0\0\0\0", 4, &md), 0);
    assert_true(md.allow_auto_topic_creation);
    assert_false(md.include_topic_authorized_operations);
    assert_int_equal(md.n_topics, 0);

    static const uint8_t one_partition[] = "\0\0\0\0"
                                           "\0\0\0\1"
                                           "\0\1x"
                                           "\0\0\0\1"
                                           "\0\0\0\0"
                                           "\0\0"
                                           "\0\0\0\0\0\0\0\5"
                                           "\0\0\0\0\0\0\0\5"
                                           "\xff\xff\xff\xff"
                                           "\0\0\0";
    assert_int_equal(decode_exact(&wire_fetch_response, 4, one_partition, sizeof one_partition, &fr), 0);
    const struct fetch_response_partitions *p = fr.responses[0].partitions;
    assert_int_equal(p->log_start_offset, -1);
    assert_int_equal(p->preferred_read_replica, -1);
    assert_int_equal(p->diverging_epoch.end_offset, -1);
    assert_int_equal(p->n_aborted_transactions, -1);
    assert_int_equal(p->records.n, 0);
}

static void encoding_refuses_what_the_version_cannot_carry(void **state)
{
    (void)state;
    struct wire_out out = { 0 };
    struct produce_request pr;
    struct delete_topics_request dt;
    const char *field = NULL;

    bytebuf_add(&out.b, "kept", 4);
    wire_defaults(&wire_produce_request, &pr);
    pr.transactional_id = kstr_of("tx");
    assert_int_equal(wire_encode(&wire_produce_request, 2, &pr, &out, &field), -EPROTO);
    assert_string_equal(field, "transactional_id");
    assert_int_equal(out.b.n, 4);
    assert_int_equal(wire_encode(&wire_produce_request, 3, &pr, &out, &field), 0);
    assert_int_equal(out.b.n, 4 + 2 + 2 + 2 + 4 + 4);

    wire_defaults(&wire_delete_topics_request, &dt);
    struct delete_topics_request_topics topic = { .name = kstr_of("x") };
    dt.topics = &topic;
    dt.n_topics = 1;
    assert_int_equal(wire_encode(&wire_delete_topics_request, 5, &dt, &out, &field), -EPROTO);
    assert_string_equal(field, "topics");
    wire_out_done(&out);
}

static void encoding_stops_at_the_limit_of_the_output(void **state)
{
    (void)state;
    enum { NAME_BYTES = 1000, N = 100 };
    static char name[NAME_BYTES];
    struct delete_topics_response_responses topics[N];
    struct delete_topics_response rsp;
    const char *field = NULL;

    memset(name, 'n', sizeof name);
    wire_defaults(&wire_delete_topics_response, &rsp);
    rsp.responses = topics;
    rsp.n_responses = N;
    for (int i = 0; i < N; i++)
        topics[i] = (struct delete_topics_response_responses){ .name = kstr_bytes(name, NAME_BYTES),
                                                               .error_message = KSTR_NULL };
    struct wire_out whole = { 0 };
    assert_int_equal(wire_encode(&wire_delete_topics_response, 1, &rsp, &whole, &field), 0);
    assert_int_equal(whole.b.n, 4 + 4 + N * (2 + NAME_BYTES + 2));

    struct wire_out fits = { .max_bytes = whole.b.n }, small = { .max_bytes = whole.b.n / 2 };
    assert_int_equal(wire_encode(&wire_delete_topics_response, 1, &rsp, &fits, &field), 0);
    bytebuf_add(&small.b, "kept", 4);
    assert_int_equal(wire_encode(&wire_delete_topics_response, 1, &rsp, &small, &field), -EMSGSIZE);
    assert_int_equal(small.b.n, 4);
    assert_true(small.b.cap < whole.b.n);
    wire_out_done(&whole);
    wire_out_done(&fits);
    wire_out_done(&small);
}

static void encoding_drops_ignorable_fields(void **state)
{
    (void)state;
    struct wire_out out = { 0 };
    struct heartbeat_response hb = { .throttle_time_ms = 9, .error_code = 27 };

    assert_int_equal(wire_encode(&wire_heartbeat_response, 0, &hb, &out, NULL), 0);
    assert_int_equal(out.b.n, 2);
    assert_memory_equal(out.b.p, "\0\x1b", 2);
    wire_out_done(&out);
}

static void encoding_refuses_null_and_a_string_too_long_for_its_length(void **state)
{
    (void)state;
    struct wire_out out = { 0 };
    struct heartbeat_request hb;
    const char *field = NULL;
    char *text = arena_alloc(&arena, 32768);

    wire_defaults(&wire_heartbeat_request, &hb);
    hb.member_id = KSTR_NULL;
    assert_int_equal(wire_encode(&wire_heartbeat_request, 1, &hb, &out, &field), -EPROTO);
    assert_string_equal(field, "member_id");
    hb.member_id = (struct kstr){ text, 32768 };
    assert_int_equal(wire_encode(&wire_heartbeat_request, 1, &hb, &out, &field), -EPROTO);
    assert_int_equal(out.b.n, 0);
    hb.member_id.n = 32767;
    assert_int_equal(wire_encode(&wire_heartbeat_request, 1, &hb, &out, &field), 0);
    hb.member_id.n = 32768; /* nor where the length has room for more */
    assert_int_equal(wire_encode(&wire_heartbeat_request, 4, &hb, &out, &field), -EPROTO);
    wire_out_done(&out);
}

/* Heartbeat v4: a group id with a length of three bytes, a generation, a member id, a null instance id, no tags. */
static int decode_group_id(uint32_t n)
{
    struct bytebuf b = { 0 };
    struct heartbeat_request hb;

    wr_uvarint(&b, n + 1);
    memset(bytebuf_extend(&b, n), 'g', n);
    bytebuf_add(&b, "\0\0\0\1\1\0\0", 7);
    int rc = wire_decode(&wire_heartbeat_request, 4, slice_of(b.p, b.n), &arena, &hb);
    if (rc == 0)
        assert_int_equal(hb.group_id.n, n);
    bytebuf_done(&b);
    return rc;
}

static void a_string_has_32767_bytes_in_any_version(void **state)
{
    (void)state;
    assert_int_equal(decode_group_id(32767), 0);
    assert_int_equal(decode_group_id(32768), -EBADMSG);
    assert_int_equal(decode_group_id(100000), -EBADMSG);
}

/* SaslAuthenticate v2: auth_bytes, then tags. */
static void unknown_tags_are_skipped_and_wrong_ones_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        int rc;
    } rows[] = {
        { "\1\0", 2, 0 },
        { "\1\1\5\3abc", 7, 0 },
        { "\1\2\5\3abc\6\0", 9, 0 },
        { "\1\2\5\3abc\5\0", 9, -EBADMSG },            /* the same twice */
        { "\1\2\6\3abc\5\0", 9, -EBADMSG },            /* not ascending */
        { "\1\1\5\4abc", 7, -EBADMSG },                /* longer than what is left */
        { "\1\xff\xff\xff\xff\x0f\5\0", 8, -EBADMSG }, /* more tags than bytes */
        { "\1\x80\x80\x80\x80\x80\1", 7, -EBADMSG },   /* a number of six bytes */
        { "\0\0", 2, -EBADMSG },                       /* null bytes */
    };
    struct sasl_authenticate_request ret;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(decode_exact(&wire_sasl_authenticate_request, 2, rows[i].bytes, rows[i].n, &ret),
                         rows[i].rc);
}

/* ApiVersions v3 response: error, no keys, throttle, then tags; tag 1 is an int64. */
static void a_known_tag_must_fill_its_size(void **state)
{
    (void)state;
    struct api_versions_response ret;

    assert_int_equal(
        decode_exact(&wire_api_versions_response, 3, "\0\0\1\0\0\0\0\1\1\x8\0\0\0\0\0\0\0\7", 18, &ret), 0);
    assert_int_equal(ret.finalized_features_epoch, 7);
    assert_int_equal(
        decode_exact(&wire_api_versions_response, 3, "\0\0\1\0\0\0\0\1\1\x9\0\0\0\0\0\0\0\7\0", 19, &ret),
        -EBADMSG);
    assert_int_equal(
        decode_exact(&wire_api_versions_response, 3, "\0\0\1\0\0\0\0\1\1\x7\0\0\0\0\0\0\0", 17, &ret),
        -EBADMSG);
}

static void a_tag_at_its_default_is_not_sent(void **state)
{
    (void)state;
    struct wire_out out = { 0 };
    struct api_versions_response r;

    wire_defaults(&wire_api_versions_response, &r);
    assert_int_equal(wire_encode(&wire_api_versions_response, 3, &r, &out, NULL), 0);
    assert_int_equal(out.b.n, 8);
    assert_memory_equal(out.b.p, "\0\0\1\0\0\0\0\0", 8);
    wire_out_done(&out);
}

static void records_of_a_file_leave_a_gap_behind_their_length(void **state)
{
    (void)state;
    struct wire_out out = { 0 };
    struct fetch_response fr;
    struct fetch_response_partitions *parts = WIRE_NEW(&arena, fetch_response_partitions, 2);
    struct fetch_response_responses topic = { .topic = kstr_of("t"), .partitions = parts, .n_partitions = 2 };
    int where[2];

    wire_defaults(&wire_fetch_response, &fr);
    fr.responses = &topic;
    fr.n_responses = 1;
    for (int i = 0; i < 2; i++) {
        parts[i].partition_index = i;
        parts[i].records = (struct wire_records){ .n = 1000 + i, .ext = &where[i] };
    }
    wire_response_header_write(API_FETCH, 4, 77, &out);
    assert_int_equal(wire_encode(&wire_fetch_response, 4, &fr, &out, NULL), 0);
    wire_frame_close(&out);

    assert_int_equal(out.n_gaps, 2);
    assert_int_equal(out.gap_bytes, 2001);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(out.gaps[i].n, 1000 + i);
        assert_ptr_equal(out.gaps[i].ext, &where[i]);
        assert_int_equal(get_be32(out.b.p + out.gaps[i].at - 4), 1000 + i);
    }
    assert_int_equal(out.gaps[1].at, out.b.n);
    assert_int_equal(get_be32(out.b.p), out.b.n - 4 + 2001);
    wire_out_done(&out);
}

static void json_escapes_what_is_not_text(void **state)
{
    (void)state;
    struct bytebuf b = { 0 };
    struct sasl_handshake_request h = { .mechanism = kstr_of("a\"\\\n\x7f\xc3\xa9\xff\xed\xa0\x80z") };
    struct sasl_authenticate_request a = { .auth_bytes = { "\0\x7f\xff", 3 } };

    wire_print_json(&wire_sasl_handshake_request, 0, &h, &b);
    assert_string_equal(bytebuf_cstr(&b),
                        "{\"mechanism\":\"a\\\"\\\\\\u000a\\u007f\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf"
                        "\xbd\xef\xbf\xbdz\"}");
    b.n = 0;
    wire_print_json(&wire_sasl_authenticate_request, 0, &a, &b);
    assert_string_equal(bytebuf_cstr(&b), "{\"auth_bytes\":\"007fff\"}");
    bytebuf_done(&b);
}

static void apis_are_found_by_their_key(void **state)
{
    (void)state;
    const struct wire_api *api;

    for (size_t i = 0; (api = wire_api_at(i)) != NULL; i++) {
        assert_ptr_equal(wire_api_find(api->key), api);
        assert_int_equal(api->klog_only, api->key > 10000);
        assert_int_equal(api->request->api_key, api->key);
        assert_int_equal(api->response->max_version, api->request->max_version);
        assert_true(api->request->request && !api->response->request);
    }
    assert_null(wire_api_find(-1));
    assert_null(wire_api_find(27));
    assert_null(wire_api_find(32767));
    assert_string_equal(wire_api_find(API_KLOG_STAT)->name, "KlogStat");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_message_comes_back_as_it_was_sent),
        T(a_message_cut_at_any_byte_or_too_long_is_refused),
        T(what_a_client_sent_may_be_too_long),
        T(every_message_prints_as_one_line),
        T(a_count_larger_than_the_bytes_left_reserves_nothing),
        T(a_large_message_of_small_elements_takes_bounded_memory),
        T(null_is_refused_where_the_version_does_not_allow_it),
        T(a_field_outside_the_version_reads_as_its_default),
        T(encoding_refuses_what_the_version_cannot_carry),
        T(encoding_stops_at_the_limit_of_the_output),
        T(encoding_drops_ignorable_fields),
        T(encoding_refuses_null_and_a_string_too_long_for_its_length),
        T(a_string_has_32767_bytes_in_any_version),
        T(unknown_tags_are_skipped_and_wrong_ones_refused),
        T(a_known_tag_must_fill_its_size),
        T(a_tag_at_its_default_is_not_sent),
        T(records_of_a_file_leave_a_gap_behind_their_length),
        T(json_escapes_what_is_not_text),
        T(apis_are_found_by_their_key),
    };
    return RUN(tests);
}
