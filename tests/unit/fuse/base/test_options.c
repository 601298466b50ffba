/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of klogfs and mount.klogfs. */
#include "unit.h"

#include <getopt.h>
#include <unistd.h>

#include "fuse/base/options.h"

static struct options o;
static char err[512];

static enum options_result parse(const char *const *words)
{
    int n = 0;
    while (words[n] != NULL)
        n++;
    optind = 0;
    err[0] = '\0';
    return options_parse(n, (char **)words, &o, err, sizeof err);
}
#define PARSE(...) parse((const char *const[]){ __VA_ARGS__, NULL })

static void brokers_and_mount_point_are_enough(void **state)
{
    (void)state;
    assert_int_equal(PARSE("klogfs", "a:1,b", "/tmp/.."), OPTIONS_OK);
    assert_string_equal(o.brokers, "a:1,b:9092");
    assert_string_equal(o.mountpoint, "/");
    assert_false(o.foreground);
    assert_false(o.async);
    assert_int_equal(o.timeout_ms, 10000);
    assert_int_equal(o.session_timeout_ms, 45000);
    assert_int_equal(o.required_acks, -1);
    assert_int_equal(o.umask, 022);
    assert_string_equal(o.http_listener, "");
    options_done(&o);
    assert_int_equal(PARSE("klogfs", "h:1", "/tmp/no/such/place"), OPTIONS_BAD);
    assert_non_null(strstr(err, "No such file"));
    options_done(&o);
    assert_int_equal(PARSE("klogfs", "h:1"), OPTIONS_BAD);
    options_done(&o);
}

static void every_option_is_understood(void **state)
{
    (void)state;
    assert_int_equal(
        PARSE("klogfs", "-f", "h:1", "/", "-o", "ro,allow_other,uid=7,gid=8,umask=077,async", "-o",
              "acks=1,compression=lz4,timeout=2.5,session=6,linger=20,batch.size=4096,delete,http.listener=[::1]:9645,nosuid,rw,x-a=b"),
        OPTIONS_OK);
    assert_true(o.foreground && o.ro && o.allow_other && o.async && o.delete_topics);
    assert_int_equal(o.uid, 7);
    assert_int_equal(o.gid, 8);
    assert_int_equal(o.umask, 077);
    assert_int_equal(o.required_acks, 1);
    assert_int_equal(o.compression, 3);
    assert_int_equal(o.timeout_ms, 2500);
    assert_int_equal(o.session_timeout_ms, 6000);
    assert_int_equal(o.linger_ms, 20);
    assert_int_equal(o.batch_size_bytes, 4096);
    assert_string_equal(o.http_listener, "[::1]:9645");
    assert_string_equal(bytebuf_cstr(&o.kernel_options), ",nosuid");
    options_done(&o);
    assert_int_equal(PARSE("klogfs", "h:1", "/", "-o", "async,sync"), OPTIONS_OK);
    assert_false(o.async);
    options_done(&o);
}

static void owners_are_names_or_numbers(void **state)
{
    (void)state;
    assert_int_equal(PARSE("klogfs", "h:1", "/"), OPTIONS_OK);
    assert_int_equal(o.uid, getuid());
    assert_int_equal(o.gid, getgid());
    assert_false(o.modes_matter);
    options_done(&o);
    assert_int_equal(PARSE("klogfs", "h:1", "/", "-o", "uid=root,gid=root,umask=002"), OPTIONS_OK);
    assert_int_equal(o.uid, 0);
    assert_int_equal(o.gid, 0);
    assert_true(o.modes_matter);
    options_done(&o);
    assert_int_equal(PARSE("klogfs", "h:1", "/", "-o", "uid=4294967294"), OPTIONS_OK);
    assert_int_equal(o.uid, 4294967294u);
    assert_true(o.modes_matter);
    options_done(&o);
    /* what is no number below 2^32 - 1 is a name, and nobody has these */
    static const char *const bad[] = { "uid=4294967295", "uid=99999999999999999999", "uid=-2", "uid=7x", "gid=no-such-group", "uid=" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(PARSE("klogfs", "h:1", "/", "-o", bad[i]), OPTIONS_BAD);
        assert_non_null(strstr(err, bad[i]));
        assert_non_null(strstr(err, "there is no such"));
        options_done(&o);
    }
}

static void an_unknown_option_is_refused_with_the_nearest_name(void **state)
{
    (void)state;
    assert_int_equal(PARSE("klogfs", "h:1", "/", "-o", "allow_others"), OPTIONS_BAD);
    assert_non_null(strstr(err, "allow_others"));
    assert_non_null(strstr(err, "allow_other"));
    options_done(&o);
    assert_int_equal(PARSE("klogfs", "h:1", "/", "-o", "umask=9"), OPTIONS_BAD);
    options_done(&o);
    assert_int_equal(PARSE("klogfs", "h:1", "/", "-o", "timeout"), OPTIONS_BAD);
    assert_non_null(strstr(err, "needs a value"));
    options_done(&o);
    assert_int_equal(PARSE("klogfs", "h:1", "/", "-o", "http.listener=9645"), OPTIONS_BAD);
    assert_string_equal(err, "http.listener: \"9645\" is not HOST:PORT, as 127.0.0.1:9644");
    options_done(&o);
    assert_int_equal(PARSE("klogfs", "-q", "h:1", "/"), OPTIONS_BAD);
    options_done(&o);
}

static void the_mount_helper_takes_what_mount_gives_it(void **state)
{
    (void)state;
    assert_int_equal(PARSE("/sbin/mount.klogfs", "h:1", "/", "-s", "-n", "-v", "-o", "rw,_netdev"),
                     OPTIONS_OK);
    assert_false(o.fake);
    options_done(&o);
    assert_int_equal(PARSE("/sbin/mount.klogfs", "h:1", "/", "-f"), OPTIONS_OK);
    assert_true(o.fake);
    assert_false(o.foreground);
    options_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brokers_and_mount_point_are_enough),
        cmocka_unit_test(every_option_is_understood),
        cmocka_unit_test(owners_are_names_or_numbers),
        cmocka_unit_test(an_unknown_option_is_refused_with_the_nearest_name),
        cmocka_unit_test(the_mount_helper_takes_what_mount_gives_it),
    };
    return RUN(tests);
}
