/* SPDX-License-Identifier: Apache-2.0 */
/* Record batches v2, written and read once more; see batches.h. */
#include "tests/sim/batches.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/rand.h"

uint32_t sim_crc32c(const uint8_t *p, size_t n)
{
    static uint32_t table[256];
    if (table[1] == 0)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int bit = 0; bit < 8; bit++)
                c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
            table[i] = c;
        }
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++)
        crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xff];
    return ~crc;
}

/* ---- writing ---- */
static void put(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--, v >>= 8)
        p[i] = (uint8_t)v;
}

static void add_varint(struct bytebuf *b, int64_t v)
{
    uint64_t z = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
    uint8_t one;
    for (; z >= 0x80; z >>= 7) {
        one = (uint8_t)(z | 0x80);
        bytebuf_add(b, &one, 1);
    }
    one = (uint8_t)z;
    bytebuf_add(b, &one, 1);
}

int32_t sim_batch_key(const struct sim_batch_spec *spec, int32_t i)
{
    return spec->n_keys == 0 ? -1 : (int32_t)(rnd_mix(spec->keys + (uint64_t)i) % (uint64_t)spec->n_keys);
}

static void add_record(struct bytebuf *b, const struct sim_batch_spec *spec, int32_t i)
{
    struct bytebuf r = { 0 };
    char text[64], key[16] = "";
    int n_text = snprintf(text, sizeof text, "%d.%d.%d:", spec->client, spec->batch, i);
    int n_key = spec->n_keys == 0 ? -1 : snprintf(key, sizeof key, "k%d", sim_batch_key(spec, i));
    bytebuf_add(&r, "", 1); /* attributes */
    add_varint(&r, 0);      /* timestamp delta */
    add_varint(&r, i);
    add_varint(&r, n_key);
    if (n_key > 0)
        bytebuf_add(&r, key, (size_t)n_key);
    add_varint(&r, n_text + spec->value_bytes);
    bytebuf_add(&r, text, (size_t)n_text);
    for (int k = 0; k < spec->value_bytes; k++)
        bytebuf_add(&r, &"abcdefghijklmnopqrstuvwxyz"[(k + i) % 26], 1);
    add_varint(&r, 0); /* headers */
    add_varint(b, (int64_t)r.n);
    bytebuf_add(b, r.p, r.n);
    bytebuf_done(&r);
}

void sim_batch_write(const struct sim_batch_spec *spec, struct bytebuf *ret)
{
    size_t from = ret->n;
    memset(bytebuf_extend(ret, SIM_BATCH_HEAD), 0, SIM_BATCH_HEAD);
    for (int32_t i = 0; i < spec->count; i++)
        add_record(ret, spec, i);
    uint8_t *p = ret->p + from;
    size_t n = ret->n - from;
    put(p + 8, n - 12, 4);
    put(p + 12, (uint64_t)-1, 4);
    p[16] = 2;
    put(p + 23, (uint64_t)spec->count - 1, 4);
    put(p + 27, (uint64_t)spec->timestamp_ms, 8);
    put(p + 35, (uint64_t)spec->timestamp_ms, 8);
    put(p + 43, (uint64_t)spec->producer_id, 8);
    put(p + 51, (uint64_t)spec->producer_epoch, 2);
    put(p + 53, (uint64_t)spec->base_sequence, 4);
    put(p + 57, (uint64_t)spec->count, 4);
    put(p + 17, sim_crc32c(p + 21, n - 21), 4);
}

/* ---- reading ---- */
static uint64_t get(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

const char *sim_batch_head(const uint8_t *p, size_t n, struct sim_batch_head *ret)
{
    memset(ret, 0, sizeof *ret);
    if (n < SIM_BATCH_HEAD)
        return "it is shorter than a head";
    ret->base_offset = (int64_t)get(p, 8);
    ret->size = (int32_t)get(p + 8, 4) + 12;
    ret->leader_epoch = (int32_t)get(p + 12, 4);
    ret->crc = (uint32_t)get(p + 17, 4);
    ret->attributes = (int16_t)get(p + 21, 2);
    ret->last_offset_delta = (int32_t)get(p + 23, 4);
    ret->producer_id = (int64_t)get(p + 43, 8);
    ret->producer_epoch = (int16_t)get(p + 51, 2);
    ret->base_sequence = (int32_t)get(p + 53, 4);
    ret->count = (int32_t)get(p + 57, 4);
    if (p[16] != 2)
        return "its magic is not 2";
    if (ret->size < SIM_BATCH_HEAD || (size_t)ret->size > n)
        return "it is not whole";
    if (sim_crc32c(p + 21, (size_t)ret->size - 21) != ret->crc)
        return "its checksum is wrong";
    return ret->last_offset_delta < 0 || ret->count < 0 || ret->count > ret->last_offset_delta + 1 ? "its counts are wrong" : NULL;
}

void sim_records_start(struct sim_records *it, const uint8_t *p, const struct sim_batch_head *head)
{
    *it = (struct sim_records){ .p = p + SIM_BATCH_HEAD, .end = p + head->size, .head = *head };
}

static bool read_varint(struct sim_records *it, int64_t *ret)
{
    uint64_t z = 0;
    for (int shift = 0; shift < 64 && it->p < it->end; shift += 7) {
        uint8_t b = *it->p++;
        z |= (uint64_t)(b & 0x7f) << shift;
        if ((b & 0x80) == 0) {
            *ret = (int64_t)(z >> 1) ^ -(int64_t)(z & 1);
            return true;
        }
    }
    return false;
}

/* A length and so many bytes; *ret_n is -1 for null. */
static bool read_bytes(struct sim_records *it, const uint8_t **ret, int64_t *ret_n)
{
    if (!read_varint(it, ret_n) || *ret_n < -1 || *ret_n > it->end - it->p)
        return false;
    *ret = it->p;
    if (*ret_n > 0)
        it->p += *ret_n;
    return true;
}

static void read_names(const uint8_t *key, int64_t n_key, const uint8_t *value, int64_t n_value, struct sim_record *ret)
{
    char text[64] = "", key_text[16] = "";
    int used = 0;
    memcpy(text, value, (size_t)(n_value < 0 ? 0 : n_value < 63 ? n_value : 63));
    memcpy(key_text, key, (size_t)(n_key < 0 ? 0 : n_key < 15 ? n_key : 15));
    ret->client = ret->key = -1;
    ret->is_null = n_value < 0;
    if (n_key >= 0 && sscanf(key_text, "k%d", &ret->key) != 1)
        ret->key = -2;
    if (sscanf(text, "%d.%d.%d:%n", &ret->client, &ret->batch, &ret->index, &used) != 3 || used == 0) {
        ret->client = -1;
        return;
    }
    for (int64_t k = used; k < n_value; k++)
        if (value[k] != 'a' + (k - used + ret->index) % 26)
            ret->client = -1;
}

int sim_records_next(struct sim_records *it, struct sim_record *ret)
{
    int64_t size, ignored, delta, n_key, n_value;
    const uint8_t *key, *value;
    if (it->next == it->head.count)
        return it->p == it->end ? 0 : -1;
    it->next++;
    if (!read_varint(it, &size) || size < 1 || size > it->end - it->p)
        return -1;
    const uint8_t *end = it->p + size;
    it->p++;
    if (!read_varint(it, &ignored) || !read_varint(it, &delta) || !read_bytes(it, &key, &n_key) ||
        !read_bytes(it, &value, &n_value) || !read_varint(it, &ignored) || it->p != end)
        return -1;
    ret->offset = it->head.base_offset + delta;
    read_names(key, n_key, value, n_value, ret);
    return 1;
}
