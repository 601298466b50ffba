/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topic's max.message.bytes: who appends must know how long a line may be. The first open to append waits for the answer;
 * later ones have it asked for again behind the scenes, now and then, and after a broker has refused a batch as too large.
 * Until it is known, and when nobody answers, Kafka's default holds. Loop's thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/cluster/topics.h"
#include "lib/base/mem.h"

/* Older than this it is asked for anew, while the old value serves. */
#define LIMITS_VALID_MS 30000
/* Appends do not wait longer for it: the broker judges in any case. */
#define LIMITS_WAIT_MS        2000
#define CONFIG_RESOURCE_TOPIC 2

struct limits_call {
    struct topic *topic;      /* owned reference */
    struct limits_wait *wait; /* NULL: nobody waits */
    struct client_call call;
    struct describe_configs_request body;
    struct describe_configs_request_resources resource;
    struct kstr key;
};

static void limits_take(struct topic *t, const struct describe_configs_response *resp)
{
    for (int32_t i = 0; i < resp->n_results; i++) {
        for (int32_t j = 0; j < resp->results[i].n_configs; j++) {
            const struct describe_configs_response_configs *c = &resp->results[i].configs[j];
            CLEANUP(freep) char *text = kstr_dup(c->value);
            long v = text == NULL ? 0 : strtol(text, NULL, 10);
            if (kstr_eqz(c->name, "max.message.bytes") && v > 0 && v <= INT32_MAX)
                t->max_message_bytes = (int32_t)v;
        }
    }
}

static void on_limits(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct limits_call *x = call->user;
    (void)err;
    (void)version;
    if (rc == 0)
        limits_take(x->topic, response);
    if (x->wait != NULL)
        x->wait->cb(x->wait);
    topic_unref(x->topic);
    free(x);
}

static void limits_call(struct topic *t, struct limits_wait *w)
{
    struct mount *m = t->mount;
    struct limits_call *x = xcalloc(1, sizeof *x);
    x->topic = topic_ref(t);
    x->wait = w;
    x->key = kstr_of("max.message.bytes");
    x->resource = (struct describe_configs_request_resources){
        .resource_type = CONFIG_RESOURCE_TOPIC,
        .resource_name = kstr_of(t->name),
        .configuration_keys = &x->key,
        .n_configuration_keys = 1,
    };
    wire_defaults(&wire_describe_configs_request, &x->body);
    x->body.resources = &x->resource;
    x->body.n_resources = 1;
    x->call =
        (struct client_call){ .target = TARGET_ANY,
                              .request = &wire_describe_configs_request,
                              .body = &x->body,
                              .max_version = -1,
                              .cb = on_limits,
                              .user = x,
                              .deadline_ms = MIN(mount_deadline_ms(m), loop_now_ms(m->loop) + LIMITS_WAIT_MS) };
    client_call(m->client, &x->call);
}

void topic_limits_ask(struct topic *t, struct limits_wait *w)
{
    int64_t now = loop_now_ms(t->mount->loop);
    bool first = t->limits_ms == 0;
    if (first || t->limits_ms + LIMITS_VALID_MS < now) {
        t->limits_ms = MAX(now, 1);
        limits_call(t, first ? w : NULL);
    }
    if (!first)
        w->cb(w);
}
