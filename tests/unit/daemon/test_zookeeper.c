/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ZooKeeper back-end against a real ZooKeeper: what every back-end must do, and what is special about this one: sessions that
 * are lost, resumed and ended, servers that stand still or are killed, and what its client library does with all of that.
 */
#include "unit.h"
#include "world.h"

#include <unistd.h>

#include "daemon/config/broker_config.h"
#include "daemon/meta/zookeeper.h"
#include "lib/base/attr.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/loop/loop.h"
#include "lib/store/io.h"
#include "tests/unit/daemon/registers_conformance.h"
#include "tests/unit/daemon/zookeeper_server.h"

/* Long enough for a busy machine; short where a test waits for it. */
enum { SESSION_MS = 20000, SHORT_SESSION_MS = 3000 };

static struct zookeeper_server server; /* of all tests; each has a chroot of its own */
static int n_chroots;

struct zk_rig {
    struct registers_rig rig; /* first */
    struct world world;
    char connect[128];
    const char *digest;
    int session_ms;
    struct session_seen seen;
};

static void rig_open(struct zk_rig *s)
{
    struct zookeeper_target to;
    char err[256] = "";
    assert_int_equal(zookeeper_target_parse(s->connect, s->digest, s->session_ms, &to, err, sizeof err), 0);
    assert_int_equal(registers_open_zookeeper(&to, s->rig.loop, &s->rig.r, err, sizeof err), 0);
    zookeeper_target_done(&to);
    memset(&s->seen, 0, sizeof s->seen);
    registers_on_session(s->rig.r, saw_session, &s->seen);
}

static void rig_reopen(struct registers_rig *rig)
{
    struct zk_rig *s = container_of(rig, struct zk_rig, rig);
    registers_close(rig->r);
    rig_open(s);
}

static struct zk_rig *rig_new(const char *chroot)
{
    struct zk_rig *s = xcalloc(1, sizeof *s);
    s->world = *test_world();
    s->rig.loop = loop_new(&s->world);
    s->rig.reopen = rig_reopen;
    s->rig.has_multi_max = true;
    s->digest = "";
    s->session_ms = SESSION_MS;
    snprintf(s->connect, sizeof s->connect, "127.0.0.1:%d%s", server.port, chroot);
    return s;
}

static void rig_free(struct zk_rig *s)
{
    registers_close(s->rig.r);
    loop_free(s->rig.loop);
    free(s);
}

static int setup(void **state)
{
    char chroot[32];
    snprintf(chroot, sizeof chroot, "/apps/t%d", n_chroots++);
    struct zk_rig *s = rig_new(chroot);
    *state = s;
    rig_open(s);
    return 0;
}

static int teardown(void **state)
{
    rig_free(*state);
    return 0;
}

/* Until the listener was told that, as "SC" for suspended, then connected. */
static void wait_events(struct zk_rig *s, const char *ends_with)
{
    size_t n = strlen(ends_with);
    while (strlen(s->seen.events) < n || strcmp(s->seen.events + strlen(s->seen.events) - n, ends_with) != 0)
        loop_run_once(s->rig.loop, 1000);
}

/* As ZooKeeper itself has it. */
static const char *path_of(const struct zk_rig *s, const char *path)
{
    static char ret[128];
    snprintf(ret, sizeof ret, "%s%s", strchr(s->connect, '/'), path);
    return ret;
}

/* ---- sessions ---- */

static void a_session_that_ends_takes_its_ephemeral_registers_and_another_begins(void **state)
{
    struct zk_rig *s = *state;
    struct registers_rig *r = &s->rig;
    struct seen n = { .paths = "" };

    assert_int_equal(create(r, "/ids", ""), 0);
    assert_int_equal(one(r, REGISTER_CREATE_EPHEMERAL, "/ids/1", "me", 0), 0);
    n.w = registers_watch(r->r, "/ids", saw, &n);
    assert_int_equal(sync_reads(r), 0);
    wait_events(s, "C");

    zookeeper_server_end_session(&server, path_of(s, "/ids/1"));
    wait_events(s, "X");
    assert_int_equal(get(r, "/ids").rc, -EREMOTEIO); /* until it is renewed */
    assert_int_equal(one(r, REGISTER_SET, "/ids", "x", 0), -EREMOTEIO);
    assert_int_equal(sync_reads(r), -EREMOTEIO);
    n.paths[0] = '\0';

    registers_renew(r->r);
    registers_renew(r->r);
    wait_events(s, "XC");
    assert_int_equal(sync_reads(r), 0);
    assert_true(was_told(&n, "/ids")); /* the watch lives on */
    assert_absent(r, "/ids/1");
    assert_register(r, "/ids", "", 0);
    assert_int_equal(one(r, REGISTER_CREATE_EPHEMERAL, "/ids/1", "me again", 0), 0);
    assert_true(was_told(&n, "/ids/1"));
    registers_unwatch(r->r, n.w);
}

