/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a .log file batch by batch, with the records on request. Damage is printed where it lies and the
 * walk goes on behind it. Reads in pieces, so a segment of any size needs little memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/record/codec.h"
#include "lib/record/iter.h"
#include "lib/store/logscan.h"
#include "src/offline.h"

/* ---- JSON ---- */
json_t *batch_json(const struct batch_header *h, int64_t at)
{
    json_t *o = json_object();

    json_object_set_new(o, "at", json_integer(at));
    json_object_set_new(o, "bytes", json_integer(batch_size(h)));
    json_object_set_new(o, "base_offset", json_integer(h->base_offset));
    json_object_set_new(o, "last_offset", json_integer(batch_last_offset(h)));
    json_object_set_new(o, "count", json_integer(h->count));
    json_object_set_new(o, "codec", json_string(codec_name(batch_codec(h))));
    json_object_set_new(o, "leader_epoch", json_integer(h->leader_epoch));
    json_object_set_new(o, "base_timestamp", json_integer(h->base_timestamp));
    json_object_set_new(o, "max_timestamp", json_integer(h->max_timestamp));
    json_object_set_new(
        o, "timestamp_type",
        json_string(h->attributes & BATCH_ATTR_LOG_APPEND_TIME ? "LogAppendTime" : "CreateTime"));
    json_object_set_new(o, "producer_id", json_integer(h->producer_id));
    json_object_set_new(o, "producer_epoch", json_integer(h->producer_epoch));
    json_object_set_new(o, "base_sequence", json_integer(h->base_sequence));
    json_object_set_new(o, "transactional", json_boolean(batch_is_transactional(h)));
    json_object_set_new(o, "control", json_boolean(batch_is_control(h)));
    json_object_set_new(o, "crc", json_integer(h->crc));
    return o;
}

static json_t *record_json(const struct record *r)
{
    json_t *o = json_object(), *headers = json_array();
    struct slice rest = r->headers;
    struct kstr key, value;

    json_object_set_new(o, "offset", json_integer(r->offset));
    json_object_set_new(o, "timestamp", json_integer(r->timestamp));
    json_set_bytes(o, "key", r->key);
    json_set_bytes(o, "value", r->value);
    while (record_header_next(&rest, &key, &value) == 1) {
        json_t *h = json_object();
        json_set_bytes(h, "key", key);
        json_set_bytes(h, "value", value);
        json_array_append_new(headers, h);
    }
    json_object_set_new(o, "headers", headers);
    return o;
}

/* ---- text ---- */
static void batch_text(const struct batch_header *h, int64_t at)
{
    char time[32];

    printf("at %" PRId64 ": offset %" PRId64 "..%" PRId64 ", %d records, %" PRId64 " bytes, %s, epoch %d, %s",
           at, h->base_offset, batch_last_offset(h), h->count, batch_size(h), codec_name(batch_codec(h)),
           h->leader_epoch, time_text(h->max_timestamp, time, sizeof time));
    if (h->producer_id >= 0)
        printf(", producer %" PRId64 "/%d seq %d", h->producer_id, h->producer_epoch, h->base_sequence);
    if (h->attributes & BATCH_ATTR_LOG_APPEND_TIME)
        printf(", LogAppendTime");
    if (batch_is_transactional(h))
        printf(", transactional");
    if (batch_is_control(h))
        printf(", control");
    putchar('\n');
}

static void bytes_text(const char *label, struct kstr bytes)
{
    if (kstr_is_null(bytes)) {
        printf("%snull", label);
        return;
    }
    printf("%s\"", label);
    out_escaped(stdout, bytes);
    putchar('"');
}

static void record_text(const struct record *r)
{
    struct slice rest = r->headers;
    struct kstr key, value;
    char time[32];

    printf("  %" PRId64 " %s", r->offset, time_text(r->timestamp, time, sizeof time));
    bytes_text(" key ", r->key);
    bytes_text(" value ", r->value);
    while (record_header_next(&rest, &key, &value) == 1) {
        bytes_text(" header ", key);
        bytes_text("=", value);
    }
    putchar('\n');
}

/* ---- the walk ---- */
/* In text each record is a line; in JSON they go into *ret_records. False: the records are damaged. */
static bool records_print(struct record_iter *it, struct slice batch, json_t *records)
{
    struct record r;
    int rc = record_iter_start(it, batch, OFFLINE_PLAIN_MAX);

    while (rc == 0 && (rc = record_iter_next(it, &r)) == 1) {
        if (records != NULL)
            json_array_append_new(records, record_json(&r));
        else
            record_text(&r);
        rc = 0;
    }
    return rc == 0;
}

static int batch_print(const struct dump *d, struct logscan *s, const struct scan_item *item,
                       struct record_iter *it)
{
    json_t *o = d->json ? batch_json(&item->h, item->at) : NULL;
    json_t *records = d->json && d->records ? json_array() : NULL;
    struct slice bytes;
    bool ok = true;

    if (!d->json)
        batch_text(&item->h, item->at);
    if (d->records)
        ok = logscan_bytes(s, item, &bytes) == 0 && records_print(it, bytes, records);
    if (records != NULL)
        json_object_set_new(o, "records", records);
    if (o != NULL)
        out_json(stdout, o);
    if (!ok)
        complain(d->args, "%s: at %" PRId64 ": the records of the batch are damaged", d->path, item->at);
    return ok ? CLI_OK : CLI_FAILED;
}

static int damage_print(const struct dump *d, const struct scan_item *item)
{
    const char *what = item->what == SCAN_TAIL ? "tail" : "damaged";

    if (d->json)
        out_json(stdout, json_pack("{s:I, s:I, s:s}", "at", (json_int_t)item->at, "bytes",
                                   (json_int_t)item->n, "problem", what));
    else
        printf("at %" PRId64 ": %" PRId64 " bytes that are no batch%s\n", item->at, item->n,
               item->what == SCAN_TAIL ? ", up to the end" : "");
    return CLI_FAILED;
}

static int scan_print(const struct dump *d, struct logscan *s, struct record_iter *it)
{
    struct scan_item item;
    int64_t left = d->limit;
    int status = CLI_OK, rc;

    while (left > 0 && (rc = logscan_next(s, &item)) == 0 && item.what != SCAN_END) {
        int one = CLI_OK;
        if (item.what != SCAN_BATCH) {
            one = damage_print(d, &item);
        } else if (batch_last_offset(&item.h) >= d->from_offset) {
            one = batch_print(d, s, &item, it);
            left--;
        }
        status = MAX(status, one);
    }
    if (left > 0 && rc < 0) {
        complain(d->args, "%s: %s", d->path, strerror(-rc));
        status = CLI_FAILED;
    }
    return status;
}

int dump_log(const struct dump *d)
{
    CLEANUP(closep) int fd = open(d->path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        complain(d->args, "%s: %s", d->path, strerror(errno));
        return CLI_FAILED;
    }
    CLEANUP(logscan_done) struct logscan s;
    CLEANUP(record_iter_done) struct record_iter it;
    logscan_init(&s, &store_io_real, fd, 0, st.st_size, d->base);
    s.limit_offset = INT64_MAX - 1; /* it may be a closed segment, in which compaction has left gaps */
    record_iter_init(&it);
    return scan_print(d, &s, &it);
}
