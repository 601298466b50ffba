/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a command line by the command table: words descend into the commands, options may stand anywhere,
 * "--" ends them. What is not in the table is an error that names the nearest thing that is.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/nearest.h"
#include "src/cli.h"

enum { WORDS_MAX = 64 }; /* options or commands looked through for the nearest */

const struct option_spec cli_common_options[] = {
    { "json", 0, NULL, "print JSON, one object a line" },
    { "help", 'h', NULL, "print this help" },
    { "version", 'V', NULL, "print the version" },
    { "debug", 'd', NULL, "say what happens, on standard error" },
    { "long-options", 0, NULL, "print the long options, for completion" },
    { "subcommands", 0, NULL, "print the subcommands, for completion" },
    { NULL, 0, NULL, NULL },
};

const struct option_spec cli_online_options[] = {
    { "brokers", 'b', "HOST:PORT[,...]", "brokers to ask first; else $KLOG_BROKERS, else 127.0.0.1:9092" },
    { "timeout", 0, "SECONDS", "give up after this long [10]" },
    { NULL, 0, NULL, NULL },
};

/* ---- talk ---- */
static void complain_v(const struct args *a, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
static void complain_v(const struct args *a, const char *fmt, va_list ap)
{
    fflush(stdout);
    fprintf(stderr, "%s: ", a->path);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

void complain(const struct args *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    complain_v(a, fmt, ap);
    va_end(ap);
}

int complain_usage(const struct args *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    complain_v(a, fmt, ap);
    va_end(ap);
    fprintf(stderr, "'%s --help' says how it is used.\n", a->path);
    return CLI_USAGE;
}

/* ---- looking things up ---- */
void command_each_option(const struct command *c, void (*f)(void *arg, const struct option_spec *o),
                         void *arg)
{
    const struct option_spec *lists[] = { c->options, c->online ? cli_online_options : NULL,
                                          cli_common_options };

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        for (const struct option_spec *o = lists[i]; o != NULL && o->name != NULL; o++)
            f(arg, o);
    }
}

struct option_search {
    const char *name;
    size_t n;
    char letter;
    const struct option_spec *found;
    const char *words[WORDS_MAX]; /* all that were seen */
    size_t n_words;
};

static void option_search_step(void *arg, const struct option_spec *o)
{
    struct option_search *s = arg;
    bool hit = s->name != NULL ? strlen(o->name) == s->n && memcmp(o->name, s->name, s->n) == 0
                               : o->letter != 0 && o->letter == s->letter;

    if (hit && s->found == NULL)
        s->found = o;
    if (s->n_words < WORDS_MAX)
        s->words[s->n_words++] = o->name;
}

const struct option_spec *command_option(const struct command *c, const char *name, size_t n)
{
    struct option_search s = { .name = name, .n = n };

    command_each_option(c, option_search_step, &s);
    return s.found;
}

static const struct command *command_child(const struct command *c, const char *name)
{
    for (const struct command *const *k = c->children; k != NULL && *k != NULL; k++) {
        if (strcmp((*k)->name, name) == 0)
            return *k;
    }
    return NULL;
}

const char *nearest_word(const char *wrong, size_t n, const char *const words[])
{
    const char *best = NULL;
    struct nearest near = nearest_to(wrong);

    for (size_t i = 0; i < n; i++) {
        if (strncmp(words[i], wrong, strlen(wrong)) == 0)
            return words[i];
        if (nearest_try(&near, words[i]))
            best = words[i];
    }
    return best;
}

/* ---- parsing ---- */
static int unknown_option(const struct args *a, const char *text, const char *name, size_t n)
{
    struct option_search s = { .name = "", .n = 0 };
    CLEANUP(freep) char *wrong = xstrndup(name, n);

    command_each_option(a->command, option_search_step, &s);
    const char *near = n > 1 ? nearest_word(wrong, s.n_words, s.words) : NULL;
    if (near != NULL)
        return complain_usage(a, "there is no option '%s'; did you mean --%s?", text, near);
    return complain_usage(a, "there is no option '%s'", text);
}

static int unknown_command(const struct args *a, const char *word)
{
    const char *words[WORDS_MAX];
    size_t n = 0;

    for (const struct command *const *k = a->command->children; *k != NULL && n < WORDS_MAX; k++)
        words[n++] = (*k)->name;
    const char *near = nearest_word(word, n, words);
    if (near != NULL)
        return complain_usage(a, "there is no command '%s'; did you mean '%s'?", word, near);
    return complain_usage(a, "there is no command '%s'", word);
}

static void args_add_option(struct args *a, const struct option_spec *spec, const char *value)
{
    a->options = xreallocarray(a->options, a->n_options + 1, sizeof *a->options);
    a->options[a->n_options++] = (struct arg_option){ spec, value };
}

/* "--name", "--name=value", "--name value". Takes from argv what belongs to it. */
static int parse_long(struct args *a, char *const **argv)
{
    const char *text = *(*argv)++, *name = text + 2, *equals = strchr(name, '=');
    size_t n = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const struct option_spec *o = command_option(a->command, name, n);

    if (o == NULL)
        return unknown_option(a, text, name, n);
    if (o->arg == NULL && equals != NULL)
        return complain_usage(a, "--%s takes no value", o->name);

    const char *value = equals != NULL ? equals + 1 : NULL;
    if (o->arg != NULL && value == NULL) {
        value = **argv;
        if (value == NULL)
            return complain_usage(a, "--%s needs a value: --%s %s", o->name, o->name, o->arg);
        ++*argv;
    }
    args_add_option(a, o, value);
    return CLI_OK;
}

/* "-p3", "-p 3", "-hq". */
static int parse_letters(struct args *a, char *const **argv)
{
    const char *text = *(*argv)++;

    for (const char *p = text + 1; *p != '\0'; p++) {
        struct option_search s = { .letter = *p };
        command_each_option(a->command, option_search_step, &s);
        if (s.found == NULL)
            return unknown_option(a, text, p, 1);
        if (s.found->arg == NULL) {
            args_add_option(a, s.found, NULL);
            continue;
        }
        const char *value = p[1] != '\0' ? p + 1 : **argv;
        if (value == NULL)
            return complain_usage(a, "-%c needs a value: -%c %s", *p, *p, s.found->arg);
        if (p[1] == '\0')
            ++*argv;
        args_add_option(a, s.found, value);
        break;
    }
    return CLI_OK;
}

static int parse_word(struct args *a, const char *word)
{
    if (a->command->children == NULL) {
        a->operands = xreallocarray(a->operands, a->n_operands + 1, sizeof *a->operands);
        a->operands[a->n_operands++] = word;
        return CLI_OK;
    }

    const struct command *child = command_child(a->command, word);
    if (child == NULL)
        return unknown_command(a, word);
    a->command = child;
    size_t n = strlen(a->path);
    snprintf(a->path + n, sizeof a->path - n, " %s", child->name);
    return CLI_OK;
}

/* Options may come before the command they are for: does it take them all? */
static int check_options(const struct args *a)
{
    for (size_t i = 0; i < a->n_options; i++) {
        const char *name = a->options[i].spec->name;
        if (command_option(a->command, name, strlen(name)) == NULL)
            return complain_usage(a, "it takes no option --%s", name);
    }
    return CLI_OK;
}

int args_parse(const struct command *root, int argc, char *const argv[], struct args *ret)
{
    char *const *next = argv + (argc > 0);
    bool options_over = false;
    int rc = CLI_OK;

    *ret = (struct args){ .command = root };
    snprintf(ret->path, sizeof ret->path, "%s", root->name);
    while (rc == CLI_OK && *next != NULL) {
        const char *text = *next;
        if (!options_over && strcmp(text, "--") == 0) {
            options_over = ret->dashes = true;
            ret->n_before_dashes = ret->n_operands;
            next++;
        } else if (!options_over && strncmp(text, "--", 2) == 0) {
            rc = parse_long(ret, &next);
        } else if (!options_over && text[0] == '-' && text[1] != '\0') {
            rc = parse_letters(ret, &next);
        } else {
            rc = parse_word(ret, text);
            next++;
        }
    }
    if (!ret->dashes)
        ret->n_before_dashes = ret->n_operands;
    return rc == CLI_OK ? check_options(ret) : rc;
}

void args_done(struct args *a)
{
    free(a->options);
    free(a->operands);
    a->options = NULL;
    a->operands = NULL;
}

/* ---- asking ---- */
const char *args_nth(const struct args *a, const char *option, size_t i)
{
    for (size_t k = 0; k < a->n_options; k++) {
        if (strcmp(a->options[k].spec->name, option) == 0 && i-- == 0)
            return a->options[k].value;
    }
    return NULL;
}

bool args_has(const struct args *a, const char *option)
{
    for (size_t k = 0; k < a->n_options; k++) {
        if (strcmp(a->options[k].spec->name, option) == 0)
            return true;
    }
    return false;
}

const char *args_get(const struct args *a, const char *option, const char *otherwise)
{
    const char *value = otherwise;

    for (size_t k = 0; k < a->n_options; k++) {
        if (strcmp(a->options[k].spec->name, option) == 0)
            value = a->options[k].value;
    }
    return value;
}

bool args_int(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    char *end;

    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || isspace((unsigned char)text[0]) || v < min || v > max)
        return false;
    *ret = v;
    return true;
}

int args_get_int(const struct args *a, const char *option, int64_t min, int64_t max, int64_t otherwise,
                 int64_t *ret)
{
    const char *text = args_get(a, option, NULL);

    *ret = otherwise;
    if (text == NULL || args_int(text, min, max, ret))
        return CLI_OK;
    return complain_usage(a, "--%s must be a whole number from %lld to %lld, not '%s'", option,
                          (long long)min, (long long)max, text);
}
