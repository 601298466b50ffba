/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one setting is described: its value in force, where that comes from (the topic, this broker's file, the default), and
 * what else would give it. One function for each owner of settings, used by DescribeConfigs and CreateTopics. Pure; any
 * thread.
 */
#include "daemon/api/config_describe.h"

#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"

enum { SYNONYMS_MAX = 8 };

static struct kstr value_text(struct arena *a, const struct conf_key *k, const void *obj)
{
    CLEANUP(freep) char *text = conf_text(k, obj);

    return kstr_of(arena_strdup(a, text));
}

static int8_t type_of(const struct conf_key *k)
{
    static const int8_t types[] = {
        [CONF_BOOL] = 1, [CONF_STRING] = 2, [CONF_ENUM] = 2, [CONF_INT] = 3,
        [CONF_LONG] = 5, [CONF_DOUBLE] = 6, [CONF_LIST] = 7,
    };
    static const struct {
        const char *key;
        int8_t type;
    } other[] = { /* that Kafka keeps in another size than klog */
        { "segment.bytes", 3 },
        { "log.segment.bytes", 3 },
        { "producer.id.expiration.ms", 3 },
        { "offsets.topic.replication.factor", 4 },
        { "listeners", 7 },
        { "advertised.listeners", 7 },
        { "log.dirs", 7 },
    };

    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        if (strcmp(k->name, other[i].key) == 0)
            return other[i].type;
    }
    return types[k->type];
}

static bool is_dynamic(const struct cluster_defaults *d, const struct conf_key *k)
{
    size_t i = (size_t)(k - broker_config_table.keys);

    return (d->dynamic[i / 64] >> (i % 64) & 1) != 0;
}

static int8_t broker_source(const struct cluster_defaults *d, const struct conf_key *k)
{
    if (is_dynamic(d, k))
        return CONFIG_SOURCE_DYNAMIC_BROKER;
    return broker_config_is_set(&d->config, k) ? CONFIG_SOURCE_STATIC_BROKER : CONFIG_SOURCE_DEFAULT;
}

/* Keys of a finer unit that mean nothing until they are given; their -1 would read as "for ever". */
static bool is_unset_unit(const struct cluster_defaults *d, const struct conf_key *k)
{
    return !broker_config_is_set(&d->config, k) &&
           (strcmp(k->name, "log.retention.ms") == 0 || strcmp(k->name, "log.retention.minutes") == 0 ||
            strcmp(k->name, "log.roll.ms") == 0);
}

static void add_synonym(struct arena *a, struct describe_configs_response_configs *out, const char *name, struct kstr value,
                        int8_t source)
{
    if (out->synonyms == NULL)
        out->synonyms = arena_array(a, SYNONYMS_MAX, sizeof *out->synonyms);
    if (out->n_synonyms < SYNONYMS_MAX)
        out->synonyms[out->n_synonyms++] =
            (struct describe_configs_response_synonyms){ kstr_of(name), value, source };
}

static void add_broker_synonyms(struct arena *a, const struct conf_key *k, const struct cluster_defaults *d,
                                struct describe_configs_response_configs *out)
{
    int8_t source = broker_source(d, k);

    if (source != CONFIG_SOURCE_DEFAULT)
        add_synonym(a, out, k->name, value_text(a, k, &d->config), source);
    if (!is_unset_unit(d, k))
        add_synonym(a, out, k->name, kstr_of(k->def), CONFIG_SOURCE_DEFAULT);
}

static void begin(const struct conf_key *k, bool documentation,
                  struct describe_configs_response_configs *out)
{
    out->name = kstr_of(k->name);
    out->config_type = type_of(k);
    out->documentation = documentation ? kstr_of(k->doc) : KSTR_NULL;
}

void config_describe_topic(struct arena *a, const struct conf_key *k, const struct topic_config *cfg,
                           const struct cluster_defaults *d, bool synonyms, bool documentation,
                           struct describe_configs_response_configs *out)
{
    begin(k, documentation, out);
    out->value = value_text(a, k, cfg);
    out->config_source = CONFIG_SOURCE_DEFAULT;

    const char *const *behind = topic_config_synonyms(k);
    for (int i = 0; behind[i] != NULL && out->config_source == CONFIG_SOURCE_DEFAULT; i++)
        out->config_source = broker_source(d, broker_config_find(behind[i]));
    if (topic_config_is_set(cfg, k))
        out->config_source = CONFIG_SOURCE_TOPIC;
    if (!synonyms)
        return;
    if (topic_config_is_set(cfg, k))
        add_synonym(a, out, k->name, out->value, CONFIG_SOURCE_TOPIC);
    for (int i = 0; behind[i] != NULL; i++)
        add_broker_synonyms(a, broker_config_find(behind[i]), d, out);
}

void config_describe_broker(struct arena *a, const struct conf_key *k, const struct cluster_defaults *d,
                            bool synonyms, bool documentation, struct describe_configs_response_configs *out)
{
    begin(k, documentation, out);
    out->value = is_unset_unit(d, k) ? KSTR_NULL : value_text(a, k, &d->config);
    out->config_source = broker_source(d, k);
    out->read_only = k->read_only;
    if (synonyms)
        add_broker_synonyms(a, k, d, out);
}
