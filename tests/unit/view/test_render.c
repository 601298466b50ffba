/* SPDX-License-Identifier: Apache-2.0 */
/* Records as lines: exact bytes of each form, and sizes that are those of the bytes. */
#include "unit.h"

#include "lib/base/mem.h"
#include "lib/view/base64.h"
#include "lib/view/render.h"
#include "lib/view/utf8.h"

static char *rendered(enum line_form form, int32_t partition, const struct record *r)
{
    struct bytebuf b = { 0 };
    bytebuf_adds(&b, ">");
    line_render(form, partition, r, &b);
    assert_int_equal(b.n - 1, line_size(form, partition, r));
    char *text = xstrdup(bytebuf_cstr(&b) + 1);
    bytebuf_done(&b);
    return text;
}

static void assert_line(enum line_form form, int32_t partition, const struct record *r, const char *expected)
{
    CLEANUP(freep) char *text = rendered(form, partition, r);
    assert_string_equal(text, expected);
}

static struct record record_of(struct kstr key, struct kstr value)
{
    return (struct record){ .offset = 7, .timestamp = 1700000000123, .key = key, .value = value };
}

#define JSON(k, v) "{\"partition\":3,\"offset\":7,\"timestamp\":1700000000123," k ",\"headers\":[]," v "}\n"

static void json_tells_every_part_of_a_record(void **state)
{
    (void)state;
    struct record r = record_of(kstr_of("k"), kstr_of("v"));
    assert_line(LINE_JSON, 3, &r, JSON("\"key\":\"k\"", "\"value\":\"v\""));
    r = record_of(KSTR_NULL, KSTR_NULL);
    assert_line(LINE_JSON, 3, &r, JSON("\"key\":null", "\"value\":null"));
    r = record_of(kstr_of(""), kstr_of(""));
    assert_line(LINE_JSON, 3, &r, JSON("\"key\":\"\"", "\"value\":\"\""));
    r = (struct record){ .offset = INT64_MAX, .timestamp = -1, .key = KSTR_NULL, .value = kstr_of("x") };
    assert_line(LINE_JSON, 2147483647, &r,
                "{\"partition\":2147483647,\"offset\":9223372036854775807,\"timestamp\":-1,\"key\":null,\"headers\":[],"
                "\"value\":\"x\"}\n");
}

static void json_escapes_what_it_must_and_nothing_else(void **state)
{
    (void)state;
    struct record r = record_of(kstr_of("\"\\/"), kstr_bytes("\0\b\f\n\r\t\v\x1f\x7f", 9));
    assert_line(LINE_JSON, 3, &r, JSON("\"key\":\"\\\"\\\\/\"", "\"value\":\"\\u0000\\b\\f\\n\\r\\t\\u000b\\u001f\x7f\""));
    r = record_of(kstr_of("0123456789abcdef\""), kstr_of("gr\xc3\xbc\xc3\x9f" "e \xe2\x82\xac \xf0\x9f\x98\x80"));
    assert_line(LINE_JSON, 3, &r, JSON("\"key\":\"0123456789abcdef\\\"\"", "\"value\":\"gr\xc3\xbc\xc3\x9f" "e \xe2\x82\xac \xf0\x9f\x98\x80\""));
}

static void json_has_other_bytes_in_base64(void **state)
{
    (void)state;
    struct record r = record_of(kstr_of("\xff"), kstr_of("abc\xc3"));
    assert_line(LINE_JSON, 3, &r, JSON("\"key_base64\":\"/w==\"", "\"value_base64\":\"YWJjww==\""));
}

static void json_has_headers_in_their_order_twice_if_they_are(void **state)
{
    (void)state;
    /* zigzag lengths: "a"="1", "a"=null, ""="\xff" */
    static const char headers[] = { 2, 'a', 2, '1', 2, 'a', 1, 0, 2, (char)0xff };
    struct record r = record_of(KSTR_NULL, kstr_of("v"));
    r.n_headers = 3;
    r.headers = slice_of(headers, sizeof headers);
    assert_line(LINE_JSON, 3, &r,
                "{\"partition\":3,\"offset\":7,\"timestamp\":1700000000123,\"key\":null,\"headers\":[{\"key\":\"a\",\"value\":\"1\"},"
                "{\"key\":\"a\",\"value\":null},{\"key\":\"\",\"value_base64\":\"/w==\"}],\"value\":\"v\"}\n");
}

