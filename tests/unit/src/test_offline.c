/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog dump and klog verify on a directory that the store wrote: what they print of a whole one, and that
 * every kind of damage is found where it is. Segments are small, so that there are several.
 */
#include "tests/unit/store/storetest.h"

#include <inttypes.h>

#include "lib/base/varint.h"
#include "lib/store/register_files.h"
#include "src/cli.h"

enum {
    SEGMENT_BYTES = 8000,
    BATCHES = 30,
    RECORDS = 5,
    VALUE_BYTES = 100,
    BATCH_TOTAL_BYTES = 61 + RECORDS * (VALUE_BYTES + 9)
};

/* A closed directory with one partition of several segments. */
static void scene(struct fixture *f, bool clean)
{
    f->cfg.segment_bytes = SEGMENT_BYTES;
    f->cfg.index_interval_bytes = 1000;
    must_open(f);
    plog_epoch_begin(f->l, 0);
    for (int i = 0; i < BATCHES; i++) {
        const struct batch_spec spec = { .n = RECORDS,
                                         .value_bytes = VALUE_BYTES,
                                         .timestamp = T0 + i * 1000,
                                         .producer_id = 77,
                                         .base_sequence = i * RECORDS };
        assert_int_equal(append_spec(f, &spec).err, KERR_NONE);
    }
    shut(f, clean);
}

/* Runs klog and returns what it printed on standard output. */
static char *output_of(int *ret_rc, const char *const *words)
{
    FILE *out = tmpfile(), *err = tmpfile();
    int saved_out = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO), n = 0;

    while (words[n] != NULL)
        n++;
    fflush(stdout);
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    *ret_rc = cli_main(&klog_root, n, (char *const *)(uintptr_t)words);
    fflush(stdout);
    fflush(stderr);
    dup2(saved_out, STDOUT_FILENO);
    dup2(saved_err, STDERR_FILENO);
    close(saved_out);
    close(saved_err);
    char *text = xcalloc(1, 1 << 16);
    rewind(out);
    assert_true(fread(text, 1, (1 << 16) - 1, out) < (1 << 16) - 1);
    fclose(out);
    fclose(err);
    return text;
}

#define OUTPUT_OF(rc, ...) output_of(rc, (const char *const[]){ "klog", __VA_ARGS__, NULL })

static char *log_path(const struct fixture *f, int64_t base, const char *suffix)
{
    return xasprintf("%s/orders-0/%020" PRId64 "%s", f->path, base, suffix);
}

/* Base offset of the second segment. */
static int64_t second_base(const struct fixture *f)
{
    for (int64_t base = 1; base < BATCHES * RECORDS; base++) {
        CLEANUP(freep) char *path = log_path(f, base, ".log");
        if (access(path, F_OK) == 0)
            return base;
    }
    fail_msg("there is only one segment");
    return -1;
}

static void flip(const char *path, off_t at)
{
    int fd = open(path, O_RDWR);
    uint8_t b;

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &b, 1, at), 1);
    b ^= 0x40;
    assert_int_equal(pwrite(fd, &b, 1, at), 1);
    close(fd);
}

/* Verifies, expects one finding whose line begins so and contains `what`, and that exit status. */
static void finds_in(const char *dir, const char *begin, const char *what, int want_rc)
{
    int rc;
    char *text = OUTPUT_OF(&rc, "verify", dir);

    if (strncmp(text, begin, strlen(begin)) != 0 || strstr(text, what) == NULL || rc != want_rc)
        fail_msg("wanted status %d, '%s...%s', got %d: %s", want_rc, begin, what, rc, text);
    free(text);
}

static void finds(const struct fixture *f, const char *path, const char *what)
{
    CLEANUP(freep) char *begin = xasprintf("error: %s", path);

    finds_in(f->path, begin, what, CLI_FAILED);
}

/* ---- verify ---- */
static void a_whole_directory_has_no_findings(void **state)
{
    struct fixture *f = *state;
    int rc;

    scene(f, true);
    char *text = OUTPUT_OF(&rc, "verify", f->path);
    assert_string_equal(strchr(text, ','),
                        ", 3 segments, 30 batches, 150 records, 18.2 kB: 0 errors, 0 warnings\n");
    assert_int_equal(strncmp(text, "1 partitions", 12), 0);
    assert_int_equal(rc, CLI_OK);
    free(text);

    text = OUTPUT_OF(&rc, "verify", "--json", "--quick", f->path);
    assert_string_equal(text, "{\"summary\":{\"partitions\":1,\"segments\":3,\"batches\":30,\"records\":150,"
                              "\"bytes\":18180,\"errors\":0,\"warnings\":0}}\n");
    assert_int_equal(rc, CLI_OK);
    free(text);
}

