/* SPDX-License-Identifier: Apache-2.0 */
/* Lines as records: what is taken, what is refused and why, and that what was printed is read back the same. */
#include "unit.h"

#include "lib/base/attr.h"
#include "lib/view/parse.h"

static struct line_parser parser;
static struct line_record got;

static bool parse(enum line_form form, const char *line)
{
    line_parser_begin(&parser, strlen(line));
    return line_parse(&parser, form, line, strlen(line), &got);
}

static void assert_kstr(struct kstr s, const char *expected)
{
    assert_int_equal(s.n, expected == NULL ? -1 : (int)strlen(expected));
    if (expected != NULL)
        assert_memory_equal(s.p, expected, strlen(expected));
}

static void assert_read(enum line_form form, const char *line, const char *key, const char *value)
{
    assert_true(parse(form, line));
    assert_kstr(got.key, key);
    assert_kstr(got.value, value);
}

static void assert_refused(enum line_form form, const char *line, const char *why)
{
    assert_false(parse(form, line));
    assert_string_equal(parser.why, why);
}

static void json_members_may_come_in_any_order(void **state)
{
    (void)state;
    assert_read(LINE_JSON, "{\"value\":\"v\",\"key\":\"k\"}", "k", "v");
    assert_false(got.timed);
    assert_int_equal(got.n_headers, 0);
    assert_read(LINE_JSON, " { \"key\" : null , \"value\" : null } ", NULL, NULL);
    assert_read(LINE_JSON, "{\"value\":\"\"}", NULL, "");
    assert_read(LINE_JSON, "{\"partition\":1,\"offset\":9223372036854775807,\"timestamp\":1700000000123,\"key\":\"k\",\"headers\":[],\"value\":\"v\"}\r",
                "k", "v");
    assert_true(got.timed);
    assert_int_equal(got.timestamp, 1700000000123);
    assert_read(LINE_JSON, "{\"timestamp\":null,\"offset\":null,\"partition\":null,\"headers\":null,\"value\":\"v\"}", NULL, "v");
    assert_false(got.timed);
    assert_read(LINE_JSON, "{\"timestamp\":9007199254740993,\"value\":\"v\"}", NULL, "v");
    assert_int_equal(got.timestamp, 9007199254740993);
}