static void tsv_is_as_copy_writes_text(void **state)
{
    (void)state;
    struct record r = record_of(kstr_of("k"), kstr_of("v"));
    assert_line(LINE_TSV, 0, &r, "k\tv\n");
    r = record_of(KSTR_NULL, KSTR_NULL);
    assert_line(LINE_TSV, 0, &r, "\\N\t\\N\n");
    r = record_of(kstr_of(""), kstr_of("\\N"));
    assert_line(LINE_TSV, 0, &r, "\t\\\\N\n");
    r = record_of(kstr_of("a\tb\nc\\d"), kstr_of("\b\f\r\v\x01\"\xff"));
    assert_line(LINE_TSV, 0, &r, "a\\tb\\nc\\\\d\t\\b\\f\\r\\v\x01\"\xff\n");
}

static void plain_is_the_value_alone(void **state)
{
    (void)state;
    struct record r = record_of(kstr_of("k"), kstr_of("a\tb"));
    assert_line(LINE_PLAIN, 0, &r, "a\tb\n");
    r = record_of(KSTR_NULL, KSTR_NULL);
    assert_line(LINE_PLAIN, 0, &r, "\n");
}

/* A special byte at each place of texts of each length: the search for it goes by eights. */
static void every_place_of_a_special_byte_is_found(void **state)
{
    (void)state;
    for (int32_t n = 1; n < 40; n++) {
        for (int32_t at = 0; at < n; at++) {
            char text[40];
            memset(text, 'x', sizeof text);
            text[at] = '\n';
            struct record r = record_of(KSTR_NULL, kstr_bytes(text, (size_t)n));
            CLEANUP(freep) char *json = rendered(LINE_JSON, 0, &r), *tsv = rendered(LINE_TSV, 0, &r);
            const char *in_json = strstr(json, "\"value\":\"") + 9, *in_tsv = strchr(tsv, '\t') + 1;
            assert_int_equal(strcspn(in_json, "\\"), at);
            assert_memory_equal(in_json + at, "\\n", 2);
            assert_int_equal(strcspn(in_tsv, "\\"), at);
            assert_int_equal(strlen(in_tsv), n + 2);
            text[at] = (char)0x80; /* no UTF-8 */
            r = record_of(KSTR_NULL, kstr_bytes(text, (size_t)n));
            CLEANUP(freep) char *other = rendered(LINE_JSON, 0, &r);
            assert_non_null(strstr(other, "value_base64"));
        }
    }
}

static void utf8_is_judged_as_rfc_3629_has_it(void **state)
{
    (void)state;
    static const char *const good[] = { "", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                                        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "12345678\xc2\x80" };
    static const char *const bad[] = { "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x61", "\xe0\x9f\xbf", "\xe0\xa0",
                                       "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                                       "\xff", "12345678\x80" };
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(utf8_ok((const uint8_t *)good[i], strlen(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(utf8_ok((const uint8_t *)bad[i], strlen(bad[i])));
}

static void base64_is_that_of_rfc_4648(void **state)
{
    (void)state;
    static const char *const pairs[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" },
                                            { "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" },
                                            { "\xff\xff\xfe", "///+" } };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        uint8_t buf[16];
        size_t n = strlen(pairs[i][0]), m = strlen(pairs[i][1]);
        base64_encode((const uint8_t *)pairs[i][0], n, buf);
        assert_int_equal(base64_size(n), m);
        assert_memory_equal(buf, pairs[i][1], m);
        assert_int_equal(base64_decode((const uint8_t *)pairs[i][1], m, buf), n);
        assert_memory_equal(buf, pairs[i][0], n);
    }
    static const char *const bad[] = { "Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Zg==Zg==", "Z===", "Zm 9", "Zm-_" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint8_t buf[16];
        assert_int_equal(base64_decode((const uint8_t *)bad[i], strlen(bad[i]), buf), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_tells_every_part_of_a_record),
        cmocka_unit_test(json_escapes_what_it_must_and_nothing_else),
        cmocka_unit_test(json_has_other_bytes_in_base64),
        cmocka_unit_test(json_has_headers_in_their_order_twice_if_they_are),
        cmocka_unit_test(tsv_is_as_copy_writes_text),
        cmocka_unit_test(plain_is_the_value_alone),
        cmocka_unit_test(every_place_of_a_special_byte_is_found),
        cmocka_unit_test(utf8_is_judged_as_rfc_3629_has_it),
        cmocka_unit_test(base64_is_that_of_rfc_4648),
    };
    return RUN(tests);
}
