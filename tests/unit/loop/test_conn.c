/* SPDX-License-Identifier: Apache-2.0 */
/* Connections over real sockets; the other end is a plain descriptor of the test. */
#include "unit.h"
#include "world.h"

#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/base/varint.h"
#include "lib/loop/conn.h"

enum { FRAMES_MAX = 1000 };

struct fixture {
    struct loop *lp;
    struct conn *c;
    int peer;
    struct rcbuf *frames[FRAMES_MAX];
    int n_frames;
    int closed, drained, connected, released;
    char why[256];
    size_t room; /* what may_take has left to give */
    int refused;
    bool echo, keep_nothing, close_on_frame, pause_on_frame;
};

static void on_frame(struct conn *c, struct rcbuf *frame)
{
    struct fixture *f = conn_user(c);
    f->n_frames++;
    if (f->keep_nothing)
        rcbuf_unref(frame);
    else
        f->frames[f->n_frames - 1] = frame;
    if (f->echo)
        conn_send(c, frame, 0, frame->n);
    if (f->pause_on_frame)
        conn_pause(c);
    if (f->close_on_frame)
        conn_close(c);
}

static void on_closed(struct conn *c, const char *why)
{
    struct fixture *f = conn_user(c);
    f->closed++;
    f->c = NULL;
    snprintf(f->why, sizeof f->why, "%s", why);
}

static void on_drained(struct conn *c)
{
    ((struct fixture *)conn_user(c))->drained++;
}

static void on_connected(struct conn *c)
{
    ((struct fixture *)conn_user(c))->connected++;
}

static void on_release(void *owner)
{
    ((struct fixture *)owner)->released++;
}

static bool on_may_take(struct conn *c, size_t n)
{
    struct fixture *f = conn_user(c);
    bool ok = f->room >= n;
    f->refused += !ok;
    f->room -= ok ? n : 0;
    return ok;
}

static const struct conn_ops ops = { on_frame, on_closed, on_drained, on_connected, on_may_take };
static const struct conn_limits limits = { .frame_max = 100 * 1024 * 1024, .sndbuf = -1, .rcvbuf = -1 };

static struct fixture *fixture_new(const struct conn_limits *l)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->room = SIZE_MAX;
    int sv[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
    f->lp = loop_new(test_world());
    f->peer = sv[1];
    f->c = conn_new(f->lp, sv[0], &ops, l, f);
    return f;
}

static int setup(void **state)
{
    *state = fixture_new(&limits);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->c != NULL)
        conn_close(f->c);
    for (int i = 0; i < FRAMES_MAX; i++)
        rcbuf_unref(f->frames[i]);
    if (f->peer >= 0)
        close(f->peer);
    loop_free(f->lp);
    free(f);
    return 0;
}

/* Writes without ever blocking for ever: lets the loop read when the socket is full. */
static void peer_write(struct fixture *f, const void *p, size_t n)
{
    const uint8_t *q = p;
    while (n > 0) {
        ssize_t k = send(f->peer, q, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k > 0) {
            q += k;
            n -= (size_t)k;
        } else {
            assert_int_equal(errno, EAGAIN);
            loop_run_once(f->lp, -1);
        }
    }
}

static void peer_write_frame(struct fixture *f, const void *p, size_t n)
{
    uint8_t head[4];
    put_be32(head, (uint32_t)n);
    peer_write(f, head, 4);
    peer_write(f, p, n);
}

/* Reads n bytes, running the loop until they have come. */
static void peer_read(struct fixture *f, uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t k = recv(f->peer, p, n, MSG_DONTWAIT);
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        } else {
            assert_true(k < 0 && errno == EAGAIN);
            loop_run_once(f->lp, -1);
        }
    }
}

static void run_until_frames(struct fixture *f, int n)
{
    while (f->n_frames < n && !f->closed)
        loop_run_once(f->lp, -1);
    assert_int_equal(f->n_frames, n);
}

static void run_until_closed(struct fixture *f)
{
    while (!f->closed)
        loop_run_once(f->lp, -1);
    assert_int_equal(f->closed, 1);
}

static uint8_t *pattern_new(size_t n, unsigned seed)
{
    uint8_t *p = xmalloc(n);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
    return p;
}

