/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch: records gathered from what was fetched, as the lines that COMMAND gets; and where they go when
 * COMMAND has refused them too often. One thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "src/run.h"

enum {
    BATCH_BYTES_MAX = 8 << 20, /* no more is gathered once there is so much */
    KEY_BYTES_MAX = 64 * 1024, /* in the environment, which takes 128 KiB a variable */
    ENV_MAX = 8,
    OWN_HEADERS = 7,
};

void batch_init(struct run_batch *b)
{
    *b = (struct run_batch){ 0 };
    arena_init(&b->arena);
}

void batch_done(struct run_batch *b)
{
    batch_clear(b);
    bytebuf_done(&b->text);
}

void batch_clear(struct run_batch *b)
{
    arena_done(&b->arena);
    free(b->kept);
    b->kept = NULL;
    b->kept_cap = 0;
    b->text.n = 0;
    b->n = b->attempts = 0;
}

/* ---- gathering ---- */
static void batch_keep(struct run_batch *b, const struct record *rec)
{
    if ((size_t)b->n == b->kept_cap) {
        b->kept_cap = MAX(16, b->kept_cap * 2);
        b->kept = xreallocarray(b->kept, b->kept_cap, sizeof *b->kept);
    }
    b->kept[b->n] = (struct run_record){
        .offset = rec->offset,
        .timestamp = rec->timestamp,
        .key = arena_kstr(&b->arena, rec->key),
        .value = arena_kstr(&b->arena, rec->value),
        .headers = slice_of(rec->headers.n > 0 ? arena_dup(&b->arena, rec->headers.p, rec->headers.n) : NULL,
                            rec->headers.n),
    };
}

static void batch_add(struct run_part *p, const struct record *rec)
{
    struct run_batch *b = &p->batch;

    if (p->r->set.each || p->r->set.dead_letters != NULL)
        batch_keep(b, rec);
    if (b->n == 0)
        b->first = rec->offset;
    b->last = rec->offset;
    if (rec->value.n > 0)
        bytebuf_add(&b->text, rec->value.p, (size_t)rec->value.n);
    bytebuf_add(&b->text, "\n", 1);
    b->n++;
}

int batch_gather(struct run_part *p)
{
    struct run_batch *b = &p->batch;
    struct record rec;

    while (!p->dry && b->n < p->r->set.batch_max && b->text.n < BATCH_BYTES_MAX) {
        int rc = records_next(&p->records, &rec);
        if (rc < 0)
            return rc;
        if (rc == 0)
            p->dry = true;
        else
            batch_add(p, &rec);
    }
    b->next = p->records.next;
    b->epoch = p->records.epoch;
    return 0;
}

/* ---- to COMMAND ---- */
static void env_add(struct run_batch *b, const char **env, size_t *n, const char *name, struct kstr value)
{
    KCHECK(*n < ENV_MAX - 1);
    env[(*n)++] = arena_printf(&b->arena, "%s=%.*s", name, KSTR_FMT(value));
}

static void env_add_number(struct run_batch *b, const char **env, size_t *n, const char *name, int64_t value)
{
    env_add(b, env, n, name, kstr_of(arena_printf(&b->arena, "%lld", (long long)value)));
}

static bool fits_environment(struct kstr key)
{
    return key.n >= 0 && key.n <= KEY_BYTES_MAX && (key.n == 0 || memchr(key.p, '\0', (size_t)key.n) == NULL);
}

static void batch_env(struct run_part *p, const char **env)
{
    struct run_batch *b = &p->batch;
    size_t n = 0;

    env_add(b, env, &n, "KLOG_GROUP", kstr_of(p->r->set.group));
    env_add(b, env, &n, "KLOG_TOPIC", kstr_of(p->topic));
    env_add_number(b, env, &n, "KLOG_PARTITION", p->partition);
    env_add_number(b, env, &n, "KLOG_OFFSET", b->first);
    if (p->r->set.each && fits_environment(b->kept[0].key))
        env_add(b, env, &n, "KLOG_KEY", b->kept[0].key);
    if (p->r->set.each)
        env_add_number(b, env, &n, "KLOG_TIMESTAMP", b->kept[0].timestamp);
    env[n] = NULL;
}

