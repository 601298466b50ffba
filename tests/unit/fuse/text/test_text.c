/* SPDX-License-Identifier: Apache-2.0 */
/* Records rendered to lines, and the chunks that are kept. */
#include "unit.h"

#include "fuse/text/text.h"
#include "lib/record/build.h"

static const struct text_form plain = { LINE_PLAIN, 0, INT64_MIN, INT64_MAX };

struct fixture {
    struct text_cache cache;
    struct chunk_list list;
    struct bytebuf batches;
};

static void setup(struct fixture *x, size_t cache_bytes)
{
    memset(x, 0, sizeof *x);
    text_cache_init(&x->cache, cache_bytes);
    chunk_list_init(&x->list);
}

static void done(struct fixture *x)
{
    chunk_list_clear(&x->cache, &x->list);
    text_cache_done(&x->cache);
    bytebuf_done(&x->batches);
}

/* Appends a batch whose values are the words of `values`; "-" is null. */
static void add_batch(struct fixture *x, int64_t base, const char *values, enum codec codec,
                      int16_t attributes)
{
    struct batch_builder b;
    const struct batch_producer none = { .id = -1, .epoch = -1, .base_sequence = -1 };
    char copy[256];
    char *rest = copy, *word;
    size_t at = x->batches.n;
    snprintf(copy, sizeof copy, "%s", values);
    batch_builder_init(&b);
    while ((word = strsep(&rest, " ")) != NULL)
        batch_builder_add(&b, 1000, KSTR_NULL, strcmp(word, "-") == 0 ? KSTR_NULL : kstr_of(word), NULL, 0);
    assert_int_equal(batch_builder_finish(&b, codec, 0, &none, attributes, &x->batches), 0);
    batch_set_base_offset(x->batches.p + at, base);
    batch_builder_done(&b);
}

static struct slice all(const struct fixture *x)
{
    return slice_of(x->batches.p, x->batches.n);
}

static void assert_text(struct fixture *x, int64_t at, size_t n, const char *want)
{
    struct text_span span = { 0 };
    char got[256] = "";
    size_t len = 0;
    assert_int_equal(chunk_gather(&x->cache, &x->list, at, n, &span), strlen(want));
    for (int i = 0; i < span.n; i++) {
        memcpy(got + len, span.iov[i].iov_base, span.iov[i].iov_len);
        len += span.iov[i].iov_len;
    }
    got[len] = '\0';
    assert_string_equal(got, want);
}

static void a_record_is_its_value_and_a_newline(void **state)
{
    (void)state;
    struct fixture x;
    int64_t next;
    struct bytebuf out = { 0 };
    setup(&x, 1 << 20);
    add_batch(&x, 5, "one  three -", CODEC_NONE, 0);
    add_batch(&x, 9, "nine ten", CODEC_LZ4, 0);
    assert_int_equal(text_render(&x.cache.iter, &plain, all(&x), 5, INT64_MAX, &out, &next), 0);
    assert_string_equal(bytebuf_cstr(&out), "one\n\nthree\n\nnine\nten\n");
    assert_int_equal(next, 11);
    bytebuf_done(&out);
    done(&x);
}

static void only_the_wanted_records_are_rendered(void **state)
{
    (void)state;
    struct fixture x;
    int64_t next;
    struct bytebuf out = { 0 };
    setup(&x, 1 << 20);
    add_batch(&x, 0, "a b c", CODEC_NONE, 0);
    add_batch(&x, 3, "marker", CODEC_NONE, BATCH_ATTR_CONTROL | BATCH_ATTR_TRANSACTIONAL);
    add_batch(&x, 4, "e f", CODEC_NONE, 0);
    assert_int_equal(text_render(&x.cache.iter, &plain, all(&x), 1, 5, &out, &next), 0);
    assert_string_equal(bytebuf_cstr(&out), "b\nc\ne\n");
    assert_int_equal(next, 5);
    bytebuf_done(&out);
    done(&x);
}

