// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"

	"github.com/IBM/sarama"
)

var saramaVerbs = map[string]func([]string){
	"produce":    func(a []string) { saramaProduce(a[0], a[1]) },
	"consume":    func(a []string) { saramaConsume(a[0]) },
	"group":      func(a []string) { saramaGroup(a[0], a[1], a[2]) },
	"positions":  func(a []string) { saramaPositions(a[0], a[1]) },
	"time":       func(a []string) { saramaTime(a[0], a[1:]) },
	"topics":     func([]string) { saramaTopics() },
	"settings":   func(a []string) { saramaSettings(a[0]) },
	"forget":     func(a []string) { saramaForget(a[0]) },
	"idempotent": func(a []string) { saramaIdempotent(a[0]) },
	"version":    func([]string) { version("github.com/IBM/sarama") },
}

func saramaConfig() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	return c
}

func encoder(b []byte) sarama.Encoder {
	if b == nil {
		return nil
	}
	return sarama.ByteEncoder(b)
}

func saramaProduce(topic, codec string) {
	conf := saramaConfig()
	must(conf.Producer.Compression.UnmarshalText([]byte(codec)))
	p := got(sarama.NewSyncProducer([]string{broker}, conf))
	defer p.Close()
	var ms []*sarama.ProducerMessage
	for _, r := range records() {
		m := &sarama.ProducerMessage{Topic: topic, Key: encoder(r.key), Value: encoder(r.value)}
		for _, h := range r.headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.name), Value: []byte(h.value)})
		}
		ms = append(ms, m)
	}
	must(p.SendMessages(ms))
}

func saramaConsume(topic string) {
	client := got(sarama.NewClient([]string{broker}, saramaConfig()))
	defer client.Close()
	end := got(client.GetOffset(topic, 0, sarama.OffsetNewest))
	part := got(got(sarama.NewConsumerFromClient(client)).ConsumePartition(topic, 0, sarama.OffsetOldest))
	for m := range part.Messages() {
		one := record{key: m.Key, value: m.Value}
		for _, h := range m.Headers {
			one.headers = append(one.headers, header{string(h.Key), string(h.Value)})
		}
		show(m.Offset, one)
		if m.Offset == end-1 {
			return
		}
	}
}

type reader struct {
	records chan *sarama.ConsumerMessage
	done    chan bool
}

func (*reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (r *reader) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case m := <-claim.Messages():
			if m == nil {
				return nil
			}
			r.records <- m
			s.MarkMessage(m, "")
			s.Commit()
		case <-r.done:
			return nil
		case <-s.Context().Done():
			return nil
		}
	}
}

func saramaGroup(group, topic, n string) {
	g := got(sarama.NewConsumerGroup([]string{broker}, group, saramaConfig()))
	r := &reader{make(chan *sarama.ConsumerMessage), make(chan bool)}
	ended := make(chan error)
	go func() { ended <- g.Consume(ctx, []string{topic}, r) }()
	var ps []position
	for want := got(strconv.Atoi(n)); len(ps) < want; {
		m := <-r.records
		ps = append(ps, position{m.Partition, m.Offset})
	}
	close(r.done)
	must(<-ended)
	must(g.Close())
	showPositions(ps)
}

func saramaAdmin() sarama.ClusterAdmin {
	return got(sarama.NewClusterAdmin([]string{broker}, saramaConfig()))
}

func saramaPositions(group, topic string) {
	var ps []position
	for p, b := range got(saramaAdmin().ListConsumerGroupOffsets(group, map[string][]int32{topic: {0, 1}})).Blocks[topic] {
		ps = append(ps, position{p, b.Offset})
	}
	showPositions(ps)
}

func saramaTime(topic string, times []string) {
	client := got(sarama.NewClient([]string{broker}, saramaConfig()))
	defer client.Close()
	var found []int64
	for _, t := range times {
		found = append(found, got(client.GetOffset(topic, 0, got(strconv.ParseInt(t, 10, 64)))))
	}
	showTimes(found)
}

func saramaTopics() {
	a := saramaAdmin()
	size := func() int { return len(got(a.DescribeTopics([]string{"made"}))[0].Partitions) }
	must(a.CreateTopic("made", &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false))
	fmt.Println("made", size())
	must(a.CreatePartitions("made", 5, nil, false))
	fmt.Println("grown", size())
	must(a.DeleteTopic("made"))
	for {
		if _, there := got(a.ListTopics())["made"]; !there {
			break
		}
	}
	fmt.Println("gone")
}

func saramaSettings(topic string) {
	a := saramaAdmin()
	look := func() {
		for _, e := range got(a.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}})) {
			fmt.Println(e.Value)
		}
	}
	look()
	value := "54321"
	must(a.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
		"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}}, false))
	look()
}

func saramaForget(group string) {
	a := saramaAdmin()
	fmt.Println(got(a.DescribeConsumerGroups([]string{group}))[0].State)
	must(a.DeleteConsumerGroup(group))
	if _, there := got(a.ListConsumerGroups())[group]; there {
		panic("the group is still there")
	}
	fmt.Println("gone")
}

func saramaIdempotent(topic string) {
	conf := saramaConfig()
	conf.Producer.Idempotent = true
	conf.Net.MaxOpenRequests = 1
	p := got(sarama.NewSyncProducer([]string{broker}, conf))
	defer p.Close()
	for i := range 3 {
		_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(fmt.Sprint("v", i))})
		must(err)
	}
}
