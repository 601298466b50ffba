// SPDX-License-Identifier: Apache-2.0
// The client program of lib.sh, with @confluentinc/kafka-javascript.
'use strict'
const RdKafka = require('@confluentinc/kafka-javascript')
const { Kafka, logLevel } = RdKafka.KafkaJS

const brokers = ['127.0.0.1:9092']

function records() {
  const r = [
    { key: 'k1', value: 'v1', headers: { h: ['1', '2'] } },
    { key: null, value: 'v2' },
    { key: '', value: 'v3' },
    { key: 'k4', value: '' },
    { key: 'k5', value: null },
  ]
  for (let i = 5; i < 505; i++) r.push({ key: 'b', value: `bulk ${i} of five hundred, alike enough to shrink` })
  return r.map(x => ({ ...x, partition: 0 }))
}

const text = b => (b === null || b === undefined ? '~' : `<${b.toString()}>`)
const list = h =>
  Object.entries(h || {}).flatMap(([k, v]) => [].concat(v).map(one => `${k}=${one.toString()}`)).join(',') || '-'

async function produce(kafka, topic, codec) {
  const p = kafka.producer({ kafkaJS: { idempotent: true }, 'compression.type': codec, 'linger.ms': 50 })
  await p.connect()
  await p.send({ topic, messages: records() })
  await p.disconnect()
}

// The first n records as a member of a group; f gets each.
async function read(kafka, groupId, topic, n, f) {
  const c = kafka.consumer({ kafkaJS: { groupId, fromBeginning: true, autoCommit: false } })
  await c.connect()
  await c.subscribe({ topics: [topic] })
  const next = new Map()
  await new Promise(resolve => {
    let got = 0
    c.run({
      eachMessage: async ({ partition, message }) => {
        if (got >= n) return
        f(partition, message)
        next.set(partition, Number(message.offset) + 1)
        if (++got === n) resolve()
      },
    })
  })
  await c.commitOffsets([...next].map(([partition, offset]) => ({ topic, partition, offset: String(offset) })))
  await c.disconnect()
}

async function consume(kafka, topic) {
  const a = await administrator(kafka)
  const end = Number((await a.fetchTopicOffsets(topic))[0].high)
  await a.disconnect()
  await read(kafka, `read-${topic}`, topic, end, (_, m) => console.log(Number(m.offset), text(m.key), text(m.value), list(m.headers)))
}

async function group(kafka, groupId, topic, n) {
  const got = []
  await read(kafka, groupId, topic, Number(n), (partition, m) => got.push([partition, Number(m.offset)]))
  got.sort((a, b) => a[0] - b[0] || a[1] - b[1]).forEach(x => console.log(...x))
}

async function positions(kafka, groupId, topic) {
  const a = await administrator(kafka)
  const [{ partitions }] = await a.fetchOffsets({ groupId, topics: [topic] })
  partitions.sort((x, y) => x.partition - y.partition).forEach(x => console.log(x.partition, Number(x.offset)))
  await a.disconnect()
}

async function time(kafka, topic, ...ms) {
  const a = await administrator(kafka)
  const end = (await a.fetchTopicOffsets(topic)).find(p => p.partition === 0).high
  const found = []
  for (const t of ms) found.push((await a.fetchTopicOffsetsByTimestamp(topic, Number(t))).find(p => p.partition === 0).offset)
  console.log(found.map(o => (o === end || o === '-1' ? 'end' : o)).join(' '))
  await a.disconnect()
}

async function administrator(kafka) {
  const a = kafka.admin()
  await a.connect()
  return a
}

async function topics(kafka) {
  const a = await administrator(kafka)
  const topic = 'made'
  const size = async () => (await a.fetchTopicMetadata({ topics: [topic] }))[0].partitions.length
  await a.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] })
  console.log('made', await size())
  const plain = RdKafka.AdminClient.create({ 'bootstrap.servers': brokers[0] })
  await new Promise((resolve, reject) => plain.createPartitions(topic, 5, e => (e ? reject(e) : resolve())))
  plain.disconnect()
  console.log('grown', await size())
  await a.deleteTopics({ topics: [topic] })
  while ((await a.listTopics()).includes(topic));
  console.log('gone')
  await a.disconnect()
}

async function settings() {
  console.log('it has no such call')
  process.exit(78)
}

async function forget(kafka, groupId) {
  const a = await administrator(kafka)
  const { state } = (await a.describeGroups([groupId])).groups[0]
  console.log(state === RdKafka.ConsumerGroupStates.EMPTY ? 'Empty' : state)
  await a.deleteGroups([groupId])
  if ((await a.listGroups()).groups.some(g => g.groupId === groupId)) throw new Error('the group is still there')
  console.log('gone')
  await a.disconnect()
}

async function idempotent(kafka, topic) {
  const p = kafka.producer({ kafkaJS: { idempotent: true } })
  await p.connect()
  for (let i = 0; i < 3; i++) await p.send({ topic, messages: [{ value: `v${i}`, partition: 0 }] })
  await p.disconnect()
}

async function main() {
  const [verb, ...args] = process.argv.slice(2)
  if (verb === 'version') return console.log('@confluentinc/kafka-javascript', require('@confluentinc/kafka-javascript/package.json').version)
  const kafka = new Kafka({ kafkaJS: { clientId: 'compat', brokers, logLevel: logLevel.NOTHING } })
  await { produce, consume, group, positions, time, topics, settings, forget, idempotent }[verb](kafka, ...args)
}
main().then(() => process.exit(0), e => { console.error(e); process.exit(1) })