/* ---- the way in ---- */
static void many_small_frames_of_one_write_arrive_in_order(void **state)
{
    struct fixture *f = *state;
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    for (uint32_t i = 0; i < 500; i++) {
        uint8_t frame[8];
        put_be32(frame, 4);
        put_be32(frame + 4, i);
        bytebuf_add(&b, frame, sizeof frame);
    }
    peer_write(f, b.p, b.n);
    run_until_frames(f, 500);
    for (uint32_t i = 0; i < 500; i++) {
        assert_int_equal(f->frames[i]->n, 4);
        assert_int_equal(get_be32(f->frames[i]->p), i);
    }
}

static void a_frame_that_comes_byte_by_byte_arrives_whole(void **state)
{
    struct fixture *f = *state;
    const uint8_t bytes[] = { 0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o', 0, 0, 0, 1, 'x' };
    for (size_t i = 0; i < sizeof bytes; i++) {
        peer_write(f, bytes + i, 1);
        loop_run_once(f->lp, -1);
    }
    assert_int_equal(f->n_frames, 2);
    assert_int_equal(f->frames[0]->n, 5);
    assert_memory_equal(f->frames[0]->p, "hello", 5);
    assert_memory_equal(f->frames[1]->p, "x", 1);
}

static void frames_of_any_size_arrive_with_their_bytes(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {
        1, 16384,   16385,         65532,  65536,         65537, 1 << 20, 3 * (1 << 20),
        1, 1 << 20, (1 << 20) - 1, 200000, 5 * (1 << 20), 100,   131072
    };
    for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
        uint8_t *p = pattern_new(sizes[i], i);
        peer_write_frame(f, p, sizes[i]);
        free(p);
    }
    run_until_frames(f, ARRAY_LEN(sizes));
    for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
        uint8_t *p = pattern_new(sizes[i], i);
        assert_int_equal(f->frames[i]->n, sizes[i]);
        assert_memory_equal(f->frames[i]->p, p, sizes[i]);
        free(p);
    }
}

static void a_frame_still_held_is_not_overwritten_by_the_next(void **state)
{
    struct fixture *f = *state;
    uint8_t *a = pattern_new(1 << 20, 1), *b = pattern_new(1 << 20, 2);
    peer_write_frame(f, a, 1 << 20);
    run_until_frames(f, 1);
    peer_write_frame(f, b, 1 << 20);
    run_until_frames(f, 2);
    assert_memory_equal(f->frames[0]->p, a, 1 << 20);
    assert_memory_equal(f->frames[1]->p, b, 1 << 20);
    assert_ptr_not_equal(f->frames[0], f->frames[1]);
    free(a);
    free(b);
}

static void the_buffer_of_a_big_frame_is_used_again(void **state)
{
    struct fixture *f = *state;
    uint8_t *a = pattern_new(1 << 20, 1);
    peer_write_frame(f, a, 1 << 20);
    run_until_frames(f, 1);
    const uint8_t *first = f->frames[0]->p;
    rcbuf_unref(f->frames[0]);
    f->frames[0] = NULL;
    peer_write_frame(f, a, 1 << 20);
    run_until_frames(f, 2);
    assert_ptr_equal(f->frames[1]->p, first);
    free(a);
}

static void a_claimed_size_reserves_no_memory(void **state)
{
    struct fixture *f = *state;
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    static const uint8_t claim[] = {
        0x06, 0x40, 0, 0, 0, 0, 0, 0, 0, 0
    }; /* 104857600, and six bytes of it */
    peer_write(f, claim, sizeof claim);
    loop_run_once(f->lp, -1);
    size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
    assert_true(after < before + 100 * 1024); /* the loop's own scratch is 64 KiB of it */
    assert_int_equal(f->n_frames, 0);
    assert_int_equal(f->closed, 0);
}

static void expect_refused(struct fixture *f, uint32_t size)
{
    uint8_t head[4];
    put_be32(head, size);
    peer_write(f, head, 4);
    run_until_closed(f);
    uint8_t b;
    assert_int_equal(recv(f->peer, &b, 1, 0), 0);
    assert_non_null(strstr(f->why, "not Kafka's protocol?"));
}

