/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small things of lib/base that have no test of their own: varints, ids as text, the arena, byte buffers, the table of
 * errors, and text as Java counts it. Borders and what is refused come before the common case.
 */
#include "unit.h"

#include "lib/base/arena.h"
#include "lib/base/attr.h"
#include "lib/base/buf.h"
#include "lib/base/crc32c.h"
#include "lib/base/kerr.h"
#include "lib/base/murmur2.h"
#include "lib/base/utf16.h"
#include "lib/base/uuid.h"
#include "lib/base/varint.h"
#include "lib/base/world.h"

static void varints_round_trip_at_their_borders(void **state)
{
    static const int64_t values[] = { 0, 1, -1, 63, 64, -64, -65, 8191, 8192, INT32_MAX, INT32_MIN,
                                      (int64_t)INT32_MAX + 1, INT64_MAX, INT64_MIN };
    (void)state;

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint8_t b[VARLONG_MAX];
        int64_t back = 1;
        uint8_t *end = varlong_put(b, values[i]);
        assert_int_equal(end - b, varlong_size(values[i]));
        assert_ptr_equal(varlong_get(b, end, &back), end);
        assert_true(back == values[i]);
        for (uint8_t *cut = b; cut < end; cut++)
            assert_null(varlong_get(b, cut, &back));
    }
}

static void a_varint_that_does_not_fit_is_refused(void **state)
{
    static const uint8_t five_too_big[] = { 0xff, 0xff, 0xff, 0xff, 0x7f };
    static const uint8_t six[] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x01 };
    static const uint8_t eleven[] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01 };
    int32_t v;
    int64_t w;
    (void)state;

    assert_null(varint_get(five_too_big, five_too_big + 5, &v));
    assert_null(varint_get(six, six + 6, &v));
    assert_null(varlong_get(eleven, eleven + 11, &w));
}

static void crc32c_has_the_published_values(void **state)
{
    uint8_t zeros[32] = { 0 }, many[5000];
    uint32_t bytewise = 0;
    (void)state;

    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u);    /* RFC 3720 B.4 and common usage */
    assert_int_equal(crc32c(0, zeros, sizeof zeros), 0x8a9136aau);
    for (size_t i = 0; i < sizeof many; i++)
        many[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof many; i++)
        bytewise = crc32c(bytewise, &many[i], 1);
    assert_int_equal(crc32c(0, many, sizeof many), bytewise);    /* short and long ways agree */
}

static void murmur2_has_the_java_clients_values(void **state)
{
    (void)state;
    assert_int_equal((int32_t)murmur2("21", 2), -973932308);     /* from Kafka's own UtilsTest */
    assert_int_equal((int32_t)murmur2("foobar", 6), -790332482);
    assert_int_equal((int32_t)murmur2("a-little-bit-long-string", 24), -985981536);
}

static void uuids_round_trip_as_text(void **state)
{
    char text[UUID_TEXT_LEN + 1];
    struct uuid u, back;
    (void)state;

    for (int i = 0; i < 1000; i++) {
        uuid_random(&random_real, &u);
        uuid_text(&u, text);
        assert_int_equal(strlen(text), UUID_TEXT_LEN);
        assert_int_not_equal(text[0], '-');
        assert_true(uuid_parse(text, &back));
        assert_true(uuid_eq(&u, &back));
    }
    assert_false(uuid_parse("short", &back));
    assert_false(uuid_parse("AAAAAAAAAAAAAAAAAAAAA!", &back));
    assert_false(uuid_parse("AAAAAAAAAAAAAAAAAAAAAB", &back));   /* bits past the sixteenth byte */
}

static void an_arena_hands_out_zeroed_aligned_memory(void **state)
{
    struct arena a;
    (void)state;

    arena_init(&a);
    for (size_t n = 0; n < 9000; n += 97) {
        uint8_t *p = arena_alloc(&a, n);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, n);
    }
    assert_string_equal(arena_printf(&a, "%s-%d", "orders", 7), "orders-7");
    arena_done(&a);
}

static void a_byte_buffer_gives_back_what_was_added(void **state)
{
    struct bytebuf b = { 0 };
    (void)state;

    bytebuf_adds(&b, "abc");
    bytebuf_printf(&b, "%d", 12345);
    assert_string_equal(bytebuf_cstr(&b), "abc12345");
    bytebuf_consume(&b, 3);
    assert_string_equal(bytebuf_cstr(&b), "12345");

    struct rcbuf *shared = rcbuf_take(&b);
    assert_null(b.p);
    assert_int_equal(shared->n, 5);
    rcbuf_unref(rcbuf_ref(shared));
    rcbuf_unref(shared);
    bytebuf_done(&b);
}

