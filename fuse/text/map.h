/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where records stand in a text whose positions no broker knows: of a form other than the plain one, or with records left out
 * by their times. Positions count from the text's first record, and are found by printing the records once: marks are kept
 * on the way, a bounded number of them, so that any position can be found again by printing from the mark before it. What
 * lies between two marks ends at the second: where compaction or retention took something of it, what is left is the end.
 * Pure; loop's thread.
 */
#ifndef KLOG_FUSE_MAP_H
#define KLOG_FUSE_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Text between two marks, at least, but for the front of a text; it doubles whenever there are MAP_MARKS_MAX of them. */
#define MAP_STEP_BYTES (1024 * 1024)
#define MAP_MARKS_MAX  16384

struct map_mark {
    int64_t offset; /* the records from here on begin */
    int64_t at;     /* at this text position */
    int64_t stored; /* bytes of the batches before, as they are stored */
};

struct text_map {
    struct map_mark *marks; /* by offset; the first is the text's beginning */
    size_t n, cap;
    int64_t step;
    struct map_mark front; /* how far records have been printed */
};

void map_init(struct text_map *m, int64_t offset);
void map_done(struct text_map *m);
/* Records up to `offset` take so many bytes of text, their batches so many as stored. */
void map_grow(struct text_map *m, int64_t offset, int64_t text_bytes, int64_t stored_bytes);
/* The index of the mark at or before position `at`, which is below the front. */
size_t map_find(const struct text_map *m, int64_t at);
/* The index of the last mark at or before record `offset`. */
size_t map_find_offset(const struct text_map *m, int64_t offset);
/* Where the records from `offset` on begin, if that is the place of a mark or the front; -1: it is not known. */
int64_t map_at(const struct text_map *m, int64_t offset);
/* The one after mark i: the front, where there is no other. */
const struct map_mark *map_next(const struct text_map *m, size_t i);
/* Records from `offset` on are no more: the front goes back to the last mark before. */
void map_cut(struct text_map *m, int64_t offset);

#endif