static void a_frame_of_zero_bytes_closes_the_connection(void **state)
{
    expect_refused(*state, 0);
}

static void a_frame_of_negative_size_closes_the_connection(void **state)
{
    expect_refused(*state, 0xffffffff);
}

static void a_frame_over_the_limit_closes_the_connection(void **state)
{
    expect_refused(*state, 100 * 1024 * 1024 + 1);
}

static void a_frame_of_exactly_the_limit_is_taken(void **state)
{
    (void)state;
    struct conn_limits l = limits;
    l.frame_max = 10;
    struct fixture *f = fixture_new(&l);
    peer_write_frame(f, "0123456789", 10);
    run_until_frames(f, 1);
    assert_int_equal(f->frames[0]->n, 10);
    void *s = f;
    teardown(&s);
}

static void the_end_of_the_stream_is_told_once(void **state)
{
    struct fixture *f = *state;
    close(f->peer);
    f->peer = -1;
    run_until_closed(f);
    assert_string_equal(f->why, "the peer closed the connection");
}

static void the_end_of_the_stream_inside_a_frame_is_told_as_such(void **state)
{
    struct fixture *f = *state;
    peer_write(f, "\0\0\0\5he", 6);
    close(f->peer);
    f->peer = -1;
    run_until_closed(f);
    assert_string_equal(f->why, "the peer closed the connection inside a frame");
}

static void closing_inside_the_frame_callback_delivers_no_more(void **state)
{
    struct fixture *f = *state;
    f->close_on_frame = true;
    peer_write(f, "\0\0\0\1a\0\0\0\1b", 10);
    loop_run_once(f->lp, -1);
    f->c = NULL;
    loop_run_once(f->lp, 0);
    assert_int_equal(f->n_frames, 1);
    assert_int_equal(f->closed, 0);
}

static void a_paused_connection_delivers_nothing_until_resumed(void **state)
{
    struct fixture *f = *state;
    f->pause_on_frame = true;
    peer_write(f, "\0\0\0\1a\0\0\0\1b\0\0\0\2cd", 16);
    loop_run_once(f->lp, -1);
    assert_int_equal(f->n_frames, 1);
    loop_run_once(f->lp, 0);
    assert_int_equal(f->n_frames, 1);

    conn_resume(f->c);
    assert_int_equal(f->n_frames, 1);
    loop_run_once(f->lp, -1);
    assert_int_equal(f->n_frames, 2);

    f->pause_on_frame = false;
    peer_write(f, "\0\0\0\1e", 5);
    conn_resume(f->c);
    run_until_frames(f, 4);
    assert_memory_equal(f->frames[2]->p, "cd", 2);
    assert_memory_equal(f->frames[3]->p, "e", 1);
}

static void the_death_of_the_peer_is_seen_while_paused(void **state)
{
    struct fixture *f = *state;
    conn_pause(f->c);
    close(f->peer);
    f->peer = -1;
    run_until_closed(f);
}

/* ---- time-outs ---- */
static void a_half_frame_times_out(void **state)
{
    (void)state;
    struct conn_limits l = limits;
    l.half_frame_ms = 20;
    l.idle_ms = 3600 * 1000;
    struct fixture *f = fixture_new(&l);
    peer_write(f, "\0\0", 2);
    run_until_closed(f);
    assert_string_equal(f->why, "a frame begun was not whole after 20 ms");
    void *s = f;
    teardown(&s);
}

static void an_idle_connection_times_out(void **state)
{
    (void)state;
    struct conn_limits l = limits;
    l.idle_ms = 20;
    struct fixture *f = fixture_new(&l);
    run_until_closed(f);
    assert_string_equal(f->why, "idle for 20 ms");
    void *s = f;
    teardown(&s);
}

