/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ListConfigResources: what DescribeConfigs can be asked for: topics, brokers and their loggers. Client metrics and
 * groups have no configuration here. On the session's loop.
 */
#include "daemon/api/api.h"
#include "daemon/api/config_resource.h"
#include "daemon/api/services.h"
#include "daemon/meta/cluster.h"
#include "lib/base/kerr.h"

static bool is_known(int8_t type)
{
    return type == CONFIG_RESOURCE_TOPIC || type == CONFIG_RESOURCE_BROKER || type == CONFIG_RESOURCE_LOGGER ||
           config_resource_has_no_settings(type);
}

static bool is_asked(const struct request *r, int8_t type)
{
    const struct list_config_resources_request *q = r->body;

    for (int32_t i = 0; i < q->n_resource_types; i++) {
        if (q->resource_types[i] == type)
            return true;
    }
    return r->api_version >= 1 && q->n_resource_types == 0;
}

static void add(struct list_config_resources_response *rsp, struct kstr name, int8_t type)
{
    rsp->config_resources[rsp->n_config_resources++] =
        (struct list_config_resources_response_config_resources){ name, type };
}

static void list(struct request *r, const struct cluster_image *img, struct list_config_resources_response *rsp)
{
    rsp->config_resources =
        arena_array(&r->arena, img->n_topics + 2 * img->n_brokers, sizeof *rsp->config_resources);
    for (size_t i = 0; i < img->n_brokers; i++) {
        struct kstr id = kstr_of(arena_printf(&r->arena, "%d", img->brokers[i].id));
        if (is_asked(r, CONFIG_RESOURCE_LOGGER))
            add(rsp, id, CONFIG_RESOURCE_LOGGER);
        if (is_asked(r, CONFIG_RESOURCE_BROKER))
            add(rsp, id, CONFIG_RESOURCE_BROKER);
    }
    for (size_t i = 0; is_asked(r, CONFIG_RESOURCE_TOPIC) && i < img->n_topics; i++)
        add(rsp, kstr_of(img->topics[i]->name), CONFIG_RESOURCE_TOPIC);
}

void handle_list_config_resources(struct request *r)
{
    const struct list_config_resources_request *q = r->body;
    struct list_config_resources_response rsp;
    struct cluster_image *img = cluster_image_get(r->services->cluster);

    wire_defaults(&wire_list_config_resources_response, &rsp);
    for (int32_t i = 0; i < q->n_resource_types; i++) {
        if (!is_known(q->resource_types[i]))
            rsp.error_code = KERR_UNSUPPORTED_VERSION;
    }
    if (rsp.error_code == KERR_NONE)
        list(r, img, &rsp);
    request_reply(r, &rsp);
    cluster_image_put(img);
}
