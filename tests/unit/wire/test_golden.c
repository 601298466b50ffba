/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What real clients and a real broker said to each other (tests/fixtures/wire/, recorded by record.py there):
 * each frame decodes to the JSON beside it, and encodes to its own bytes again.
 *
 * `test_golden --rewrite FILE` prints FILE with the lines of JSON made anew, to be read before it is
 * committed.
 */
#include "unit.h"

#include <glob.h>

#include "lib/base/arena.h"
#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/wire/wire.h"

struct capture {
    const struct wire_message *message;
    int version;
    uint8_t *frame;
    size_t n;
};

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t unhex(const char *text, uint8_t *ret)
{
    size_t n = 0;

    while (hex_digit(text[2 * n]) >= 0 && hex_digit(text[2 * n + 1]) >= 0) {
        ret[n] = (uint8_t)(hex_digit(text[2 * n]) << 4 | hex_digit(text[2 * n + 1]));
        n++;
    }
    return n;
}

/* "request 3 1 HEX"; false for any other line. The caller frees ret->frame. */
static bool capture_parse(const char *line, struct capture *ret)
{
    char kind[16];
    int key, version, at = 0;

    if (sscanf(line, "%15s %d %d %n", kind, &key, &version, &at) != 3 || at == 0)
        return false;
    const struct wire_api *api = wire_api_find((int16_t)key);
    assert_non_null(api);
    ret->message = strcmp(kind, "request") == 0 ? api->request : api->response;
    ret->version = version;
    ret->frame = xmalloc(strlen(line));
    ret->n = unhex(line + at, ret->frame);
    return true;
}

static struct slice capture_body(const struct capture *c)
{
    struct slice frame = slice_of(c->frame, c->n), body = { NULL, 0 };
    struct wire_request_header h;
    int32_t correlation_id;
    int16_t key = c->message->api_key;

    if (!c->message->request) {
        assert_int_equal(wire_response_header_read(key, (int16_t)c->version, frame, &correlation_id, &body),
                         0);
        return body;
    }
    assert_int_equal(wire_request_header_read(frame, &h, &body), 0);
    assert_int_equal(h.api_key, key);
    assert_int_equal(h.api_version, c->version);
    return body;
}

static void check_encodes_to(const struct capture *c, const void *msg, struct slice body)
{
    struct wire_out out = { 0 };

    assert_int_equal(wire_encode(c->message, c->version, msg, &out, NULL), 0);
    assert_int_equal(out.b.n, body.n);
    if (body.n > 0)
        assert_memory_equal(out.b.p, body.p, body.n);
    wire_out_done(&out);
}

/* The message as JSON; free() it. */
static char *capture_check(const struct capture *c)
{
    struct arena a;
    struct bytebuf json = { 0 };
    struct slice body = capture_body(c);

    arena_init(&a);
    void *msg = arena_alloc(&a, wire_msg_size(c->message));
    if (wire_decode(c->message, c->version, body, &a, msg) != 0)
        fail_msg("%s v%d was not decoded", c->message->name, c->version);
    check_encodes_to(c, msg, body);
    wire_print_json(c->message, c->version, msg, &json);
    char *text = xstrdup(bytebuf_cstr(&json));
    bytebuf_done(&json);
    arena_done(&a);
    return text;
}

/* Calls visit for each line; json is the message of a capture's line, else NULL. */
static void each_line(const char *path, void (*visit)(void *user, const char *line, const char *json),
                      void *user)
{
    char *line = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "r");

    if (f == NULL)
        fail_msg("%s: %s", path, strerror(errno));
    while (getline(&line, &cap, f) > 0) {
        struct capture c;
        line[strcspn(line, "\n")] = '\0';
        char *json = NULL;
        if (capture_parse(line, &c)) {
            json = capture_check(&c);
            free(c.frame);
        }
        visit(user, line, json);
        free(json);
    }
    free(line);
    fclose(f);
}

struct comparison {
    char *expected; /* JSON of the capture's line just read; the next line must be it */
    int captures;
};

static void compare_line(void *user, const char *line, const char *json)
{
    struct comparison *cmp = user;

    if (cmp->expected != NULL)
        assert_string_equal(line, cmp->expected);
    free(cmp->expected);
    cmp->expected = json == NULL ? NULL : xasprintf("= %s", json);
    cmp->captures += json != NULL;
}

static void captured_frames_decode_to_their_json_and_encode_to_their_bytes(void **state)
{
    (void)state;
    const char *srcdir = getenv("srcdir");
    CLEANUP(freep) char *pattern = xasprintf("%s/tests/fixtures/wire/*.txt", srcdir == NULL ? "." : srcdir);
    struct comparison cmp = { 0 };
    glob_t found;

    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        each_line(found.gl_pathv[i], compare_line, &cmp);
        assert_null(cmp.expected);
    }
    globfree(&found);
    assert_true(cmp.captures >= 200);
}

static void rewrite_line(void *user, const char *line, const char *json)
{
    (void)user;
    if (line[0] != '=')
        printf("%s\n", line);
    if (json != NULL)
        printf("= %s\n", json);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captured_frames_decode_to_their_json_and_encode_to_their_bytes),
    };

    if (argc == 3 && strcmp(argv[1], "--rewrite") == 0) {
        each_line(argv[2], rewrite_line, NULL);
        return 0;
    }
    return RUN(tests);
}
