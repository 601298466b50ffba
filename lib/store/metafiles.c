/* SPDX-License-Identifier: Apache-2.0 */
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

static bool parse_broker_id(const char *text, int32_t *ret)
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
    if (strcmp(key, "cluster.id") == 0)
        return (size_t)snprintf(m->cluster_id, sizeof m->cluster_id, "%s", value) < sizeof m->cluster_id;
    if (strcmp(key, "broker.id") == 0 || strcmp(key, "node.id") == 0)
        return parse_broker_id(value, &m->broker_id);
    if (strcmp(key, "directory.id") == 0)
        return uuid_parse(value, &m->directory_id);
    return true;
}

bool meta_decode(struct slice s, struct meta_properties *ret)
{
    struct meta_properties m = { .broker_id = -1 };
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
    if (m.cluster_id[0] == '\0')
        return false;
    *ret = m;
    return true;
}

/* magic 8, version u32, CRC-32C u32 of the directory's uuid, which follows. */
void clean_encode(const struct uuid *directory_id, uint8_t ret[CLEAN_BYTES])
{
    memcpy(ret, "klogclea", 8);
    put_be32(ret + 8, 1);
    put_be32(ret + 12, crc32c(0, directory_id->b, sizeof directory_id->b));
    memcpy(ret + 16, directory_id->b, sizeof directory_id->b);
}

bool clean_decode(struct slice s, const struct uuid *directory_id)
{
    uint8_t want[CLEAN_BYTES];

    clean_encode(directory_id, want);
    return s.n == CLEAN_BYTES && memcmp(s.p, want, CLEAN_BYTES) == 0;
}

void partition_metadata_encode(const struct uuid *topic_id, struct bytebuf *ret)
{
    char id[UUID_TEXT_LEN + 1];

    uuid_text(topic_id, id);
    bytebuf_printf(ret, "version: 0\ntopic_id: %s\n", id);
}

bool partition_metadata_decode(struct slice s, struct uuid *ret)
{
    char line[128];

    while (take_line(&s, line, sizeof line)) {
        if (strncmp(line, "topic_id: ", 10) == 0)
            return uuid_parse(line + 10, ret);
    }
    return false;
}

uint32_t partition_identity(const struct uuid *topic_id, int32_t partition)
{
    uint8_t p[sizeof topic_id->b + 4];

    memcpy(p, topic_id->b, sizeof topic_id->b);
    put_be32(p + sizeof topic_id->b, (uint32_t)partition);
    uint32_t crc = crc32c(0, p, sizeof p);
    return crc == 0 ? 1 : crc;
}
