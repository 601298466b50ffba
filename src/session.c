/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of a command to the cluster; see session.h. It owns the loop, the worker threads, the
 * client and the arena in which answers live until session_close. Calls are made one after the other: each
 * runs the loop until its answer or its time-out, which counts from the call. All is on the command's one
 * thread, but for the looking-up of names. A failure is told on standard error where it happens, once.
 */
#include "src/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/loop/exec.h"

enum { TIMEOUT_S_DEFAULT = 10, TIMEOUT_S_MAX = 3600 };

static int session_brokers(struct session *s)
{
    const char *env = getenv("KLOG_BROKERS");
    const char *text = args_get(s->args, "brokers", env != NULL && env[0] != '\0' ? env : "127.0.0.1:9092");

    s->brokers = brokers_normalise(text);
    if (s->brokers == NULL)
        return complain_usage(s->args, "'%s' is no list of brokers; it looks like HOST:PORT,HOST:PORT", text);
    return CLI_OK;
}

static int session_reach(struct session *s)
{
    char why[256] = "";

    if (brokers_probe(s->brokers, (int)s->timeout_ms, why, sizeof why) == 0)
        return CLI_OK;
    complain(s->args, "no broker can be reached: %s; is klogd running? (-b or KLOG_BROKERS name another)",
             why);
    return CLI_FAILED;
}

int session_init(struct session *s, const struct args *a)
{
    int64_t timeout_s;

    *s = (struct session){ .args = a };
    arena_init(&s->arena);
    int rc = args_get_int(a, "timeout", 1, TIMEOUT_S_MAX, TIMEOUT_S_DEFAULT, &timeout_s);
    s->timeout_ms = timeout_s * 1000;
    return rc != CLI_OK ? rc : session_brokers(s);
}

static int session_make(struct session *s)
{
    world_init_real(&s->world);
    s->loop = loop_new(&s->world);
    if (s->loop == NULL) {
        complain(s->args, "cannot make an event loop: %s", strerror(errno));
        return CLI_FAILED;
    }
    s->workers = workers_new(&s->world, 1, "klog");
    const struct client_config cfg = {
        .brokers = s->brokers,
        .client_id = "klog",
        .request_timeout_ms = s->timeout_ms,
        .retry_backoff_ms = 100,
        .metadata_max_age_ms = 300000,
        .frame_max = 100 << 20,
    };
    s->client = client_new(s->loop, s->workers, &cfg);
    KCHECK(s->client != NULL); /* brokers_normalise has seen to the list */
    return CLI_OK;
}

int session_connect(struct session *s)
{
    int rc = session_reach(s);

    return rc != CLI_OK ? rc : session_make(s);
}

int session_open(struct session *s, const struct args *a, const char *brokers, int64_t timeout_ms)
{
    *s = (struct session){ .args = a, .brokers = xstrdup(brokers), .timeout_ms = timeout_ms };
    arena_init(&s->arena);
    return session_make(s);
}

void session_close(struct session *s)
{
    if (s->client != NULL)
        client_free(s->client);
    if (s->workers != NULL)
        workers_free(s->workers);
    if (s->loop != NULL)
        loop_free(s->loop);
    arena_done(&s->arena);
    free(s->brokers);
    *s = (struct session){ 0 };
}

static int session_call_sync(struct session *s, const struct session_call *c, enum kerr *ret_err,
                             const void **ret)
{
    struct client_call call = {
        .target = c->target,
        .broker_id = c->broker_id,
        .topic = c->group,
        .request = c->request,
        .body = c->body,
        .max_version = c->max_version > 0 ? c->max_version : -1,
        .deadline_ms = loop_now_ms(s->loop) + s->timeout_ms,
        .judge = c->judge,
    };
    int16_t version;

    *ret_err = KERR_NONE;
    return client_call_sync(s->loop, s->client, &call, &s->arena, ret_err, &version, ret);
}

int session_try(struct session *s, const struct session_call *c, const void **ret)
{
    enum kerr err;

    return session_call_sync(s, c, &err, ret);
}

void session_complain(const struct session *s, const char *what, int rc, enum kerr err)
{
    if (rc == -ETIMEDOUT && err != KERR_NONE)
        complain(s->args, "not done within %lld s: %s (%s)", (long long)(s->timeout_ms / 1000),
                 kerr_text(err), kerr_name(err));
    else if (rc == -ETIMEDOUT)
        complain(s->args, "%s did not answer within %lld s (--timeout)", s->brokers,
                 (long long)(s->timeout_ms / 1000));
    else if (rc == -EPROTONOSUPPORT)
        complain(s->args, "the broker does not know %s, or no version of it that klog knows",
                 what);
    else if (err != KERR_NONE)
        complain_kerr(s->args, what, err, KSTR_NULL);
    else
        complain(s->args, "%s: %s", what, strerror(-rc));
}

const void *session_call(struct session *s, const struct session_call *c)
{
    const void *response = NULL;
    enum kerr err;
    int rc = session_call_sync(s, c, &err, &response);

    if (rc == 0)
        return response;
    session_complain(s, c->request->name, rc, err);
    return NULL;
}

const struct metadata_response *session_metadata(struct session *s, const char *const *topics, size_t n)
{
    struct metadata_request req;

    wire_defaults(&wire_metadata_request, &req);
    req.allow_auto_topic_creation = false;
    req.n_topics = n == 0 ? -1 : (int32_t)n;
    req.topics = arena_array(&s->arena, n, sizeof *req.topics);
    for (size_t i = 0; i < n; i++)
        req.topics[i].name = kstr_of(topics[i]);
    return session_call(
        s, &(struct session_call){ .target = TARGET_ANY, .request = &wire_metadata_request, .body = &req });
}

void complain_kerr(const struct args *a, const char *what, int err, struct kstr text)
{
    KCHECK(err != KERR_NONE);
    if (text.n > 0)
        complain(a, "%s: %.*s (%s)", what, KSTR_FMT(text), kerr_name(err));
    else
        complain(a, "%s: %s (%s)", what, kerr_text(err), kerr_name(err));
}
