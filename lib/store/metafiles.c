/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of meta.properties and partition.metadata and the bytes of the clean-shutdown marker, both ways. What is read may
 * be anybody's: unknown keys are passed over, numbers are judged, a checksum that does not fit makes the file unreadable
 * instead of half right. Pure.
 */
#include "lib/store/metafiles.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/varint.h"

/* Takes one line off s into ret (without its end); false at the end. Lines that do not fit are cut. */
static bool take_line(struct slice *s, char *ret, size_t size)
{
    if (s->n == 0)
        return false;
    const uint8_t *end = memchr(s->p, '\n', s->n);
    size_t n = end == NULL ? s->n : (size_t)(end - s->p);
    size_t keep = n < size - 1 ? n : size - 1;

    memcpy(ret, s->p, keep);
    ret[keep] = '\0';
    if (keep > 0 && ret[keep - 1] == '\r')
        ret[keep - 1] = '\0';
    n += end != NULL;
    *s = slice_of(s->p + n, s->n - n);
    return true;
}

void meta_encode(const struct meta_properties *m, struct bytebuf *ret)
{
    char id[UUID_TEXT_LEN + 1];

    uuid_text(&m->directory_id, id);
    bytebuf_printf(ret, "version=0\ncluster.id=%s\n", m->cluster_id);
    if (m->broker_id >= 0)
        bytebuf_printf(ret, "broker.id=%" PRId32 "\n", m->broker_id);
    bytebuf_printf(ret, "directory.id=%s\n", id);
}

static bool parse_i32(const char *text, int32_t *ret)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || v < 0 || v > INT32_MAX)
        return false;
    *ret = (int32_t)v;
    return true;
}

static bool meta_set(struct meta_properties *m, const char *key, const char *value)
{
    if (strcmp(key, "version") == 0)
        return parse_i32(value, &m->version);
    if (strcmp(key, "cluster.id") == 0)
        return (size_t)snprintf(m->cluster_id, sizeof m->cluster_id, "%s", value) < sizeof m->cluster_id;
    if (strcmp(key, "broker.id") == 0 || strcmp(key, "node.id") == 0)
        return parse_i32(value, &m->broker_id);
    if (strcmp(key, "directory.id") == 0)
        return uuid_parse(value, &m->directory_id);
    return true;
}

bool meta_decode(struct slice s, struct meta_properties *ret)
{
    struct meta_properties m = { .version = -1, .broker_id = -1 };
    char line[512];

    while (take_line(&s, line, sizeof line)) {
        char *eq = strchr(line, '=');
        if (line[0] == '#' || line[0] == '\0')
            continue;
        if (eq == NULL)
            return false;
        *eq = '\0';
        if (!meta_set(&m, line, eq + 1))
            return false;
    }
    if (m.cluster_id[0] == '\0' || m.version < 0)
        return false;
    *ret = m;
    return true;
}

enum {
    CLEAN_V1_BYTES = 32,
    CLEAN_CRC_FROM = 16,
};

/* magic 8, version u32, CRC-32C u32 of what follows: the directory's uuid, i64 note. */
void clean_encode(const struct uuid *directory_id, int64_t note, uint8_t ret[CLEAN_BYTES])
{
    memcpy(ret, "klogclea", 8);
    put_be32(ret + 8, 2);
    memcpy(ret + 16, directory_id->b, sizeof directory_id->b);
    put_be64(ret + 32, (uint64_t)note);
    put_be32(ret + 12, crc32c(0, ret + CLEAN_CRC_FROM, CLEAN_BYTES - CLEAN_CRC_FROM));
}

bool clean_decode(struct slice s, const struct uuid *directory_id, int64_t *ret_note)
{
    size_t want = s.n >= 12 && get_be32(s.p + 8) == 1 ? CLEAN_V1_BYTES : CLEAN_BYTES;

    if (s.n != want || memcmp(s.p, "klogclea", 8) != 0 || get_be32(s.p + 8) != (want == CLEAN_BYTES ? 2 : 1) ||
        get_be32(s.p + 12) != crc32c(0, s.p + CLEAN_CRC_FROM, want - CLEAN_CRC_FROM) ||
        memcmp(s.p + 16, directory_id->b, sizeof directory_id->b) != 0)
        return false;
    *ret_note = want == CLEAN_BYTES ? (int64_t)get_be64(s.p + 32) : -1;
    return true;
}

/* Two changed characters of an id make another id, so the lines before it have a checksum. */
void partition_metadata_encode(const struct uuid *topic_id, struct bytebuf *ret)
{
    char id[UUID_TEXT_LEN + 1];
    size_t from = ret->n;

    uuid_text(topic_id, id);
    bytebuf_printf(ret, "version: 0\ntopic_id: %s\n", id);
    bytebuf_printf(ret, "crc32c: %08" PRIx32 "\n", crc32c(0, ret->p + from, ret->n - from));
}

/* The line of the checksum begins where `upto` ends. */
static bool is_checksum_right(const char *text, struct slice upto)
{
    char want[16];

    snprintf(want, sizeof want, "%08" PRIx32, crc32c(0, upto.p, upto.n));
    return strcmp(text, want) == 0;
}

int partition_metadata_decode(struct slice s, struct uuid *ret)
{
    struct slice left = s;
    struct uuid id = { 0 };
    int32_t version = -1;
    char line[128];

    for (size_t at = 0; take_line(&left, line, sizeof line); at = s.n - left.n) {
        if (strncmp(line, "version: ", 9) == 0 && !parse_i32(line + 9, &version))
            return -EBADMSG;
        if (strncmp(line, "topic_id: ", 10) == 0 && !uuid_parse(line + 10, &id))
            return -EBADMSG;
        if (strncmp(line, "crc32c: ", 8) == 0 && !is_checksum_right(line + 8, slice_of(s.p, at)))
            return -EBADMSG;
    }
    if (version > 0)
        return -EPROTO;
    if (version < 0 || uuid_is_zero(&id))
        return -EBADMSG;
    *ret = id;
    return 0;
}

uint32_t partition_identity(const struct uuid *topic_id, int32_t partition)
{
    uint8_t p[sizeof topic_id->b + 4];

    memcpy(p, topic_id->b, sizeof topic_id->b);
    put_be32(p + sizeof topic_id->b, (uint32_t)partition);
    uint32_t crc = crc32c(0, p, sizeof p);
    return crc == 0 ? 1 : crc;
}
