/* SPDX-License-Identifier: Apache-2.0 */
/* See each_broker.h. Where one broker is known, or none yet, any is asked: that one is all there is. */
#include "fuse/cluster/each_broker.h"

#include <errno.h>

#include "fuse/base/missed.h"
#include "lib/base/mem.h"

enum { LOOK_MS = 1000 }; /* then it is looked at whether the broker is still one of the cluster's */

struct asked {
    struct each_broker *of;
    char *host;
    struct client_call call;
};

static void ask_again(struct asked *a);

static void asked_end(struct asked *a)
{
    struct each_broker *e = a->of;

    free(a->host);
    free(a);
    if (--e->waiting == 0)
        e->end(e, e->rc, e->err);
}

static void on_answer(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct asked *a = call->user;
    struct each_broker *e = a->of;
    struct client *c = e->mount->client;
    bool here = call->target == TARGET_ANY || client_has_broker(c, call->broker_id);
    (void)version;

    if (rc == -ETIMEDOUT && here && loop_now_ms(e->mount->loop) < e->deadline_ms) {
        ask_again(a);
        return;
    }
    if (rc == 0) {
        e->answer(e, a->host, response);
    } else if (here || rc == -ECANCELED) {
        e->rc = rc;
        e->err = err;
    }
    asked_end(a);
}

static void ask_again(struct asked *a)
{
    struct each_broker *e = a->of;
    bool any = a->call.target == TARGET_ANY;

    a->call.deadline_ms = any ? e->deadline_ms : MIN(e->deadline_ms, loop_now_ms(e->mount->loop) + LOOK_MS);
    client_call(e->mount->client, &a->call);
}

static void ask_one(struct each_broker *e, enum client_target target, int32_t id, const char *host)
{
    struct asked *a = xcalloc(1, sizeof *a);

    a->of = e;
    a->host = xstrdup(host);
    a->call = (struct client_call){ .target = target,
                                    .broker_id = id,
                                    .request = e->request,
                                    .body = e->body,
                                    .max_version = -1,
                                    .judge = e->judge,
                                    .cb = on_answer,
                                    .user = a };
    ask_again(a);
}

static void ask_known(void *arg, int32_t id, const char *host)
{
    ask_one(arg, TARGET_BROKER, id, host);
}

void each_broker_ask(struct mount *m, struct each_broker *e)
{
    size_t n = client_n_brokers(m->client);

    e->mount = m;
    e->deadline_ms = mount_deadline_ms(m);
    e->rc = 0;
    e->err = KERR_NONE;
    e->waiting = n > 1 ? n : 1;
    if (n > 1)
        client_each_broker(m->client, ask_known, e);
    else
        ask_one(e, TARGET_ANY, -1, "");
}
