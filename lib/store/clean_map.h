/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest offset of each key, in a fixed amount of memory: 24 bytes a key, of which only a keyed 128-bit
 * hash is kept (SipHash-2-4, a fresh random key a map), so that nobody can make two keys that meet. One
 * thread.
 */
#ifndef KLOG_STORE_CLEAN_MAP_H
#define KLOG_STORE_CLEAN_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/slice.h"

struct clean_map;
struct random;
/* The key of its hash is random: nobody may choose record keys that meet. At least room for one key. */
struct clean_map *clean_map_new(struct random *random, size_t bytes);
void clean_map_free(struct clean_map *m);      /* NULL is fine */
/* Offsets of one key come rising. False: no room for another key; the map is as it was. */
bool clean_map_put(struct clean_map *m, struct kstr key, int64_t offset);
int64_t clean_map_get(const struct clean_map *m, struct kstr key); /* -1: not there */
size_t clean_map_keys(const struct clean_map *m);

/* SipHash-2-4 with 128 bits out, as its authors publish it. */
void siphash128(const uint8_t key[16], struct slice in, uint8_t ret[16]);

#endif
