/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table-driven configuration. One table a subject (broker, topic, client) gives every key
 * its Kafka name, type, default, range and a line of documentation; the table is the only
 * place that knows them, so the manual, DescribeConfigs and the parser cannot differ.
 */
#ifndef KLOG_BASE_CONF_H
#define KLOG_BASE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum conf_type { CONF_BOOL, CONF_INT, CONF_LONG, CONF_DOUBLE, CONF_STRING, CONF_ENUM, CONF_LIST };

struct conf_key {
    const char *name;
    enum conf_type type;
    const char *def;             /* default, as text */
    double min, max;             /* numbers: both inclusive */
    const char *const *choices;  /* CONF_ENUM, CONF_LIST: allowed words, NULL-terminated */
    size_t field;                /* offsetof the value in the subject's struct */
    const char *doc;             /* one line */
    bool read_only;              /* broker keys that need a restart */
};
/* Field types: CONF_BOOL bool; CONF_INT int32_t; CONF_LONG int64_t; CONF_DOUBLE double;
 * CONF_STRING and CONF_LIST char * (owned); CONF_ENUM int (index into choices). */

struct conf_table {
    const struct conf_key *keys;
    size_t n;
    const char *what;            /* "broker", "topic": for messages */
};

/* Sets every field to its default. */
void conf_defaults(const struct conf_table *t, void *obj);
/* Frees owned strings. */
void conf_done(const struct conf_table *t, void *obj);
/* Copies obj to a struct that owns its strings. */
void conf_copy(const struct conf_table *t, void *dst, const void *src, size_t size);
/* NULL when there is no such key. */
const struct conf_key *conf_find(const struct conf_table *t, const char *name);
/* The key with the smallest edit distance; NULL when none is near. */
const struct conf_key *conf_nearest(const struct conf_table *t, const char *name);
/* The line about a key that is not in the table. */
void conf_unknown(const struct conf_table *t, const char *name, char *err, size_t err_size);
/* Returns 0, or -EINVAL (and a message of one line in err) for an unknown key or a bad value; the
 * field then keeps its value. */
int conf_set(const struct conf_table *t, void *obj, const char *name, const char *value, char *err,
             size_t err_size);
/* The value as text, cut off at ret_size; returns the length of the whole. */
size_t conf_get(const struct conf_key *k, const void *obj, char *ret, size_t ret_size);
/* The same in memory of its own; free() it. */
char *conf_text(const struct conf_key *k, const void *obj);
/* Reads "key = value" lines, # comments, \ continuation. Calls set for each; err has file and line. A file that cannot
 * be read to its end (a directory, EIO) is an error, though set was called for what came before. */
typedef int conf_setter(void *arg, const char *name, const char *value, char *err, size_t err_size);
int conf_read_lines(const char *path, conf_setter *set, void *arg, char *err, size_t err_size);
/* The same, with conf_set. */
int conf_read_file(const struct conf_table *t, void *obj, const char *path, char *err, size_t err_size);

#endif
