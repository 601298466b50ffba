/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOPIC/.config: key=value a line. Whole lines that are written change the topic, all lines of a write
 * together or none; "key=" goes back to the default. A last line without '\n' takes effect at close. Loop's
 * thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/cluster/topics.h"
#include "fuse/page/page.h"
#include "fuse/tree/file.h"
#include "lib/base/arena.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define CONFIG_RESOURCE_TOPIC 2
#define CONFIG_OP_SET         0
#define CONFIG_OP_DELETE      1
#define CONFIG_LINE_MAX       65536

/* ---- reading ---- */

struct config_get {
    struct page *page;
    struct client_call call;
    struct describe_configs_request body;
    struct describe_configs_request_resources resource;
};

static int compare_configs(const void *x, const void *y)
{
    const struct describe_configs_response_configs *a = x, *b = y;
    int d = memcmp(a->name.p, b->name.p, (size_t)MIN(a->name.n, b->name.n));
    return d != 0 ? d : a->name.n - b->name.n;
}

/* Sorts the answer in place: it is this callback's own. */
static void config_print(struct bytebuf *b, const struct describe_configs_response_results *r)
{
    if (r->n_configs > 0)
        qsort(r->configs, (size_t)r->n_configs, sizeof *r->configs, compare_configs);
    for (int32_t i = 0; i < r->n_configs; i++)
        bytebuf_printf(b, "%.*s=%.*s\n", KSTR_FMT(r->configs[i].name), KSTR_FMT(r->configs[i].value));
}

static void on_config(struct client_call *call, int rc, enum kerr err, int16_t version, const void *response)
{
    struct config_get *g = call->user;
    struct page *page = g->page;
    const struct describe_configs_response *resp = response;
    struct bytebuf text = { 0 };
    (void)err;
    (void)version;
    if (rc == 0 && resp->n_results != 1)
        rc = -EIO;
    if (rc == 0 && resp->results[0].error_code != KERR_NONE)
        rc = -kerr_errno(resp->results[0].error_code);
    if (rc == 0)
        config_print(&text, &resp->results[0]);
    free(g);
    page_made(page, rc, &text);
    bytebuf_done(&text);
}

static void config_make(struct page *p)
{
    struct mount *m = page_mount(p);
    struct config_get *g = xcalloc(1, sizeof *g);
    g->page = p;
    wire_defaults(&wire_describe_configs_request, &g->body);
    g->resource =
        (struct describe_configs_request_resources){ .resource_type = CONFIG_RESOURCE_TOPIC,
                                                     .resource_name = kstr_of(page_node(p)->topic->name),
                                                     .n_configuration_keys = -1 };
    g->body.resources = &g->resource;
    g->body.n_resources = 1;
    g->call = (struct client_call){ .target = TARGET_ANY,
                                    .request = &wire_describe_configs_request,
                                    .body = &g->body,
                                    .max_version = -1,
                                    .deadline_ms = mount_deadline_ms(m),
                                    .cb = on_config,
                                    .user = g };
    client_call(m->client, &g->call);
}

/* ---- writing ---- */

struct config_set {
    struct request r;
    struct handle *h;    /* owned reference */
    size_t size;         /* bytes of the write; 0: it was a close */
    struct bytebuf rest; /* the new tail */
    struct arena arena;
    struct client_call call;
    struct topics_wait metadata;
    struct incremental_alter_configs_request body;
    struct incremental_alter_configs_request_resources resource;
};

static void config_set_free(struct config_set *s)
{
    arena_done(&s->arena);
    bytebuf_done(&s->rest);
    handle_unref(s->h);
    free(s);
}

static void on_config_set(struct client_call *call, int rc, enum kerr err, int16_t version,
                          const void *response)
{
    struct config_set *s = call->user;
    struct handle *h = s->h;
    const struct incremental_alter_configs_response *resp = response;
    (void)err;
    (void)version;
    if (rc == 0 && resp->n_responses == 1 && resp->responses[0].error_code != KERR_NONE) {
        rc = -kerr_errno(resp->responses[0].error_code);
        log_warn("%s/.config: %.*s", h->node->topic->name, KSTR_FMT(resp->responses[0].error_message));
    }
    page_expire(h->node->page);
    h->node->topic->limits_ms = 0;
    h->app.tail.n = 0;
    if (rc == 0 && s->rest.n > 0)
        bytebuf_add(&h->app.tail, s->rest.p, s->rest.n);
    if (rc != 0)
        request_err(&s->r, request_errno(rc));
    else if (s->size > 0)
        request_written(&s->r, s->size);
    else
        request_err(&s->r, 0);
    config_set_free(s);
}

static struct slice trimmed(const char *p, size_t n)
{
    while (n > 0 && strchr(" \t\r", *p) != NULL)
        p++, n--;
    while (n > 0 && strchr(" \t\r", p[n - 1]) != NULL)
        n--;
    return slice_of(p, n);
}