static void the_newest_segment_has_a_text_header(void **state)
{
    struct fixture *f = *state;
    CLEANUP(freep) char *path = log_path(f, 0, ".text");
    int rc;

    f->cfg.index_interval_bytes = 100;
    must_open(f);
    for (int i = 0; i < 3; i++)
        assert_int_equal(append_n(f, 1, 200).err, KERR_NONE);
    shut(f, true);
    finds_in(f->path, "1 partitions, 1 segments, 3 batches, ", ": 0 errors, 0 warnings\n", CLI_OK);
    char *text = OUTPUT_OF(&rc, "dump", path);
    assert_non_null(strstr(text, "base_offset = 0\n"));
    assert_non_null(strstr(text, "sealed = no\nOFFSET  POSITION  TEXT-POSITION  CRC-OK\n"));
    assert_int_equal(rc, CLI_OK);
    free(text);
}

static void a_flipped_bit_in_a_log_is_found_where_it_is(void **state)
{
    struct fixture *f = *state;
    CLEANUP(freep) char *path = log_path(f, 0, ".log");

    scene(f, true);
    flip(path, BATCH_TOTAL_BYTES * 2 + 300);
    finds(f, path, " at 1212: 606 bytes are no batch; good ones follow\n");
}

static void a_torn_tail_is_an_error_only_after_a_clean_stop(void **state)
{
    struct fixture *f = *state;

    scene(f, false);
    int64_t last = 0;
    for (int64_t base = 0; base < BATCHES * RECORDS; base++) {
        CLEANUP(freep) char *p = log_path(f, base, ".log");
        last = access(p, F_OK) == 0 ? base : last;
    }
    CLEANUP(freep) char *path = log_path(f, last, ".log");
    FILE *log = fopen(path, "a");
    assert_int_equal(fwrite("torn", 1, 4, log), 4);
    fclose(log);
    CLEANUP(freep) char *begin = xasprintf("warning: %s at ", path);
    finds_in(f->path, begin, ": the last 4 bytes are no batch; the next start cuts them off\n", CLI_OK);
}

static void a_missing_segment_is_found(void **state)
{
    struct fixture *f = *state;

    scene(f, true);
    int64_t base = second_base(f);
    CLEANUP(freep) char *path = log_path(f, base, ".log");
    assert_int_equal(unlink(path), 0);
    finds_in(f->path, "error: ", " are missing before it\n", CLI_FAILED);
}

static void an_index_that_disagrees_with_its_log_is_found(void **state)
{
    static const struct {
        const char *suffix;
        off_t at;
        const char *what;
    } cases[] = {
        { ".index", 7, ": the entry points to where no batch begins\n" },
        { ".index", 3, ": the entry's offset is not that of the batch it points to\n" },
        { ".timeindex", 7, ": the entry's timestamp is not the greatest up to its offset\n" },
        { ".text", 96 + 15, ": the entry's checksum does not match\n" },
        { ".text", 40, ": its header is damaged\n" },
    };
    struct fixture *f = *state;

    scene(f, true);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(freep) char *path = log_path(f, 0, cases[i].suffix);
        flip(path, cases[i].at);
        finds(f, path, cases[i].what);
        flip(path, cases[i].at);
    }
}

static void a_missing_index_is_found(void **state)
{
    static const struct {
        const char *suffix, *what;
        int rc;
    } cases[] = {
        { ".index", ": it has 0 entries, but the segment was sealed with 6\n", CLI_FAILED },
        { ".text", ": it is missing; the broker makes it anew\n", CLI_OK },
    };
    struct fixture *f = *state;

    scene(f, true);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(freep) char *path = log_path(f, 0, cases[i].suffix), *aside = xasprintf("%s.aside", path);
        CLEANUP(freep) char *begin = xasprintf("%s: %s", cases[i].rc == CLI_OK ? "warning" : "error", path);
        assert_int_equal(rename(path, aside), 0);
        finds_in(f->path, begin, cases[i].what, cases[i].rc);
        assert_int_equal(rename(aside, path), 0);
    }
}

