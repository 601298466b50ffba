/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four changes of settings (KIP-339): set, delete, append to a list, take from a list. They are applied in the order in
 * which they were asked for, each to what the one before it left; a list begins with the value in force when the setting
 * itself is not there. Words of a list are compared whole. Pure: whether the values make sense is the configuration table's
 * to judge.
 */
#include "daemon/meta/config_ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/buf.h"
#include "lib/base/mem.h"

void config_settings_done(struct config_settings *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->entries[i].key);
        free(s->entries[i].value);
    }
    free(s->entries);
    memset(s, 0, sizeof *s);
}

static struct topic_config_entry *find(const struct config_settings *s, const char *key)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->entries[i].key, key) == 0)
            return &s->entries[i];
    return NULL;
}

/* Takes value over. */
static void set(struct config_settings *s, const char *key, char *value)
{
    struct topic_config_entry *e = find(s, key);

    if (e != NULL) {
        free(e->value);
        e->value = value;
        return;
    }
    s->entries = xreallocarray(s->entries, s->n + 1, sizeof *s->entries);
    s->entries[s->n++] = (struct topic_config_entry){ xstrdup(key), value };
}

static void unset(struct config_settings *s, const char *key)
{
    struct topic_config_entry *e = find(s, key);

    if (e == NULL)
        return;
    free(e->key);
    free(e->value);
    memmove(e, e + 1, (size_t)(s->entries + s->n - (e + 1)) * sizeof *e);
    s->n--;
}

/* ---- lists: "a,b" ---- */

static const char *word_next(const char *list, size_t *ret_n)
{
    list += strspn(list, ", ");
    *ret_n = strcspn(list, ", ");
    return *ret_n == 0 ? NULL : list;
}

static bool list_has(const char *list, const char *word, size_t word_bytes)
{
    size_t n;

    for (const char *w = list; (w = word_next(w, &n)) != NULL; w += n)
        if (n == word_bytes && memcmp(w, word, n) == 0)
            return true;
    return false;
}

/* The words of a that are (not) in b, after those of `list`. */
static void list_add(struct bytebuf *list, const char *a, const char *not_in)
{
    size_t n;

    for (const char *w = a; (w = word_next(w, &n)) != NULL; w += n)
        if (!list_has(not_in, w, n)) {
            bytebuf_adds(list, list->n > 0 ? "," : "");
            bytebuf_add(list, w, n);
        }
}

static char *list_change(const char *list, const char *words, enum config_op_kind kind)
{
    struct bytebuf b = { 0 };

    if (kind == CONFIG_OP_SUBTRACT) {
        list_add(&b, list, words);
    } else {
        list_add(&b, list, "");
        list_add(&b, words, list);
    }
    char *ret = xstrdup(bytebuf_cstr(&b));
    bytebuf_done(&b);
    return ret;
}

static int op_list(struct config_settings *s, const struct conf_key *k, const void *effective,
                   const struct config_op *op, char *err, size_t err_size)
{
    const struct topic_config_entry *e = find(s, op->key);

    if (k->type != CONF_LIST) {
        snprintf(err, err_size, "%s is no list: append and subtract do not apply, use set", op->key);
        return -EINVAL;
    }
    CLEANUP(freep) char *text = e == NULL ? conf_text(k, effective) : NULL;
    set(s, op->key, list_change(e != NULL ? e->value : text, op->value, op->kind));
    return 0;
}

static int op_apply(struct config_settings *s, const struct conf_table *t, const void *effective,
                    const struct config_op *op, char *err, size_t err_size)
{
    const struct conf_key *k = conf_find(t, op->key);

    if (op->kind == CONFIG_OP_DELETE) { /* as in Kafka, of a key that is not known, too: its tools clear what they may have set */
        unset(s, op->key);
        return 0;
    }
    if (k == NULL) {
        conf_unknown(t, op->key, err, err_size);
        return -EINVAL;
    }
    if (op->value == NULL) {
        snprintf(err, err_size, "%s: there is no value", op->key);
        return -EINVAL;
    }
    if (op->kind != CONFIG_OP_SET)
        return op_list(s, k, effective, op, err, err_size);
    set(s, op->key, xstrdup(op->value));
    return 0;
}

int config_settings_apply(struct config_settings *s, const struct conf_table *t, const void *effective,
                          const struct config_op *ops, int32_t n_ops, char *err, size_t err_size)
{
    int rc = 0;

    for (int32_t i = 0; i < n_ops && rc == 0; i++) {
        for (int32_t j = 0; j < i && rc == 0; j++)
            if (strcmp(ops[i].key, ops[j].key) == 0) {
                snprintf(err, err_size, "%s is given twice", ops[i].key);
                rc = -EINVAL;
            }
        if (rc == 0)
            rc = op_apply(s, t, effective, &ops[i], err, err_size);
    }
    return rc;
}
