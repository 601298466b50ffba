/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every number that may be set, at its smallest and its largest legal value: a broker with it starts, stores, serves,
 * keeps its timers and stops clean. Sums of times that overflow are seen by the sanitizers, and by a Fetch that
 * has to end by its timer.
 */
#include "rig.h"

#include <unistd.h>

#include "daemon/config/topic_config.h"
#include "lib/base/arena.h"
#include "lib/base/attr.h"
#include "lib/base/clock.h"

/* Values that rightly make a produce request fail. */
static const struct refusal {
    const char *key, *value;
    int error;
} refusals[] = {
    { "message.max.bytes", "0", 10 },
    { "max.message.bytes", "0", 10 },
    { "min.insync.replicas", "32", 19 },
    { "log.message.timestamp.before.max.ms", "0", 32 },
    { "message.timestamp.before.max.ms", "0", 32 },
};

static int expected_error(const char *key, const char *value)
{
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
        if (strcmp(refusals[i].key, key) == 0 && strcmp(refusals[i].value, value) == 0)
            return refusals[i].error;
    return 0;
}

static bool is_number(const struct conf_key *k)
{
    return k->type == CONF_INT || k->type == CONF_LONG || k->type == CONF_DOUBLE;
}

/* A setting of Kafka's that klog knows one value of refuses its ends, and says so. */
static bool takes_one_value(const struct conf_key *k)
{
    return strncmp(k->doc, "Kafka's; only this value", 24) == 0;
}

static void value_text(const struct conf_key *k, bool largest, char *ret, size_t size)
{
    double v = largest ? k->max : k->min;
    if (k->type == CONF_DOUBLE)
        snprintf(ret, size, "%.17g", v);
    else if (v >= (double)INT64_MAX)
        snprintf(ret, size, "%lld", (long long)INT64_MAX);
    else
        snprintf(ret, size, "%lld", (long long)v);
}

/* Stores three records in topic x, reads them, and waits for more until a timer ends that. */
static void use(struct rig *g, const char *key, const char *value)
{
    struct arena a;
    struct bytebuf batch = { 0 };
    int fd = peer_open(g), error = expected_error(key, value);
    arena_init(&a);
    make_batch(&batch, "v", 3, clock_wall_ms() - 1000);
    int got = peer_produce(fd, 9, "x", -1, &batch, &a)->error_code;
    if (got != error)
        fail_msg("%s=%s: produce answered %d", key, value, got);
    int n = error == 0 ? 3 : 0;
    assert_int_equal(peer_offset(fd, "x", -1), n);
    struct fetch_response_partitions *p = peer_fetch(fd, 11, fetch_one(&a, "x", 0, 0), &a);
    assert_int_equal(p->error_code, 0);
    assert_int_equal(p->records.n > 0, n > 0);
    p = peer_fetch(fd, 11, fetch_one(&a, "x", n, 20), &a);
    assert_int_equal(p->error_code, 0);
    assert_int_equal(p->records.n, 0);
    bytebuf_done(&batch);
    arena_done(&a);
    close(fd);
}

static void every_broker_key_works_at_its_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * broker_config_table.n; i++) {
        const struct conf_key *k = &broker_config_table.keys[i / 2];
        if (!is_number(k))
            continue;
        char value[32];
        value_text(k, i % 2 == 1, value, sizeof value);
        bool flushes = strncmp(k->name, "log.flush.", 10) == 0;
        const char *other = strcmp(k->name, "log.flush.interval.ms") == 0 ? "log.flush.interval.messages"
                                                                           : "log.flush.interval.ms";
        const char *const overrides[] = { k->name,        value, flushes ? "flush.policy" : NULL,
                                          "interval",     other, "1",
                                          NULL };
        struct rig g;
        rig_start(&g, overrides);
        rig_create_topic(&g, "x", 1, NULL);
        use(&g, k->name, value);
        rig_done(&g);
    }
}

static void every_topic_key_works_at_its_ends(void **state)
{
    (void)state;
    struct rig g;
    rig_start(&g, NULL);
    for (size_t i = 0; i < 2 * topic_config_table.n; i++) {
        const struct conf_key *k = &topic_config_table.keys[i / 2];
        if (!is_number(k) || takes_one_value(k))
            continue;
        char value[32];
        value_text(k, i % 2 == 1, value, sizeof value);
        bool flushes = strncmp(k->name, "flush.", 6) == 0;
        const char *other = strcmp(k->name, "flush.ms") == 0 ? "flush.messages" : "flush.ms";
        const char *const entries[] = { k->name, value, flushes ? "flush.policy" : NULL, "interval", other, "1", NULL };
        const char *const index[] = { k->name, value, "segment.bytes", "1024", NULL }; /* what the smallest has room for */
        rig_create_topic(&g, "x", 1, strcmp(k->name, "segment.index.bytes") == 0 ? index : entries);
        use(&g, k->name, value);
        rig_delete_topic(&g, "x");
    }
    rig_done(&g);
}

/* All times at once at the end of time: nothing spins, nothing dies. */
static void all_times_may_be_for_ever(void **state)
{
    (void)state;
    static const char forever[] = "9223372036854775807";
    const char *overrides[2 * BROKER_CONFIG_KEYS_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < broker_config_table.n; i++) {
        const struct conf_key *k = &broker_config_table.keys[i];
        if (k->type != CONF_LONG || strlen(k->name) < 3 || strcmp(k->name + strlen(k->name) - 3, ".ms") != 0)
            continue;
        overrides[n++] = k->name;
        overrides[n++] = k->max >= (double)INT64_MAX ? forever : "2147483647";
    }
    overrides[n] = NULL;
    struct rig g;
    rig_start(&g, overrides);
    rig_create_topic(&g, "x", 1, NULL);
    use(&g, "all", "for ever");
    assert_true(rig_stop(&g));
    rig_start_in(&g, NULL, 1, overrides);
    int fd = peer_open(&g);
    assert_int_equal(peer_offset(fd, "x", -1), 3);
    close(fd);
    rig_done(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_broker_key_works_at_its_ends),
        cmocka_unit_test(every_topic_key_works_at_its_ends),
        cmocka_unit_test(all_times_may_be_for_ever),
    };
    return RUN(tests);
}