static void damaged_files_of_the_partition_are_found(void **state)
{
    static const struct {
        const char *name, *what;
        off_t at;
    } cases[] = {
        { "partition.checkpoint", ": it is damaged\n", 20 },
        { "leader-epoch-checkpoint", ": it does not hold rising epochs and offsets\n", 0 },
        { "partition.metadata", ": it holds no topic id, or its checksum is wrong\n", 21 },
    };
    struct fixture *f = *state;

    scene(f, true);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(freep) char *path = xasprintf("%s/orders-0/%s", f->path, cases[i].name);
        flip(path, cases[i].at);
        finds(f, path, cases[i].what);
        flip(path, cases[i].at);
    }
}

static void nothing_is_changed_by_looking(void **state)
{
    struct fixture *f = *state;
    int rc;

    scene(f, false);
    CLEANUP(freep) char *tmp = log_path(f, 0, ".log.tmp");
    FILE *left = fopen(tmp, "w");
    fclose(left);
    free(OUTPUT_OF(&rc, "verify", f->path));
    assert_int_equal(access(tmp, F_OK), 0);
}

static void a_partition_is_checked_alone(void **state)
{
    struct fixture *f = *state;
    CLEANUP(freep) char *dir = xasprintf("%s/orders-0//", f->path);

    scene(f, true);
    finds_in(dir, "1 partitions, 3 segments, ", ": 0 errors, 0 warnings\n", CLI_OK);
}

static void a_directory_in_use_is_refused(void **state)
{
    struct fixture *f = *state;
    CLEANUP(freep) char *dir = xasprintf("%s/orders-0", f->path);
    int rc;

    scene(f, true);
    must_open(f);
    char *text = OUTPUT_OF(&rc, "verify", f->path);
    assert_string_equal(text, "");
    assert_int_equal(rc, CLI_FAILED);
    free(text);
    free(OUTPUT_OF(&rc, "verify", dir));
    assert_int_equal(rc, CLI_FAILED);
    shut(f, true);
}

static void what_is_no_data_directory_is_refused(void **state)
{
    struct fixture *f = *state;
    int rc;

    scene(f, true);
    char *text = OUTPUT_OF(&rc, "verify", "no-such-directory");
    assert_string_equal(text, "");
    assert_int_equal(rc, CLI_FAILED);
    free(text);
}

static void an_exchange_under_way_is_no_error(void **state)
{
    struct fixture *f = *state;
    int rc;

    scene(f, false);
    file_poke(f, "cleaning", 0, "x", 1);
    CLEANUP(freep) char *doubled = xasprintf("%s/orders-0/%020d.log", f->path, 1);
    assert_int_equal(close(open(doubled, O_WRONLY | O_CREAT, 0644)), 0);
    char *text = OUTPUT_OF(&rc, "verify", f->path);
    assert_int_equal(rc, 0);
    assert_non_null(strstr(text, "compaction was under way"));
    free(text);
}

/* ---- dump ---- */
static void a_log_is_dumped_batch_by_batch(void **state)
{
    struct fixture *f = *state;
    CLEANUP(freep) char *path = log_path(f, 0, ".log");
    int rc;

    scene(f, true);
    char *text = OUTPUT_OF(&rc, "dump", "-n", "2", path);
    assert_string_equal(text,
                        "at 0: offset 0..4, 5 records, 606 bytes, none, epoch 0, 2023-11-14T22:13:20.004Z, "
                        "producer 77/0 seq 0\n"
                        "at 606: offset 5..9, 5 records, 606 bytes, none, epoch 0, 2023-11-14T22:13:21.004Z, "
                        "producer 77/0 seq 5\n");
    assert_int_equal(rc, CLI_OK);
    free(text);

    text = OUTPUT_OF(&rc, "dump", "--records", "--from", "7", "-n", "1", path);
    assert_non_null(strstr(text, "\n  5 2023-11-14T22:13:21.000Z key null value \"aaaaaaaaaa"));
    free(text);

    text = OUTPUT_OF(&rc, "dump", "--records", "--json", "--limit=1", path);
    assert_non_null(strstr(text, "{\"at\":0,\"bytes\":606,\"base_offset\":0,\"last_offset\":4,\"count\":5,"));
    assert_non_null(
        strstr(text, "\"records\":[{\"offset\":0,\"timestamp\":1700000000000,\"key\":null,\"value\":\"aaa"));
    assert_int_equal(text[strlen(text) - 1], '\n');
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    free(text);
}

static void damage_in_a_log_is_dumped_as_such(void **state)
{
    struct fixture *f = *state;
    CLEANUP(freep) char *path = log_path(f, 0, ".log");
    int rc;

    scene(f, true);
    flip(path, BATCH_TOTAL_BYTES + 100);
    char *text = OUTPUT_OF(&rc, "dump", "-n", "2", path);
    assert_non_null(strstr(text, "\nat 606: 606 bytes that are no batch\nat 1212: offset 10..14, "));
    assert_int_equal(rc, CLI_FAILED);
    free(text);
}

