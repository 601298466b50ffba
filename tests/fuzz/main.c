/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over its corpus, without libFuzzer: every file as it is, then mutated (the same
 * mutations in each run). The files are those of the arguments (files or directories), else of
 * $srcdir/tests/fuzz/corpus/NAME for the program fuzz_NAME. `main` is weak: linked with -fsanitize=fuzzer,
 * libFuzzer's own takes its place.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "tests/fuzz/fuzz.h"

enum { MUTATIONS = 100, INPUT_MAX_BYTES = 1 << 20 };

/* splitmix64 */
static uint64_t next(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Runs the target on memory that ends where the input ends, so that a sanitizer sees a read past it. */
static void run_exact(const uint8_t *p, size_t n)
{
    CLEANUP(freep) uint8_t *copy = xmalloc(n > 0 ? n : 1);

    if (n > 0)
        memcpy(copy, p, n);
    LLVMFuzzerTestOneInput(copy, n);
}

/* One to four changes: a bit, a byte, a byte of extreme value, or a cut. */
static size_t mutate(uint8_t *p, size_t n, uint64_t *seed)
{
    static const uint8_t extremes[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };

    for (uint64_t changes = 1 + next(seed) % 4; changes > 0 && n > 0; changes--) {
        size_t at = next(seed) % n;
        switch (next(seed) % 8) {
        case 0:
            n = at;
            break;
        case 1:
        case 2:
            p[at] ^= (uint8_t)(1u << next(seed) % 8);
            break;
        case 3:
        case 4:
            p[at] = (uint8_t)next(seed);
            break;
        default:
            p[at] = extremes[next(seed) % ARRAY_LEN(extremes)];
        }
    }
    return n;
}

static void run_input(const uint8_t *p, size_t n)
{
    CLEANUP(freep) uint8_t *changed = xmalloc(n > 0 ? n : 1);
    uint64_t seed = n;

    run_exact(p, n);
    for (int i = 0; i < MUTATIONS; i++) {
        if (n > 0)
            memcpy(changed, p, n);
        run_exact(changed, mutate(changed, n, &seed));
    }
}

static int run_file(const char *path)
{
    CLEANUP(freep) uint8_t *p = xmalloc(INPUT_MAX_BYTES);
    FILE *f = fopen(path, "rb");

    if (f == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    size_t n = fread(p, 1, INPUT_MAX_BYTES, f);
    bool bad = ferror(f) != 0;
    fclose(f);
    if (bad) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return -1;
    }
    run_input(p, n);
    return 1;
}

static int run_directory(const char *path);

/* The number of inputs that were run, or -1. */
static int run_path(const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return run_directory(path);
    return run_file(path);
}

static int run_directory(const char *path)
{
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort), total = 0;

    for (int i = 0; i < n; i++) {
        CLEANUP(freep) char *inner = xasprintf("%s/%s", path, names[i]->d_name);
        int rc = names[i]->d_name[0] == '.' || total < 0 ? 0 : run_path(inner);
        total = rc < 0 ? -1 : total + rc;
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return n < 0 ? -1 : total;
}

static char *own_corpus(const char *program)
{
    const char *srcdir = getenv("srcdir");
    const char *slash = strrchr(program, '/');
    const char *name = strstr(slash == NULL ? program : slash, "fuzz_");

    return xasprintf("%s/tests/fuzz/corpus/%s", srcdir == NULL ? "." : srcdir,
                     name == NULL ? "" : name + strlen("fuzz_"));
}

int main(int argc, char **argv) __attribute__((weak));
int main(int argc, char **argv)
{
    int total = 0;

    for (int i = 1; i < argc || i == 1; i++) {
        CLEANUP(freep) char *path = i < argc ? xstrdup(argv[i]) : own_corpus(argv[0]);
        int n = run_path(path);
        if (n <= 0) {
            fprintf(stderr, "%s: no input to run; name files or directories\n", path);
            return 1;
        }
        total += n;
    }
    printf("%d inputs and %d mutations of each: fine\n", total, MUTATIONS);
    return 0;
}