static void a_part_of_a_batch_at_the_end_is_left_out(void **state)
{
    (void)state;
    struct fixture x;
    int64_t next;
    struct bytebuf out = { 0 };
    setup(&x, 1 << 20);
    add_batch(&x, 0, "a", CODEC_NONE, 0);
    size_t whole = x.batches.n;
    add_batch(&x, 1, "b", CODEC_NONE, 0);
    for (size_t cut = whole; cut < x.batches.n; cut++) {
        out.n = 0;
        assert_int_equal(text_render(&x.cache.iter, &plain, slice_of(x.batches.p, cut), 0, INT64_MAX, &out, &next),
                         0);
        assert_string_equal(bytebuf_cstr(&out), "a\n");
        assert_int_equal(next, 1);
    }
    bytebuf_done(&out);
    done(&x);
}

static void damage_is_told_and_what_came_before_is_kept(void **state)
{
    (void)state;
    struct fixture x;
    int64_t next;
    setup(&x, 1 << 20);
    add_batch(&x, 0, "good", CODEC_NONE, 0);
    add_batch(&x, 1, "bad", CODEC_NONE, 0);
    x.batches.p[x.batches.n - 3] ^= 1;
    assert_int_equal(chunk_add(&x.cache, &x.list, &plain, 100, 0, INT64_MAX, all(&x), &next), 0);
    assert_int_equal(next, 1);
    assert_text(&x, 100, 50, "good\n");
    struct batch_header h;
    batch_header_read(x.batches.p, &h);
    struct slice rest = slice_of(x.batches.p + batch_size(&h), x.batches.n - (size_t)batch_size(&h));
    assert_int_equal(chunk_add(&x.cache, &x.list, &plain, 105, 1, INT64_MAX, rest, &next), -EBADMSG);
    assert_text(&x, 100, 50, "good\n");
    done(&x);
}

static void chunks_side_by_side_are_read_as_one_text(void **state)
{
    (void)state;
    struct fixture x;
    int64_t next;
    setup(&x, 1 << 20);
    add_batch(&x, 2, "cc dd", CODEC_NONE, 0);
    assert_int_equal(chunk_add(&x.cache, &x.list, &plain, 6, 2, INT64_MAX, all(&x), &next), 0);
    x.batches.n = 0;
    add_batch(&x, 0, "aa bb", CODEC_NONE, 0);
    assert_int_equal(chunk_add(&x.cache, &x.list, &plain, 0, 0, INT64_MAX, all(&x), &next), 0);
    assert_text(&x, 0, 100, "aa\nbb\ncc\ndd\n");
    assert_text(&x, 4, 5, "b\ncc\n");
    assert_text(&x, 12, 5, "");
    assert_non_null(chunk_before(&x.list, 6));
    assert_int_equal(chunk_before(&x.list, 6)->next_offset, 2);
    assert_int_equal(chunk_before(&x.list, 12)->next_offset, 4);
    assert_null(chunk_before(&x.list, 11));
    done(&x);
}

static void a_short_chunk_grows_by_what_follows(void **state)
{
    (void)state;
    struct fixture x;
    int64_t next;
    setup(&x, 1 << 20);
    add_batch(&x, 0, "a", CODEC_NONE, 0);
    assert_int_equal(chunk_add(&x.cache, &x.list, &plain, 0, 0, INT64_MAX, all(&x), &next), 0);
    x.batches.n = 0;
    add_batch(&x, 1, "b", CODEC_NONE, 0);
    assert_int_equal(chunk_add(&x.cache, &x.list, &plain, 2, 1, INT64_MAX, all(&x), &next), 0);
    struct chunk *only = TAILQ_FIRST(&x.list.chunks);
    assert_null(TAILQ_NEXT(only, link));
    assert_int_equal(only->next_offset, 2);
    assert_text(&x, 0, 10, "a\nb\n");
    done(&x);
}

static void bytes_that_are_there_are_not_kept_twice(void **state)
{
    (void)state;
    struct fixture x;
    int64_t next;
    setup(&x, 1 << 20);
    add_batch(&x, 2, "c d", CODEC_NONE, 0);
    assert_int_equal(chunk_add(&x.cache, &x.list, &plain, 4, 2, INT64_MAX, all(&x), &next), 0);
    x.batches.n = 0;
    add_batch(&x, 0, "a b c d", CODEC_NONE, 0);
    assert_int_equal(chunk_add(&x.cache, &x.list, &plain, 0, 0, INT64_MAX, all(&x), &next), 0);
    assert_int_equal(next, 2);
    assert_text(&x, 0, 100, "a\nb\nc\nd\n");
    done(&x);
}

