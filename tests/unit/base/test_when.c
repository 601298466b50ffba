/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times and durations as people write them: every form, what is refused, and that what names no zone is local time, also where
 * the clock is changed in spring and autumn.
 */
#include "unit.h"

#include <stdlib.h>
#include <time.h>

#include "lib/base/attr.h"
#include "lib/base/when.h"

static void zone(const char *name)
{
    setenv("TZ", name, 1);
    tzset();
}

static void times_are_read_as_people_write_them(void **state)
{
    static const int64_t now = 1767323045678; /* 2026-01-02T03:04:05.678Z */
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } cases[] = {
        { "1700000000000", 1700000000000 },
        { "1700000000", 1700000000000 },
        { "0", 0 },
        { "-1h", 1767323045678 - 3600000 },
        { "-30m", 1767323045678 - 1800000 },
        { "-2d", 1767323045678 - 172800000 },
        { "-90s", 1767323045678 - 90000 },
        { "-500ms", 1767323045678 - 500 },
        { "2026-01-02T03:04:05Z", 1767323045000 },
        { "2026-01-02T03:04:05.678Z", 1767323045678 },
        { "2026-01-02T04:04:05+01:00", 1767323045000 },
        { "2026-01-02T01:04:05-02:00", 1767323045000 },
        { "2026-01-02 03:04:05", 1767323045000 },
        { "2026-01-02", 1767312000000 },
        { "03:00", 1767322800000 },
        { "03:00:01", 1767322801000 },
        { "2026-01-02T03:04:05.6789z", 1767323045678 },
        { "2026-01-02T08:34:05+0530", 1767323045000 },
        { "", -1 },
        { "-1", -1 },
        { "-1w", -1 },
        { "-99999999999d", 0 },
        { "-999999999999d", -1 },
        { "yesterday", -1 },
        { "2026-01-02T03", -1 },
        { "2026-02-29", -1 },
        { "2028-02-29", 1835395200000 },
        { "2026-01-02T03:04:05X", -1 },
        { "25:00", -1 },
        { "03:00:", -1 },
        { "2026-1-2", -1 },
        { "2026-01-02T03:04:05.", -1 },
        { "1969-12-31", 0 },
        { "99999999999999999999", -1 },
    };

    (void)state;
    zone("UTC");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t ms = -1;
        bool ok = time_parse(cases[i].text, now, &ms);
        if (ok != (cases[i].ms != -1) || ms != cases[i].ms)
            fail_msg("%s gave %d, %lld", cases[i].text, ok, (long long)ms);
    }
}

/* Central Europe, with its rules spelled out, so that no file of zones has to be there. */
#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"

static void what_names_no_zone_is_local_time(void **state)
{
    static const int64_t now = 1767323045678; /* 2026-01-02T04:04:05.678 there */
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        { "2026-01-02", 1767308400000 },              /* 2026-01-01T23:00:00Z */
        { "2026-07-02", 1782943200000 },              /* 2026-07-01T22:00:00Z */
        { "2026-01-02 03:04:05", 1767319445000 },
        { "2026-07-02T03:04:05.5", 1782954245500 },
        { "2026-01-02T03:04:05Z", 1767323045000 },
        { "03:00", 1767319200000 },
        { "1700000000", 1700000000000 },
    };

    (void)state;
    zone(BERLIN);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t ms = -1;
        assert_true(time_parse(cases[i].text, now, &ms));
        if (ms != cases[i].ms)
            fail_msg("%s gave %lld", cases[i].text, (long long)ms);
    }
    zone("UTC");
}

/* On 2026-03-29 it is 03:00 there at once after 02:00: 10:00 comes nine hours after midnight. */
static void today_counts_the_hours_that_the_clock_shows(void **state)
{
    int64_t ms = -1;

    (void)state;
    zone(BERLIN);
    assert_true(time_parse("10:00", 1774800000000, &ms)); /* 2026-03-29T16:00:00Z */
    assert_int_equal(ms, 1774771200000);                  /* 2026-03-29T08:00:00Z */
    zone("UTC");
}

/* Twice on 2026-10-25 it is 02:30 there, and on 2026-03-29 never: the first of the two, and as if the clock had not been put
 * forward yet, whatever was asked before. */
