// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var franz = map[string]func([]string){
	"produce":    func(a []string) { franzProduce(a[0], a[1]) },
	"consume":    func(a []string) { franzConsume(a[0]) },
	"group":      func(a []string) { franzGroup(a[0], a[1], a[2]) },
	"positions":  func(a []string) { franzPositions(a[0], a[1]) },
	"time":       func(a []string) { franzTime(a[0], a[1:]) },
	"topics":     func([]string) { franzTopics() },
	"settings":   func(a []string) { franzSettings(a[0]) },
	"forget":     func(a []string) { franzForget(a[0]) },
	"idempotent": func(a []string) { franzIdempotent(a[0]) },
	"version":    func([]string) { version("github.com/twmb/franz-go") },
}

var ctx = context.Background()

func franzClient(more ...kgo.Opt) *kgo.Client {
	return got(kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner())}, more...)...))
}

func franzProduce(topic, codec string) {
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	c := franzClient(kgo.ProducerBatchCompression(codecs[codec]))
	defer c.Close()
	var rs []*kgo.Record
	for _, r := range records() {
		k := &kgo.Record{Topic: topic, Key: r.key, Value: r.value}
		for _, h := range r.headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.name, Value: []byte(h.value)})
		}
		rs = append(rs, k)
	}
	must(c.ProduceSync(ctx, rs...).FirstErr())
}

func franzConsume(topic string) {
	c := franzClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	defer c.Close()
	end, _ := got(kadm.NewClient(c).ListEndOffsets(ctx, topic)).Lookup(topic, 0)
	for next := int64(0); next < end.Offset; {
		fs := c.PollFetches(ctx)
		must(fs.Err())
		fs.EachRecord(func(r *kgo.Record) {
			one := record{key: r.Key, value: r.Value}
			for _, h := range r.Headers {
				one.headers = append(one.headers, header{h.Key, string(h.Value)})
			}
			show(r.Offset, one)
			next = r.Offset + 1
		})
	}
}

func franzGroup(group, topic, n string) {
	c := franzClient(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer c.Close()
	var ps []position
	for want := got(strconv.Atoi(n)); len(ps) < want; {
		fs := c.PollFetches(ctx)
		must(fs.Err())
		fs.EachRecord(func(r *kgo.Record) { ps = append(ps, position{r.Partition, r.Offset}) })
	}
	must(c.CommitUncommittedOffsets(ctx))
	showPositions(ps)
}

func franzAdmin() *kadm.Client { return kadm.NewClient(franzClient()) }

func franzPositions(group, topic string) {
	var ps []position
	for p, o := range got(franzAdmin().FetchOffsets(ctx, group))[topic] {
		ps = append(ps, position{p, o.At})
	}
	showPositions(ps)
}

func franzTime(topic string, times []string) {
	a := franzAdmin()
	end, _ := got(a.ListEndOffsets(ctx, topic)).Lookup(topic, 0)
	var found []int64
	for _, t := range times {
		o, _ := got(a.ListOffsetsAfterMilli(ctx, got(strconv.ParseInt(t, 10, 64)), topic)).Lookup(topic, 0)
		if o.Offset == end.Offset { // what it makes of "none"
			o.Offset = -1
		}
		found = append(found, o.Offset)
	}
	showTimes(found)
}

func franzTopics() {
	a := franzAdmin()
	size := func() int { return len(got(a.ListTopics(ctx, "made"))["made"].Partitions) }
	got(a.CreateTopic(ctx, 2, 1, nil, "made"))
	fmt.Println("made", size())
	must(got(a.UpdatePartitions(ctx, 5, "made")).Error())
	fmt.Println("grown", size())
	must(got(a.DeleteTopics(ctx, "made")).Error())
	for got(a.ListTopics(ctx)).Has("made") {
	}
	fmt.Println("gone")
}

func franzSettings(topic string) {
	a := franzAdmin()
	look := func() {
		for _, c := range got(got(a.DescribeTopicConfigs(ctx, topic)).On(topic, nil)).Configs {
			if c.Key == "retention.ms" {
				fmt.Println(c.MaybeValue())
			}
		}
	}
	look()
	must(got(got(a.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("54321")}}, topic)).On(topic, nil)).Err)
	look()
}

func franzForget(group string) {
	a := franzAdmin()
	fmt.Println(got(a.DescribeGroups(ctx, group))[group].State)
	must(got(a.DeleteGroup(ctx, group)).Err)
	if slices.Contains(got(a.ListGroups(ctx)).Groups(), group) {
		panic("the group is still there")
	}
	fmt.Println("gone")
}

func franzIdempotent(topic string) {
	c := franzClient()
	defer c.Close()
	for i := range 3 {
		must(c.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "v%d", i)}).FirstErr())
	}
}
