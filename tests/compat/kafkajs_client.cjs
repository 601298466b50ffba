// SPDX-License-Identifier: Apache-2.0
// The client program of lib.sh, with kafkajs.
'use strict'
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')

const types = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 }

async function addCodecs() {
  CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
  const lz4 = require('lz4js')
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: async encoder => Buffer.from(lz4.compress(encoder.buffer)),
    decompress: async buffer => Buffer.from(lz4.decompress(buffer)),
  })
  const zstd = await new Promise(resolve => require('zstd-codec').ZstdCodec.run(z => resolve(new z.Streaming())))
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async encoder => Buffer.from(zstd.compress(encoder.buffer)),
    decompress: async buffer => Buffer.from(zstd.decompress(buffer)),
  })
}

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

const text = b => (b === null ? '~' : `<${b.toString()}>`)
const list = h =>
  Object.entries(h || {}).flatMap(([k, v]) => [].concat(v).map(one => `${k}=${one.toString()}`)).join(',') || '-'

async function produce(kafka, topic, codec) {
  const p = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await p.connect()
  const all = records()
  await p.send({ topic, acks: -1, compression: types[codec], messages: all.slice(0, 5) })
  await p.send({ topic, acks: -1, compression: types[codec], messages: all.slice(5) })
  await p.disconnect()
}

async function consume(kafka, topic) {
  const admin = kafka.admin()
  await admin.connect()
  const end = Number((await admin.fetchTopicOffsets(topic))[0].high)
  await admin.disconnect()
  const c = kafka.consumer({ groupId: `read-${topic}`, sessionTimeout: 10000, rebalanceTimeout: 3000 })
  await c.connect()
  await c.subscribe({ topics: [topic], fromBeginning: true })
  let finished, crashed
  const done = new Promise((resolve, reject) => ([finished, crashed] = [resolve, reject]))
  c.on(c.events.CRASH, e => crashed(e.payload.error))
  await c.run({
    autoCommit: false,
    eachMessage: async ({ message: m }) => {
      console.log(m.offset, text(m.key), text(m.value), list(m.headers))
      if (Number(m.offset) === end - 1) finished()
    },
  })
  await done
  await c.disconnect()
}

async function group(kafka, groupId, topic, n) {
  const c = kafka.consumer({ groupId, sessionTimeout: 10000, rebalanceTimeout: 3000 })
  await c.connect()
  await c.subscribe({ topics: [topic], fromBeginning: true })
  const got = []
  await new Promise((resolve, reject) => {
    c.on(c.events.CRASH, e => reject(e.payload.error))
    c.run({
      eachMessage: async ({ partition, message }) => {
        if (got.push([partition, Number(message.offset)]) >= Number(n)) resolve()
      },
    })
  })
  await c.stop()
  await c.disconnect()
  got.sort((a, b) => a[0] - b[0] || a[1] - b[1]).forEach(x => console.log(...x))
}

async function positions(kafka, groupId, topic) {
  const a = await administrator(kafka)
  const [{ partitions }] = await a.fetchOffsets({ groupId, topics: [topic] })
  partitions.sort((x, y) => x.partition - y.partition).forEach(x => console.log(x.partition, x.offset))
  await a.disconnect()
}

async function time(kafka, topic, ...ms) {
  const a = await administrator(kafka)
  const end = (await a.fetchTopicOffsets(topic)).find(p => p.partition === 0).high
  const found = []
  for (const t of ms) found.push((await a.fetchTopicOffsetsByTimestamp(topic, Number(t))).find(p => p.partition === 0).offset)
  console.log(found.map(o => (o === end ? 'end' : o)).join(' '))
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
  const size = async () => (await a.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length
  await a.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] })
  console.log('made', await size())
  await a.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
  console.log('grown', await size())
  await a.deleteTopics({ topics: [topic] })
  while ((await a.listTopics()).includes(topic));
  console.log('gone')
  await a.disconnect()
}

async function settings(kafka, name) {
  const a = await administrator(kafka)
  const look = async () => {
    const { resources } = await a.describeConfigs({ includeSynonyms: false, resources: [{ type: 2, name, configNames: ['retention.ms'] }] })
    console.log(resources[0].configEntries[0].configValue)
  }
  await look()
  await a.alterConfigs({ validateOnly: false, resources: [{ type: 2, name, configEntries: [{ name: 'retention.ms', value: '54321' }] }] })
  await look()
  await a.disconnect()
}

async function forget(kafka, groupId) {
  const a = await administrator(kafka)
  console.log((await a.describeGroups([groupId])).groups[0].state)
  await a.deleteGroups([groupId])
  if ((await a.listGroups()).groups.some(g => g.groupId === groupId)) throw new Error('the group is still there')
  console.log('gone')
  await a.disconnect()
}

async function idempotent(kafka, topic) {
  const p = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await p.connect()
  for (let i = 0; i < 3; i++) await p.send({ topic, acks: -1, messages: [{ value: `v${i}`, partition: 0 }] })
  await p.disconnect()
}

async function main() {
  const [verb, ...args] = process.argv.slice(2)
  if (verb === 'version') return console.log('kafkajs', require('kafkajs/package.json').version)
  await addCodecs()
  const kafka = new Kafka({ clientId: 'compat', brokers: ['127.0.0.1:9092'], logLevel: logLevel.NOTHING, retry: { retries: 3 } })
  await { produce, consume, group, positions, time, topics, settings, forget, idempotent }[verb](kafka, ...args)
}
main().then(() => process.exit(0), e => { console.error(e); process.exit(1) })
