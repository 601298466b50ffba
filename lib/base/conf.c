/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of settings: finding keys, setting fields from text, printing them, reading properties files (see
 * conf.h). A field is changed only when its whole value was good: a bad one leaves it as it was, with one
 * line about why. Strings are owned by the struct; conf_done frees them. What a key means is the business of
 * the table's owner. No global state: any thread, one at a time for one struct. Only conf_read_lines does
 * I/O.
 */
#include "lib/base/conf.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "lib/base/nearest.h"

static void *conf_field(const struct conf_key *k, const void *obj)
{
    return (char *)(uintptr_t)obj + k->field;
}

static bool conf_owns_string(const struct conf_key *k)
{
    return k->type == CONF_STRING || k->type == CONF_LIST;
}

const struct conf_key *conf_find(const struct conf_table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->keys[i].name, name) == 0)
            return &t->keys[i];
    return NULL;
}

const struct conf_key *conf_nearest(const struct conf_table *t, const char *name)
{
    const struct conf_key *best = NULL;
    struct nearest near = nearest_to(name);

    for (size_t i = 0; i < t->n; i++) {
        if (nearest_try(&near, t->keys[i].name))
            best = &t->keys[i];
    }
    return best;
}

void conf_unknown(const struct conf_table *t, const char *name, char *err, size_t err_size)
{
    const struct conf_key *near = conf_nearest(t, name);

    if (near != NULL)
        snprintf(err, err_size, "unknown %s key \"%s\"; the nearest known one is %s", t->what, name, near->name);
    else
        snprintf(err, err_size, "unknown %s key \"%s\"", t->what, name);
}

/* ---- setting ---- */

static int conf_bad(const struct conf_table *t, const struct conf_key *k, const char *value, const char *want,
                    char *err, size_t err_size)
{
    snprintf(err, err_size, "bad value \"%s\" for the %s key %s: %s", value, t->what, k->name, want);
    return -EINVAL;
}

static int conf_choice(const struct conf_key *k, const char *word, size_t n)
{
    for (int i = 0; k->choices[i] != NULL; i++)
        if (strlen(k->choices[i]) == n && strncmp(k->choices[i], word, n) == 0)
            return i;
    return -1;
}

static bool conf_list_ok(const struct conf_key *k, const char *value)
{
    if (k->choices == NULL)
        return true;
    for (const char *p = value; *p != '\0';) {
        p += strspn(p, " \t,");
        size_t n = strcspn(p, ",");
        size_t word = n;
        while (word > 0 && isspace((unsigned char)p[word - 1]))
            word--;
        if (word > 0 && conf_choice(k, p, word) < 0)
            return false;
        p += n;
    }
    return true;
}

static void conf_choices_text(const struct conf_key *k, char *ret, size_t size)
{
    size_t n = (size_t)snprintf(ret, size, "use %s", k->type == CONF_LIST ? "a list of" : "one of");

    for (int i = 0; k->choices[i] != NULL && n < size; i++)
        n += (size_t)snprintf(ret + n, size - n, "%s %s", i > 0 ? "," : "", k->choices[i]);
}

static bool conf_number(const struct conf_key *k, const char *value, double *ret_d, int64_t *ret_i)
{
    char *end;

    errno = 0;
    if (k->type == CONF_DOUBLE) {
        *ret_d = strtod(value, &end);
        if (!isfinite(*ret_d))
            return false;
    } else {
        *ret_i = strtoll(value, &end, 10);
        *ret_d = (double)*ret_i;
    }
    return errno == 0 && end != value && *end == '\0' && *ret_d >= k->min && *ret_d <= k->max;
}

static int conf_set_number(const struct conf_table *t, const struct conf_key *k, void *obj, const char *value,
                           char *err, size_t err_size)
{
    char want[128];
    double d = 0;
    int64_t i = 0;

    if (!conf_number(k, value, &d, &i)) {
        if (k->type == CONF_LONG && k->max >= (double)INT64_MAX)
            snprintf(want, sizeof want, "use a number of at least %.15g", k->min);
        else
            snprintf(want, sizeof want, "use a number from %.15g to %.15g", k->min, k->max);
        return conf_bad(t, k, value, want, err, err_size);
    }
    if (k->type == CONF_INT)
        *(int32_t *)conf_field(k, obj) = (int32_t)i;
    else if (k->type == CONF_LONG)
        *(int64_t *)conf_field(k, obj) = i;
    else
        *(double *)conf_field(k, obj) = d;
    return 0;
}