static void nothing_to_keep_tells_how_far_to_go_on(void **state)
{
    (void)state;
    struct fixture x;
    int64_t next;
    setup(&x, 1 << 20);
    add_batch(&x, 7, "marker", CODEC_NONE, BATCH_ATTR_CONTROL | BATCH_ATTR_TRANSACTIONAL);
    assert_int_equal(chunk_add(&x.cache, &x.list, &plain, 50, 7, INT64_MAX, all(&x), &next), 1);
    assert_int_equal(next, 8);
    assert_true(TAILQ_EMPTY(&x.list.chunks));
    done(&x);
}

static void text_that_is_on_its_way_out_stays(void **state)
{
    (void)state;
    struct fixture x;
    struct text_span span = { 0 };
    int64_t next;
    setup(&x, 1 << 20);
    add_batch(&x, 0, "a", CODEC_NONE, 0);
    assert_int_equal(chunk_add(&x.cache, &x.list, &plain, 0, 0, INT64_MAX, all(&x), &next), 0);
    assert_int_equal(chunk_gather(&x.cache, &x.list, 0, 2, &span), 2);
    text_span_ref(&span);
    x.batches.n = 0;
    add_batch(&x, 1, "b", CODEC_NONE, 0); /* goes into a chunk of its own: the first must not move */
    assert_int_equal(chunk_add(&x.cache, &x.list, &plain, 2, 1, INT64_MAX, all(&x), &next), 0);
    assert_text(&x, 0, 4, "a\nb\n");
    chunk_list_clear(&x.cache, &x.list);
    assert_int_equal(x.cache.bytes, 0);
    assert_memory_equal(span.iov[0].iov_base, "a\n", 2);
    chunk_unref(span.chunks[0]);
    done(&x);
}

static void the_least_recently_used_chunk_goes_first(void **state)
{
    (void)state;
    struct fixture x;
    int64_t next;
    setup(&x, 250);
    for (int i = 0; i < 3; i++) { /* apart from each other, so that they do not grow together */
        x.batches.n = 0;
        add_batch(&x, i * 10, "12345678901234567890", CODEC_NONE, 0);
        assert_int_equal(chunk_add(&x.cache, &x.list, &plain, i * 1000, i * 10, INT64_MAX, all(&x), &next), 0);
        if (i == 1)
            assert_non_null(chunk_find(&x.cache, &x.list, 0));
    }
    assert_non_null(chunk_find(&x.cache, &x.list, 0));
    assert_null(chunk_find(&x.cache, &x.list, 1000));
    assert_non_null(chunk_find(&x.cache, &x.list, 2000));
    assert_true(x.cache.bytes <= 250);
    done(&x);
}

static void what_was_read_through_goes_before_what_is_older(void **state)
{
    (void)state;
    struct fixture x;
    int64_t next;
    setup(&x, 250);
    for (int i = 0; i < 3; i++) {
        x.batches.n = 0;
        add_batch(&x, i * 10, "12345678901234567890", CODEC_NONE, 0);
        assert_int_equal(chunk_add(&x.cache, &x.list, &plain, i * 1000, i * 10, INT64_MAX, all(&x), &next), 0);
        if (i == 1)
            chunk_pass(&x.cache, &x.list, 1000, 21);
    }
    assert_non_null(chunk_find(&x.cache, &x.list, 0));
    assert_null(chunk_find(&x.cache, &x.list, 1000));
    done(&x);
}

/* Of the batch at `at`: how many offsets it takes. */
static void set_last_delta(struct fixture *x, size_t at, int32_t delta)
{
    put_be32(x->batches.p + at + BATCH_LAST_OFFSET_DELTA, (uint32_t)delta);
}

