/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a topic may be called. A name becomes a directory's name, so this is the wall against "../../x"; and two names that
 * differ in '.' and '_' only would have one name in metrics, which Kafka refuses, too. Pure.
 */
#include "daemon/meta/cluster.h"

#define NAME_MAX_BYTES 249

static bool char_is_legal(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '.' ||
           ch == '_' || ch == '-';
}

enum kerr topic_name_check(struct kstr name, const char **ret_why)
{
    const char *why = NULL;

    if (name.n <= 0)
        why = "a topic needs a name";
    else if (name.n > NAME_MAX_BYTES)
        why = "the topic name is longer than 249 characters";
    else if (kstr_eqz(name, ".") || kstr_eqz(name, ".."))
        why = "a topic cannot be called . or ..";
    for (int32_t i = 0; why == NULL && i < name.n; i++)
        if (!char_is_legal(name.p[i]))
            why = "the topic name has a character other than letters, digits, '.', '_' and '-'";

    if (why == NULL)
        return KERR_NONE;
    if (ret_why != NULL)
        *ret_why = why;
    return KERR_INVALID_TOPIC_EXCEPTION;
}

bool topic_names_collide(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++)
        if ((*a == '.' ? '_' : *a) != (*b == '.' ? '_' : *b))
            return false;
    return *a == *b;
}