static void indexes_are_dumped_entry_by_entry(void **state)
{
    struct fixture *f = *state;
    CLEANUP(freep) char *index = log_path(f, 0, ".index"), *time = log_path(f, 0, ".timeindex");
    CLEANUP(freep) char *text_index = log_path(f, 0, ".text");
    int rc;

    scene(f, true);
    char *text = OUTPUT_OF(&rc, "dump", "--json", "-n", "1", index);
    int64_t offset, position;
    assert_int_equal(sscanf(text, "{\"offset\":%" SCNd64 ",\"position\":%" SCNd64 "}", &offset, &position),
                     2);
    assert_int_equal(position, (offset + 1) / RECORDS * BATCH_TOTAL_BYTES - BATCH_TOTAL_BYTES);
    free(text);
    text = OUTPUT_OF(&rc, "dump", "--json", "-n", "1", time);
    int64_t timestamp;
    assert_int_equal(sscanf(text, "{\"timestamp\":%" SCNd64, &timestamp), 1);
    assert_int_equal((timestamp - T0) % 1000, RECORDS - 1);
    free(text);
    text = OUTPUT_OF(&rc, "dump", text_index);
    assert_int_equal(strncmp(text, "base_offset = 0\ntext_base = 0\nsealed = yes\n", 43), 0);
    assert_null(strstr(text, "  no\n"));
    assert_int_equal(rc, CLI_OK);
    free(text);
}

static void small_files_are_dumped(void **state)
{
    struct fixture *f = *state;
    CLEANUP(freep) char *meta = xasprintf("%s/meta.properties", f->path);
    CLEANUP(freep) char *epochs = xasprintf("%s/orders-0/leader-epoch-checkpoint", f->path);
    CLEANUP(freep) char *id = xasprintf("%s/orders-0/partition.metadata", f->path);
    CLEANUP(freep) char *checkpoint = xasprintf("%s/orders-0/partition.checkpoint", f->path);
    CLEANUP(freep) char *producers = log_path(f, BATCHES * RECORDS, ".producers");
    int rc;

    scene(f, true);
    char *text = OUTPUT_OF(&rc, "dump", "--json", meta);
    assert_non_null(strstr(text, "\"broker_id\":1"));
    free(text);
    text = OUTPUT_OF(&rc, "dump", "--json", epochs);
    assert_string_equal(text, "{\"epoch\":0,\"start_offset\":0}\n");
    free(text);
    text = OUTPUT_OF(&rc, "dump", id);
    assert_string_equal(text, "topic_id = BwcHBwcHBwcHBwcHBwcHBw\n");
    free(text);
    text = OUTPUT_OF(&rc, "dump", checkpoint);
    assert_non_null(strstr(text, "start_offset = 0\nhigh_watermark = 150\nflushed_offset = 150\n"));
    free(text);
    text = OUTPUT_OF(&rc, "dump", "--json", producers);
    assert_string_equal(
        text, "{\"producer_id\":77,\"epoch\":0,\"batches\":5,\"last_sequence\":149,\"last_offset\":149,"
              "\"last_seen\":1700000000000}\n");
    free(text);
    assert_int_equal(rc, CLI_OK);
}

/* ---- registers ---- */
static const struct uuid store_id = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };

static char *write_registers(const struct fixture *f, const char *name, const struct bytebuf *b)
{
    char *path = xasprintf("%s/%s", f->path, name);

    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, b->p, b->n), 0);
    close(fd);
    return path;
}

static void journal_frame(struct bytebuf *journal, uint32_t seed, int64_t sequence, const char *put, const char *drop)
{
    CLEANUP(bytebuf_done) struct bytebuf frame = { 0 };

    bytebuf_extend(&frame, REGISTERS_FRAME_HEAD_BYTES);
    register_add_put(&frame, put, slice_of("{\"n\":1}", 7), sequence);
    if (drop != NULL)
        register_add_drop(&frame, drop);
    register_frame_seal(&frame, seed, sequence);
    bytebuf_add(journal, frame.p, frame.n);
}