static void json_escapes_are_undone(void **state)
{
    (void)state;
    assert_read(LINE_JSON, "{\"value\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e4\\u20ac\\ud83d\\ude00\"}", NULL,
                "\"\\/\b\f\n\r\tA\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_read(LINE_JSON, "{\"v\\u0061lue\":\"x\"}", NULL, "x");
    assert_true(parse(LINE_JSON, "{\"value\":\"a\\u0000b\"}"));
    assert_int_equal(got.value.n, 3);
    assert_memory_equal(got.value.p, "a\0b", 3);
    assert_read(LINE_JSON, "{\"key_base64\":\"\\u002fw\\u003d=\",\"value_base64\":\"YWJj\"}", "\xff", "abc");
}

static void json_headers_are_kept_in_order(void **state)
{
    (void)state;
    assert_true(parse(LINE_JSON, "{\"headers\":[{\"key\":\"a\",\"value\":\"1\"},{\"value\":null,\"key\":\"a\"},"
                                 "{\"key_base64\":\"/w==\",\"value_base64\":\"\"}],\"value\":\"v\"}"));
    assert_int_equal(got.n_headers, 3);
    const struct record_header *h = parser.headers + got.first_header;
    assert_kstr(h[0].key, "a");
    assert_kstr(h[0].value, "1");
    assert_kstr(h[1].key, "a");
    assert_kstr(h[1].value, NULL);
    assert_kstr(h[2].key, "\xff");
    assert_kstr(h[2].value, "");
}

static void what_is_no_json_record_is_refused(void **state)
{
    (void)state;
    assert_refused(LINE_JSON, "", "not a JSON object");
    assert_refused(LINE_JSON, "x", "not a JSON object");
    assert_refused(LINE_JSON, "[]", "not a JSON object");
    assert_refused(LINE_JSON, "{}", "there is no value (null deletes)");
    assert_refused(LINE_JSON, "{\"key\":\"k\"}", "there is no value (null deletes)");
    assert_refused(LINE_JSON, "{\"vlaue\":\"v\"}", "a member that no record has");
    assert_refused(LINE_JSON, "{\"value\":\"v\"} x", "something behind the object");
    assert_refused(LINE_JSON, "{\"value\":\"v\"", "an object without its end");
    assert_refused(LINE_JSON, "{\"value\":\"v", "a string without its end");
    assert_refused(LINE_JSON, "{\"value\":\"v\",}", "a string is missing");
    assert_refused(LINE_JSON, "{\"value\":\"v\",\"value\":\"w\"}", "a member twice");
    assert_refused(LINE_JSON, "{\"value\":\"v\",\"value_base64\":\"\"}", "a member twice");
    assert_refused(LINE_JSON, "{\"value\":1}", "a string is missing");
    assert_refused(LINE_JSON, "{\"value\":{\"a\":1}}", "a string is missing");
    assert_refused(LINE_JSON, "{\"value\" \"v\"}", "a ':' is missing");
    assert_refused(LINE_JSON, "{\"value\":\"\\x\"}", "a bad escape in a string");
    assert_refused(LINE_JSON, "{\"value\":\"\\ud800\"}", "a bad escape in a string");
    assert_refused(LINE_JSON, "{\"value\":\"\\ude00\\ud83d\"}", "a bad escape in a string");
    assert_refused(LINE_JSON, "{\"value\":\"\\u12\"}", "a bad escape in a string");
    assert_refused(LINE_JSON, "{\"value\":\"a\tb\"}", "a control character in a string");
    assert_refused(LINE_JSON, "{\"value\":\"\xff\"}", "a string that is not UTF-8");
    assert_refused(LINE_JSON, "{\"value_base64\":\"/w\"}", "a string that is not base64");
    assert_refused(LINE_JSON, "{\"timestamp\":1.5,\"value\":\"v\"}", "not a whole number");
    assert_refused(LINE_JSON, "{\"timestamp\":1e3,\"value\":\"v\"}", "not a whole number");
    assert_refused(LINE_JSON, "{\"timestamp\":01,\"value\":\"v\"}", "not a whole number");
    assert_refused(LINE_JSON, "{\"timestamp\":\"1\",\"value\":\"v\"}", "not a whole number");
    assert_refused(LINE_JSON, "{\"timestamp\":-2,\"value\":\"v\"}", "a timestamp before 1970");
    assert_refused(LINE_JSON, "{\"offset\":9223372036854775808,\"value\":\"v\"}", "not a whole number");
    assert_refused(LINE_JSON, "{\"offset\":99999999999999999999,\"value\":\"v\"}", "a number that is too large");
    assert_refused(LINE_JSON, "{\"headers\":{},\"value\":\"v\"}", "headers are no array");
    assert_refused(LINE_JSON, "{\"headers\":[{\"key\":\"a\"}],\"value\":\"v\"}", "a header has a key and a value");
    assert_refused(LINE_JSON, "{\"headers\":[{\"key\":null,\"value\":\"\"}],\"value\":\"v\"}", "a string is missing");
    assert_refused(LINE_JSON, "{\"headers\":[{\"key\":\"a\",\"value\":\"\"}", "an array without its end");
}

static void tsv_is_read_as_copy_reads_text(void **state)
{
    (void)state;
    assert_read(LINE_TSV, "k\tv", "k", "v");
    assert_read(LINE_TSV, "\t", "", "");
    assert_read(LINE_TSV, "\\N\t\\N", NULL, NULL);
    assert_read(LINE_TSV, "\\\\N\tx\\N", "\\N", "xN");
    assert_read(LINE_TSV, "a\\tb\\nc\\\\d\t\\b\\f\\r\\v", "a\tb\nc\\d", "\b\f\r\v");
    assert_read(LINE_TSV, "\\101\\60x\t\\x41\\x4g\\q\\.", "A0x", "A\x04gq.");
    assert_read(LINE_TSV, "\\xg\t\"\xff\r", "xg", "\"\xff\r");
    assert_refused(LINE_TSV, "", "there is no TAB between key and value");
    assert_refused(LINE_TSV, "k v", "there is no TAB between key and value");
    assert_refused(LINE_TSV, "\\.", "there is no TAB between key and value");
    assert_refused(LINE_TSV, "a\tb\tc", "more than one TAB");
    assert_refused(LINE_TSV, "a\tb\\", "a backslash at the end of a field");
    assert_refused(LINE_TSV, "a\\\tb", "there is no TAB between key and value");
    assert_read(LINE_TSV, "a\\\tb\tc\\\\", "a\tb", "c\\");
    assert_read(LINE_TSV, "a\\\\\tb", "a\\", "b");
}

static void plain_takes_anything(void **state)
{
    (void)state;
    assert_read(LINE_PLAIN, "{\"value\":\"v\"}\t", NULL, "{\"value\":\"v\"}\t");
}

static uint32_t chance = 1;

static uint8_t random_byte(void)
{
    chance = chance * 1664525 + 1013904223;
    return (uint8_t)(chance >> 24);
}

/* Texts of few kinds of bytes, so that they are UTF-8 now and then. */
static struct kstr random_text(uint8_t *buf)
{
    static const uint8_t kinds[][8] = { "abcdefg", "a\t\n\\\"\x01", { 0xc3, 0xa4, 'a', 0xc3, 0xbc, 0, '\r', 'N' }, "\\N\t\\nx\xff" };
    const uint8_t *kind = kinds[random_byte() % 4];
    int32_t n = random_byte() % 20 - 1;
    for (int32_t i = 0; i < n; i++)
        buf[i] = kind[random_byte() % 8];
    return (struct kstr){ (char *)buf, n };
}

static void what_was_printed_is_read_back_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        enum line_form form = i % 2 == 0 ? LINE_JSON : LINE_TSV;
        uint8_t key[20], value[20], header[20];
        struct record r = { .offset = i, .timestamp = i - 1, .key = random_text(key), .value = random_text(value) };
        struct kstr h = random_text(header);
        uint8_t headers[24] = { 2, 'h', (uint8_t)(h.n < 0 ? 1 : 2 * h.n) };
        memcpy(headers + 3, header, h.n > 0 ? (size_t)h.n : 0);
        r.n_headers = 1;
        r.headers = slice_of(headers, 3 + (size_t)MAX(h.n, 0));
        struct bytebuf line = { 0 };
        line_render(form, 0, &r, &line);
        assert_ptr_equal(memchr(line.p, '\n', line.n), line.p + line.n - 1);
        line_parser_begin(&parser, line.n);
        assert_true(line_parse(&parser, form, (char *)line.p, line.n - 1, &got));
        assert_true(kstr_eq(got.key, r.key) && kstr_eq(got.value, r.value));
        if (form == LINE_JSON) {
            assert_true(got.timed && got.timestamp == r.timestamp && got.n_headers == 1);
            assert_true(kstr_eqz(parser.headers[got.first_header].key, "h"));
            assert_true(kstr_eq(parser.headers[got.first_header].value, h));
        }
        bytebuf_done(&line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_members_may_come_in_any_order),
        cmocka_unit_test(json_escapes_are_undone),
        cmocka_unit_test(json_headers_are_kept_in_order),
        cmocka_unit_test(what_is_no_json_record_is_refused),
        cmocka_unit_test(tsv_is_read_as_copy_reads_text),
        cmocka_unit_test(plain_takes_anything),
        cmocka_unit_test(what_was_printed_is_read_back_the_same),
    };
    line_parser_init(&parser);
    int rc = RUN(tests);
    line_parser_done(&parser);
    return rc;
}
