/* SPDX-License-Identifier: Apache-2.0 */
/* HOST:PORT as brokers and listeners are written: what is read, and what is none. */
#include "unit.h"

#include "lib/base/attr.h"
#include "lib/base/hostport.h"

static void hosts_and_ports_are_told_apart(void **state)
{
    static const struct {
        const char *text, *host; /* host NULL: refused */
        int32_t port;
    } cases[] = {
        { "a:1", "a", 1 },
        { "a", "a", -1 },
        { "a:0", "a", 0 },
        { "a:65535", "a", 65535 },
        { ":9092", "", 9092 },
        { "", "", -1 },
        { "[::1]:9092", "::1", 9092 },
        { "[::1]", "::1", -1 },
        { "[]:1", "", 1 },
        { "a:", NULL, 0 },
        { "a:65536", NULL, 0 },
        { "a:000001", NULL, 0 },
        { "a:+1", NULL, 0 },
        { "a: 1", NULL, 0 },
        { "a:0x1", NULL, 0 },
        { "a:1:2", NULL, 0 },
        { "::1", NULL, 0 },
        { "[::1", NULL, 0 },
        { "[::1]9092", NULL, 0 },
        { "[::1]:", NULL, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hostport hp;
        bool ok = hostport_parse(cases[i].text, strlen(cases[i].text), &hp);
        if (ok != (cases[i].host != NULL) || (ok && (!kstr_eqz(hp.host, cases[i].host) || hp.port != cases[i].port)))
            fail_msg("%s is read otherwise", cases[i].text);
    }
}

static void only_the_bytes_given_are_read(void **state)
{
    struct hostport hp;

    (void)state;
    assert_true(hostport_parse("a:12,b:3", 4, &hp));
    assert_int_equal(hp.port, 12);
    assert_true(hostport_parse("[::1]:9092", 5, &hp));
    assert_int_equal(hp.port, -1);
}

static void a_host_is_no_longer_than_a_name_can_be(void **state)
{
    char text[256];
    struct hostport hp;

    (void)state;
    memset(text, 'a', sizeof text);
    assert_true(hostport_parse(text, 255, &hp));
    assert_false(hostport_parse(text, 256, &hp));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_and_ports_are_told_apart),
        cmocka_unit_test(only_the_bytes_given_are_read),
        cmocka_unit_test(a_host_is_no_longer_than_a_name_can_be),
    };
    return RUN(tests);
}