static void registers_are_dumped_entry_by_entry(void **state)
{
    struct fixture *f = *state;
    CLEANUP(bytebuf_done) struct bytebuf snapshot = { 0 }, journal = { 0 };
    int rc;

    bytebuf_extend(&snapshot, REGISTERS_SNAPSHOT_HEAD_BYTES);
    register_add_put(&snapshot, "/a", slice_of("{\"k\":[1]}", 9), 3);
    register_add_put(&snapshot, "/a/b", slice_of("\xff", 1), 0);
    register_snapshot_seal(&snapshot, &store_id, 7);
    CLEANUP(freep) char *path = write_registers(f, REGISTERS_SNAPSHOT, &snapshot);
    char *text = OUTPUT_OF(&rc, "dump", path);
    assert_string_equal(text, "store AQIDBAUGBwgJCgsMDQ4PEA: all registers after change 7\n"
                              "put /a version 3 {\"k\":[1]}\n"
                              "put /a/b version 0 \\xff\n");
    assert_int_equal(rc, CLI_OK);
    free(text);
    text = OUTPUT_OF(&rc, "dump", "--json", "-n", "1", path);
    assert_string_equal(text, "{\"store_id\":\"AQIDBAUGBwgJCgsMDQ4PEA\",\"after_change\":7}\n"
                              "{\"op\":\"put\",\"path\":\"/a\",\"version\":3,\"value\":{\"k\":[1]}}\n");
    free(text);
    flip(path, REGISTERS_SNAPSHOT_HEAD_BYTES + 20);
    text = OUTPUT_OF(&rc, "dump", path);
    assert_string_equal(text, "");
    assert_int_equal(rc, CLI_FAILED);
    free(text);

    uint32_t seed = register_journal_head(&store_id, 5, bytebuf_extend(&journal, REGISTERS_JOURNAL_HEAD_BYTES));
    journal_frame(&journal, seed, 6, "/a", NULL);
    journal_frame(&journal, seed, 7, "/c", "/a");
    CLEANUP(freep) char *other = write_registers(f, REGISTERS_JOURNAL, &journal);
    text = OUTPUT_OF(&rc, "dump", other);
    assert_string_equal(text, "store AQIDBAUGBwgJCgsMDQ4PEA: what changed after change 5\n"
                              "6 put /a version 6 {\"n\":1}\n"
                              "7 put /c version 7 {\"n\":1}\n"
                              "7 drop /a\n");
    assert_int_equal(rc, CLI_OK);
    free(text);
    text = OUTPUT_OF(&rc, "dump", "--from", "7", "--json", other);
    assert_string_equal(text, "{\"store_id\":\"AQIDBAUGBwgJCgsMDQ4PEA\",\"after_change\":5}\n"
                              "{\"change\":7,\"op\":\"put\",\"path\":\"/c\",\"version\":7,\"value\":{\"n\":1}}\n"
                              "{\"change\":7,\"op\":\"drop\",\"path\":\"/a\"}\n");
    free(text);
    flip(other, (off_t)journal.n - 1); /* the last one, as if it had not been finished */
    text = OUTPUT_OF(&rc, "dump", other);
    assert_string_equal(text, "store AQIDBAUGBwgJCgsMDQ4PEA: what changed after change 5\n"
                              "6 put /a version 6 {\"n\":1}\n");
    assert_int_equal(rc, CLI_FAILED);
    free(text);
}

static void other_files_are_refused(void **state)
{
    struct fixture *f = *state;
    CLEANUP(freep) char *lock = xasprintf("%s/.lock", f->path);
    int rc;

    scene(f, true);
    char *text = OUTPUT_OF(&rc, "dump", lock);
    assert_string_equal(text, "");
    assert_int_equal(rc, CLI_FAILED);
    free(text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_whole_directory_has_no_findings),
        TEST(the_newest_segment_has_a_text_header),
        TEST(a_flipped_bit_in_a_log_is_found_where_it_is),
        TEST(a_torn_tail_is_an_error_only_after_a_clean_stop),
        TEST(a_missing_segment_is_found),
        TEST(an_index_that_disagrees_with_its_log_is_found),
        TEST(a_missing_index_is_found),
        TEST(damaged_files_of_the_partition_are_found),
        TEST(nothing_is_changed_by_looking),
        TEST(a_partition_is_checked_alone),
        TEST(a_directory_in_use_is_refused),
        TEST(what_is_no_data_directory_is_refused),
        TEST(an_exchange_under_way_is_no_error),
        TEST(a_log_is_dumped_batch_by_batch),
        TEST(damage_in_a_log_is_dumped_as_such),
        TEST(indexes_are_dumped_entry_by_entry),
        TEST(small_files_are_dumped),
        TEST(registers_are_dumped_entry_by_entry),
        TEST(other_files_are_refused),
    };
    return RUN(tests);
}
