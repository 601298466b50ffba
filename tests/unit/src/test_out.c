/* SPDX-License-Identifier: Apache-2.0 */
/* What commands print: aligned tables, JSON lines, escaped bytes, times, sizes, the progress bar. */
#include "unit.h"

#include "src/out.h"
#include "src/progress.h"

struct capture {
    char *text;
    size_t n;
    FILE *f;
};

static FILE *capture_begin(struct capture *c)
{
    c->f = open_memstream(&c->text, &c->n);
    assert_non_null(c->f);
    return c->f;
}

static void captured(struct capture *c, const char *want)
{
    fclose(c->f);
    assert_string_equal(c->text, want);
    free(c->text);
}

static json_t *two_rows(void)
{
    return json_pack("[{s:s, s:i, s:[i,i], s:n}, {s:s, s:i, s:[], s:b}]", "name", "orders", "n", 7, "isr", 1,
                     2, "x", "name", "k\xc3\xa4se", "n", 12345, "isr", "x", 1);
}

static void tables_are_aligned_and_json_is_a_line_a_row(void **state)
{
    static const struct column columns[] = { { "name", "NAME", false },
                                             { "n", "N", true },
                                             { "isr", "ISR", false },
                                             { "x", "X", false },
                                             { NULL, NULL, false } };
    struct capture c;

    (void)state;
    out_rows(capture_begin(&c), false, columns, two_rows());
    captured(&c, "NAME        N  ISR  X\n"
                 "orders      7  1,2  -\n"
                 "k\xc3\xa4se    12345  -    yes\n");
    out_rows(capture_begin(&c), true, columns, two_rows());
    captured(&c, "{\"name\":\"orders\",\"n\":7,\"isr\":[1,2],\"x\":null}\n"
                 "{\"name\":\"k\xc3\xa4se\",\"n\":12345,\"isr\":[],\"x\":true}\n");
}

static void bytes_are_escaped_for_people(void **state)
{
    struct capture c;

    (void)state;
    out_escaped(capture_begin(&c), kstr_bytes("a\n\t\\\0\x1b[\xc3\xa4\xff\xc2\x85\xe2\x82", 14));
    captured(&c, "a\\n\\t\\\\\\x00\\x1b[\xc3\xa4\\xff\\xc2\\x85\\xe2\\x82");
    out_escaped(capture_begin(&c), KSTR_NULL);
    captured(&c, "");
}

static void bytes_that_are_no_text_go_as_base64(void **state)
{
    struct capture c;
    json_t *o = json_object();

    (void)state;
    json_set_bytes(o, "a", kstr_of("text"));
    json_set_bytes(o, "b", KSTR_NULL);
    json_set_bytes(o, "c", kstr_bytes("\xff\xfe", 2));
    json_set_bytes(o, "d", kstr_bytes("\xff", 1));
    json_set_bytes(o, "e", kstr_bytes("\xff\x01\x02", 3));
    json_set_bytes(o, "f", kstr_of(""));
    out_json(capture_begin(&c), o);
    captured(&c, "{\"a\":\"text\",\"b\":null,\"c_base64\":\"//4=\",\"d_base64\":\"/w==\",\"e_base64\":\"/"
                 "wEC\",\"f\":\"\"}\n");
}

static void times_and_sizes_are_readable(void **state)
{
    char text[32];

    (void)state;
    assert_string_equal(time_text(1767323045678, text, sizeof text), "2026-01-02T03:04:05.678Z");
    assert_string_equal(time_text(0, text, sizeof text), "1970-01-01T00:00:00.000Z");
    assert_string_equal(time_text(-1, text, sizeof text), "-");
    assert_string_equal(time_text(-2, text, sizeof text), "1969-12-31T23:59:59.998Z");
    assert_string_equal(time_text(INT64_MAX, text, sizeof text), "9223372036854775807");
    assert_string_equal(time_text(INT64_MIN, text, sizeof text), "-9223372036854775808");
    assert_string_equal(size_text(0, text, sizeof text), "0 B");
    assert_string_equal(size_text(999, text, sizeof text), "999 B");
    assert_string_equal(size_text(1000, text, sizeof text), "1.0 kB");
    assert_string_equal(size_text(123456789, text, sizeof text), "123 MB");
    assert_string_equal(size_text(INT64_MAX, text, sizeof text), "9223 PB");
}

static void the_bar_is_drawn_and_wiped_only_where_it_is_seen(void **state)
{
    struct capture c;
    struct progress p;

    (void)state;
    progress_init(&p, capture_begin(&c), true, 2000);
    progress_add(&p, 1000, "orders-0");
    progress_add(&p, 500, "orders-0"); /* too soon after the first: not drawn */
    progress_clear(&p);
    progress_clear(&p);
    captured(&c, "\r\033[K[###############...............]  50 % of 2.0 kB (1.0 kB) orders-0\r\033[K");

    progress_init(&p, capture_begin(&c), false, 2000);
    progress_add(&p, 1000, "orders-0");
    progress_clear(&p);
    captured(&c, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_aligned_and_json_is_a_line_a_row),
        cmocka_unit_test(bytes_are_escaped_for_people),
        cmocka_unit_test(bytes_that_are_no_text_go_as_base64),
        cmocka_unit_test(times_and_sizes_are_readable),
        cmocka_unit_test(the_bar_is_drawn_and_wiped_only_where_it_is_seen),
    };
    return RUN(tests);
}