/* Sanitizers end a program that asks for so much, unless they are told that it means to. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void an_arena_has_what_was_reserved(void **state)
{
    (void)state;
    struct arena a;
    enum { N = 100000 };

    arena_init(&a);
    assert_false(arena_try_reserve(&a, SIZE_MAX / 4));
    assert_null(arena_try_alloc(&a, SIZE_MAX / 4));
    assert_int_equal(a.used_bytes, 0);
    assert_true(arena_try_reserve(&a, N));
    const uint8_t *first = arena_alloc(&a, N / 2), *second = arena_alloc(&a, N / 2);
    assert_ptr_equal(second, first + N / 2);
    arena_done(&a);
}

static void no_room_in_an_empty_buffer_is_nothing(void **state)
{
    (void)state;
    struct bytebuf b = { 0 };

    assert_null(bytebuf_room(&b, 0));
    assert_null(bytebuf_extend(&b, 0));
    assert_int_equal(b.cap, 0);
    bytebuf_adds(&b, "x");
    assert_ptr_equal(bytebuf_room(&b, 0), b.p + 1);
    bytebuf_done(&b);
}

static void what_cannot_be_had_is_an_error_and_no_end(void **state)
{
    (void)state;
    struct bytebuf b = { 0 };

    bytebuf_add(&b, "kept", 4);
    assert_false(bytebuf_try_room(&b, SIZE_MAX / 4));
    assert_false(bytebuf_try_room(&b, SIZE_MAX - 2));
    assert_memory_equal(b.p, "kept", 4);
    assert_null(rcbuf_try_new(SIZE_MAX / 4));
    assert_true(bytebuf_try_room(&b, 100));
    assert_true(b.cap - b.n >= 100);
    bytebuf_done(&b);
}

static void error_codes_have_names_and_errnos(void **state)
{
    (void)state;
    assert_string_equal(kerr_name(87), "INVALID_RECORD");
    assert_string_equal(kerr_name(12345), "UNKNOWN_CODE");
    assert_int_equal(kerr_errno(KERR_NONE), 0);
    assert_int_equal(kerr_errno(KERR_MESSAGE_TOO_LARGE), EMSGSIZE);
    assert_int_equal(kerr_errno(KERR_TOPIC_AUTHORIZATION_FAILED), EACCES);
    assert_true(kerr_retriable(KERR_NOT_LEADER_OR_FOLLOWER));
    assert_false(kerr_retriable(KERR_INVALID_RECORD));
}

static void text_is_counted_as_java_counts_it(void **state)
{
    (void)state;
    assert_int_equal(utf16_length(KSTR_NULL), 0);
    assert_int_equal(utf16_length(kstr_of("")), 0);
    assert_int_equal(utf16_length(kstr_of("abc")), 3);
    assert_int_equal(utf16_length(kstr_of("\xc3\xa9")), 1);
    assert_int_equal(utf16_length(kstr_of("\xe4\xb8\xad")), 1);
    assert_int_equal(utf16_length(kstr_of("\xf0\x9f\x98\x80")), 2);
    assert_int_equal(utf16_length(kstr_of("\xf0\x9f\x98")), 3); /* cut off: not UTF-8 */
    assert_int_equal(utf16_length(kstr_of("\xff\x80")), 2);
}

static void text_is_cut_between_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int32_t max, n;
    } rows[] = {
        { "abc", 3, 3 },
        { "abc", 2, 2 },
        { "a\xc3\xa9", 2, 1 },
        { "a\xe4\xb8\xad", 3, 1 },
        { "\xf0\x9f\x98\x80", 3, 0 },
        { "\xf0\x9f\x98\x80", 4, 4 },
        { "\x80\x80\x80\x80\x80\x80", 5, 5 }, /* not UTF-8: anywhere */
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(utf8_prefix(kstr_of(rows[i].text), rows[i].max).n, rows[i].n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_round_trip_at_their_borders),
        cmocka_unit_test(a_varint_that_does_not_fit_is_refused),
        cmocka_unit_test(crc32c_has_the_published_values),
        cmocka_unit_test(murmur2_has_the_java_clients_values),
        cmocka_unit_test(text_is_counted_as_java_counts_it),
        cmocka_unit_test(text_is_cut_between_characters),
        cmocka_unit_test(uuids_round_trip_as_text),
        cmocka_unit_test(an_arena_hands_out_zeroed_aligned_memory),
        cmocka_unit_test(a_byte_buffer_gives_back_what_was_added),
        cmocka_unit_test(an_arena_has_what_was_reserved),
        cmocka_unit_test(no_room_in_an_empty_buffer_is_nothing),
        cmocka_unit_test(what_cannot_be_had_is_an_error_and_no_end),
        cmocka_unit_test(error_codes_have_names_and_errnos),
    };
    return RUN(tests);
}
