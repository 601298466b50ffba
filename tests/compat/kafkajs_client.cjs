// SPDX-License-Identifier: Apache-2.0
// produce TOPIC CODEC | consume TOPIC, with kafkajs; see lib.sh.
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

async function main() {
  const [verb, topic, codec] = process.argv.slice(2)
  await addCodecs()
  const kafka = new Kafka({ clientId: 'compat', brokers: ['127.0.0.1:9092'], logLevel: logLevel.NOTHING, retry: { retries: 3 } })
  await (verb === 'produce' ? produce : consume)(kafka, topic, codec)
}
main().then(() => process.exit(0), e => { console.error(e); process.exit(1) })
