/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cleaner's two checkpoints as text, both ways, and their files as one call each. A file that is not there has no lines;
 * a damaged one is -EBADMSG, after the lines before the damage were told. Files are replaced whole. Whoever writes and reads
 * may wait for the disk.
 */
#include "lib/store/clean_marks.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/store/datadir_int.h"

#define MARKS_FILE_MAX (64 << 20)

void clean_marks_encode(const struct clean_mark *v, size_t n, enum clean_marks_form form, struct bytebuf *ret)
{
    char id[UUID_TEXT_LEN + 1];

    bytebuf_printf(ret, "%d\n%zu\n", (int)form, n);
    for (size_t i = 0; i < n; i++) {
        bytebuf_printf(ret, "%s %" PRId32 " %" PRId64, v[i].topic, v[i].partition, v[i].value);
        if (form == CLEAN_MARKS_WITH_ID) {
            uuid_text(&v[i].topic_id, id);
            bytebuf_printf(ret, " %s", id);
        }
        bytebuf_printf(ret, "\n");
    }
}

/* Takes one line off s into ret; false at the end, or when it does not fit. */
static bool take_line(struct slice *s, char *ret, size_t size)
{
    const uint8_t *end = s->n == 0 ? NULL : memchr(s->p, '\n', s->n);
    size_t n = end == NULL ? 0 : (size_t)(end - s->p);

    if (end == NULL || n >= size)
        return false;
    memcpy(ret, s->p, n);
    ret[n] = '\0';
    *s = slice_of(s->p + n + 1, s->n - n - 1);
    return true;
}

static bool parse_number(const char *text, int64_t max, int64_t *ret)
{
    char *end;

    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || v < 0 || v > max)
        return false;
    *ret = v;
    return true;
}

static bool parse_line(char *line, enum clean_marks_form form, struct clean_mark *ret)
{
    char *save = NULL;
    int64_t partition;
    const char *topic = strtok_r(line, " ", &save), *number = strtok_r(NULL, " ", &save);
    const char *value = strtok_r(NULL, " ", &save);
    const char *id = form == CLEAN_MARKS_WITH_ID ? strtok_r(NULL, " ", &save) : NULL;

    *ret = (struct clean_mark){ .topic = topic };
    if (value == NULL || strtok_r(NULL, " ", &save) != NULL || !parse_number(number, INT32_MAX, &partition) ||
        !parse_number(value, INT64_MAX, &ret->value))
        return false;
    if (form == CLEAN_MARKS_WITH_ID && (id == NULL || !uuid_parse(id, &ret->topic_id)))
        return false;
    ret->partition = (int32_t)partition;
    return true;
}

bool clean_marks_decode(struct slice s, clean_mark_fn *cb, void *arg)
{
    char line[NAME_MAX + 96];
    int64_t version, n;

    if (!take_line(&s, line, sizeof line) || !parse_number(line, CLEAN_MARKS_WITH_ID, &version) ||
        !take_line(&s, line, sizeof line) || !parse_number(line, INT64_MAX, &n))
        return false;
    for (int64_t i = 0; i < n; i++) {
        struct clean_mark m;
        if (!take_line(&s, line, sizeof line) || !parse_line(line, (enum clean_marks_form)version, &m))
            return false;
        cb(arg, &m);
    }
    return s.n == 0;
}

int clean_marks_write(struct datadir *dd, const char *file, const struct clean_mark *v, size_t n,
                      enum clean_marks_form form)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };

    clean_marks_encode(v, n, form, &b);
    return io_replace_file(datadir_io(dd), datadir_fd(dd), ".", file, b.p, b.n);
}

int clean_marks_read(struct datadir *dd, const char *file, clean_mark_fn *cb, void *arg)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    int rc = io_read_file(datadir_io(dd), datadir_fd(dd), file, MARKS_FILE_MAX, &b);

    if (rc == -ENOENT)
        return 0;
    if (rc == 0 && !clean_marks_decode(slice_of(b.p, b.n), cb, arg))
        rc = -EBADMSG;
    return rc;
}