/* What it may not have memory for stays in the socket; small frames are read all the same. */
static void a_frame_waits_until_it_may_take_memory(void **state)
{
    struct fixture *f = *state;
    enum { SIZE = 300 * 1000, FIRST = 100 * 1000 };
    uint8_t *data = pattern_new(SIZE, 3), head[4];
    f->room = 0;
    peer_write_frame(f, "small", 5);
    while (f->n_frames == 0)
        loop_run_once(f->lp, -1);
    assert_int_equal(f->refused, 0);

    put_be32(head, SIZE);
    peer_write(f, head, 4);
    peer_write(f, data, FIRST);
    while (f->refused == 0)
        loop_run_once(f->lp, -1);
    assert_true(conn_input_bytes(f->c) <= 128 * 1024);
    for (int i = 0; i < 10; i++)
        loop_run_once(f->lp, 0);
    assert_int_equal(f->refused, 1); /* it does not spin */
    assert_int_equal(conn_stalled_ms(f->c), 0);

    f->room = SIZE_MAX;
    conn_retry(f->c);
    peer_write(f, data + FIRST, SIZE - FIRST);
    while (f->n_frames == 1)
        loop_run_once(f->lp, -1);
    assert_int_equal(f->frames[1]->n, SIZE);
    assert_memory_equal(f->frames[1]->p, data, SIZE);
    free(data);
}