static void a_server_that_stands_still_suspends_the_session_and_no_more(void **state)
{
    struct zk_rig *s = rig_new("/apps/still");
    struct registers_rig *r = &s->rig;
    struct answer a = { 0 };
    struct register_op o = op(REGISTER_SET, "/a", "late", 0);
    (void)state;

    s->session_ms = 2 * SHORT_SESSION_MS; /* a third of it is left when it is noticed */
    rig_open(s);
    assert_int_equal(create(r, "/a", "1"), 0);
    assert_int_equal(one(r, REGISTER_CREATE_EPHEMERAL, "/e", "me", 0), 0);
    wait_events(s, "C");
    zookeeper_server_pause(&server);
    registers_multi(r->r, &o, 1, got_rc, &a);
    wait_events(s, "CS");
    wait_for(r, &a.done);
    assert_int_equal(a.rc, -EREMOTEIO); /* it was sent, and may happen when the server goes on */
    assert_int_equal(o.rc, -EREMOTEIO);
    int64_t silent = registers_last_reply_ms(r->r);
    assert_true(world_mono_ms(&s->world) - silent >= s->session_ms / 3);
    zookeeper_server_resume(&server);
    wait_events(s, "CSC");

    struct answer got = get(r, "/a"); /* R3: read, and see */
    assert_int_equal(got.rc, 0);
    assert_true(got.version == 0 || (got.version == 1 && strcmp(got.value, "late") == 0));
    assert_true(registers_last_reply_ms(r->r) > silent);
    assert_register(r, "/e", "me", 0); /* the same session */
    rig_free(s);
}

/* What is asked while nobody answers waits, but not for ever. */
static void calls_wait_for_a_server_that_was_killed_and_comes_back(void **state)
{
    struct zk_rig *s = rig_new("/apps/killed");
    struct registers_rig *r = &s->rig;
    struct seen n = { .paths = "" };
    struct answer first = { 0 }, a[2] = { 0 };
    struct register_op o = op(REGISTER_SET, "/t/p", "2", 1);
    (void)state;

    s->session_ms = SHORT_SESSION_MS;
    rig_open(s);
    assert_int_equal(create(r, "/t", ""), 0);
    assert_int_equal(create(r, "/t/p", "0"), 0);
    n.w = registers_watch(r->r, "/t", saw, &n);
    assert_int_equal(one(r, REGISTER_SET, "/t/p", "1", 0), 0);
    zookeeper_server_stop(&server);
    wait_events(s, "CS");
    registers_get(r->r, "/t/p", got_value, &first);
    wait_for(r, &first.done);
    assert_int_equal(first.rc, -EREMOTEIO);
    assert_string_equal(s->seen.events, "SCS"); /* no expiry: nobody can know */

    registers_multi(r->r, &o, 1, got_rc, &a[0]);
    registers_get(r->r, "/t/p", got_value, &a[1]);
    n.paths[0] = '\0';
    zookeeper_server_start(&server);
    wait_for(r, &a[1].done);
    if (a[0].rc == -EREMOTEIO) { /* a start slower than a session's time-out */
        wait_events(s, "C");
        assert_int_equal(one(r, REGISTER_SET, "/t/p", "2", 1), 0);
    } else {
        assert_int_equal(a[0].rc, 0);
        assert_int_equal(a[1].rc, 0);
        assert_string_equal(a[1].value, "2");
        assert_int_equal(a[1].version, 2);
    }
    assert_true(was_told(&n, "/t"));
    assert_int_equal(one(r, REGISTER_SET, "/t/p", "3", 2), 0); /* watches are armed again */
    assert_true(was_told(&n, "/t/p"));
    registers_unwatch(r->r, n.w);
    rig_free(s);
}

