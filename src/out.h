/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What commands print: rows, as JSON objects one a line or as an aligned table for people. A row is
 * a jansson object either way; the columns say which of its members the table shows. One thread.
 */
#ifndef KLOG_SRC_OUT_H
#define KLOG_SRC_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/slice.h"

struct column {
    const char *key; /* member of the row; NULL ends a list */
    const char *title;
    bool right; /* numbers */
};

/* Prints and frees rows (an array of objects). */
void out_rows(FILE *f, bool json, const struct column *columns, json_t *rows);
/* Prints one object on a line and frees it. */
void out_json(FILE *f, json_t *object);

json_t *json_kstr(struct kstr s);                        /* null stays null */
json_t *json_numbers(const int32_t *numbers, int32_t n); /* an array */
json_t *json_offset(int64_t offset);                     /* -1 becomes null */
/* Sets key to the bytes: a string when they are UTF-8, else KEY_base64. */
void json_set_bytes(json_t *object, const char *key, struct kstr bytes);
/* Bytes for people, as a C string without quotes: control characters and what is not UTF-8 escaped. */
void out_escaped(FILE *f, struct kstr bytes);
/* "2026-01-02T03:04:05.678Z", or "-" for -1; ret holds at least 32 bytes. */
const char *time_text(int64_t ms, char *ret, size_t size);

#endif
