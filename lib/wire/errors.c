/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the error codes in a message, for those who count them. Pure; any thread. */
#include "lib/wire/engine.h"

struct finder {
    int version;
    void (*found)(void *arg, int16_t code);
    void *arg;
};

static void find_in_struct(const struct finder *f, const struct wire_struct *s, const void *msg);

static void find_in_array(const struct finder *f, const struct wire_field *field, const void *msg)
{
    const char *p = wire_elems(field, msg);
    for (int32_t i = 0, n = wire_count(field, msg); i < n; i++)
        find_in_struct(f, field->sub, p + (size_t)i * field->size);
}

static void find_in_struct(const struct finder *f, const struct wire_struct *s, const void *msg)
{
    for (int i = 0; i < s->n_plain + s->n_tagged; i++) {
        const struct wire_field *field = &s->fields[i];
        const void *at = (const char *)msg + field->at;
        if (!wire_field_in(field, f->version) || (!field->is_error && field->sub == NULL))
            continue;
        if (field->type == WIRE_ARRAY)
            find_in_array(f, field, msg);
        else if (field->type == WIRE_STRUCT && wire_is_there(field, msg))
            find_in_struct(f, field->sub, at);
        else if (field->is_error && *(const int16_t *)at != 0)
            f->found(f->arg, *(const int16_t *)at);
    }
}

void wire_each_error(const struct wire_message *m, int version, const void *msg, void (*f)(void *arg, int16_t code), void *arg)
{
    find_in_struct(&(struct finder){ version, f, arg }, m->body, msg);
}
