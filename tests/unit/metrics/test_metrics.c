/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text to the byte, strings of strangers in it, and the buckets of times. */
#include "unit.h"

#include "lib/base/attr.h"
#include "lib/metrics/histogram.h"
#include "lib/metrics/http.h"
#include "lib/metrics/text.h"

static const struct metric table[] = {
    { "a_total", METRIC_COUNTER, { "topic", "partition" }, "How many" },
    { "b", METRIC_GAUGE, { NULL }, "How much" },
    { "c_ms", METRIC_HISTOGRAM, { "request" }, "How long" },
};
enum { A, B, C };

static void printed(struct metrics_text *t, const char *expected)
{
    struct bytebuf b = { 0 };
    metrics_print(t, &b);
    assert_string_equal(bytebuf_cstr(&b), expected);
    bytebuf_done(&b);
    metrics_text_free(t);
}

#define HEAD_A "# HELP a_total How many\n# TYPE a_total counter\n"
#define HEAD_B "# HELP b How much\n# TYPE b gauge\n"
#define HEAD_C "# HELP c_ms How long\n# TYPE c_ms histogram\n"

static void samples_stand_with_their_metric(void **state)
{
    (void)state;
    struct metrics_text *t = metrics_text_new(table, ARRAY_LEN(table), 10);
    metrics_add(t, B, NO_LABELS, -1);
    metrics_add(t, A, LABELS("t", "0"), 1);
    metrics_add_double(t, B, NO_LABELS, 1796076231.978);
    metrics_add(t, A, LABELS(NULL, "1"), INT64_MAX);
    metrics_add(t, A, NO_LABELS, 3);
    printed(t, HEAD_A "a_total{topic=\"t\",partition=\"0\"} 1\n"
                      "a_total{partition=\"1\"} 9223372036854775807\n"
                      "a_total 3\n" HEAD_B "b -1\nb 1796076231.978\n" HEAD_C);
}

static void names_of_strangers_stay_within_their_quotes(void **state)
{
    static const struct {
        const char *name, *label, *json;
    } cases[] = {
        { "a\"} 1\nb 2", "a\\\"} 1\\nb 2", "a\\\"} 1\\u000ab 2" },
        { "\\", "\\\\", "\\\\" },
        { "</script>&'", "</script>&'", "\\u003c/script\\u003e\\u0026\\u0027" },
        { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
        { "a\xffz\xc3", "a\xef\xbf\xbdz\xef\xbf\xbd", "a\xef\xbf\xbdz\xef\xbf\xbd" },
        { "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
        { "\x01\t\x7f", "\x01\t\x7f", "\\u0001\\u0009\\u007f" },
        { "", "", "" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char expected[512];
        struct bytebuf json = { 0 };
        struct metrics_text *t = metrics_text_new(table, ARRAY_LEN(table), 10);
        metrics_add(t, A, LABELS(cases[i].name), 1);
        snprintf(expected, sizeof expected, HEAD_A "a_total{topic=\"%s\"} 1\n" HEAD_B HEAD_C, cases[i].label);
        printed(t, expected);
        metrics_json_string(&json, cases[i].name);
        snprintf(expected, sizeof expected, "\"%s\"", cases[i].json);
        assert_string_equal(bytebuf_cstr(&json), expected);
        bytebuf_done(&json);
    }
}

static void a_metric_takes_so_many_samples(void **state)
{
    (void)state;
    struct metrics_text *t = metrics_text_new(table, ARRAY_LEN(table), 2);
    for (int i = 0; i < 5; i++)
        metrics_add(t, A, LABELS("t"), i);
    metrics_add(t, B, NO_LABELS, 7);
    assert_int_equal(metrics_left_out(t, A), 3);
    assert_int_equal(metrics_left_out(t, B), 0);
    printed(t, HEAD_A "a_total{topic=\"t\"} 0\na_total{topic=\"t\"} 1\n" HEAD_B "b 7\n" HEAD_C);
}

static void buckets_have_inclusive_bounds_and_add_up(void **state)
{
    (void)state;
    struct histogram one = { 0 }, other = { 0 };
    struct histogram_sum sum = { 0 };
    histogram_add(&one, -5);
    histogram_add(&one, 100);
    histogram_add(&one, 101);
    histogram_add(&other, 10000000);
    histogram_add(&other, 10000001);
    histogram_collect(&sum, &one);
    histogram_collect(&sum, &other);
    assert_int_equal(sum.count, 5);
    assert_int_equal(sum.sum_us, 20000202);
    assert_int_equal(sum.n[0], 2);
    assert_int_equal(sum.n[1], 1);
    assert_int_equal(sum.n[HISTOGRAM_BOUNDS - 1], 1);
    assert_int_equal(sum.n[HISTOGRAM_BOUNDS], 1);
    assert_int_equal(histogram_quantile_us(&sum, 0.4), 100);
    assert_int_equal(histogram_quantile_us(&sum, 0.5), 250);
    assert_int_equal(histogram_quantile_us(&sum, 0.8), 10000000);
    assert_true(histogram_quantile_us(&sum, 0.99) == UINT64_MAX);
    assert_int_equal(histogram_quantile_us(&(struct histogram_sum){ 0 }, 0.99), 0);

    struct metrics_text *t = metrics_text_new(table, ARRAY_LEN(table), 10);
    metrics_add_histogram(t, C, LABELS("Fetch"), &sum, 1000);
    printed(t, HEAD_A HEAD_B HEAD_C "c_ms_bucket{request=\"Fetch\",le=\"0.1\"} 2\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"0.25\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"0.5\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"1\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"2.5\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"5\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"10\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"25\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"50\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"100\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"250\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"500\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"1000\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"2500\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"5000\"} 3\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"10000\"} 4\n"
                                    "c_ms_bucket{request=\"Fetch\",le=\"+Inf\"} 5\n"
                                    "c_ms_sum{request=\"Fetch\"} 20000.202\n"
                                    "c_ms_count{request=\"Fetch\"} 5\n");
}

static void an_address_is_host_and_port(void **state)
{
    char err[128] = "";
    (void)state;
    assert_true(http_address_ok("127.0.0.1:9644", "x", err, sizeof err));
    assert_true(http_address_ok(":0", "x", err, sizeof err));
    assert_true(http_address_ok("[::1]:1", "x", err, sizeof err));
    assert_false(http_address_ok("9644", "http.listener", err, sizeof err));
    assert_string_equal(err, "http.listener: \"9644\" is not HOST:PORT, as 127.0.0.1:9644");
    assert_false(http_address_ok("a:70000", "x", err, sizeof err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_stand_with_their_metric),
        cmocka_unit_test(names_of_strangers_stay_within_their_quotes),
        cmocka_unit_test(a_metric_takes_so_many_samples),
        cmocka_unit_test(buckets_have_inclusive_bounds_and_add_up),
        cmocka_unit_test(an_address_is_host_and_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