static void memory_that_ends_in_the_middle_of_a_frame_stops_it_there(void **state)
{
    struct fixture *f = *state;
    enum { SIZE = 1 << 20 };
    uint8_t *data = pattern_new(SIZE, 5), head[4];
    f->room = 100 * 1000;
    put_be32(head, SIZE);
    peer_write(f, head, 4);
    size_t sent = 0;
    while (f->refused == 0) {
        ssize_t n = send(f->peer, data + sent, SIZE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        loop_run_once(f->lp, 0);
    }
    assert_true(conn_input_bytes(f->c) <= 300 * 1000);
    f->room = SIZE_MAX;
    conn_retry(f->c);
    peer_write(f, data + sent, SIZE - sent);
    while (f->n_frames == 0)
        loop_run_once(f->lp, -1);
    assert_memory_equal(f->frames[0]->p, data, SIZE);
    free(data);
}

static void a_peer_that_takes_nothing_of_its_output_times_out(void **state)
{
    (void)state;
    struct conn_limits l = limits;
    l.idle_ms = 20;
    struct fixture *f = fixture_new(&l);
    struct rcbuf *b = rcbuf_new(4 << 20);
    b->n = b->cap;
    memset(b->p, 'x', b->n);
    conn_send(f->c, b, 0, b->n);
    rcbuf_unref(b);
    conn_pause(f->c); /* as a session does whose client does not read */
    run_until_closed(f);
    assert_string_equal(f->why, "the peer took nothing of what waits for it for 20 ms");
    void *s = f;
    teardown(&s);
}

static void on_later(struct timer *t)
{
    t->due_ms = -1;
}

static void a_busy_connection_is_not_idle(void **state)
{
    (void)state;
    struct conn_limits l = limits;
    l.idle_ms = 20;
    struct fixture *f = fixture_new(&l);
    struct timer later = { .cb = on_later };
    conn_set_busy(f->c, true);
    timer_set(f->lp, &later, loop_now_ms(f->lp) + 5 * l.idle_ms);
    while (later.due_ms >= 0)
        loop_run_once(f->lp, -1);
    assert_int_equal(f->closed, 0);
    conn_set_busy(f->c, false);
    run_until_closed(f);
    assert_string_equal(f->why, "idle for 20 ms");
    void *s = f;
    teardown(&s);
}

static void the_longest_time_outs_are_never(void **state)
{
    (void)state;
    struct conn_limits l = limits;
    l.idle_ms = l.half_frame_ms = INT64_MAX;
    struct fixture *f = fixture_new(&l);
    peer_write(f, "\0\0\0\1", 4);
    for (int i = 0; i < 5; i++)
        loop_run_once(f->lp, 0);
    assert_int_equal(f->closed, 0);
    peer_write(f, "x", 1);
    while (f->n_frames == 0)
        loop_run_once(f->lp, -1);
    void *s = f;
    teardown(&s);
}

/* ---- the way out ---- */
static void memory_and_files_go_out_in_order(void **state)
{
    struct fixture *f = *state;
    enum { FILE_BYTES = 3 << 20, PART = 1000 };
    int fd = memfd_create("piece", MFD_CLOEXEC);
    uint8_t *data = pattern_new(FILE_BYTES, 7), *got = xmalloc(PART + FILE_BYTES - 5 + PART);
    assert_int_equal(write(fd, data, FILE_BYTES), FILE_BYTES);
    struct rcbuf *b = rcbuf_new(2 * PART);
    b->n = 2 * PART;
    memset(b->p, 'a', PART);
    memset(b->p + PART, 'z', PART);

    conn_send(f->c, b, 0, PART);
    conn_send_file(f->c, fd, 5, FILE_BYTES - 5, on_release, f);
    conn_send(f->c, b, PART, PART);
    assert_int_equal(conn_output_bytes(f->c), 2 * PART + FILE_BYTES - 5);
    rcbuf_unref(b);
    peer_read(f, got, 2 * PART + FILE_BYTES - 5);
    for (int i = 0; i < PART; i++) {
        assert_int_equal(got[i], 'a');
        assert_int_equal(got[PART + FILE_BYTES - 5 + i], 'z');
    }
    assert_memory_equal(got + PART, data + 5, FILE_BYTES - 5);
    while (f->drained == 0)
        loop_run_once(f->lp, 0);
    assert_int_equal(f->released, 1);
    assert_int_equal(f->drained, 1);
    assert_int_equal(conn_output_bytes(f->c), 0);
    close(fd);
    free(data);
    free(got);
}

static void a_thousand_small_sends_all_go_out(void **state)
{
    struct fixture *f = *state;
    struct rcbuf *b = rcbuf_new(256);
    b->n = 256;
    for (int i = 0; i < 256; i++)
        b->p[i] = (uint8_t)i;
    for (int i = 0; i < 1000; i++)
        conn_send(f->c, b, (size_t)(i % 200), 3);
    rcbuf_unref(b);
    uint8_t got[3000];
    peer_read(f, got, sizeof got);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(got[3 * i], i % 200);
}

static void a_file_that_shrank_closes_the_connection(void **state)
{
    struct fixture *f = *state;
    int fd = memfd_create("piece", MFD_CLOEXEC);
    conn_send_file(f->c, fd, 0, 10, on_release, f);
    run_until_closed(f);
    assert_int_equal(f->released, 1);
    close(fd);
}

static void closing_releases_what_was_queued(void **state)
{
    struct fixture *f = *state;
    int fd = memfd_create("piece", MFD_CLOEXEC);
    conn_send_file(f->c, fd, 0, 10, on_release, f);
    conn_close(f->c);
    assert_int_equal(f->released, 1);
    conn_send_file(f->c, fd, 0, 10, on_release, f);
    assert_int_equal(f->released, 2);
    f->c = NULL;
    loop_run_once(f->lp, 0);
    assert_int_equal(f->closed, 0);
    close(fd);
}

static void close_after_output_sends_everything_first(void **state)
{
    struct fixture *f = *state;
    struct rcbuf *b = rcbuf_new(4 << 20);
    b->n = 4 << 20;
    memset(b->p, 'q', b->n);
    conn_send(f->c, b, 0, b->n);
    conn_close_after_output(f->c);
    f->c = NULL;
    uint8_t *got = xmalloc(b->n), more;
    peer_read(f, got, b->n);
    assert_memory_equal(got, b->p, b->n);
    ssize_t k;
    while ((k = recv(f->peer, &more, 1, MSG_DONTWAIT)) < 0)
        loop_run_once(f->lp, 0);
    assert_int_equal(k, 0);
    assert_int_equal(f->closed, 0);
    rcbuf_unref(b);
    free(got);
}

static void replies_reach_a_peer_that_closed_its_half(void **state)
{
    struct fixture *f = *state;
    f->echo = true;
    peer_write(f, "\0\0\0\3abc", 7);
    assert_int_equal(shutdown(f->peer, SHUT_WR), 0);
    run_until_closed(f);
    uint8_t got[3];
    assert_int_equal(recv(f->peer, got, 3, 0), 3);
    assert_memory_equal(got, "abc", 3);
}

static void sending_to_a_dead_peer_raises_no_signal(void **state)
{
    struct fixture *f = *state;
    close(f->peer);
    f->peer = -1;
    struct rcbuf *b = rcbuf_new(1);
    b->n = 1;
    conn_pause(f->c);
    conn_send(f->c, b, 0, 1);
    conn_flush(f->c);
    rcbuf_unref(b);
    assert_int_equal(f->closed, 0); /* never from inside a call */
    run_until_closed(f);
}

/* ---- connecting ---- */
static int listen_on_loopback(struct sockaddr_in *sa)
{
    socklen_t n = sizeof *sa;
    *sa = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)sa, sizeof *sa), 0);
    assert_int_equal(listen(fd, 10), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)sa, &n), 0);
    return fd;
}