/* ---- the start ---- */

static void what_is_asked_before_the_first_connection_waits_or_fails(void **state)
{
    struct zk_rig *s = rig_new("/apps/none");
    (void)state;

    zookeeper_server_stop(&server);
    s->session_ms = SHORT_SESSION_MS;
    rig_open(s);
    wait_events(s, "S");
    assert_int_equal(get(&s->rig, "/a").rc, -EREMOTEIO);
    assert_int_equal(create(&s->rig, "/a", ""), -EREMOTEIO);
    zookeeper_server_start(&server);
    wait_events(s, "SC");
    assert_absent(&s->rig, "/a"); /* it was not sent */
    rig_free(s);
}

static void a_host_that_does_not_resolve_is_asked_for_again(void **state)
{
    struct zk_rig *s = rig_new("");
    (void)state;

    strcpy(s->connect, "no-such-host.invalid:2181");
    s->session_ms = 200;
    rig_open(s);
    assert_int_equal(get(&s->rig, "/a").rc, -EREMOTEIO);
    rig_reopen(&s->rig); /* closes while the keeper waits for its next look */
    rig_free(s);
}

static void one_host_of_several_is_enough(void **state)
{
    struct zk_rig *s = rig_new("");
    (void)state;

    snprintf(s->connect, sizeof s->connect, "no-such-host.invalid,127.0.0.1:1,localhost:%d/apps/several", server.port);
    rig_open(s);
    assert_int_equal(create(&s->rig, "/a", "1"), 0);
    assert_children(&s->rig, "/", 0, "a");
    rig_free(s);
}

static void a_close_while_suspended_does_not_wait_for_the_server(void **state)
{
    struct zk_rig *s = rig_new("/apps/close");
    struct answer a = { 0 };
    (void)state;

    rig_open(s);
    assert_int_equal(create(&s->rig, "/a", "1"), 0);
    zookeeper_server_stop(&server);
    wait_events(s, "CS");
    registers_get(s->rig.r, "/a", got_value, &a);
    loop_run_once(s->rig.loop, 0);
    rig_free(s);
    assert_false(a.done);
    zookeeper_server_start(&server);
}

/* ---- access ---- */

static void registers_with_a_digest_are_for_those_who_have_it(void **state)
{
    struct zk_rig *s = rig_new("/apps/secret"), *other = rig_new("/apps/secret");
    (void)state;

    s->digest = "klog:s3cret";
    rig_open(s);
    assert_int_equal(create(&s->rig, "/a", "1"), 0);
    assert_register(&s->rig, "/a", "1", 0);

    other->digest = "klog:wrong";
    rig_open(other);
    assert_int_equal(get(&other->rig, "/a").rc, -EACCES);
    assert_int_equal(one(&other->rig, REGISTER_SET, "/a", "2", 0), -EACCES);
    assert_int_equal(create(&other->rig, "/b", ""), -EACCES);
    assert_children(&other->rig, "/", -EACCES, "");
    other->digest = "";
    rig_reopen(&other->rig);
    assert_int_equal(get(&other->rig, "/a").rc, -EACCES);
    other->digest = "klog:s3cret";
    rig_reopen(&other->rig);
    assert_register(&other->rig, "/a", "1", 0);
    rig_free(other);
    rig_free(s);
}

/* ---- sizes ---- */