static int conf_set_words(const struct conf_table *t, const struct conf_key *k, void *obj, const char *value,
                          char *err, size_t err_size)
{
    char want[256];

    if (k->type == CONF_ENUM) {
        int choice = conf_choice(k, value, strlen(value));
        if (choice >= 0) {
            *(int *)conf_field(k, obj) = choice;
            return 0;
        }
    } else if (conf_list_ok(k, value)) {
        char **field = conf_field(k, obj);
        free(*field);
        *field = xstrdup(value);
        return 0;
    }
    conf_choices_text(k, want, sizeof want);
    return conf_bad(t, k, value, want, err, err_size);
}

static int conf_set_bool(const struct conf_table *t, const struct conf_key *k, void *obj, const char *value,
                         char *err, size_t err_size)
{
    if (strcasecmp(value, "true") != 0 && strcasecmp(value, "false") != 0)
        return conf_bad(t, k, value, "use true or false", err, err_size);
    *(bool *)conf_field(k, obj) = strcasecmp(value, "true") == 0;
    return 0;
}

static char *trim(char *s)
{
    s += strspn(s, " \t\r\n");
    for (size_t n = strlen(s); n > 0 && isspace((unsigned char)s[n - 1]); n--)
        s[n - 1] = '\0';
    return s;
}

int conf_set(const struct conf_table *t, void *obj, const char *name, const char *value, char *err,
             size_t err_size)
{
    const struct conf_key *k = conf_find(t, name);

    if (k == NULL) {
        conf_unknown(t, name, err, err_size);
        return -EINVAL;
    }
    CLEANUP(freep) char *copy = xstrdup(value);
    value = trim(copy); /* as Kafka does */
    switch (k->type) {
    case CONF_BOOL:
        return conf_set_bool(t, k, obj, value, err, err_size);
    case CONF_INT:
    case CONF_LONG:
    case CONF_DOUBLE:
        return conf_set_number(t, k, obj, value, err, err_size);
    case CONF_STRING:
    case CONF_ENUM:
    case CONF_LIST:
        return conf_set_words(t, k, obj, value, err, err_size);
    }
    KCHECK(!"a type the switch knows");
    return -EINVAL;
}

void conf_defaults(const struct conf_table *t, void *obj)
{
    char err[512];

    for (size_t i = 0; i < t->n; i++) {
        if (conf_owns_string(&t->keys[i]))
            *(char **)conf_field(&t->keys[i], obj) = NULL;
        int rc = conf_set(t, obj, t->keys[i].name, t->keys[i].def, err, sizeof err);
        KCHECK(rc == 0);
    }
}

void conf_done(const struct conf_table *t, void *obj)
{
    for (size_t i = 0; i < t->n; i++)
        if (conf_owns_string(&t->keys[i])) {
            char **field = conf_field(&t->keys[i], obj);
            free(*field);
            *field = NULL;
        }
}

void conf_copy(const struct conf_table *t, void *dst, const void *src, size_t size)
{
    memcpy(dst, src, size);
    for (size_t i = 0; i < t->n; i++)
        if (conf_owns_string(&t->keys[i]))
            *(char **)conf_field(&t->keys[i], dst) = xstrdup(*(char **)conf_field(&t->keys[i], src));
}

/* ---- reading ---- */

size_t conf_get(const struct conf_key *k, const void *obj, char *ret, size_t ret_size)
{
    const void *f = conf_field(k, obj);
    int n = 0;

    switch (k->type) {
    case CONF_BOOL:
        n = snprintf(ret, ret_size, "%s", *(const bool *)f ? "true" : "false");
        break;
    case CONF_INT:
        n = snprintf(ret, ret_size, "%d", *(const int32_t *)f);
        break;
    case CONF_LONG:
        n = snprintf(ret, ret_size, "%lld", (long long)*(const int64_t *)f);
        break;
    case CONF_DOUBLE:
        n = snprintf(ret, ret_size, "%.15g", *(const double *)f);
        break;
    case CONF_ENUM:
        n = snprintf(ret, ret_size, "%s", k->choices[*(const int *)f]);
        break;
    case CONF_STRING:
    case CONF_LIST:
        n = snprintf(ret, ret_size, "%s", *(char *const *)f);
        break;
    }
    KCHECK(n >= 0);
    return (size_t)n;
}

