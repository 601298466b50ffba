/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints klogd.properties(5) from the tables of broker and topic keys, so that the manual cannot say anything else than
 * the parser. tests/check-docs.sh compares its output with the page in the tree; `make man` renews that.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/config/broker_config.h"
#include "daemon/config/topic_config.h"

static void print_text(const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '-' || *s == '\\')
            putchar('\\');
        putchar(*s == '\\' ? 'e' : *s);
    }
}

static const char *type_name(enum conf_type type)
{
    static const char *const names[] = { [CONF_BOOL] = "true or false", [CONF_INT] = "number",
                                         [CONF_LONG] = "number",        [CONF_DOUBLE] = "number",
                                         [CONF_STRING] = "text",        [CONF_ENUM] = "one of",
                                         [CONF_LIST] = "list" };
    return names[type];
}

static void print_key(const struct conf_key *k)
{
    printf(".TP\n.B ");
    print_text(k->name);
    printf("\n(%s", type_name(k->type));
    for (size_t i = 0; k->choices != NULL && k->choices[i] != NULL; i++)
        printf("%s%s", i == 0 ? (k->type == CONF_ENUM ? " " : " of ") : ", ", k->choices[i]);
    printf("; default %s%s)\n", *k->def == '\0' ? "empty" : k->def, k->read_only ? "; needs a restart" : "");
    print_text(k->doc);
    putchar('\n');
}

static void print_table(const struct conf_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        print_key(&t->keys[i]);
}

int main(void)
{
    puts(".\\\" SPDX-License-Identifier: Apache-2.0\n"
         ".\\\" Made by docs/print-keys from the tables of keys; do not edit.\n"
         ".TH KLOGD.PROPERTIES 5 \"\" \"klog\" \"klog manual\"\n"
         ".SH NAME\n"
         "klogd.properties \\- settings of the klog broker and of topics\n"
         ".SH DESCRIPTION\n"
         "Lines of\n.IR key = value ,\n"
         "with Kafka's names where Kafka has the key. # begins a comment line; a \\e at the end goes on in the next\n"
         "line. An unknown key is refused with the nearest name.\n"
         ".BR \"klogd \\-\\-override\" \" KEY=VALUE\"\n"
         "sets one over the file;\n"
         ".BR \"klogd \\-\\-print\\-config\"\n"
         "prints what results.\n"
         ".SH BROKER KEYS");
    print_table(&broker_config_table);
    puts(".SH TOPIC KEYS\n"
         "Given when a topic is created\n"
         "(\\fBklog topic create\\fP), later with\n"
         ".BR \"klog config set\" ,\n"
         "by any Kafka admin client, or as lines written to\n"
         ".I TOPIC/.config\n"
         "in the mount. A key that is not given follows the broker's.");
    print_table(&topic_config_table);
    puts(".SH SEE ALSO\n.BR klogd (8),\n.BR klogfs (8),\n.BR klog (1)");
    return ferror(stdout) != 0 || fflush(stdout) != 0;
}