/* A server drops the connection of who sends more than 1 MiB, each time: nothing near it is sent. */
static void a_multi_that_is_too_large_costs_nothing_but_itself(void **state)
{
    struct zk_rig *s = *state;
    struct registers_rig *r = &s->rig;
    enum { N = 8 };
    static char value[40000];
    struct register_op ops[N];
    static const char *const paths[N] = { "/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7" };
    struct answer a[3] = { 0 };
    struct register_op before = op(REGISTER_CREATE, "/before", "", 0), after = op(REGISTER_CREATE, "/after", "", 0);

    memset(value, 'x', sizeof value);
    for (int i = 0; i < N; i++)
        ops[i] = (struct register_op){ REGISTER_CREATE, paths[i], slice_of(value, sizeof value), 0, 0, 0 };
    registers_multi(r->r, &before, 1, got_rc, &a[0]);
    registers_multi(r->r, ops, N, got_rc, &a[1]);
    registers_multi(r->r, &after, 1, got_rc, &a[2]);
    wait_for(r, &a[1].done);
    assert_true(a[0].done); /* answers keep their order */
    wait_for(r, &a[2].done);
    assert_int_equal(a[0].rc, 0);
    assert_int_equal(a[1].rc, -E2BIG);
    assert_int_equal(a[2].rc, 0);
    assert_children(r, "/", 0, "after before");
    assert_string_equal(s->seen.events, "SC");

    assert_int_equal(multi(r, ops, 6), 0);
    assert_int_equal(create(r, "/a/./b", ""), -EINVAL);
    assert_int_equal(create(r, "/..", ""), -EINVAL);
    assert_int_equal(get(r, "/..").rc, -EINVAL);
    assert_int_equal(one(r, REGISTER_SET, "/before", "x", (int64_t)1 << 40), -ESTALE);
}

static const char *partition_path(const char *top, int i, const char *what)
{
    static char ret[512];
    snprintf(ret, sizeof ret, "%s/%d%s", top, i, what);
    return ret;
}

static void create_many(struct registers_rig *r, const char *top, int n)
{
    enum { AT_ONCE = 300 };
    static struct register_op ops[2 * AT_ONCE];

    for (int i = 0; i < n;) {
        int k = 0;
        for (; k < 2 * AT_ONCE && i < n; i++, k += 2) {
            ops[k] = op(REGISTER_CREATE, xstrdup(partition_path(top, i, "")), "", 0);
            ops[k + 1] = op(REGISTER_CREATE, xstrdup(partition_path(top, i, "/state")), "0", 0);
        }
        assert_int_equal(multi(r, ops, k), 0);
        while (k > 0)
            free((char *)(uintptr_t)ops[--k].path);
    }
}

/* ZooKeeper's library would arm them all anew in one request, be disconnected for it, and so on for ever. */
static void more_watched_paths_than_a_request_can_hold_survive_a_lost_connection(void **state)
{
    struct zk_rig *s = *state;
    struct registers_rig *r = &s->rig;
    struct seen n = { .paths = "" };
    enum { N = 1500 }; /* two nodes each, two watches a node */
    char top[241];

    memset(top, 'x', sizeof top - 1);
    top[0] = '/';
    top[sizeof top - 1] = '\0';
    assert_in_range(N * 4 * sizeof top, 0x100000, 0x200000);
    assert_int_equal(create(r, top, ""), 0);
    create_many(r, top, N);
    n.w = registers_watch(r->r, top, saw, &n);
    assert_int_equal(sync_reads(r), 0);
    assert_string_equal(n.paths, ""); /* a sweep tells nothing */
    const char *path = partition_path(top, N - 1, "/state");
    assert_int_equal(one(r, REGISTER_SET, path, "1", 0), 0);
    assert_memory_equal(n.paths, path, strlen(path));

    zookeeper_server_stop(&server);
    wait_events(s, "S");
    zookeeper_server_start(&server);
    wait_events(s, "C");
    assert_int_equal(sync_reads(r), 0);
    n.paths[0] = '\0';
    path = partition_path(top, N / 2, "/state");
    assert_int_equal(one(r, REGISTER_SET, path, "1", 0), 0);
    assert_true(was_told(&n, path));
    assert_non_null(strstr(s->seen.events, "SCSC"));
    registers_unwatch(r->r, n.w);
}

/* ---- the text of zookeeper.connect ---- */

static int parse(const char *text, struct zookeeper_target *to)
{
    char err[256] = "";
    int rc = zookeeper_target_parse(text, "", 6000, to, err, sizeof err);
    assert_true((rc < 0) == (err[0] != '\0'));
    return rc;
}