char *conf_text(const struct conf_key *k, const void *obj)
{
    char text[64];
    size_t n = conf_get(k, obj, text, sizeof text);

    if (n < sizeof text)
        return xstrdup(text);
    char *ret = xmalloc(n + 1);
    conf_get(k, obj, ret, n + 1);
    return ret;
}

/* What conf_read_file hands to conf_read_lines. */
struct conf_target {
    const struct conf_table *table;
    void *obj;
};

static int conf_set_target(void *arg, const char *name, const char *value, char *err, size_t err_size)
{
    struct conf_target *to = arg;

    return conf_set(to->table, to->obj, name, value, err, err_size);
}

/* One line, without its end, in a properties file. */
static int conf_read_line(conf_setter *set, void *arg, char *line, char *err, size_t err_size)
{
    char *text = trim(line);

    if (text[0] == '\0' || text[0] == '#' || text[0] == '!')
        return 0;
    char *sep = strpbrk(text, "=:");
    if (sep == NULL) {
        snprintf(err, err_size, "\"%s\" is not of the form key=value", text);
        return -EINVAL;
    }
    *sep = '\0';
    return set(arg, trim(text), trim(sep + 1), err, err_size);
}

/* Joins a line that ends in a backslash with the next; returns false at the end of the file. *ret_text: it has no NUL. */
static bool conf_next_line(FILE *f, char **line, size_t *cap, int *number, bool *ret_text)
{
    char *more = NULL;
    size_t more_cap = 0;
    ssize_t n = getline(line, cap, f);

    if (n < 0)
        return false;
    ++*number;
    *ret_text = memchr(*line, '\0', (size_t)n) == NULL;
    for (;;) {
        n = (ssize_t)strcspn(*line, "\r\n");
        (*line)[n] = '\0';
        if (n == 0 || (*line)[n - 1] != '\\' || (n = getline(&more, &more_cap, f)) < 0)
            break;
        *ret_text = *ret_text && memchr(more, '\0', (size_t)n) == NULL;
        n = (ssize_t)strlen(*line);
        ++*number;
        (*line)[n - 1] = '\0';
        char *joined = xasprintf("%s%s", *line, more + strspn(more, " \t"));
        free(*line);
        *line = joined;
        *cap = strlen(joined) + 1;
    }
    free(more);
    return true;
}

static int conf_unreadable(const char *path, int eno, char *err, size_t err_size)
{
    snprintf(err, err_size, "cannot read the configuration file %s: %s", path, strerror(eno));
    return -eno;
}

int conf_read_lines(const char *path, conf_setter *set, void *arg, char *err, size_t err_size)
{
    char *line = NULL, why[512];
    size_t cap = 0;
    int number = 0, rc = 0;
    bool text = true;
    FILE *f = fopen(path, "re");

    if (f == NULL)
        return conf_unreadable(path, errno, err, err_size);
    errno = 0;
    while (rc == 0 && conf_next_line(f, &line, &cap, &number, &text) && !ferror(f)) {
        snprintf(why, sizeof why, "it has a NUL byte: is this a configuration file?");
        rc = text ? conf_read_line(set, arg, line, why, sizeof why) : -EINVAL;
        if (rc != 0)
            snprintf(err, err_size, "%s line %d: %s", path, number, why);
        errno = 0;
    }
    if (rc == 0 && ferror(f)) /* what was read so far is not the configuration */
        rc = conf_unreadable(path, errno != 0 ? errno : EIO, err, err_size);
    free(line);
    fclose(f);
    return rc;
}

int conf_read_file(const struct conf_table *t, void *obj, const char *path, char *err, size_t err_size)
{
    struct conf_target to = { t, obj };

    return conf_read_lines(path, conf_set_target, &to, err, err_size);
}
