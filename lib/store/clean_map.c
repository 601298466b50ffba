/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See clean_map.h: an open hash with linear probing over fixed slots, filled to LOAD_PERCENT at most, so that a look
 * ends. A slot keeps the 128-bit SipHash-2-4 of the key under a random key of this map, and offset + 1; 0 is an empty
 * one. Two keys are taken for one only if their hashes meet, which nobody can make happen without that random key.
 */
#include "lib/store/clean_map.h"

#include <endian.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"

#define LOAD_PERCENT 80 /* with linear probing, a key that is not there then costs 13 looks */

struct slot {
    uint64_t hash[2];
    int64_t offset; /* + 1, so that memory full of zeros is an empty map */
};

struct clean_map {
    uint8_t key[16];
    size_t n, max;
    size_t n_slots;
    struct slot *slots;
};

/* ---- SipHash ---- */

static inline uint64_t rotl(uint64_t v, int by)
{
    return v << by | v >> (64 - by);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

static inline uint64_t get_le64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return le64toh(v);
}

static inline void put_le64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, 8);
}

static inline void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

static inline uint64_t sip_out(uint64_t v[4])
{
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void siphash128(const uint8_t key[16], struct slice in, uint8_t ret[16])
{
    uint64_t k0 = get_le64(key), k1 = get_le64(key + 8);
    uint64_t v[4] = { k0 ^ 0x736f6d6570736575ULL, k1 ^ 0x646f72616e646f6dULL ^ 0xee,
                      k0 ^ 0x6c7967656e657261ULL, k1 ^ 0x7465646279746573ULL };
    uint64_t last = (uint64_t)in.n << 56;
    size_t whole = in.n / 8 * 8;

    for (size_t i = 0; i < whole; i += 8)
        sip_word(v, get_le64(in.p + i));
    for (size_t i = whole; i < in.n; i++)
        last |= (uint64_t)in.p[i] << (8 * (i - whole));
    sip_word(v, last);
    v[2] ^= 0xee;
    put_le64(ret, sip_out(v));
    v[1] ^= 0xdd;
    put_le64(ret + 8, sip_out(v));
}

/* ---- the map ---- */

struct clean_map *clean_map_new(struct random *random, size_t bytes)
{
    struct clean_map *m = xcalloc(1, sizeof *m);

    m->n_slots = MAX(bytes / sizeof(struct slot), (size_t)2);
    m->max = MAX(m->n_slots * LOAD_PERCENT / 100, (size_t)1);
    m->slots = xcalloc(m->n_slots, sizeof *m->slots);
    random->fill(random, m->key, sizeof m->key);
    return m;
}

void clean_map_free(struct clean_map *m)
{
    if (m == NULL)
        return;
    free(m->slots);
    free(m);
}

size_t clean_map_keys(const struct clean_map *m)
{
    return m->n;
}

/* The key's slot, or the empty one where it would go: there always is one. */
static struct slot *find(const struct clean_map *m, struct kstr key, uint64_t hash[2])
{
    KCHECK(!kstr_is_null(key));
    siphash128(m->key, slice_of(key.p, (size_t)key.n), (uint8_t *)hash);
    size_t i = (size_t)((unsigned __int128)hash[0] * m->n_slots >> 64);
    for (;;) {
        struct slot *s = &m->slots[i];
        if (s->offset == 0 || (s->hash[0] == hash[0] && s->hash[1] == hash[1]))
            return s;
        i = i + 1 == m->n_slots ? 0 : i + 1;
    }
}

bool clean_map_put(struct clean_map *m, struct kstr key, int64_t offset)
{
    uint64_t hash[2];
    struct slot *s = find(m, key, hash);

    if (s->offset == 0) {
        if (m->n == m->max)
            return false;
        m->n++;
        memcpy(s->hash, hash, sizeof s->hash);
    }
    s->offset = MAX(s->offset, offset + 1);
    return true;
}

int64_t clean_map_get(const struct clean_map *m, struct kstr key)
{
    uint64_t hash[2];
    return find(m, key, hash)->offset - 1;
}
