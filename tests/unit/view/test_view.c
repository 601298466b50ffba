/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of names in the mount. */
#include "unit.h"

#include "lib/view/view.h"

static void assert_range(const char *text, struct bound from, struct bound to)
{
    struct range r;
    assert_true(range_parse(text, &r));
    assert_int_equal(r.from.kind, from.kind);
    assert_int_equal(r.from.value, from.value);
    assert_int_equal(r.from.when.kind, from.when.kind);
    assert_int_equal(r.from.when.ms, from.when.ms);
    assert_int_equal(r.to.kind, to.kind);
    assert_int_equal(r.to.value, to.value);
    assert_int_equal(r.to.when.kind, to.when.kind);
    assert_int_equal(r.to.when.ms, to.when.ms);
}

static const struct bound none = { .kind = BOUND_NONE };
#define TIME(k, ms_) ((struct bound){ .kind = BOUND_TIME, .when = { k, ms_ } })

static void a_range_is_made_of_offsets_and_words(void **state)
{
    (void)state;
    assert_range("100", (struct bound){ .kind = BOUND_OFFSET, .value = 100 }, none);
    assert_range("100:200", (struct bound){ .kind = BOUND_OFFSET, .value = 100 }, (struct bound){ .kind = BOUND_OFFSET, .value = 200 });
    assert_range(":200", none, (struct bound){ .kind = BOUND_OFFSET, .value = 200 });
    assert_range("-100", (struct bound){ .kind = BOUND_LAST, .value = 100 }, none);
    assert_range("start", (struct bound){ .kind = BOUND_START }, none);
    assert_range("end", (struct bound){ .kind = BOUND_END }, none);
    assert_range("start:-1", (struct bound){ .kind = BOUND_START }, (struct bound){ .kind = BOUND_LAST, .value = 1 });
}

static void a_time_range_takes_every_form_of_time(void **state)
{
    (void)state;
    assert_range("@1700000000", TIME(WHEN_AT, 1700000000000), none);
    assert_range("@1700000000123", TIME(WHEN_AT, 1700000000123), none);
    assert_range("@-1h", TIME(WHEN_AGO, 3600000), none);
    assert_range("@-2d:-30m", TIME(WHEN_AGO, 172800000), TIME(WHEN_AGO, 1800000));
    assert_range("@10:00", TIME(WHEN_TODAY, 36000000), none);
    assert_range("@10:00:11:30", TIME(WHEN_TODAY, 36000000),
                 TIME(WHEN_TODAY, 41400000));
    assert_range("@2023-11-14T22:13:20Z", TIME(WHEN_AT, 1700000000000), none);
    assert_range("@2023-11-14T23:13:20.5+01:00:2023-11-15", TIME(WHEN_AT, 1700000000500),
                 TIME(WHEN_LOCAL, 1700006400000));
    assert_range("@2023-11-14T22:13:20", TIME(WHEN_LOCAL, 1700000000000), none);
    assert_range("@1700000000:1700000100", TIME(WHEN_AT, 1700000000000),
                 TIME(WHEN_AT, 1700000100000));
}

static void what_is_not_a_range_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "",
                                       ":",
                                       "x",
                                       "1x",
                                       "1:2:3",
                                       "--1",
                                       "@",
                                       "@x",
                                       "@-1",
                                       "@-1y",
                                       "@2026-02-29",
                                       "starting",
                                       "1:",
                                       "@1:",
                                       "0x1",
                                       "1 ",
                                       "p0",
                                       "99999999999999999999",
                                       "@2023-13-01" };
    struct range r;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(range_parse(bad[i], &r));
}

static void views_nest_in_any_order_each_at_most_once(void **state)
{
    (void)state;
    const struct view plain = { 0 };
    struct view v;
    assert_true(view_enter(&plain, "json", &v));
    assert_true(view_enter(&v, "-10", &v));
    assert_true(view_enter(&v, "follow", &v));
    assert_int_equal(v.parts, VIEW_JSON | VIEW_RANGE | VIEW_FOLLOW);
    assert_int_equal(v.range.from.value, 10);
    assert_false(view_enter(&v, "json", &v));
    assert_false(view_enter(&v, "tsv", &v));
    assert_false(view_enter(&v, "5", &v));
    assert_false(view_enter(&v, "follow", &v));
    assert_true(view_enter(&v, "as", &v));
    assert_int_equal(v.parts & VIEW_AS_OPEN, VIEW_AS_OPEN);
}

static void inside_as_every_legal_name_is_a_group(void **state)
{
    (void)state;
    const struct view plain = { 0 };
    struct view v;
    assert_true(view_enter(&plain, "as", &v));
    assert_false(view_enter(&v, "a b", &v));
    assert_true(view_enter(&v, "json", &v));
    assert_string_equal(v.group, "json");
    assert_int_equal(v.parts, VIEW_AS);
    assert_false(view_enter(&v, "as", &v));
    assert_true(view_enter(&v, "json", &v));
}

static void assert_extent(const char *text, int64_t from, int64_t to, int64_t time_from, int64_t time_to)
{
    struct range r;
    struct extent e;
    assert_true(range_parse(text, &r));
    range_resolve(&r, 1700000000000, 100, 200, 150, &e);
    assert_int_equal(e.from, from);
    assert_int_equal(e.to, to);
    assert_int_equal(e.time_from, time_from);
    assert_int_equal(e.time_to, time_to);
}