void batch_give(struct run_part *p)
{
    struct run *r = p->r;
    const char *env[ENV_MAX];

    batch_env(p, env);
    p->child.command = r->set.command;
    p->child.input = kstr_bytes(p->batch.text.p, p->batch.text.n);
    p->child.env = env;
    int rc = child_start(r->s->loop, &p->child, &r->old_mask);
    if (rc == 0)
        return;
    r->n_working--;
    complain(r->args, "%s: %s", r->set.command[0], strerror(-rc));
    part_fail(p, rc == -ENOENT                     ? RUN_NOT_FOUND
                 : rc == -EACCES || rc == -ENOEXEC ? RUN_NOT_EXECUTABLE
                                                   : CLI_FAILED);
}

/* ---- to the dead letters ---- */
/* What the record had, and where it comes from. */
static void letter_headers(struct run_part *p, const struct run_record *rec, const struct record_header *own,
                           struct producer_record *ret)
{
    struct slice rest = rec->headers;
    struct kstr key, value;
    int32_t n = 0;

    while (record_header_next(&rest, &key, &value) == 1)
        n++;
    struct record_header *headers = arena_array(&p->batch.arena, (size_t)n + OWN_HEADERS, sizeof *headers);
    rest = rec->headers;
    for (int32_t i = 0; i < n; i++)
        record_header_next(&rest, &headers[i].key, &headers[i].value);
    memcpy(headers + n, own, OWN_HEADERS * sizeof *own);
    ret->headers = headers;
    ret->n_headers = n + OWN_HEADERS;
}

static struct record_header own_header(struct run_part *p, const char *name, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static struct record_header own_header(struct run_part *p, const char *name, const char *fmt, ...)
{
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return (struct record_header){ kstr_of(name), kstr_of(arena_strdup(&p->batch.arena, text)) };
}

static void letter_make(struct run_part *p, const struct run_record *rec, struct producer_record *ret)
{
    char text[64];
    const struct record_header own[OWN_HEADERS] = {
        own_header(p, "klog.topic", "%s", p->topic),
        own_header(p, "klog.partition", "%d", p->partition),
        own_header(p, "klog.offset", "%lld", (long long)rec->offset),
        own_header(p, "klog.timestamp", "%lld", (long long)rec->timestamp),
        own_header(p, "klog.group", "%s", p->r->set.group),
        own_header(p, "klog.failure", "%s", child_status_text(p->batch.last_status, text, sizeof text)),
        own_header(p, "klog.attempts", "%lld", (long long)p->batch.attempts),
    };

    *ret = (struct producer_record){ .timestamp = rec->timestamp, .key = rec->key, .value = rec->value };
    letter_headers(p, rec, own, ret);
}

static void on_sent(struct producer_send *send, int rc, enum kerr err, int64_t offset, int32_t n_committed,
                    const char *text)
{
    struct run_part *p = container_of(send, struct run_part, send);

    (void)offset, (void)n_committed;
    if (rc == 0) {
        p->r->n_buried += p->batch.n;
        part_complain(p, "%lld records from offset %lld on went to %s", (long long)p->batch.n,
                      (long long)p->batch.first, p->r->set.dead_letters);
        part_commit(p);
        return;
    }
    part_complain(p, "the dead letters could not be written to %s: %s", p->r->set.dead_letters,
                  text[0] != '\0'    ? text
                  : err != KERR_NONE ? kerr_text(err)
                                     : strerror(-rc));
    part_fail(p, CLI_FAILED);
}

void batch_bury(struct run_part *p)
{
    struct run_batch *b = &p->batch;
    struct producer_record *letters = arena_array(&b->arena, (size_t)b->n, sizeof *letters);

    for (int64_t i = 0; i < b->n; i++)
        letter_make(p, &b->kept[i], &letters[i]);
    p->send = (struct producer_send){
        .topic = p->r->set.dead_letters,
        .partition = p->partition % p->r->set.n_dead_letters,
        .records = letters,
        .n_records = (int32_t)b->n,
        .flush = true,
        .cb = on_sent,
    };
    producer_send(p->r->letters, &p->send);
}
