/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog ping: one row a broker of the cluster, with how long an answer took. Each is asked twice and the
 * second answer counts, since the first has to connect. It fails when one of them does not answer, after
 * asking all. --wait tries until a broker accepts a connection, or the time-out is over. One thread.
 */
#include <poll.h>

#include "lib/base/clock.h"
#include "src/commands.h"
#include "src/out.h"
#include "src/session.h"

static const struct option_spec options[] = {
    { "wait", 'w', NULL, "until --timeout for a broker that is not there yet" },
    { NULL, 0, NULL, NULL },
};

enum { LOOK_AGAIN_MS = 50 };

static const struct column columns[] = {
    { "broker", "BROKER", true }, { "address", "ADDRESS", false },       { "rack", "RACK", false },
    { "ms", "MS", true },         { "controller", "CONTROLLER", false }, { "error", "ERROR", false },
    { NULL, NULL, false },
};

/* One round trip, after a first one that had to connect. */
static int broker_ping(struct session *s, int32_t id, double *ret_ms)
{
    struct api_versions_request req;
    const void *response;
    int64_t start_ns = 0;
    int rc = 0;

    wire_defaults(&wire_api_versions_request, &req);
    req.client_software_name = kstr_of("klog");
    req.client_software_version = kstr_of(PACKAGE_VERSION);
    for (int i = 0; i < 2 && rc == 0; i++) {
        start_ns = clock_mono_ns();
        rc = session_try(s,
                         &(struct session_call){ .target = TARGET_BROKER,
                                                 .broker_id = id,
                                                 .request = &wire_api_versions_request,
                                                 .body = &req },
                         &response);
    }
    *ret_ms = (double)(clock_mono_ns() - start_ns) / 1e6;
    return rc;
}

static json_t *broker_row(struct session *s, const struct metadata_response *md,
                          const struct metadata_response_brokers *b, bool *failed)
{
    json_t *row = json_object();
    double ms;
    int rc = broker_ping(s, b->node_id, &ms);

    json_object_set_new(row, "broker", json_integer(b->node_id));
    json_object_set_new(row, "address", json_sprintf("%.*s:%d", KSTR_FMT(b->host), b->port));
    json_object_set_new(row, "rack", json_kstr(b->rack));
    json_object_set_new(row, "ms", rc == 0 ? json_real(ms) : json_null());
    json_object_set_new(row, "controller", json_boolean(b->node_id == md->controller_id));
    json_object_set_new(row, "error", rc == 0 ? json_null() : json_string(strerror(-rc)));
    *failed = *failed || rc != 0;
    return row;
}

/* Until a broker accepts a connection; what comes then is session_connect's to say. */
static void wait_for_a_broker(const struct session *s)
{
    int64_t until_ms = clock_mono_ms() + s->timeout_ms;
    char why[256];

    while (brokers_probe(s->brokers, (int)s->timeout_ms, why, sizeof why) < 0 && clock_mono_ms() < until_ms)
        poll(NULL, 0, LOOK_AGAIN_MS);
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    bool failed = false;

    int rc = session_init(&s, a);

    if (rc != CLI_OK)
        return rc;
    if (args_has(a, "wait"))
        wait_for_a_broker(&s);
    if ((rc = session_connect(&s)) != CLI_OK)
        return rc;
    const struct metadata_response *md = session_metadata(&s, NULL, 0);
    if (md == NULL)
        return CLI_FAILED;

    json_t *rows = json_array();
    for (int32_t i = 0; i < md->n_brokers; i++)
        json_array_append_new(rows, broker_row(&s, md, &md->brokers[i], &failed));
    out_rows(stdout, args_has(a, "json"), columns, rows);
    return failed ? CLI_FAILED : CLI_OK;
}

const struct command cmd_ping = {
    .name = "ping",
    .operands = "",
    .summary = "Asks every broker of the cluster for an answer and shows how long it took",
    .text = "It fails when one of them does not answer.",
    .examples = "klog ping\n"
                "klog ping --wait --timeout 30 && echo up",
    .options = options,
    .online = true,
    .run = run,
};
