/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of klog as data: commands, their operands and options. One table drives the
 * parser, --help, the completion words and the man page, so they cannot differ. One thread.
 *
 * Exit status of every command: 0 done, 1 it failed, 2 it was called wrongly. Data goes to standard output,
 * everything else to standard error.
 */
#ifndef KLOG_SRC_CLI_H
#define KLOG_SRC_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/attr.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

struct option_spec {
    const char *name; /* "partitions", given as --partitions; NULL ends a list */
    char letter;      /* 'p' for -p, 0 for none */
    const char *arg;  /* what it takes, as "N"; NULL: a flag */
    const char *help; /* one line */
};

struct args;
struct command {
    const char *name;
    const char *operands; /* "TOPIC...", "" for none */
    int operands_min;
    int operands_max;    /* -1: any number */
    const char *summary; /* one line */
    const char *text;    /* a paragraph for --help; NULL none */
    const char *exits; /* what its exit status means, where there is more to it than 0, 1 and 2; NULL */
    const char *examples;
    const struct option_spec *options; /* its own; NULL none */
    bool online; /* talks to brokers, or its children may: takes cli_online_options too */
    int (*run)(const struct args *a); /* the exit status; NULL for a command that only has children */
    const struct command *const *children;
};

extern const struct option_spec cli_common_options[]; /* every command's */
extern const struct option_spec cli_online_options[];

/* ---- a parsed command line ---- */
struct arg_option {
    const struct option_spec *spec;
    const char *value; /* NULL for a flag */
};
struct args {
    char path[64]; /* "klog topic create" */
    const struct command *command;
    struct arg_option *options; /* in the order given */
    size_t n_options;
    const char **operands;
    size_t n_operands;
    bool dashes;         /* there was a "--" */
    size_t n_before_dashes; /* operands before it; all, where there was none */
};

/* 0, or CLI_USAGE after saying what is wrong on standard error. args_done in either case. */
int args_parse(const struct command *root, int argc, char *const argv[], struct args *ret);
void args_done(struct args *a);
bool args_has(const struct args *a, const char *option);
const char *args_get(const struct args *a, const char *option,
                     const char *otherwise); /* the last one given */
/* The i-th value of a repeatable option, NULL past the end. */
const char *args_nth(const struct args *a, const char *option, size_t i);
/* A whole number in [min, max]; `otherwise` when the option is missing. 0, or CLI_USAGE after saying why. */
int args_get_int(const struct args *a, const char *option, int64_t min, int64_t max, int64_t otherwise,
                 int64_t *ret);
bool args_int(const char *text, int64_t min, int64_t max, int64_t *ret);

/* Parses and runs: the whole program but for main(). */
int cli_main(const struct command *root, int argc, char *const argv[]);

/* ---- talk, on standard error ---- */
/* "klog topic create: " and the text. */
void complain(const struct args *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same with a hint to --help; returns CLI_USAGE. */
int complain_usage(const struct args *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- what is made from the table ---- */
/* Calls f for each option that `c` takes, its own first. */
void command_each_option(const struct command *c, void (*f)(void *arg, const struct option_spec *o),
                         void *arg);
const struct option_spec *command_option(const struct command *c, const char *name, size_t n);
void help_print(FILE *out, const char *path, const struct command *c);
void words_print_options(FILE *out, const struct command *c);     /* --long-options */
void words_print_subcommands(FILE *out, const struct command *c); /* --subcommands */
void man_print(FILE *out, const struct command *root);            /* klog.1 */

/* The first of n words that begins with `wrong`, else the nearest by edit distance; NULL when none is near. */
const char *nearest_word(const char *wrong, size_t n, const char *const words[]);

extern const struct command klog_root;

#endif