static void a_range_is_offsets_once_the_ends_are_known(void **state)
{
    (void)state;
    const int64_t open = INT64_MAX, any = INT64_MIN;
    assert_extent("150", 150, open, any, open);
    assert_extent("7", 100, open, any, open);
    assert_extent("300", 300, open, any, open);
    assert_extent("110:120", 110, 120, any, open);
    assert_extent("120:110", 120, 120, any, open);
    assert_extent("1:2", 100, 100, any, open);
    assert_extent(":200", 100, 200, any, open);
    assert_extent(":300", 100, 300, any, open);
    assert_extent("-10", 190, open, any, open);
    assert_extent("-1000", 100, open, any, open);
    assert_extent("+10", 110, open, any, open);
    assert_extent("+1000", 200, open, any, open);
    assert_extent("+10:-10", 110, 190, any, open);
    assert_extent("start:end", 100, 200, any, open);
    assert_extent("end", 200, open, any, open);
    assert_extent("end:start", 200, 200, any, open);
    /* the record found for a time is 150 */
    assert_extent("@1600000000", 150, open, any, open);
    assert_extent("@1600000000:1650000000", 150, open, 1600000000000, 1650000000000);
    assert_extent("@-1h:-30m", 150, open, 1700000000000 - 3600000, 1700000000000 - 1800000);
    assert_extent("@1650000000:1600000000", 150, 150, 1650000000000, 1600000000000);
    assert_extent("@:1650000000", 100, open, any, 1650000000000);
}

static void a_time_that_no_record_has_reached_begins_at_the_end(void **state)
{
    (void)state;
    struct range r;
    struct extent e;
    int64_t ms = 0;
    assert_true(range_parse("@-10m", &r));
    assert_true(range_time(&r, 1700000000000, &ms));
    assert_int_equal(ms, 1700000000000 - 600000);
    range_resolve(&r, 1700000000000, 100, 200, -1, &e);
    assert_int_equal(e.from, 200);
    assert_true(range_parse("5:6", &r));
    assert_false(range_time(&r, 1700000000000, &ms));
    assert_true(range_parse("@:5", &r));
    assert_false(range_time(&r, 1700000000000, &ms));
}

static void a_path_is_a_topic_its_views_and_what_they_hold(void **state)
{
    (void)state;
    struct view_path p;
    assert_true(view_path_parse("orders", &p));
    assert_string_equal(p.topic, "orders");
    assert_int_equal(p.leaf, LEAF_DIRECTORY);
    assert_true(view_path_parse("/orders//json/@-1h/p12/", &p));
    assert_int_equal(p.leaf, LEAF_PARTITION);
    assert_int_equal(p.partition, 12);
    assert_int_equal(p.view.parts, VIEW_JSON | VIEW_RANGE);
    assert_int_equal(view_form(&p.view), LINE_JSON);
    assert_true(view_path_parse("orders/tsv/any", &p));
    assert_int_equal(p.leaf, LEAF_ANY);
    assert_int_equal(view_form(&p.view), LINE_TSV);
    assert_true(view_path_parse("orders/as/any/follow/all", &p));
    assert_int_equal(p.leaf, LEAF_ALL);
    assert_string_equal(p.view.group, "any");
    static const char *const bad[] = { "", "/", "a b", "orders/x", "orders/p0/json", "orders/json/json/p0", "orders/as/p0/as",
                                       "orders/p01", "orders/json/tsv/p0", "..", "orders/../p0", "orders/any/any" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(view_path_parse(bad[i], &p));
}

static void a_partition_name_has_one_spelling(void **state)
{
    (void)state;
    int32_t p = -1;
    assert_true(view_partition_parse("p0", &p));
    assert_int_equal(p, 0);
    assert_true(view_partition_parse("p17", &p));
    assert_int_equal(p, 17);
    static const char *const bad[] = {
        "p", "p00", "p01", "P0", "0", "p-1", "p1x", "p99999999999", "p 1", ""
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(view_partition_parse(bad[i], &p));
}

static void topic_names_are_the_ones_of_kafka(void **state)
{
    (void)state;
    char name[251];
    memset(name, 'n', 250);
    name[250] = '\0';
    assert_false(topic_name_ok(name));
    name[249] = '\0';
    assert_true(topic_name_ok(name));
    assert_true(topic_name_ok("a.b_c-D9"));
    static const char *const bad[] = { "", ".", "..", "a b", "x\ny", "\xff\xfe", "a:b", "a/b" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(topic_name_ok(bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_is_made_of_offsets_and_words),
        cmocka_unit_test(a_time_range_takes_every_form_of_time),
        cmocka_unit_test(what_is_not_a_range_is_refused),
        cmocka_unit_test(views_nest_in_any_order_each_at_most_once),
        cmocka_unit_test(inside_as_every_legal_name_is_a_group),
        cmocka_unit_test(a_range_is_offsets_once_the_ends_are_known),
        cmocka_unit_test(a_time_that_no_record_has_reached_begins_at_the_end),
        cmocka_unit_test(a_path_is_a_topic_its_views_and_what_they_hold),
        cmocka_unit_test(a_partition_name_has_one_spelling),
        cmocka_unit_test(topic_names_are_the_ones_of_kafka),
    };
    return RUN(tests);
}