static void output_queued_before_the_connection_stands_goes_out(void **state)
{
    struct fixture *f = *state;
    conn_close(f->c);
    close(f->peer);
    struct sockaddr_in sa;
    int lfd = listen_on_loopback(&sa);
    f->c = conn_connect(f->lp, (struct sockaddr *)&sa, sizeof sa, &ops, &limits, f);
    char want[64];
    snprintf(want, sizeof want, "127.0.0.1:%d", ntohs(sa.sin_port));
    assert_string_equal(conn_peer(f->c), want);
    struct rcbuf *b = rcbuf_new(5);
    memcpy(b->p, "hello", b->n = 5);
    conn_send(f->c, b, 0, 5);
    rcbuf_unref(b);
    while (!f->connected)
        loop_run_once(f->lp, -1);
    f->peer = accept4(lfd, NULL, NULL, SOCK_CLOEXEC);
    uint8_t got[5];
    peer_read(f, got, 5);
    assert_memory_equal(got, "hello", 5);
    char host[64];
    assert_true(conn_local_address(f->c, host, sizeof host) > 0);
    assert_string_equal(host, "127.0.0.1");
    close(lfd);
}

static void a_refused_connection_is_told_with_its_address(void **state)
{
    struct fixture *f = *state;
    conn_close(f->c);
    struct sockaddr_in sa;
    close(listen_on_loopback(&sa));
    f->c = conn_connect(f->lp, (struct sockaddr *)&sa, sizeof sa, &ops, &limits, f);
    assert_int_equal(f->closed, 0);
    run_until_closed(f);
    assert_non_null(strstr(f->why, "Connection refused"));
    assert_non_null(strstr(f->why, "127.0.0.1:"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(many_small_frames_of_one_write_arrive_in_order),
        T(a_frame_that_comes_byte_by_byte_arrives_whole),
        T(frames_of_any_size_arrive_with_their_bytes),
        T(a_frame_still_held_is_not_overwritten_by_the_next),
        T(the_buffer_of_a_big_frame_is_used_again),
        T(a_claimed_size_reserves_no_memory),
        T(a_frame_of_zero_bytes_closes_the_connection),
        T(a_frame_of_negative_size_closes_the_connection),
        T(a_frame_over_the_limit_closes_the_connection),
        cmocka_unit_test(a_frame_of_exactly_the_limit_is_taken),
        T(the_end_of_the_stream_is_told_once),
        T(the_end_of_the_stream_inside_a_frame_is_told_as_such),
        T(closing_inside_the_frame_callback_delivers_no_more),
        T(a_paused_connection_delivers_nothing_until_resumed),
        T(the_death_of_the_peer_is_seen_while_paused),
        cmocka_unit_test(a_half_frame_times_out),
        cmocka_unit_test(an_idle_connection_times_out),
        T(a_frame_waits_until_it_may_take_memory),
        T(memory_that_ends_in_the_middle_of_a_frame_stops_it_there),
        cmocka_unit_test(a_peer_that_takes_nothing_of_its_output_times_out),
        cmocka_unit_test(a_busy_connection_is_not_idle),
        cmocka_unit_test(the_longest_time_outs_are_never),
        T(memory_and_files_go_out_in_order),
        T(a_thousand_small_sends_all_go_out),
        T(a_file_that_shrank_closes_the_connection),
        T(closing_releases_what_was_queued),
        T(close_after_output_sends_everything_first),
        T(replies_reach_a_peer_that_closed_its_half),
        T(sending_to_a_dead_peer_raises_no_signal),
        T(output_queued_before_the_connection_stands_goes_out),
        T(a_refused_connection_is_told_with_its_address),
    };
    return RUN(tests);
}