static void connect_strings_are_as_zookeepers_own(void **state)
{
    struct zookeeper_target to;
    char err[256];
    static const char *const bad[] = { "", "/klog", ",", "h:0", "h:65536", "h:x", "h1,,h2", "h/a//b", "h/a/" };
    (void)state;

    assert_int_equal(parse("zk1, zk2:2182,[::1]:2183/apps/klog", &to), 0);
    assert_int_equal(to.n_hosts, 3);
    assert_string_equal(to.hosts[0].host, "zk1");
    assert_int_equal(to.hosts[0].port, 2181);
    assert_string_equal(to.hosts[1].host, "zk2");
    assert_int_equal(to.hosts[1].port, 2182);
    assert_string_equal(to.hosts[2].host, "::1");
    assert_string_equal(to.chroot, "/apps/klog");
    zookeeper_target_done(&to);
    assert_int_equal(parse("h/", &to), 0);
    assert_string_equal(to.chroot, "");
    zookeeper_target_done(&to);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(parse(bad[i], &to), -EINVAL);
    assert_int_equal(zookeeper_target_parse("h", "nocolon", 6000, &to, err, sizeof err), -EINVAL);
    assert_non_null(strstr(err, "zookeeper.digest.file"));
}

static void the_digest_stands_in_a_file_of_its_own(void **state)
{
    struct broker_config c;
    struct zookeeper_target to;
    struct world w = *test_world();
    char err[256], path[128];
    (void)state;

    w.io = &store_io_real;
    broker_config_init(&c);
    assert_int_equal(broker_config_set(&c, "zookeeper.connect", "h1,h2/klog", err, sizeof err), 0);
    assert_int_equal(broker_config_set(&c, "zookeeper.session.timeout.ms", "700", err, sizeof err), 0);
    assert_int_equal(zookeeper_target_of(&c, &w, &to, err, sizeof err), 0);
    assert_int_equal(to.n_hosts, 2);
    assert_string_equal(to.digest, "");
    assert_int_equal(to.session_timeout_ms, 700);
    zookeeper_target_done(&to);

    snprintf(path, sizeof path, "%s/digest", server.dir);
    assert_int_equal(broker_config_set(&c, "zookeeper.digest.file", path, err, sizeof err), 0);
    assert_int_equal(zookeeper_target_of(&c, &w, &to, err, sizeof err), -ENOENT);
    assert_non_null(strstr(err, path));
    static const struct {
        const char *text, *digest;
    } cases[] = { { "klog:a#b:c\n", "klog:a#b:c" }, { "klog:x", "klog:x" }, { "", NULL }, { "nocolon\n", NULL } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        FILE *f = fopen(path, "w");
        fputs(cases[i].text, f);
        fclose(f);
        int rc = zookeeper_target_of(&c, &w, &to, err, sizeof err);
        assert_int_equal(rc, cases[i].digest == NULL ? -EINVAL : 0);
        if (rc < 0)
            continue;
        assert_string_equal(to.digest, cases[i].digest);
        zookeeper_target_done(&to);
    }
    broker_config_done(&c);
}

static int start_server(void **state)
{
    (void)state;
    log_set_level(LOG_LEVEL_ERROR);
    zookeeper_server_init(&server, 0);
    zookeeper_server_start(&server);
    return 0;
}

static int end_server(void **state)
{
    (void)state;
    zookeeper_server_done(&server);
    return 0;
}

#define ONE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REGISTERS_CONFORMANCE(ONE),
        cmocka_unit_test(connect_strings_are_as_zookeepers_own),
        cmocka_unit_test(the_digest_stands_in_a_file_of_its_own),
        ONE(a_session_that_ends_takes_its_ephemeral_registers_and_another_begins),
        cmocka_unit_test(a_server_that_stands_still_suspends_the_session_and_no_more),
        cmocka_unit_test(calls_wait_for_a_server_that_was_killed_and_comes_back),
        cmocka_unit_test(what_is_asked_before_the_first_connection_waits_or_fails),
        cmocka_unit_test(a_host_that_does_not_resolve_is_asked_for_again),
        cmocka_unit_test(one_host_of_several_is_enough),
        cmocka_unit_test(a_close_while_suspended_does_not_wait_for_the_server),
        cmocka_unit_test(registers_with_a_digest_are_for_those_who_have_it),
        ONE(a_multi_that_is_too_large_costs_nothing_but_itself),
        ONE(more_watched_paths_than_a_request_can_hold_survive_a_lost_connection),
    };
    const char *missing = zookeeper_missing();
    if (missing != NULL) {
        fprintf(stderr, "SKIP: needs %s\n", missing);
        return 77;
    }
    return cmocka_run_group_tests(tests, start_server, end_server) != 0;
}