/* One line into the request; false: it is not key=value. Empty lines and # comments are skipped. */
static bool config_add_line(struct config_set *s, const char *p, size_t n)
{
    struct slice line = trimmed(p, n);
    if (line.n == 0 || line.p[0] == '#')
        return true;
    const uint8_t *eq = memchr(line.p, '=', line.n);
    if (eq == NULL || eq == line.p || memchr(line.p, '\0', line.n) != NULL)
        return false;
    struct slice key = trimmed((const char *)line.p, (size_t)(eq - line.p));
    struct slice value = trimmed((const char *)eq + 1, line.n - (size_t)(eq - line.p) - 1);
    struct incremental_alter_configs_request_configs *c = &s->resource.configs[s->resource.n_configs++];
    c->name = arena_kstr(&s->arena, kstr_bytes(key.p, key.n));
    c->config_operation = value.n > 0 ? CONFIG_OP_SET : CONFIG_OP_DELETE;
    c->value = value.n > 0 ? arena_kstr(&s->arena, kstr_bytes(value.p, value.n)) : KSTR_NULL;
    return true;
}

static bool config_add_lines(struct config_set *s, const char *p, size_t n)
{
    size_t lines = 1;
    for (size_t i = 0; i < n; i++)
        lines += p[i] == '\n';
    s->resource.configs = arena_array(&s->arena, lines, sizeof *s->resource.configs);
    while (n > 0) {
        const char *nl = memchr(p, '\n', n);
        size_t len = nl == NULL ? n : (size_t)(nl - p);
        if (!config_add_line(s, p, len))
            return false;
        p += MIN(len + 1, n);
        n -= MIN(len + 1, n);
    }
    return true;
}

/* The request names the topic, and another one may have got the name. */
static void on_config_sure(struct topics_wait *w, int rc)
{
    struct config_set *s = container_of(w, struct config_set, metadata);
    if (rc == 0 && !s->h->node->topic->gone) {
        client_call(s->h->mount->client, &s->call);
        return;
    }
    s->h->app.tail.n = 0;
    request_err(&s->r, rc == 0 || rc == -ENOENT ? ESTALE : request_errno(rc));
    config_set_free(s);
}

/* Sends the changes that `text` (whole lines) asks for and answers the request. */
static void config_apply(struct handle *h, fuse_req_t req, const char *text, size_t n, size_t size,
                         const char *rest, size_t rest_n)
{
    struct mount *m = h->mount;
    struct config_set *s = xcalloc(1, sizeof *s);
    s->h = handle_ref(h);
    s->size = size;
    arena_init(&s->arena);
    if (rest_n > 0)
        bytebuf_add(&s->rest, rest, rest_n);
    request_begin(&s->r, m, req);
    s->resource = (struct incremental_alter_configs_request_resources){
        .resource_type = CONFIG_RESOURCE_TOPIC, .resource_name = kstr_of(h->node->topic->name)
    };
    if (!config_add_lines(s, text, n)) {
        h->app.tail.n = 0;
        request_err(&s->r, EINVAL);
        config_set_free(s);
        return;
    }
    wire_defaults(&wire_incremental_alter_configs_request, &s->body);
    s->body.resources = &s->resource;
    s->body.n_resources = 1;
    s->call = (struct client_call){ .target = TARGET_CONTROLLER,
                                    .request = &wire_incremental_alter_configs_request,
                                    .body = &s->body,
                                    .max_version = -1,
                                    .deadline_ms = mount_deadline_ms(m),
                                    .cb = on_config_set,
                                    .user = s };
    s->metadata.cb = on_config_sure;
    topics_ask(m, &s->metadata, h->node->topic->name, 0);
}

static void config_write(struct handle *h, fuse_req_t req, const char *buf, size_t size,
                         struct fuse_file_info *fi)
{
    (void)fi;
    const char *nl = memrchr(buf, '\n', size);
    if (h->app.tail.n + size > CONFIG_LINE_MAX) {
        fuse_reply_err(req, EINVAL);
        return;
    }
    size_t whole = nl == NULL ? 0 : (size_t)(nl - buf) + 1;
    if (whole == 0) {
        bytebuf_add(&h->app.tail, buf, size);
        fuse_reply_write(req, size);
        return;
    }
    struct bytebuf text = { 0 };
    bytebuf_add(&text, h->app.tail.p, h->app.tail.n);
    bytebuf_add(&text, buf, whole);
    config_apply(h, req, (const char *)text.p, text.n, size, buf + whole, size - whole);
    bytebuf_done(&text);
}

static void config_flush(struct handle *h, fuse_req_t req)
{
    struct bytebuf text = h->app.tail;
    if (text.n == 0) {
        fuse_reply_err(req, 0);
        return;
    }
    h->app.tail = (struct bytebuf){ 0 };
    config_apply(h, req, (const char *)text.p, text.n, 0, NULL, 0);
    bytebuf_done(&text);
}

static int config_may_open(struct mount *m, struct node *n, int flags)
{
    (void)m;
    (void)flags; /* O_TRUNC and no O_APPEND are fine: lines are changes, not content */
    return n->topic->gone ? ESTALE : 0;
}

static void config_made(struct mount *m, struct node *n)
{
    page_attach(m, n, config_make, PAGE_VALID_MS);
}

const struct file_ops config_ops = {
    .made = config_made,
    .freed = page_detach,
    .fill_stat = page_fill_stat,
    .getattr = page_getattr,
    .may_open = config_may_open,
    .open = page_open,
    .read = page_read,
    .write = config_write,
    .flush = config_flush,
    .fsync = config_flush,
};