static void an_hour_that_comes_twice_is_the_first(void **state)
{
    static const char *const asked_before[] = { "2026-12-01", "2026-07-01", "2026-12-01" };

    (void)state;
    zone(BERLIN);
    for (size_t i = 0; i < ARRAY_LEN(asked_before); i++) {
        int64_t ms = -1;
        assert_true(time_parse(asked_before[i], 0, &ms));
        assert_true(time_parse("2026-10-25T02:30:00", 0, &ms));
        assert_int_equal(ms, 1792888200000); /* 00:30Z */
        assert_true(time_parse("2026-10-25T03:00:00.250", 0, &ms));
        assert_int_equal(ms, 1792893600250); /* 02:00Z */
        assert_true(time_parse("2026-10-25T01:59:59", 0, &ms));
        assert_int_equal(ms, 1792886399000); /* 23:59:59Z */
        assert_true(time_parse("2026-03-29T02:30:00", 0, &ms));
        assert_int_equal(ms, 1774747800000); /* 01:30Z, 03:30 there */
        assert_true(time_parse("2026-03-29T01:59:59", 0, &ms));
        assert_int_equal(ms, 1774745999000); /* 00:59:59Z */
        assert_true(time_parse("2026-03-29T03:00:00", 0, &ms));
        assert_int_equal(ms, 1774746000000); /* 01:00Z */
    }
    zone("XXX+10YYY-14,M3.5.0,M10.5.0"); /* a whole day is left out */
    int64_t ms = -1;
    assert_true(time_parse("2026-03-29T01:00:00", 0, &ms));
    assert_int_equal(ms, 1774782000000); /* 11:00Z */
    assert_true(time_parse("2026-03-30T02:00:00", 0, &ms));
    assert_int_equal(ms, 1774785600000); /* 12:00Z */
    zone("UTC");
}

/* Ranges are cut at ':': a clock has seconds only where nothing follows. */
static void a_time_ends_before_what_a_range_goes_on_with(void **state)
{
    struct when w;
    const char *range = "10:00:11:30";

    (void)state;
    assert_ptr_equal(when_parse(range, &w), range + 5);
    assert_int_equal(w.ms, 36000000);
    range = "2026-01-02T03:04:05+01:00:-1h";
    assert_ptr_equal(when_parse(range, &w), range + 25);
    assert_int_equal(w.kind, WHEN_AT);
    assert_int_equal(w.ms, 1767319445000);
    range = "-500ms:10";
    assert_ptr_equal(when_parse(range, &w), range + 6);
    assert_int_equal(w.kind, WHEN_AGO);
}

static void durations_are_read_as_people_and_iso_write_them(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } cases[] = {
        { "90s", 90000 },
        { "30m", 1800000 },
        { "1h", 3600000 },
        { "2d", 172800000 },
        { "500ms", 500 },
        { "0s", 0 },
        { "P2D", 172800000 },
        { "PT1H30M", 5400000 },
        { "P1DT12H", 129600000 },
        { "PT5S", 5000 },
        { "PT0S", 0 },
        { "", -1 },
        { "1", -1 },
        { "h", -1 },
        { "1w", -1 },
        { "-1h", -1 },
        { "1h30m", -1 },
        { "P", -1 },
        { "PT", -1 },
        { "P1DT", -1 },
        { "P1H", -1 },
        { "PT1M1H", -1 },
        { "PT1H1H", -1 },
        { "PT-1H", -1 },
        { "PT1", -1 },
        { "99999999999999999999d", -1 },
        { "PT9223372036854775807H", -1 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t ms = -1;
        bool ok = duration_parse(cases[i].text, &ms);
        if (ok != (cases[i].ms != -1) || (ok && ms != cases[i].ms))
            fail_msg("%s gave %d, %lld", cases[i].text, ok, (long long)ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read_as_people_write_them),
        cmocka_unit_test(what_names_no_zone_is_local_time),
        cmocka_unit_test(today_counts_the_hours_that_the_clock_shows),
        cmocka_unit_test(an_hour_that_comes_twice_is_the_first),
        cmocka_unit_test(a_time_ends_before_what_a_range_goes_on_with),
        cmocka_unit_test(durations_are_read_as_people_and_iso_write_them),
    };
    return RUN(tests);
}
