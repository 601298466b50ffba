/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata plane over the wire: a whole broker, asked as clients ask. */
#include "rig.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/meta/cluster.h"
#include "lib/base/attr.h"
#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "lib/store/io.h"

struct fixture {
    struct rig g;
    struct arena a;
    int fd;
};

static int setup_with(void **state, const char *const *overrides)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    arena_init(&f->a);
    rig_start(&f->g, overrides);
    f->fd = peer_open(&f->g);
    *state = f;
    return 0;
}

static int setup(void **state)
{
    static const char *const overrides[] = { "num.partitions", "3", NULL };
    return setup_with(state, overrides);
}

static int setup_without_creation(void **state)
{
    static const char *const overrides[] = { "auto.create.topics.enable", "false", "delete.topic.enable",
                                             "false", NULL };
    return setup_with(state, overrides);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    close(f->fd);
    rig_done(&f->g);
    arena_done(&f->a);
    free(f);
    return 0;
}

static void restart(struct fixture *f)
{
    close(f->fd);
    rig_restart(&f->g, NULL);
    f->fd = peer_open(&f->g);
}

#define ASK(f, api, version, q) \
    peer_ask((f)->fd, &wire_##api##_request, &wire_##api##_response, version, q, &(f)->a)

/* ---- questions ---- */

static struct create_topics_response_topics *
create_with(struct fixture *f, struct create_topics_request_topics *t, bool validate_only)
{
    struct create_topics_request q = {
        .topics = t, .n_topics = 1, .timeout_ms = 20000, .validate_only = validate_only
    };
    struct create_topics_response *rsp = ASK(f, create_topics, 7, &q);
    assert_int_equal(rsp->n_topics, 1);
    return &rsp->topics[0];
}

static struct create_topics_response_topics *create(struct fixture *f, const char *name, int32_t partitions)
{
    struct create_topics_request_topics t = { .name = kstr_of(name),
                                              .num_partitions = partitions,
                                              .replication_factor = -1 };
    return create_with(f, &t, false);
}

static int16_t delete (struct fixture *f, const char *name)
{
    struct kstr names[] = { kstr_of(name) };
    struct delete_topics_request q = { .topic_names = names, .n_topic_names = 1, .timeout_ms = 20000 };
    struct delete_topics_response *rsp = ASK(f, delete_topics, 5, &q);
    return rsp->responses[0].error_code;
}

static struct metadata_response *metadata(struct fixture *f, int version, const char *name, bool create)
{
    struct metadata_request_topics t = { .name = kstr_of(name) };
    struct metadata_request q = { .topics = &t,
                                  .n_topics = name == NULL ? -1 : 1,
                                  .allow_auto_topic_creation = create };
    if (version < 4)
        q.allow_auto_topic_creation = true;
    if (version == 0 && name == NULL)
        q.n_topics = 0;
    return ASK(f, metadata, version, &q);
}

static int n_topics(struct fixture *f)
{
    return metadata(f, 12, NULL, false)->n_topics;
}

static const char *config_value(struct fixture *f, int8_t type, const char *name, const char *key,
                                int8_t *ret_source)
{
    struct kstr keys[] = { kstr_of(key) };
    struct describe_configs_request_resources res = { type, kstr_of(name), keys, 1 };
    struct describe_configs_request q = { .resources = &res, .n_resources = 1 };
    struct describe_configs_response *rsp = ASK(f, describe_configs, 4, &q);
    assert_int_equal(rsp->results[0].error_code, 0);
    assert_int_equal(rsp->results[0].n_configs, 1);
    *ret_source = rsp->results[0].configs[0].config_source;
    struct kstr v = rsp->results[0].configs[0].value;
    return arena_printf(&f->a, "%.*s", KSTR_FMT(v));
}

static struct incremental_alter_configs_response_responses *
alter(struct fixture *f, int8_t type, const char *name, const char *key, int8_t op, const char *value)
{
    struct incremental_alter_configs_request_configs c = { kstr_of(key), op, kstr_of(value) };
    struct incremental_alter_configs_request_resources res = { type, kstr_of(name), &c, 1 };
    struct incremental_alter_configs_request q = { .resources = &res, .n_resources = 1 };
    struct incremental_alter_configs_response *rsp = ASK(f, incremental_alter_configs, 1, &q);
    return &rsp->responses[0];
}

static bool has_dir(struct fixture *f, const char *name)
{
    struct stat st;
    CLEANUP(freep) char *path = xasprintf("%s/data0/%s", f->g.dir, name);
    return stat(path, &st) == 0;
}

/* ---- metadata ---- */

static void metadata_tells_null_from_empty(void **state)
{
    struct fixture *f = *state;
    struct metadata_request empty = { .n_topics = 0, .allow_auto_topic_creation = true };

    create(f, "one", 1);
    create(f, "two", 2);
    for (int v = 0; v <= 12; v++) {
        struct metadata_response *all = metadata(f, v, NULL, false);
        assert_int_equal(all->n_topics, 2);
        assert_int_equal(all->n_brokers, 1);
        assert_int_equal(all->brokers[0].port, f->g.port);
        if (v >= 1)
            assert_int_equal(all->controller_id, 1);
        struct metadata_response *none = ASK(f, metadata, v, &empty);
        assert_int_equal(none->n_topics, v == 0 ? 2 : 0);
        assert_int_equal(none->n_brokers, 1);
    }
    struct metadata_response *all = metadata(f, 12, NULL, false);
    assert_true(kstr_eqz(all->cluster_id, f->g.b.cluster_id));
    assert_true(kstr_eqz(all->topics[1].name, "two"));
    assert_int_equal(all->topics[1].n_partitions, 2);
    assert_int_equal(all->topics[1].partitions[1].partition_index, 1);
    assert_int_equal(all->topics[1].partitions[1].leader_id, 1);
    assert_int_equal(all->topics[1].partitions[1].leader_epoch, 0);
    assert_int_equal(all->topics[1].partitions[1].n_isr_nodes, 1);
    assert_int_equal(all->topics[1].partitions[1].n_offline_replicas, 0);
    assert_int_equal(all->topics[1].topic_authorized_operations, INT32_MIN);
}

static void metadata_creates_only_when_asked_by_name(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(metadata(f, 4, "typo", false)->topics[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(metadata(f, 12, "typo", false)->topics[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(metadata(f, 12, "a b", true)->topics[0].error_code, KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(metadata(f, 12, "__consumer_offsets", true)->topics[0].error_code,
                     KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(n_topics(f), 0);

    struct metadata_response *rsp = metadata(f, 4, "new4", true);
    assert_int_equal(rsp->topics[0].error_code, 0);
    assert_int_equal(rsp->topics[0].n_partitions, 3);
    assert_int_equal(rsp->topics[0].partitions[2].leader_id, 1);
    assert_int_equal(metadata(f, 1, "new1", false)->topics[0].error_code, 0);
    assert_int_equal(metadata(f, 12, "new.1", true)->topics[0].error_code, 0);
    assert_int_equal(metadata(f, 12, "new_1", true)->topics[0].error_code, KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(n_topics(f), 3);
}

static void metadata_creates_nothing_when_the_switch_is_off(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(metadata(f, 4, "t", true)->topics[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(metadata(f, 1, "t", true)->topics[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(create(f, "t", 1)->error_code, 0);
    assert_int_equal(delete (f, "t"), KERR_TOPIC_DELETION_DISABLED);
    assert_int_equal(n_topics(f), 1);
}

static void metadata_finds_topics_by_id(void **state)
{
    struct fixture *f = *state;
    struct metadata_request_topics t = { .name = KSTR_NULL, .topic_id = create(f, "t", 1)->topic_id };
    struct metadata_request q = { .topics = &t, .n_topics = 1, .allow_auto_topic_creation = true };

    struct metadata_response *rsp = ASK(f, metadata, 12, &q);
    assert_int_equal(rsp->topics[0].error_code, 0);
    assert_true(kstr_eqz(rsp->topics[0].name, "t"));
    t.topic_id.b[5] ^= 1;
    rsp = ASK(f, metadata, 12, &q);
    assert_int_equal(rsp->topics[0].error_code, KERR_UNKNOWN_TOPIC_ID);
    assert_true(kstr_is_null(rsp->topics[0].name));
    rsp = ASK(f, metadata, 10, &q); /* its answer has no null name */
    assert_int_equal(rsp->topics[0].error_code, KERR_UNKNOWN_TOPIC_ID);
    assert_int_equal(n_topics(f), 1);
}

static void operations_are_told_when_asked_for(void **state)
{
    struct fixture *f = *state;
    struct metadata_request q = { .n_topics = -1,
                                  .allow_auto_topic_creation = true,
                                  .include_cluster_authorized_operations = true,
                                  .include_topic_authorized_operations = true };

    create(f, "t", 1);
    struct metadata_response *rsp = ASK(f, metadata, 8, &q);
    assert_int_equal(rsp->cluster_authorized_operations, 0x1fa0);
    assert_int_equal(rsp->topics[0].topic_authorized_operations, 0x0df8);
    struct describe_cluster_request dq = { .endpoint_type = 1 };
    struct describe_cluster_response *d = ASK(f, describe_cluster, 1, &dq);
    assert_int_equal(d->n_brokers, 1);
    assert_int_equal(d->brokers[0].port, f->g.port);
    assert_int_equal(d->controller_id, 1);
    assert_int_equal(d->cluster_authorized_operations, INT32_MIN);
    assert_true(kstr_eqz(d->cluster_id, f->g.b.cluster_id));
}

/* ---- creation ---- */

static void bad_topics_are_refused_one_by_one(void **state)
{
    struct fixture *f = *state;
    struct {
        const char *name;
        int32_t partitions;
        int16_t replicas, err;
    } bad[] = {
        { "../../../x", 1, 1, KERR_INVALID_TOPIC_EXCEPTION },
        { "..", 1, 1, KERR_INVALID_TOPIC_EXCEPTION },
        { "", 1, 1, KERR_INVALID_TOPIC_EXCEPTION },
        { "a_b", 1, 1, KERR_INVALID_TOPIC_EXCEPTION },
        { "a.b", 1, 1, KERR_TOPIC_ALREADY_EXISTS },
        { "zero", 0, 1, KERR_INVALID_PARTITIONS },
        { "minus", -2, 1, KERR_INVALID_PARTITIONS },
        { "many", CLUSTER_PARTITIONS_MAX + 1, 1, KERR_INVALID_PARTITIONS },
        { "huge", INT32_MAX, 1, KERR_INVALID_PARTITIONS },
        { "two", 1, 2, KERR_INVALID_REPLICATION_FACTOR },
        { "none", 1, 0, KERR_INVALID_REPLICATION_FACTOR },
    };

    assert_int_equal(create(f, "a.b", 1)->error_code, 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct create_topics_request_topics t = { .name = kstr_of(bad[i].name),
                                                  .num_partitions = bad[i].partitions,
                                                  .replication_factor = bad[i].replicas };
        struct create_topics_response_topics *rsp = create_with(f, &t, false);
        assert_int_equal(rsp->error_code, bad[i].err);
        assert_true(rsp->error_message.n > 0);
        assert_true(kstr_eqz(rsp->name, bad[i].name));
    }
    assert_int_equal(n_topics(f), 1);
}

static void a_new_topic_s_answer_has_its_configuration(void **state)
{
    struct fixture *f = *state;
    struct create_topics_request_configs c[] = { { kstr_of("retention.ms"), kstr_of("1234") } };
    struct create_topics_request_topics t = {
        .name = kstr_of("t"), .num_partitions = -1, .replication_factor = -1, .configs = c, .n_configs = 1
    };

    struct create_topics_response_topics *dry = create_with(f, &t, true);
    assert_int_equal(dry->error_code, 0);
    assert_int_equal(dry->num_partitions, 3);
    assert_int_equal(n_topics(f), 0);

    struct create_topics_response_topics *rsp = create_with(f, &t, false);
    assert_int_equal(rsp->error_code, 0);
    assert_int_equal(rsp->num_partitions, 3);
    assert_int_equal(rsp->replication_factor, 1);
    assert_false(uuid_is_zero(&rsp->topic_id));
    assert_int_equal(rsp->n_configs, topic_config_table.n);
    bool found = false;
    for (int32_t i = 0; i < rsp->n_configs; i++)
        if (kstr_eqz(rsp->configs[i].name, "retention.ms"))
            found = kstr_eqz(rsp->configs[i].value, "1234") && rsp->configs[i].config_source == 1;
    assert_true(found);

    c[0].name = kstr_of("retention.mss");
    t.name = kstr_of("u");
    rsp = create_with(f, &t, false);
    assert_int_equal(rsp->error_code, KERR_INVALID_CONFIG);
    assert_non_null(strstr(arena_printf(&f->a, "%.*s", KSTR_FMT(rsp->error_message)), "retention.ms"));
}

static void an_assignment_names_every_partition_once_and_brokers_that_are_there(void **state)
{
    struct fixture *f = *state;
    int32_t me = 1, other = 2, twice[] = { 1, 1 };
    struct create_topics_request_assignments as[] = { { 1, &me, 1 }, { 0, &me, 1 } };
    struct create_topics_request_topics t = { .name = kstr_of("t"),
                                              .num_partitions = -1,
                                              .replication_factor = -1,
                                              .assignments = as,
                                              .n_assignments = 2 };

    assert_int_equal(create_with(f, &t, false)->error_code, 0);
    t.name = kstr_of("u");
    as[0].partition_index = 2;
    assert_int_equal(create_with(f, &t, false)->error_code, KERR_INVALID_REPLICA_ASSIGNMENT);
    as[0].partition_index = 1;
    as[0].broker_ids = &other;
    assert_int_equal(create_with(f, &t, false)->error_code, KERR_INVALID_REPLICA_ASSIGNMENT);
    as[0].broker_ids = twice;
    as[0].n_broker_ids = 2;
    assert_int_equal(create_with(f, &t, false)->error_code, KERR_INVALID_REPLICA_ASSIGNMENT);
    as[0].n_broker_ids = 0;
    assert_int_equal(create_with(f, &t, false)->error_code, KERR_INVALID_REPLICA_ASSIGNMENT);
    as[0] = (struct create_topics_request_assignments){ 1, &me, 1 };
    t.num_partitions = 2;
    assert_int_equal(create_with(f, &t, false)->error_code, KERR_INVALID_REQUEST);
}

static void the_same_topic_twice_in_one_request_is_refused(void **state)
{
    struct fixture *f = *state;
    struct create_topics_request_topics t[3] = {
        { .name = kstr_of("t"), .num_partitions = 1, .replication_factor = 1 },
        { .name = kstr_of("u"), .num_partitions = 1, .replication_factor = 1 },
        { .name = kstr_of("t"), .num_partitions = 2, .replication_factor = 1 },
    };
    struct create_topics_request q = { .topics = t, .n_topics = 3, .timeout_ms = 20000 };
    struct create_topics_response *rsp = ASK(f, create_topics, 7, &q);

    assert_int_equal(rsp->topics[0].error_code, KERR_INVALID_REQUEST);
    assert_int_equal(rsp->topics[1].error_code, 0);
    assert_int_equal(rsp->topics[2].error_code, KERR_INVALID_REQUEST);
    assert_int_equal(n_topics(f), 1);
}

static void one_request_makes_so_many_partitions_and_no_more(void **state)
{
    struct fixture *f = *state;
    struct create_topics_request_topics t[3] = {
        { .name = kstr_of("a"), .num_partitions = CLUSTER_PARTITIONS_MAX - 1, .replication_factor = 1 },
        { .name = kstr_of("b"), .num_partitions = 2, .replication_factor = 1 },
        { .name = kstr_of("c"), .num_partitions = -1, .replication_factor = 1 },
    };
    struct create_topics_request q = { .topics = t, .n_topics = 3, .timeout_ms = 20000, .validate_only = true };
    struct create_topics_response *rsp = ASK(f, create_topics, 7, &q);

    assert_int_equal(rsp->topics[0].error_code, 0);
    assert_int_equal(rsp->topics[1].error_code, KERR_POLICY_VIOLATION);
    assert_int_equal(rsp->topics[2].error_code, 0);
}

static void a_request_of_countless_things_ends_its_connection(void **state)
{
    struct fixture *f = *state;
    struct kstr *names = xcalloc(10001, sizeof *names);
    struct delete_topics_request q = { .topic_names = names, .n_topic_names = 10000, .timeout_ms = 20000 };
    struct bytebuf frame = { 0 };
    int32_t correlation;

    char text[10001][16];

    for (int i = 0; i < 10001; i++) {
        snprintf(text[i], sizeof text[i], "t%d", i);
        names[i] = kstr_of(text[i]);
    }
    struct delete_topics_response *rsp = ASK(f, delete_topics, 4, &q);
    assert_int_equal(rsp->n_responses, 10000);
    assert_int_equal(rsp->responses[9999].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    q.n_topic_names++;
    peer_send(f->fd, &wire_delete_topics_request, 4, 1, &q);
    assert_false(peer_receive(f->fd, &correlation, &frame));
    bytebuf_done(&frame);
    free(names);
}

static void a_topic_grows_and_does_not_shrink(void **state)
{
    struct fixture *f = *state;
    struct create_partitions_request_topics t = { .name = kstr_of("t"), .count = 5, .n_assignments = -1 };
    struct create_partitions_request q = { .topics = &t, .n_topics = 1, .timeout_ms = 20000 };
    struct {
        int32_t count;
        int16_t err;
    } step[] = {
        { 5, 0 },
        { 5, KERR_INVALID_PARTITIONS },
        { 4, KERR_INVALID_PARTITIONS },
        { INT32_MIN, KERR_INVALID_PARTITIONS },
        { CLUSTER_PARTITIONS_MAX + 1, KERR_INVALID_PARTITIONS },
    };

    create(f, "t", 2);
    for (size_t i = 0; i < ARRAY_LEN(step); i++) {
        t.count = step[i].count;
        struct create_partitions_response *rsp = ASK(f, create_partitions, 3, &q);
        assert_int_equal(rsp->results[0].error_code, step[i].err);
    }
    assert_int_equal(metadata(f, 12, "t", false)->topics[0].n_partitions, 5);
    assert_true(has_dir(f, "t-4"));
    t.name = kstr_of("nope");
    struct create_partitions_response *rsp = ASK(f, create_partitions, 3, &q);
    assert_int_equal(rsp->results[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
}

/* ---- deletion ---- */

static void a_deleted_name_is_free_at_once_and_for_another_topic(void **state)
{
    struct fixture *f = *state;
    struct uuid first = create(f, "t", 2)->topic_id;
    struct bytebuf batch = { 0 };

    make_batch(&batch, "old", 3, 1);
    peer_produce(f->fd, 9, "t", -1, &batch, &f->a);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(delete (f, "t"), 0);
        assert_int_equal(metadata(f, 12, "t", false)->topics[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
        struct uuid id = create(f, "t", 2)->topic_id;
        assert_false(uuid_eq(&id, &first));
        assert_int_equal(peer_offset(f->fd, "t", -1), 0);
    }
    assert_int_equal(delete (f, "t"), 0);
    assert_int_equal(delete (f, "t"), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    bytebuf_done(&batch);
}

static void a_topic_is_deleted_by_its_id(void **state)
{
    struct fixture *f = *state;
    struct delete_topics_request_topics t[2] = {
        { .name = KSTR_NULL, .topic_id = create(f, "t", 1)->topic_id },
        { .name = kstr_of("x"), .topic_id = { { 1 } } },
    };
    struct delete_topics_request q = { .topics = t, .n_topics = 2, .timeout_ms = 20000 };

    struct delete_topics_response *rsp = ASK(f, delete_topics, 6, &q);
    assert_int_equal(rsp->responses[0].error_code, 0);
    assert_true(kstr_eqz(rsp->responses[0].name, "t"));
    assert_int_equal(rsp->responses[1].error_code, KERR_INVALID_REQUEST);
    rsp = ASK(f, delete_topics, 6, &q);
    assert_int_equal(rsp->responses[0].error_code, KERR_UNKNOWN_TOPIC_ID);
}

/* ---- restarts ---- */

static void topics_outlive_the_broker_in_a_new_epoch(void **state)
{
    struct fixture *f = *state;
    struct uuid id = create(f, "t", 3)->topic_id;

    assert_int_equal(alter(f, 2, "t", "retention.ms", 0, "77")->error_code, 0);
    assert_int_equal(alter(f, 4, "1", "log.segment.bytes", 0, "4096")->error_code, 0);
    for (int32_t epoch = 1; epoch <= 3; epoch++) {
        restart(f);
        struct metadata_response *rsp = metadata(f, 12, "t", false);
        assert_true(uuid_eq(&rsp->topics[0].topic_id, &id));
        assert_int_equal(rsp->topics[0].n_partitions, 3);
        for (int p = 0; p < 3; p++)
            assert_int_equal(rsp->topics[0].partitions[p].leader_epoch, epoch);
    }
    int8_t source;
    assert_string_equal(config_value(f, 2, "t", "retention.ms", &source), "77");
    assert_string_equal(config_value(f, 2, "t", "segment.bytes", &source), "4096");
    assert_int_equal(source, 2);
}

static void make_stray(struct fixture *f, const char *from, const char *to)
{
    struct bytebuf b = { 0 };
    CLEANUP(freep) char *source = xasprintf("%s/data0/%s/partition.metadata", f->g.dir, from);
    CLEANUP(freep) char *dir = xasprintf("%s/data0/%s", f->g.dir, to);

    assert_int_equal(fs_read_file(AT_FDCWD, source, 4096, &b), 0);
    assert_int_equal(mkdir(dir, 0755), 0);
    CLEANUP(closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(io_replace_file(&store_io_real, fd, ".", "partition.metadata", b.p, b.n), 0);
    bytebuf_done(&b);
}

static void directories_of_no_topic_are_kept_under_another_name(void **state)
{
    struct fixture *f = *state;
    struct uuid id = create(f, "t", 1)->topic_id;
    char text[UUID_TEXT_LEN + 1];

    make_stray(f, "t-0", "t-7"); /* a partition that the topic does not have */
    make_stray(f, "t-0", "gone-0");
    restart(f);
    uuid_text(&id, text);
    assert_false(has_dir(f, "gone-0"));
    assert_false(has_dir(f, "t-7"));
    assert_true(has_dir(f, arena_printf(&f->a, "gone-0.%s-stray", text)));
    assert_true(has_dir(f, arena_printf(&f->a, "t-7.%s-stray", text)));
    assert_int_equal(n_topics(f), 1);
    restart(f); /* and they are no partitions then */
    assert_int_equal(n_topics(f), 1);
}

/* ---- configurations ---- */

static void a_value_tells_where_it_comes_from(void **state)
{
    struct fixture *f = *state;
    int8_t source;

    create(f, "t", 1);
    assert_string_equal(config_value(f, 2, "t", "segment.bytes", &source), "1073741824");
    assert_int_equal(source, 5);
    assert_int_equal(alter(f, 4, "1", "log.segment.bytes", 0, "4096")->error_code, 0);
    assert_string_equal(config_value(f, 4, "1", "log.segment.bytes", &source), "4096");
    assert_int_equal(source, 2);
    assert_int_equal(alter(f, 2, "t", "segment.bytes", 0, "2048")->error_code, 0);
    assert_string_equal(config_value(f, 2, "t", "segment.bytes", &source), "2048");
    assert_int_equal(source, 1);
    assert_int_equal(alter(f, 2, "t", "segment.bytes", 1, NULL)->error_code, 0);
    assert_string_equal(config_value(f, 2, "t", "segment.bytes", &source), "4096");
    assert_int_equal(source, 2);
    assert_string_equal(config_value(f, 4, "1", "num.partitions", &source), "3");
    assert_int_equal(source, 4);
    assert_string_equal(config_value(f, 4, "1", "log.retention.ms", &source), ""); /* null: hours count */
}

static void every_key_is_described_with_its_synonyms(void **state)
{
    struct fixture *f = *state;
    struct describe_configs_request_resources res[] = {
        { 2, kstr_of("t"), NULL, -1 }, { 4, kstr_of("1"), NULL, -1 }, { 2, kstr_of("nope"), NULL, -1 },
        { 4, kstr_of("2"), NULL, -1 }, { 8, kstr_of("2"), NULL, -1 }, { 2, kstr_of(".."), NULL, -1 },
    };
    struct describe_configs_request q = {
        .resources = res, .n_resources = 6, .include_synonyms = true, .include_documentation = true
    };

    create(f, "t", 1);
    struct describe_configs_response *rsp = ASK(f, describe_configs, 3, &q);
    assert_int_equal(rsp->results[0].n_configs, topic_config_table.n);
    assert_int_equal(rsp->results[1].n_configs, broker_config_table.n);
    assert_int_equal(rsp->results[2].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(rsp->results[3].error_code, KERR_INVALID_REQUEST);
    assert_int_equal(rsp->results[4].error_code, KERR_INVALID_REQUEST);
    assert_int_equal(rsp->results[5].error_code, KERR_INVALID_TOPIC_EXCEPTION);
    for (int32_t i = 0; i < rsp->results[0].n_configs; i++) {
        struct describe_configs_response_configs *c = &rsp->results[0].configs[i];
        assert_true(c->n_synonyms >= 1 || topic_config_synonyms(&topic_config_table.keys[i])[0] == NULL);
        assert_true(c->documentation.n > 0);
        assert_in_range(c->config_type, 1, 9);
        assert_false(c->read_only);
    }
}

static void bad_changes_change_nothing(void **state)
{
    struct fixture *f = *state;
    int8_t source;
    struct {
        int8_t type;
        const char *name, *key;
        int8_t op;
        const char *value;
        int16_t err;
    } bad[] = {
        { 2, "t", "retention.ms", 0, "-7", KERR_INVALID_CONFIG },
        { 2, "t", "retention.mss", 0, "7", KERR_INVALID_CONFIG },
        { 2, "t", "retention.ms", 2, "7", KERR_INVALID_CONFIG },
        { 2, "t", "retention.ms", 0, NULL, KERR_INVALID_CONFIG },
        { 2, "t", "cleanup.policy", 2, "deleted", KERR_INVALID_CONFIG },
        { 2, "t", "retention.ms", 4, "7", KERR_INVALID_REQUEST },
        { 2, "nope", "retention.ms", 0, "7", KERR_UNKNOWN_TOPIC_OR_PARTITION },
        { 4, "1", "num.io.threads", 0, "7", KERR_INVALID_REQUEST },
        { 4, "1", "log.roll.ms", 0, "0", KERR_INVALID_REQUEST },
        { 4, "2", "log.segment.bytes", 0, "4096", KERR_INVALID_REQUEST },
        { 16, "1", "x", 0, "y", KERR_INVALID_REQUEST },
    };

    create(f, "t", 1);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct incremental_alter_configs_response_responses *rsp =
            alter(f, bad[i].type, bad[i].name, bad[i].key, bad[i].op, bad[i].value);
        assert_int_equal(rsp->error_code, bad[i].err);
        assert_true(rsp->error_message.n > 0);
    }
    assert_string_equal(config_value(f, 2, "t", "retention.ms", &source), "604800000");
    assert_int_equal(source, 5);
}

static void changes_of_one_topic_at_once_all_count(void **state)
{
    struct fixture *f = *state;
    static const char *const keys[] = { "retention.ms", "segment.bytes", "segment.ms", "flush.ms",
                                        "max.message.bytes" };
    int8_t source;

    create(f, "t", 1);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct incremental_alter_configs_request_configs c = { kstr_of(keys[i]), 0, kstr_of("5000") };
        struct incremental_alter_configs_request_resources res = { 2, kstr_of("t"), &c, 1 };
        struct incremental_alter_configs_request q = { .resources = &res, .n_resources = 1 };
        peer_send(f->fd, &wire_incremental_alter_configs_request, 1, (int32_t)i, &q);
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct incremental_alter_configs_response *rsp =
            peer_reply(f->fd, &wire_incremental_alter_configs_response, 1, (int32_t)i, &f->a);
        assert_int_equal(rsp->responses[0].error_code, 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        assert_string_equal(config_value(f, 2, "t", keys[i], &source), "5000");
}

static void alter_configs_replaces_the_whole(void **state)
{
    struct fixture *f = *state;
    struct alter_configs_request_configs c = { kstr_of("segment.bytes"), kstr_of("4096") };
    struct alter_configs_request_resources res = { 2, kstr_of("t"), &c, 1 };
    struct alter_configs_request q = { .resources = &res, .n_resources = 1, .validate_only = true };
    int8_t source;

    create(f, "t", 1);
    alter(f, 2, "t", "retention.ms", 0, "5");
    struct alter_configs_response *rsp = ASK(f, alter_configs, 2, &q);
    assert_int_equal(rsp->responses[0].error_code, 0);
    assert_string_equal(config_value(f, 2, "t", "retention.ms", &source), "5");
    q.validate_only = false;
    ASK(f, alter_configs, 2, &q);
    assert_string_equal(config_value(f, 2, "t", "retention.ms", &source), "604800000");
    assert_string_equal(config_value(f, 2, "t", "segment.bytes", &source), "4096");
}

static void a_change_reaches_the_partitions(void **state)
{
    struct fixture *f = *state;
    struct bytebuf batch = { 0 };

    create(f, "t", 1);
    make_batch(&batch, "value", 10, 1);
    assert_int_equal(peer_produce(f->fd, 9, "t", -1, &batch, &f->a)->error_code, 0);
    alter(f, 2, "t", "max.message.bytes", 0, "20");
    assert_int_equal(peer_produce(f->fd, 9, "t", -1, &batch, &f->a)->error_code, KERR_MESSAGE_TOO_LARGE);
    alter(f, 2, "t", "max.message.bytes", 1, NULL);
    assert_int_equal(peer_produce(f->fd, 9, "t", -1, &batch, &f->a)->error_code, 0);
    bytebuf_done(&batch);
}

/* ---- producer ids and coordinators ---- */

static struct init_producer_id_response *init_producer(struct fixture *f, const char *txn, int64_t id,
                                                       int16_t epoch)
{
    struct init_producer_id_request q = { kstr_of(txn), 60000, id, epoch };
    return ASK(f, init_producer_id, 4, &q);
}

static void producer_ids_never_come_twice(void **state)
{
    struct fixture *f = *state;
    int64_t last = -1;

    for (int i = 0; i < 2100; i++) { /* over two borders of blocks */
        struct init_producer_id_response *rsp = init_producer(f, NULL, -1, -1);
        assert_int_equal(rsp->error_code, 0);
        assert_int_equal(rsp->producer_epoch, 0);
        assert_true(rsp->producer_id > last);
        last = rsp->producer_id;
    }
    restart(f);
    assert_true(init_producer(f, NULL, -1, -1)->producer_id > last);
}

/* What it has may be somebody else's by now. */
static void a_producer_that_brings_an_id_gets_another(void **state)
{
    struct fixture *f = *state;
    int64_t id = init_producer(f, NULL, -1, -1)->producer_id;

    for (int epoch = 0; epoch < 2; epoch++) {
        struct init_producer_id_response *rsp = init_producer(f, NULL, id, (int16_t)epoch);
        assert_int_equal(rsp->error_code, 0);
        assert_true(rsp->producer_id > id);
        assert_int_equal(rsp->producer_epoch, 0);
    }
    assert_int_equal(init_producer(f, NULL, id, -1)->error_code, KERR_INVALID_REQUEST);
    assert_int_equal(init_producer(f, "", -1, -1)->error_code, KERR_INVALID_REQUEST);
    assert_int_equal(init_producer(f, "txn", -1, -1)->error_code, KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
}

/* ---- disks that do not take a new topic ---- */

static atomic_int mkdirs_left;

static int failing_mkdirat(const struct store_io *io, int dirfd, const char *path, mode_t mode)
{
    (void)io;
    if (atomic_fetch_sub(&mkdirs_left, 1) <= 0)
        return -ENOSPC;
    return store_io_real.mkdirat(&store_io_real, dirfd, path, mode);
}

static void a_topic_that_cannot_be_opened_leaves_nothing(void **state)
{
    (void)state;
    struct fixture f = { 0 };
    struct store_io io = store_io_real;

    io.mkdirat = failing_mkdirat;
    atomic_store(&mkdirs_left, 1000);
    arena_init(&f.a);
    rig_start_on(&f.g, &io, 1, NULL);
    f.fd = peer_open(&f.g);
    assert_int_equal(create(&f, "fits", 1)->error_code, 0);

    atomic_store(&mkdirs_left, 3);
    struct create_topics_response_topics *rsp = create(&f, "t", 10);
    assert_int_equal(rsp->error_code, KERR_KAFKA_STORAGE_ERROR);
    assert_true(rsp->error_message.n > 0);
    assert_int_equal(metadata(&f, 12, "t", false)->topics[0].error_code, KERR_UNKNOWN_TOPIC_OR_PARTITION);

    struct create_partitions_request_topics t = { .name = kstr_of("fits"), .count = 5, .n_assignments = -1 };
    struct create_partitions_request q = { .topics = &t, .n_topics = 1, .timeout_ms = 20000 };
    struct create_partitions_response *grown = ASK(&f, create_partitions, 3, &q);
    assert_int_equal(grown->results[0].error_code, KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(metadata(&f, 12, "fits", false)->topics[0].n_partitions, 1);

    atomic_store(&mkdirs_left, 1000); /* room again: both names are as if nothing had been */
    assert_int_equal(create(&f, "t", 10)->error_code, 0);
    grown = ASK(&f, create_partitions, 3, &q);
    assert_int_equal(grown->results[0].error_code, 0);
    assert_int_equal(metadata(&f, 12, "fits", false)->topics[0].n_partitions, 5);
    close(f.fd);
    rig_done(&f.g);
    arena_done(&f.a);
}

#define ONE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(metadata_tells_null_from_empty),
        ONE(metadata_creates_only_when_asked_by_name),
        cmocka_unit_test_setup_teardown(metadata_creates_nothing_when_the_switch_is_off,
                                        setup_without_creation, teardown),
        ONE(metadata_finds_topics_by_id),
        ONE(operations_are_told_when_asked_for),
        ONE(bad_topics_are_refused_one_by_one),
        ONE(a_new_topic_s_answer_has_its_configuration),
        ONE(an_assignment_names_every_partition_once_and_brokers_that_are_there),
        ONE(the_same_topic_twice_in_one_request_is_refused),
        ONE(one_request_makes_so_many_partitions_and_no_more),
        ONE(a_request_of_countless_things_ends_its_connection),
        ONE(a_topic_grows_and_does_not_shrink),
        ONE(a_deleted_name_is_free_at_once_and_for_another_topic),
        ONE(a_topic_is_deleted_by_its_id),
        ONE(topics_outlive_the_broker_in_a_new_epoch),
        ONE(directories_of_no_topic_are_kept_under_another_name),
        ONE(a_value_tells_where_it_comes_from),
        ONE(every_key_is_described_with_its_synonyms),
        ONE(bad_changes_change_nothing),
        ONE(changes_of_one_topic_at_once_all_count),
        ONE(alter_configs_replaces_the_whole),
        ONE(a_change_reaches_the_partitions),
        ONE(producer_ids_never_come_twice),
        ONE(a_producer_that_brings_an_id_gets_another),
        cmocka_unit_test(a_topic_that_cannot_be_opened_leaves_nothing),
    };
    return RUN(tests);
}
