/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration tables of broker and topics, listeners, names, and the values of registers: everything pure.
 */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "daemon/config/broker_config.h"
#include "daemon/meta/config_ops.h"
#include "daemon/meta/register_json.h"
#include "daemon/config/topic_config.h"
#include "lib/base/attr.h"
#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"

struct fixture {
    struct broker_config c;
    char err[512];
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    broker_config_init(&f->c);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    broker_config_done(&f->c);
    free(f);
    return 0;
}

static void set(struct fixture *f, const char *key, const char *value)
{
    assert_int_equal(broker_config_set(&f->c, key, value, f->err, sizeof f->err), 0);
}

static void refuse(struct fixture *f, const char *key, const char *value, const char *why)
{
    assert_int_equal(broker_config_set(&f->c, key, value, f->err, sizeof f->err), -EINVAL);
    if (strstr(f->err, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", f->err, why);
}

/* ---- broker keys ---- */

static void kafka_s_other_names_are_known(void **state)
{
    struct fixture *f = *state;

    set(f, "node.id", "7");
    set(f, "log.dir", "/a,/b");
    assert_int_equal(f->c.broker_id, 7);
    assert_string_equal(f->c.log_dirs, "/a,/b");
    assert_true(broker_config_is_set(&f->c, broker_config_find("broker.id")));
    assert_ptr_equal(broker_config_find("node.id"), broker_config_find("broker.id"));
    assert_false(broker_config_is_set(&f->c, broker_config_find("listeners")));
}

static void an_unknown_key_is_refused_with_the_nearest_name(void **state)
{
    struct fixture *f = *state;

    refuse(f, "log.retention.hour", "1", "log.retention.hours");
    refuse(f, "numpartitions", "1", "num.partitions");
    refuse(f, "num.partitions", "0", "num.partitions");
    refuse(f, "num.partitions", "many", "num.partitions");
    refuse(f, "flush.policy", "sometimes", "commit");
    assert_int_equal(f->c.num_partitions, 1);
    assert_false(broker_config_is_set(&f->c, broker_config_find("num.partitions")));
}

static void the_finest_unit_given_wins(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(broker_config_retention_ms(&f->c), 168 * 3600000LL);
    set(f, "log.retention.hours", "-1");
    assert_int_equal(broker_config_retention_ms(&f->c), -1);
    set(f, "log.retention.minutes", "2");
    assert_int_equal(broker_config_retention_ms(&f->c), 120000);
    set(f, "log.retention.ms", "-1");
    assert_int_equal(broker_config_retention_ms(&f->c), -1);
    set(f, "log.retention.ms", "5");
    assert_int_equal(broker_config_retention_ms(&f->c), 5);

    assert_int_equal(broker_config_roll_ms(&f->c), 168 * 3600000LL);
    set(f, "log.roll.hours", "1");
    assert_int_equal(broker_config_roll_ms(&f->c), 3600000);
    set(f, "log.roll.ms", "9");
    assert_int_equal(broker_config_roll_ms(&f->c), 9);
}

static void check(struct fixture *f, const char *why)
{
    assert_int_equal(broker_config_check(&f->c, f->err, sizeof f->err), -EINVAL);
    if (strstr(f->err, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", f->err, why);
}

static void keys_that_do_not_fit_together_are_refused(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(broker_config_check(&f->c, f->err, sizeof f->err), 0);
    set(f, "log.roll.ms", "0");
    check(f, "log.roll.ms");
    set(f, "log.roll.ms", "-1");
    set(f, "log.dirs", "");
    check(f, "log.dirs");
    set(f, "log.dirs", "/x");
    set(f, "log.cleanup.policy", "");
    check(f, "log.cleanup.policy");
    set(f, "log.cleanup.policy", "delete");
    set(f, "listeners", "nonsense");
    check(f, "NAME://host:port");
}

static void a_file_sets_keys_and_its_errors_name_the_line(void **state)
{
    struct fixture *f = *state;
    char path[] = "settings.XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "# comment\nnode.id = 3\n\nlog.dirs=/x\nnum.partitons=4\n";

    assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
    close(fd);
    assert_int_equal(broker_config_read_file(&f->c, path, f->err, sizeof f->err), -EINVAL);
    assert_non_null(strstr(f->err, "line 5"));
    assert_non_null(strstr(f->err, "num.partitions"));
    assert_int_equal(f->c.broker_id, 3);
    assert_int_equal(unlink(path), 0);
}

static void a_copy_owns_its_strings(void **state)
{
    struct fixture *f = *state;
    struct broker_config copy;

    set(f, "log.dirs", "/x");
    broker_config_copy(&copy, &f->c);
    set(f, "log.dirs", "/y");
    assert_string_equal(copy.log_dirs, "/x");
    assert_true(broker_config_is_set(&copy, broker_config_find("log.dirs")));
    broker_config_done(&copy);
}

/* ---- listeners ---- */

static void listeners(struct fixture *f, const char *own, const char *advertised,
                      struct broker_listener **ret, size_t *n)
{
    set(f, "listeners", own);
    set(f, "advertised.listeners", advertised);
    if (broker_config_listeners(&f->c, ret, n, f->err, sizeof f->err) < 0)
        fail_msg("%s", f->err);
}

static void listeners_have_names_hosts_and_ports(void **state)
{
    struct fixture *f = *state;
    struct broker_listener *ls;
    size_t n;

    listeners(f, " PLAINTEXT://127.0.0.1:9092 , V6://[::1]:9093,ALL://:0", "", &ls, &n);
    assert_int_equal(n, 3);
    assert_string_equal(ls[0].name, "PLAINTEXT");
    assert_string_equal(ls[0].host, "127.0.0.1");
    assert_int_equal(ls[0].port, 9092);
    assert_string_equal(ls[0].advertised_host, "127.0.0.1");
    assert_string_equal(ls[1].host, "::1");
    assert_int_equal(ls[1].advertised_port, 9093);
    assert_string_equal(ls[2].host, "");
    assert_int_equal(ls[2].port, 0);
    assert_null(ls[2].advertised_host); /* the address at which the client came */
    broker_listeners_free(ls, n);
}

static void what_is_advertised_is_joined_by_name(void **state)
{
    struct fixture *f = *state;
    struct broker_listener *ls;
    size_t n;

    listeners(f, "IN://:9092,OUT://0.0.0.0:9093", "out://kafka.example:19093", &ls, &n);
    assert_null(ls[0].advertised_host);
    assert_string_equal(ls[1].advertised_host, "kafka.example");
    assert_int_equal(ls[1].advertised_port, 19093);
    broker_listeners_free(ls, n);
}

static void bad_listeners_are_refused_with_a_reason(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[][3] = {
        { "", "", "listeners is empty" },
        { "127.0.0.1:9092", "", "NAME://host:port" },
        { "A B://x:1", "", "NAME://host:port" },
        { "PLAINTEXT://host", "", "host:port" },
        { "PLAINTEXT://host:", "", "host:port" },
        { "PLAINTEXT://host:70000", "", "host:port" },
        { "PLAINTEXT://host:-1", "", "host:port" },
        { "PLAINTEXT://::1:9092", "", "host:port" },
        { "PLAINTEXT://a:1,plaintext://b:2", "", "name twice" },
        { "SSL://a:1", "", "security protocol" },
        { "sasl_plaintext://a:1", "", "security protocol" },
        { "PLAINTEXT://a:1", "OTHER://b:2", "not among listeners" },
        { "PLAINTEXT://a:1", "PLAINTEXT://:2", "no host" },
    };
    struct broker_listener *ls;
    size_t n;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        set(f, "listeners", bad[i][0]);
        set(f, "advertised.listeners", bad[i][1]);
        assert_int_equal(broker_config_listeners(&f->c, &ls, &n, f->err, sizeof f->err), -EINVAL);
        if (strstr(f->err, bad[i][2]) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", f->err, bad[i][2]);
    }
}

/* ---- topic keys ---- */

static struct topic_config *topic(struct fixture *f, const char *key, const char *value)
{
    struct topic_config_entry e = { (char *)(uintptr_t)key, (char *)(uintptr_t)value };
    return topic_config_new(&f->c, &e, key == NULL ? 0 : 1, f->err, sizeof f->err);
}

static void both_tables_have_the_same_defaults(void **state)
{
    struct fixture *f = *state;
    struct topic_config *t = topic(f, NULL, NULL);
    char text[256];

    assert_non_null(t);
    for (size_t i = 0; i < topic_config_table.n; i++) {
        const struct conf_key *k = &topic_config_table.keys[i];
        conf_get(k, t, text, sizeof text);
        assert_string_equal(text, k->def);
        assert_false(topic_config_is_set(t, k));
        const char *const *behind = topic_config_synonyms(k);
        for (int j = 0; behind[j] != NULL; j++)
            assert_non_null(broker_config_find(behind[j]));
    }
    topic_config_unref(t);
}

static void a_topic_takes_from_the_broker_what_it_does_not_set(void **state)
{
    struct fixture *f = *state;

    set(f, "log.retention.minutes", "1");
    set(f, "message.max.bytes", "2000");
    set(f, "log.cleanup.policy", "compact");
    set(f, "log.message.timestamp.type", "LogAppendTime");
    set(f, "flush.policy", "async");
    set(f, "producer.id.expiration.ms", "77");
    struct topic_config *t = topic(f, "segment.bytes", "1024");
    assert_int_equal(t->plog.retention_ms, 60000);
    assert_int_equal(t->max_message_bytes, 2000);
    assert_true(t->compact && t->plog.compact_policy);
    assert_false(t->delete_ || t->plog.delete_policy);
    assert_true(t->log_append_time);
    assert_int_equal(t->flush_policy, FLUSH_ASYNC);
    assert_int_equal(t->plog.producer_expiry_ms, 77);
    assert_int_equal(t->plog.segment_bytes, 1024);
    assert_true(topic_config_is_set(t, conf_find(&topic_config_table, "segment.bytes")));
    assert_false(topic_config_is_set(t, conf_find(&topic_config_table, "retention.ms")));
    topic_config_unref(t);
}

static void a_policy_may_have_two_words(void **state)
{
    struct fixture *f = *state;
    struct topic_config *t = topic(f, "cleanup.policy", "compact, delete");

    assert_true(t->compact && t->delete_);
    topic_config_unref(t);
    t = topic(f, "cleanup.policy", ""); /* all is kept */
    assert_false(t->compact || t->delete_);
    topic_config_unref(t);
    assert_null(topic(f, "cleanup.policy", "compacted"));
}

static void bad_topic_settings_are_refused_by_name(void **state)
{
    struct fixture *f = *state;

    assert_null(topic(f, "retention.mss", "1"));
    assert_non_null(strstr(f->err, "retention.ms"));
    assert_null(topic(f, "segment.bytes", "1023"));
    assert_non_null(strstr(f->err, "segment.bytes"));
    assert_null(topic(f, "no.such.key", NULL));
    assert_null(topic(f, "compression.type", "brotli"));
    assert_null(topic(f, "compression.gzip.level", "0"));
    assert_non_null(strstr(f->err, "1 to 9"));
    struct topic_config *t = topic(f, "retention.ms", NULL); /* back to the default */
    assert_non_null(t);
    assert_int_equal(t->set, 0);
    topic_config_unref(t);
}

/* ---- changes of settings ---- */

static int apply(struct fixture *f, struct config_settings *s, const struct topic_config *plain,
                 const char *key, enum config_op_kind kind, const char *value)
{
    struct config_op op = { (char *)(uintptr_t)key, (char *)(uintptr_t)value, kind };
    return config_settings_apply(s, &topic_config_table, plain, &op, 1, f->err, sizeof f->err);
}

static void settings_are_set_deleted_appended_to_and_subtracted_from(void **state)
{
    struct fixture *f = *state;
    struct config_settings s = { 0 };
    struct topic_config *plain = topic(f, NULL, NULL);

    assert_int_equal(apply(f, &s, plain, "retention.ms", CONFIG_OP_SET, "1"), 0);
    assert_int_equal(apply(f, &s, plain, "retention.ms", CONFIG_OP_SET, "2"), 0);
    assert_int_equal(apply(f, &s, plain, "cleanup.policy", CONFIG_OP_APPEND, "compact"), 0);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.entries[0].value, "2");
    assert_string_equal(s.entries[1].value, "delete,compact"); /* appended to the default */
    assert_int_equal(apply(f, &s, plain, "cleanup.policy", CONFIG_OP_APPEND, "compact"), 0);
    assert_string_equal(s.entries[1].value, "delete,compact");
    assert_int_equal(apply(f, &s, plain, "cleanup.policy", CONFIG_OP_SUBTRACT, "delete"), 0);
    assert_string_equal(s.entries[1].value, "compact");
    assert_int_equal(apply(f, &s, plain, "retention.ms", CONFIG_OP_DELETE, NULL), 0);
    assert_int_equal(apply(f, &s, plain, "retention.ms", CONFIG_OP_DELETE, NULL), 0);
    assert_int_equal(s.n, 1);

    assert_int_equal(apply(f, &s, plain, "retention.ms", CONFIG_OP_APPEND, "1"), -EINVAL);
    assert_non_null(strstr(f->err, "no list"));
    assert_int_equal(apply(f, &s, plain, "retention.mss", CONFIG_OP_DELETE, NULL), 0);
    assert_int_equal(apply(f, &s, plain, "retention.ms", CONFIG_OP_SET, NULL), -EINVAL);
    config_settings_done(&s);
    topic_config_unref(plain);
}

static void a_key_given_twice_is_refused(void **state)
{
    struct fixture *f = *state;
    struct config_settings s = { 0 };
    struct topic_config *plain = topic(f, NULL, NULL);
    char key[] = "retention.ms", one[] = "1";
    struct config_op ops[] = { { key, one, CONFIG_OP_SET }, { key, NULL, CONFIG_OP_DELETE } };

    assert_int_equal(config_settings_apply(&s, &topic_config_table, plain, ops, 2, f->err, sizeof f->err),
                     -EINVAL);
    assert_non_null(strstr(f->err, "twice"));
    config_settings_done(&s);
    topic_config_unref(plain);
}

/* ---- names ---- */

static void assert_name(const char *name, enum kerr err)
{
    assert_int_equal(topic_name_check(kstr_of(name), NULL), err);
}

static void topic_names_are_kafka_s(void **state)
{
    (void)state;
    char long_name[252] = { 0 };

    assert_name("a", KERR_NONE);
    assert_name("Orders_2.eu-west", KERR_NONE);
    assert_name("...", KERR_NONE);
    memset(long_name, 'n', 249);
    assert_name(long_name, KERR_NONE);
    long_name[249] = 'n';
    assert_name(long_name, KERR_INVALID_TOPIC_EXCEPTION);
    static const char *const bad[] = { "",    ".",    "..",       "a/b",      "../../x", "a b",
                                       "a:b", "x\ny", "\xff\xfe", "\xc3\xa4", "a," };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_name(bad[i], KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(topic_name_check(kstr_bytes("a\0b", 3), NULL), KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(topic_name_check(KSTR_NULL, NULL), KERR_INVALID_TOPIC_EXCEPTION);
}

static void names_collide_in_dots_and_underscores_only(void **state)
{
    (void)state;
    assert_true(topic_names_collide("a.b", "a_b"));
    assert_true(topic_names_collide("a.b_c", "a_b.c"));
    assert_true(topic_names_collide("same", "same"));
    assert_false(topic_names_collide("a.b", "a-b"));
    assert_false(topic_names_collide("a.b", "a_b_"));
    assert_false(topic_names_collide("", "_"));
}

/* ---- values of registers ---- */

static struct slice slice_of_text(const char *s)
{
    return slice_of(s, strlen(s));
}

static void a_partition_s_register_has_kafka_s_fields(void **state)
{
    (void)state;
    struct partition_register p = {
        .st = { .leader = 1, .leader_be = 17, .leader_epoch = 5, .replicas = { 1, 2, 3 }, .n_replicas = 3, .isr = { 1, 2 }, .n_isr = 2,
                .isr_be = { 17, 9 } },
    }, back;
    CLEANUP(freep) char *text = partition_register_encode(&p, "1.17.42");

    assert_string_equal(text,
                        "{\"version\":2,\"leader\":1,\"leader_be\":17,\"leader_epoch\":5,\"isr\":[1,2],"
                        "\"isr_be\":[17,9],\"replicas\":[1,2,3],\"adding\":[],\"removing\":[],\"recovery\":0,"
                        "\"w\":\"1.17.42\"}");
    assert_int_equal(partition_register_decode(slice_of_text(text), 8, &back), 0);
    assert_int_equal(back.st.version, 8);
    p.st.version = 8;
    assert_memory_equal(&p, &back, sizeof p);
}

static void a_partition_s_register_carries_claims_while_nobody_may_lead(void **state)
{
    (void)state;
    struct partition_register p = {
        .st = { .leader = -1, .leader_epoch = 5, .replicas = { 1, 2 }, .n_replicas = 2, .isr = { 1, 2 }, .n_isr = 2,
                .isr_be = { 17, 9 }, .version = 8 },
        .claims = { { 2, 10, 4, 100 }, { 1, 18, -1, 0 } }, .n_claims = 2,
    }, back;
    CLEANUP(freep) char *text = partition_register_encode(&p, "1.17.42");

    assert_non_null(strstr(text, ",\"claims\":[{\"id\":2,\"be\":10,\"last_epoch\":4,\"leo\":100},"
                                 "{\"id\":1,\"be\":18,\"last_epoch\":-1,\"leo\":0}]}"));
    assert_int_equal(partition_register_decode(slice_of_text(text), 8, &back), 0);
    assert_memory_equal(&p, &back, sizeof p);
    for (const char *bad = "0123456789"; *bad != '\0'; bad++) { /* what is no claim is no register */
        CLEANUP(freep) char *wrong = xstrdup(text);
        strstr(wrong, "\"leo\"")[1] = *bad;
        assert_int_equal(partition_register_decode(slice_of_text(wrong), 8, &back), -EBADMSG);
    }
}

static void malformed_registers_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"version\":2}",
        "{\"version\":2,\"leader\":1,\"leader_be\":0,\"leader_epoch\":-5,\"isr\":[],\"isr_be\":[],"
        "\"replicas\":[1],"
        "\"adding\":[],\"removing\":[],\"recovery\":0}",
        "{\"version\":2,\"leader\":1,\"leader_be\":0,\"leader_epoch\":5,\"isr\":[1],\"isr_be\":[],"
        "\"replicas\":[1],"
        "\"adding\":[],\"removing\":[],\"recovery\":0}",
        "{\"version\":2,\"leader\":1,\"leader_be\":0,\"leader_epoch\":5,\"isr\":[],\"isr_be\":[],"
        "\"replicas\":[],"
        "\"adding\":[],\"removing\":[],\"recovery\":0}",
        ("{\"version\":2,\"leader\":99999999999,\"leader_be\":0,\"leader_epoch\":5,\"isr\":[],\"isr_be\":[],"
        "\"replicas\":[1],\"adding\":[],\"removing\":[],\"recovery\":0}"),
    };
    struct partition_register p;
    struct topic_config_entry *entries;
    struct cluster_broker b;
    struct topic_register topic;
    size_t n;
    int64_t last;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(partition_register_decode(slice_of_text(bad[i]), 0, &p), -EBADMSG);
        assert_int_equal(topic_register_decode(slice_of_text(bad[i]), &topic), -EBADMSG);
        assert_int_equal(config_register_decode(slice_of_text(bad[i]), &entries, &n), -EBADMSG);
        assert_int_equal(broker_register_decode(slice_of_text(bad[i]), 1, &b), -EBADMSG);
        assert_int_equal(id_block_decode(slice_of_text(bad[i]), &last), -EBADMSG);
    }
    assert_int_equal(
        config_register_decode(slice_of_text("{\"config\":{\"a\":\"b\",\"c\":1}}"), &entries, &n), -EBADMSG);
    assert_int_equal(id_block_decode(slice_of_text("{\"block_end\":\"12x\"}"), &last), -EBADMSG);
}

static void other_registers_come_back_as_they_went(void **state)
{
    (void)state;
    struct uuid id;
    struct topic_register topic, topic_back;
    char more[] = "{\"later\":1}";
    char key[] = "a.key", value[] = "va\"lue";
    struct topic_config_entry e = { key, value }, *entries;
    char plain[] = "PLAINTEXT", host[] = "host", inside[] = "INSIDE", v6[] = "fd00::1", rack[] = "r1";
    struct cluster_endpoint endpoints[] = { { plain, host, 9092 }, { inside, v6, 9192 } };
    struct cluster_broker b = { .id = 3, .endpoints = endpoints, .n_endpoints = 2, .rack = rack }, b_back;
    size_t n;
    int64_t last;

    uuid_random(&random_real, &id);
    topic = (struct topic_register){ .id = id, .unfinished_from = -1 };
    CLEANUP(freep) char *topic_text = topic_register_encode(&topic);
    assert_null(strstr(topic_text, "unfinished"));
    assert_int_equal(topic_register_decode(slice_of_text(topic_text), &topic_back), 0);
    assert_true(uuid_eq(&id, &topic_back.id));
    assert_int_equal(topic_back.unfinished_from, -1);
    assert_null(topic_back.extra);

    topic = (struct topic_register){ .id = id, .unfinished_from = 3, .writer = 2, .writer_be = 17, .extra = more };
    CLEANUP(freep) char *unfinished = topic_register_encode(&topic);
    assert_int_equal(topic_register_decode(slice_of_text(unfinished), &topic_back), 0);
    assert_int_equal(topic_back.unfinished_from, 3);
    assert_int_equal(topic_back.writer, 2);
    assert_int_equal(topic_back.writer_be, 17);
    assert_string_equal(topic_back.extra, more);
    free(topic_back.extra);

    CLEANUP(freep) char *config_text = config_register_encode(&e, 1, NULL);
    assert_string_equal(config_text, "{\"version\":1,\"config\":{\"a.key\":\"va\\\"lue\"}}");
    assert_int_equal(config_register_decode(slice_of_text(config_text), &entries, &n), 0);
    assert_int_equal(n, 1);
    assert_string_equal(entries[0].value, value);
    config_entries_free(entries, n);

    CLEANUP(freep) char *broker_text = broker_register_encode(&b);
    assert_string_equal(broker_text, "{\"version\":5,\"endpoints\":[\"PLAINTEXT://host:9092\",\"INSIDE://[fd00::1]:9192\"],"
                                     "\"host\":\"host\",\"port\":9092,\"rack\":\"r1\",\"level\":1}");
    assert_int_equal(broker_register_decode(slice_of_text(broker_text), 3, &b_back), 0);
    assert_int_equal(b_back.n_endpoints, 2);
    assert_string_equal(cluster_broker_endpoint(&b_back, "plaintext")->host, "host");
    assert_int_equal(cluster_broker_endpoint(&b_back, "plaintext")->port, 9092);
    assert_string_equal(cluster_broker_endpoint(&b_back, "INSIDE")->host, "fd00::1");
    assert_null(cluster_broker_endpoint(&b_back, "OUTSIDE"));
    assert_string_equal(b_back.rack, "r1");
    cluster_broker_done(&b_back);

    struct epoch_register epoch = { .base = 7, .mark = "m" }, epoch_back;
    CLEANUP(freep) char *epoch_text = epoch_register_encode(&epoch);
    assert_string_equal(epoch_text, "{\"base\":7,\"w\":\"m\"}");
    assert_int_equal(epoch_register_decode(slice_of_text(epoch_text), &epoch_back), 0);
    assert_int_equal(epoch_back.base, 7);
    assert_string_equal(epoch_back.mark, "m");
    assert_int_equal(epoch_register_decode(slice_of_text("{\"base\":0}"), &epoch_back), 0);
    assert_string_equal(epoch_back.mark, "");
    assert_int_equal(epoch_register_decode(slice_of_text("{\"base\":-1}"), &epoch_back), -EBADMSG);

    CLEANUP(freep) char *block = id_block_encode(1, 1000, 1999);
    assert_string_equal(block,
                        "{\"version\":1,\"broker\":1,\"block_start\":\"1000\",\"block_end\":\"1999\"}");
    assert_int_equal(id_block_decode(slice_of_text(block), &last), 0);
    assert_int_equal(last, 1999);
}

/* Brokers of several versions write the same registers: what a newer one has added stays. */
static bool is_a_key(const char *key)
{
    return key[0] == 'a';
}

static void what_a_newer_version_has_added_stays(void **state)
{
    (void)state;
    static const char partition[] = "{\"version\":7,\"leader\":1,\"leader_be\":4,\"leader_epoch\":5,\"isr\":[1],\"isr_be\":[4],"
                                    "\"replicas\":[1,2],\"adding\":[],\"removing\":[],\"recovery\":0,\"w\":\"x\",\"tier\":{\"of\":[1,2]}}";
    static const char topic[] = "{\"version\":9,\"topic_id\":\"AAAAAAAAAAAAAAAAAAAAAg\",\"colour\":\"red\"}";
    static const char config[] = "{\"version\":3,\"config\":{\"a.key\":\"1\",\"new.key\":\"2\"},\"note\":[]}";
    static const char plain[] = "{\"version\":1,\"config\":{\"a.key\":\"1\"}}";
    struct partition_register p;
    struct topic_register t;
    struct topic_config_entry e = { (char *)"a.key", (char *)"5" };
    int32_t level;

    assert_int_equal(partition_register_decode(slice_of_text(partition), 3, &p), 0);
    assert_int_equal(p.st.leader_epoch, 5);
    CLEANUP(freep) char *partition_again = partition_register_encode(&p, "x");
    assert_string_equal(partition_again, partition);
    free(p.extra);
    assert_int_equal(topic_register_decode(slice_of_text(topic), &t), 0);
    CLEANUP(freep) char *topic_again = topic_register_encode(&t);
    assert_string_equal(topic_again, topic);
    free(t.extra);
    CLEANUP(freep) char *extra = config_register_extra(slice_of_text(config), is_a_key);
    CLEANUP(freep) char *config_again = config_register_encode(&e, 1, extra);
    assert_string_equal(config_again, "{\"version\":3,\"config\":{\"a.key\":\"5\",\"new.key\":\"2\"},\"note\":[]}");
    assert_null(config_register_extra(slice_of_text(plain), is_a_key));
    assert_null(config_register_extra(slice_of_text("x"), is_a_key));

    CLEANUP(freep) char *level_text = level_register_encode(1);
    assert_string_equal(level_text, "{\"version\":1,\"level\":1}");
    assert_int_equal(level_register_decode(slice_of_text("{\"version\":4,\"level\":2,\"by\":1}"), &level), 0);
    assert_int_equal(level, 2);
    assert_int_equal(level_register_decode(slice_of_text("{\"level\":0}"), &level), -EBADMSG);
    assert_int_equal(level_register_decode(slice_of_text("2"), &level), -EBADMSG);
}

#define ONE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(kafka_s_other_names_are_known),
        ONE(what_a_newer_version_has_added_stays),
        ONE(an_unknown_key_is_refused_with_the_nearest_name),
        ONE(the_finest_unit_given_wins),
        ONE(keys_that_do_not_fit_together_are_refused),
        ONE(a_file_sets_keys_and_its_errors_name_the_line),
        ONE(a_copy_owns_its_strings),
        ONE(listeners_have_names_hosts_and_ports),
        ONE(what_is_advertised_is_joined_by_name),
        ONE(bad_listeners_are_refused_with_a_reason),
        ONE(both_tables_have_the_same_defaults),
        ONE(a_topic_takes_from_the_broker_what_it_does_not_set),
        ONE(a_policy_may_have_two_words),
        ONE(bad_topic_settings_are_refused_by_name),
        ONE(settings_are_set_deleted_appended_to_and_subtracted_from),
        ONE(a_key_given_twice_is_refused),
        cmocka_unit_test(topic_names_are_kafka_s),
        cmocka_unit_test(names_collide_in_dots_and_underscores_only),
        cmocka_unit_test(a_partition_s_register_has_kafka_s_fields),
        cmocka_unit_test(a_partition_s_register_carries_claims_while_nobody_may_lead),
        cmocka_unit_test(malformed_registers_are_refused),
        ONE(other_registers_come_back_as_they_went),
    };
    return RUN(tests);
}
