/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog trim: removes records from the front of partitions (DeleteRecords), up to an offset or a time. Each partition is asked for its
 * ends first, since most ways to say where are counted from there, and is told of in a row of its own. One thread.
 */
#include <inttypes.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/view/view.h"
#include "src/commands.h"
#include "src/topic_entries.h"

static const struct option_spec options[] = {
    { "to", 0, "WHERE", "the first record to keep: an offset, -N (so many before the end), end, @TIME" },
    { NULL, 0, NULL, NULL },
};

static const struct column columns[] = {
    { "topic", "TOPIC", false },
    { "partition", "PARTITION", true },
    { "earliest", "EARLIEST", true },
    { NULL, NULL, false },
};

struct trim {
    char topic[TOPIC_NAME_MAX + 1];
    int64_t partition; /* -1: all */
    struct range range;
    int64_t now_ms, at_ms;
    bool by_time;
};

static int trim_parse(const struct args *a, struct trim *ret)
{
    const char *text = a->operands[0], *colon = strchr(text, ':'), *to = args_get(a, "to", NULL);
    size_t n = colon == NULL ? strlen(text) : (size_t)(colon - text);
    *ret = (struct trim){ .partition = -1, .now_ms = clock_wall_ms() };
    if (n == 0 || n > TOPIC_NAME_MAX || (colon != NULL && !args_int(colon + 1, 0, INT32_MAX, &ret->partition)))
        return complain_usage(a, "'%s' is no topic, or TOPIC:N for one of its partitions", text);
    memcpy(ret->topic, text, n);
    ret->topic[n] = '\0';
    if (to == NULL)
        return complain_usage(a, "--to says up to where");
    if (!range_parse(to, &ret->range) || ret->range.from.kind == BOUND_NONE || ret->range.to.kind != BOUND_NONE)
        return complain_usage(a, "'%s' is no place; write it like 100, -100, end, @-1h or @2026-01-02T03:04:05Z", to);
    ret->by_time = range_time(&ret->range, ret->now_ms, &ret->at_ms);
    return CLI_OK;
}

static enum kerr judge(struct client_call *call, int16_t version, const void *response)
{
    const struct delete_records_response *r = response;
    (void)call;
    (void)version;
    bool one = r->n_topics == 1 && r->topics[0].n_partitions == 1;
    return one ? (enum kerr)r->topics[0].partitions[0].error_code : KERR_UNKNOWN_SERVER_ERROR;
}

static int part_trim(struct session *s, struct part *p, int64_t to)
{
    struct delete_records_request_partitions partition = { .partition_index = p->meta->partition_index, .offset = to };
    struct delete_records_request_topics topic = { .name = p->topic->name, .partitions = &partition, .n_partitions = 1 };
    struct delete_records_request req;
    wire_defaults(&wire_delete_records_request, &req);
    req.topics = &topic;
    req.n_topics = 1;
    req.timeout_ms = (int32_t)s->timeout_ms;
    const struct delete_records_response *r =
        session_call(s, &(struct session_call){ .target = TARGET_BROKER,
                                                .broker_id = p->meta->leader_id,
                                                .request = &wire_delete_records_request,
                                                .body = &req,
                                                .judge = judge });
    if (r == NULL)
        return CLI_FAILED;
    p->err = judge(NULL, 0, r);
    if (p->err == KERR_NONE)
        p->start_offset = r->topics[0].partitions[0].low_watermark;
    return p->err == KERR_NONE ? CLI_OK : CLI_FAILED;
}

static json_t *part_row(const struct part *p)
{
    json_t *row = json_object();
    json_object_set_new(row, "topic", json_kstr(p->topic->name));
    json_object_set_new(row, "partition", json_integer(p->meta->partition_index));
    json_object_set_new(row, "earliest", json_offset(p->start_offset));
    return row;
}

/* A place in front of the log's start moves nothing, one behind its end is the broker's to refuse. */
static int parts_trim(struct session *s, const struct trim *t, struct part *parts, size_t n)
{
    int status = CLI_OK;
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        struct extent e;
        range_resolve(&t->range, t->now_ms, p->start_offset, p->end_offset, t->by_time ? p->at_offset : -1, &e);
        if (p->err != KERR_NONE || (e.from > p->start_offset && part_trim(s, p, e.from) != CLI_OK))
            status = CLI_FAILED;
        if (p->err == KERR_NONE)
            json_array_append_new(rows, part_row(p));
    }
    out_rows(stdout, args_has(s->args, "json"), columns, rows);
    parts_complain(s, parts, n);
    return status;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    struct trim t;
    struct part *parts;
    bool failed;
    int rc = trim_parse(a, &t);
    if (rc != CLI_OK || (rc = session_init(&s, a)) != CLI_OK || (rc = session_connect(&s)) != CLI_OK)
        return rc;
    const char *topic = t.topic;
    const struct metadata_response *md = session_metadata(&s, &topic, 1);
    if (md == NULL)
        return CLI_FAILED;
    size_t n = parts_list(&s, md, &parts, &failed), kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (t.partition < 0 || parts[i].meta->partition_index == t.partition)
            parts[kept++] = parts[i];
    }
    if (kept == 0 && !failed)
        complain(a, "there is no partition %" PRId64, t.partition);
    if (kept == 0)
        return CLI_FAILED;
    parts_ask_ends(&s, parts, kept);
    if (t.by_time)
        parts_ask_time(&s, parts, kept, t.at_ms);
    return parts_trim(&s, &t, parts, kept);
}

const struct command cmd_trim = {
    .name = "trim",
    .operands = "TOPIC[:N]",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Removes records from the front of a topic's partitions, or of one",
    .text = "Nothing brings them back. Prints where each partition begins then.",
    .examples = "klog trim orders --to @-30d\n"
                "klog trim orders:0 --to 1000",
    .options = options,
    .online = true,
    .run = run,
};