static void gaps_are_told_by_the_headers(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x, 1 << 20);
    add_batch(&x, 10, "a b c", CODEC_NONE, 0);
    assert_false(text_has_gaps(all(&x), 10, INT64_MAX));
    assert_false(text_has_gaps(all(&x), 12, INT64_MAX)); /* read on inside the batch */
    assert_true(text_has_gaps(all(&x), 9, INT64_MAX));
    assert_false(text_has_gaps(all(&x), 9, 10)); /* behind what is wanted */
    add_batch(&x, 13, "d", CODEC_NONE, BATCH_ATTR_CONTROL);
    size_t second = x.batches.n;
    add_batch(&x, 14, "e f", CODEC_NONE, 0);
    assert_false(text_has_gaps(all(&x), 10, INT64_MAX));
    set_last_delta(&x, second, 5);
    assert_true(text_has_gaps(all(&x), 10, INT64_MAX));
    assert_false(text_has_gaps(all(&x), 10, 14));
    set_last_delta(&x, second, 1);
    add_batch(&x, 17, "g", CODEC_NONE, 0);
    assert_true(text_has_gaps(all(&x), 10, INT64_MAX));
    assert_false(text_has_gaps(slice_of(x.batches.p, 70), 10, INT64_MAX)); /* cut off */
    done(&x);
}

static void put_text(struct fixture *x, int64_t start, int64_t offset, int64_t next, const char *text)
{
    struct bytebuf b = { 0 };
    bytebuf_adds(&b, text);
    chunk_put(&x->cache, &x->list, start, offset, next, &b, NULL);
    assert_null(b.p);
}

static void reading_goes_on_behind_a_hole(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x, 1 << 20);
    put_text(&x, 100, 0, 2, "a\nb\n");
    assert_false(chunk_set_hole(&x.list, 103, 200));
    assert_int_equal(chunk_hole_end(&x.list, 104), 104);
    assert_true(chunk_set_hole(&x.list, 104, 200));
    assert_int_equal(chunk_hole_end(&x.list, 104), 200);
    assert_int_equal(chunk_hole_end(&x.list, 103), 103);
    put_text(&x, 200, 7, 9, "y\nz\n");
    assert_text(&x, 100, 10, "a\nb\n");
    assert_text(&x, 200, 10, "y\nz\n");
    assert_int_equal(chunk_before(&x.list, 204)->next_offset, 9);
    done(&x);
}

static void text_that_was_placed_anew_takes_the_room_of_older(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x, 1 << 20);
    put_text(&x, 0, 0, 1, "0123\n");
    put_text(&x, 6, 1, 2, "67\n");
    put_text(&x, 9, 2, 3, "9\n"); /* grows the chunk in front */
    put_text(&x, 20, 5, 6, "20\n");
    assert_ptr_equal(chunk_find(&x.cache, &x.list, 6), chunk_find(&x.cache, &x.list, 10));
    assert_text(&x, 6, 30, "67\n9\n");
    put_text(&x, 7, 4, 5, "new\n");
    assert_text(&x, 0, 30, "0123\n");
    assert_null(chunk_find(&x.cache, &x.list, 6));
    assert_text(&x, 7, 30, "new\n");
    assert_text(&x, 20, 30, "20\n");
    done(&x);
    assert_int_equal(x.cache.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_its_value_and_a_newline),
        cmocka_unit_test(only_the_wanted_records_are_rendered),
        cmocka_unit_test(a_part_of_a_batch_at_the_end_is_left_out),
        cmocka_unit_test(damage_is_told_and_what_came_before_is_kept),
        cmocka_unit_test(chunks_side_by_side_are_read_as_one_text),
        cmocka_unit_test(a_short_chunk_grows_by_what_follows),
        cmocka_unit_test(bytes_that_are_there_are_not_kept_twice),
        cmocka_unit_test(nothing_to_keep_tells_how_far_to_go_on),
        cmocka_unit_test(text_that_is_on_its_way_out_stays),
        cmocka_unit_test(the_least_recently_used_chunk_goes_first),
        cmocka_unit_test(what_was_read_through_goes_before_what_is_older),
        cmocka_unit_test(gaps_are_told_by_the_headers),
        cmocka_unit_test(reading_goes_on_behind_a_hole),
        cmocka_unit_test(text_that_was_placed_anew_takes_the_room_of_older),
    };
    return RUN(tests);
}
