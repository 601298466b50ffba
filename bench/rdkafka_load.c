/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ordinary client gets out of a broker: librdkafka with its defaults.
 *
 *   rdkafka-load produce -b HOST:PORT -t TOPIC [-s value bytes] [-T seconds] [-X key=value]...
 *   rdkafka-load consume -b HOST:PORT -t TOPIC [-X key=value]...      from the beginning to the end
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "lib/base/mem.h"

enum { VALUES = 1024 };

static const char *broker = "127.0.0.1:9092", *topic = "bench";
static size_t value_bytes = 1024;
static double seconds = 1.5;
static char *settings[32];
static size_t n_settings;
static uint64_t n_acked, n_failed;

static void set(rd_kafka_conf_t *c, const char *key, const char *value)
{
    char err[256];

    if (rd_kafka_conf_set(c, key, value, err, sizeof err) != RD_KAFKA_CONF_OK)
        die("%s", err);
}

static rd_kafka_conf_t *conf_new(void)
{
    rd_kafka_conf_t *c = rd_kafka_conf_new();

    set(c, "bootstrap.servers", broker);
    for (size_t i = 0; i < n_settings; i++) {
        CLEANUP(freep) char *key = xstrdup(settings[i]);
        char *value = strchr(key, '=');
        if (value == NULL)
            die("-X %s", key);
        *value = '\0';
        set(c, key, value + 1);
    }
    return c;
}

static rd_kafka_t *handle_new(rd_kafka_type_t type, rd_kafka_conf_t *c)
{
    char err[256];
    rd_kafka_t *rk = rd_kafka_new(type, c, err, sizeof err);

    if (rk == NULL)
        die("%s", err);
    return rk;
}

/* ---- produce ---- */
static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *user)
{
    (void)rk;
    (void)user;
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        n_acked++;
    else
        n_failed++;
}

static void send_some(rd_kafka_t *rk, rd_kafka_topic_t *rkt, char *values, int n)
{
    static uint64_t sent;

    for (int i = 0; i < n; i++, sent++) {
        while (rd_kafka_produce(rkt, 0, 0, values + sent % VALUES * value_bytes, value_bytes, NULL, 0, NULL) != 0)
            rd_kafka_poll(rk, 5);
    }
    rd_kafka_poll(rk, 0);
}

static void run_produce(void)
{
    rd_kafka_conf_t *c = conf_new();
    char *values = xmalloc(VALUES * value_bytes);

    rd_kafka_conf_set_dr_msg_cb(c, on_delivery);
    rd_kafka_t *rk = handle_new(RD_KAFKA_PRODUCER, c);
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    for (size_t i = 0; i < VALUES; i++)
        log_line_fill(values + i * value_bytes, value_bytes);
    send_some(rk, rkt, values, 100);     /* connects, makes the topic */
    if (rd_kafka_flush(rk, 20000) != 0 || n_failed > 0)
        die("the first records failed");
    n_acked = 0;
    uint64_t began = now_ns();
    while ((double)(now_ns() - began) < seconds * 1e9)
        send_some(rk, rkt, values, 200);
    rd_kafka_flush(rk, 60000);
    double took = (double)(now_ns() - began) / 1e9;
    if (n_failed > 0)
        die("%llu records failed", (unsigned long long)n_failed);
    figure("produce", (double)n_acked / took, "records/s");
}

/* ---- consume ---- */
struct consumed {
    rd_kafka_t *rk;
    uint64_t n, began_ns, ended_ns; /* ended: 0, not yet at the end */
};

static void on_message(rd_kafka_message_t *m, void *user)
{
    struct consumed *c = user;

    if (c->began_ns == 0)
        c->began_ns = now_ns();
    c->n += m->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        c->ended_ns = now_ns();
        rd_kafka_yield(c->rk);
    }
}

static void run_consume(void)
{
    rd_kafka_conf_t *conf = conf_new();
    struct consumed c = { 0 };

    set(conf, "enable.partition.eof", "true");
    c.rk = handle_new(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(c.rk, topic, NULL);
    if (rd_kafka_consume_start(rkt, 0, RD_KAFKA_OFFSET_BEGINNING) != 0)
        die("consume");
    while (c.ended_ns == 0)
        if (rd_kafka_consume_callback(rkt, 0, 10000, on_message, &c) <= 0)
            die("nothing came");
    figure("consume", (double)c.n * 1e9 / (double)(c.ended_ns - c.began_ns), "records/s");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int o;

    optind = 2;
    while ((o = getopt(argc, argv, "b:t:s:T:X:")) != -1) {
        switch (o) {
        case 'b': broker = optarg; break;
        case 't': topic = optarg; break;
        case 's': value_bytes = (size_t)atoi(optarg); break;
        case 'T': seconds = atof(optarg); break;
        case 'X':
            if (n_settings < ARRAY_LEN(settings))
                settings[n_settings++] = optarg;
            break;
        default: return 2;
        }
    }
    if (strcmp(what, "produce") == 0)
        run_produce();
    else if (strcmp(what, "consume") == 0)
        run_consume();
    else
        die("usage: rdkafka-load produce|consume -b HOST:PORT -t TOPIC ...");
    fflush(stdout);
    _exit(0);                            /* librdkafka takes seconds to say goodbye */
}
