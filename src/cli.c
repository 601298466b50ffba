/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog from its command line to its exit status, and everything that is printed from the command
 * table: help, completion words, the man page. One thread.
 */
#include "src/cli.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"

/* ---- help ---- */
static void option_label(const struct option_spec *o, char *ret, size_t size)
{
    char letter[8] = "    ";

    if (o->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(ret, size, "%s--%s%s%s", letter, o->name, o->arg != NULL ? " " : "",
             o->arg != NULL ? o->arg : "");
}

static bool option_is_for_people(const struct option_spec *o)
{
    return strcmp(o->name, "long-options") != 0 && strcmp(o->name, "subcommands") != 0;
}

static void help_option(void *arg, const struct option_spec *o)
{
    char label[64];

    if (!option_is_for_people(o))
        return;
    option_label(o, label, sizeof label);
    fprintf(arg, "  %-30s %s\n", label, o->help);
}

static void help_children(FILE *out, const struct command *c, const char *prefix)
{
    for (const struct command *const *k = c->children; *k != NULL; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] != '\0' ? " " : "", (*k)->name);
        if ((*k)->children != NULL)
            help_children(out, *k, name);
        else
            fprintf(out, "  %-18s %s\n", name, (*k)->summary);
    }
}

/* Lines of `text`, each indented. */
static void print_indented(FILE *out, const char *text)
{
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        fprintf(out, "  %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

void help_print(FILE *out, const char *path, const struct command *c)
{
    fprintf(out, "Usage: %s %s%s%s\n", path, c->children != NULL ? "COMMAND ..." : "[OPTION]...",
            c->operands[0] != '\0' ? " " : "", c->operands);
    fprintf(out, "%s\n", c->summary);
    if (c->text != NULL)
        fprintf(out, "\n%s\n", c->text);
    if (c->children != NULL) {
        fprintf(out, "\nCommands:\n");
        help_children(out, c, "");
    }
    fprintf(out, "\nOptions:\n");
    command_each_option(c, help_option, out);
    if (c->examples != NULL) {
        fprintf(out, "\nExamples:\n");
        print_indented(out, c->examples);
    }
    fprintf(out, "\nExit status: %s.\n", c->exits != NULL ? c->exits : "0 done, 1 failed, 2 wrong usage");
}

/* ---- words for completion ---- */
static void word_option(void *arg, const struct option_spec *o)
{
    if (option_is_for_people(o))
        fprintf(arg, "--%s\n", o->name);
}

void words_print_options(FILE *out, const struct command *c)
{
    command_each_option(c, word_option, out);
}

void words_print_subcommands(FILE *out, const struct command *c)
{
    for (const struct command *const *k = c->children; k != NULL && *k != NULL; k++)
        fprintf(out, "%s\n", (*k)->name);
}

/* ---- the man page ---- */
/* Escapes what roff would take for its own. */
static void roff(FILE *out, const char *text)
{
    bool line_start = true;

    for (; *text != '\0'; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        line_start = *text == '\n';
    }
}

static void man_option(void *arg, const struct option_spec *o)
{
    FILE *out = arg;
    char label[64];

    if (!option_is_for_people(o))
        return;
    option_label(o, label, sizeof label);
    fputs(".TP\n.B ", out);
    roff(out, label + strspn(label, " "));
    fputc('\n', out);
    roff(out, o->help);
    fputs(".\n", out);
}

static void man_own_options(FILE *out, const struct option_spec *o)
{
    for (; o != NULL && o->name != NULL; o++)
        man_option(out, o);
}

static void man_command(FILE *out, const char *path, const struct command *c)
{
    char name[64];

    snprintf(name, sizeof name, "%s %s", path, c->name);
    if (c->children != NULL) {
        for (const struct command *const *k = c->children; *k != NULL; k++)
            man_command(out, name, *k);
        return;
    }
    fputs(".SS \"", out);
    roff(out, name);
    fprintf(out, " [OPTION]... %s\"\n", c->operands);
    roff(out, c->summary);
    fputs(".\n", out);
    if (c->text != NULL) {
        fputs(".PP\n", out);
        roff(out, c->text);
        fputc('\n', out);
    }
    man_own_options(out, c->options);
    if (c->exits != NULL) {
        fputs(".PP\nExit status: ", out);
        roff(out, c->exits);
        fputs(".\n", out);
    }
    if (c->examples != NULL) {
        fputs(".PP\n.nf\n", out);
        roff(out, c->examples);
        fputs("\n.fi\n", out);
    }
}

void man_print(FILE *out, const struct command *root)
{
    fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n"
          ".\\\" Made from the command table of src/ by src/klog-man; tests/unit/src/test_cli compares the "
          "two.\n"
          ".TH KLOG 1\n.SH NAME\nklog \\- administer and inspect a klog (or Kafka) cluster and its files\n"
          ".SH SYNOPSIS\n.B klog\nCOMMAND [OPTION]... [OPERAND]...\n.SH DESCRIPTION\n",
          out);
    roff(out, root->text);
    fputs("\n.SH COMMANDS\n", out);
    for (const struct command *const *k = root->children; *k != NULL; k++)
        man_command(out, root->name, *k);
    fputs(".SH OPTIONS\nOf every command:\n", out);
    man_own_options(out, cli_common_options);
    fputs(".PP\nOf the commands that talk to brokers:\n", out);
    man_own_options(out, cli_online_options);
    fputs(".SH EXIT STATUS\nUnless a command says otherwise:\n.TP\n0\nDone.\n.TP\n1\nIt failed; standard error says why.\n"
          ".TP\n2\nIt was called wrongly.\n"
          ".SH ENVIRONMENT\n.TP\n.B KLOG_BROKERS\nBrokers to ask first, when \\-b is not given.\n"
          ".SH SEE ALSO\n.BR klogd (8),\n.BR klogfs (8)\n",
          out);
}

/* ---- running ---- */
/* The options that print something and end; -1 when there is none. */
static int run_informative(const struct args *a)
{
    if (args_has(a, "help"))
        help_print(stdout, a->path, a->command);
    else if (args_has(a, "version"))
        printf("klog %s\n", PACKAGE_VERSION);
    else if (args_has(a, "long-options"))
        words_print_options(stdout, a->command);
    else if (args_has(a, "subcommands"))
        words_print_subcommands(stdout, a->command);
    else
        return -1;
    return CLI_OK;
}

static int check_operands(const struct args *a)
{
    const struct command *c = a->command;

    if (c->run == NULL)
        return complain_usage(a, "a command is missing");
    if ((int64_t)a->n_operands < c->operands_min)
        return complain_usage(a, "it needs %s", c->operands);
    if (c->operands_max == 0 && a->n_operands > 0)
        return complain_usage(a, "it takes no operand, but got '%s'", a->operands[0]);
    if (c->operands_max > 0 && (int64_t)a->n_operands > c->operands_max)
        return complain_usage(a, "'%s' is one operand too many", a->operands[c->operands_max]);
    return CLI_OK;
}

static int run_parsed(const struct args *a)
{
    int rc = run_informative(a);

    if (rc >= 0)
        return rc;
    rc = check_operands(a);
    return rc != CLI_OK ? rc : a->command->run(a);
}

int cli_main(const struct command *root, int argc, char *const argv[])
{
    struct args a;
    int rc = args_parse(root, argc, argv, &a);

    if (rc == CLI_OK && args_has(&a, "debug"))
        log_set_level(LOG_LEVEL_DEBUG);
    if (rc == CLI_OK)
        rc = run_parsed(&a);
    if ((fflush(stdout) != 0 || ferror(stdout)) && rc == CLI_OK) {
        complain(&a, "standard output could not be written");
        rc = CLI_FAILED;
    }
    args_done(&a);
    return rc;
}
