// SPDX-License-Identifier: Apache-2.0
// The client program of lib.sh, with @platformatic/kafka, which speaks only newer versions of the APIs.
'use strict'
const fs = require('fs')
const path = require('path')
const { Admin, Consumer, Producer, stringSerializers } = require('@platformatic/kafka')

const conf = { clientId: 'compat', bootstrapBrokers: ['127.0.0.1:9092'], retries: 3 }

function records(topic) {
  const r = [
    { key: 'k1', value: 'v1', headers: new Map([['h', '1']]) },
    { value: 'v2' },
    { key: '', value: 'v3' },
    { key: 'k4', value: '' },
    { key: 'k5' },
  ]
  for (let i = 5; i < 505; i++) r.push({ key: 'b', value: `bulk ${i} of five hundred, alike enough to shrink` })
  return r.map(x => ({ ...x, topic, partition: 0 }))
}

const text = b => (b === null || b === undefined ? '~' : `<${b.toString()}>`)
const list = h => [...(h || [])].map(([k, v]) => `${k}=${v.toString()}`).join(',') || '-'

async function produce(topic, codec) {
  const p = new Producer({ ...conf, serializers: stringSerializers, idempotent: true })
  await p.send({ messages: records(topic), acks: -1, compression: codec })
  await p.close()
}

// The first n records as a member of a group; f gets each.
async function read(groupId, topic, n, f) {
  const c = new Consumer({ ...conf, groupId })
  const stream = await c.consume({ topics: [topic], autocommit: false, mode: 'committed', fallbackMode: 'earliest', sessionTimeout: 10000,
    heartbeatInterval: 1000, maxWaitTime: 500 })
  let got = 0
  for await (const m of stream) {
    f(m)
    await m.commit()
    if (++got === n) break
  }
  await c.close(true)
}

async function consume(topic) {
  const c = new Consumer({ ...conf, groupId: 'unused' })
  const end = Number((await c.listOffsets({ topics: [topic] })).get(topic)[0])
  await c.close(true)
  await read(`read-${topic}`, topic, end, m => console.log(Number(m.offset), text(m.key), text(m.value), list(m.headers)))
}

async function group(groupId, topic, n) {
  const got = []
  await read(groupId, topic, Number(n), m => got.push([m.partition, Number(m.offset)]))
  got.sort((a, b) => a[0] - b[0] || a[1] - b[1]).forEach(x => console.log(...x))
}

async function administrate(f) {
  const a = new Admin(conf)
  await f(a)
  await a.close()
}

const positions = (groupId, topic) => administrate(async a => {
  const [{ topics }] = await a.listConsumerGroupOffsets({ groups: [groupId] })
  const { partitions } = topics.find(t => t.name === topic)
  partitions.sort((x, y) => x.partitionIndex - y.partitionIndex).forEach(x => console.log(x.partitionIndex, Number(x.committedOffset)))
})

async function time(topic, ...ms) {
  const c = new Consumer({ ...conf, groupId: 'unused' })
  const found = []
  for (const t of ms) found.push((await c.listOffsets({ topics: [topic], timestamp: BigInt(t) })).get(topic)[0])
  console.log(found.map(o => (o < 0n ? 'end' : o)).join(' '))
  await c.close(true)
}

const topics = () => administrate(async a => {
  const name = 'made'
  const size = async () => (await a.metadata({ topics: [name], forceUpdate: true })).topics.get(name).partitionsCount
  await a.createTopics({ topics: [name], partitions: 2, replicas: 1 })
  console.log('made', await size())
  await a.createPartitions({ topics: [{ name, count: 5, assignments: null }] })
  console.log('grown', await size())
  await a.deleteTopics({ topics: [name] })
  while ((await a.listTopics()).includes(name));
  console.log('gone')
})

const settings = resourceName => administrate(async a => {
  const look = async () => {
    const [{ configs }] = await a.describeConfigs({ resources: [{ resourceType: 2, resourceName, configurationKeys: ['retention.ms'] }],
      includeSynonyms: false, includeDocumentation: false })
    console.log(configs[0].value)
  }
  await look()
  await a.incrementalAlterConfigs({ resources: [{ resourceType: 2, resourceName, configs: [{ name: 'retention.ms', configOperation: 0, value: '54321' }] }],
    validateOnly: false })
  await look()
})

const forget = groupId => administrate(async a => {
  const { state } = (await a.describeGroups({ groups: [groupId] })).get(groupId)
  console.log(state[0] + state.slice(1).toLowerCase())
  await a.deleteGroups({ groups: [groupId] })
  if ((await a.listGroups()).has(groupId)) throw new Error('the group is still there')
  console.log('gone')
})

async function idempotent(topic) {
  const p = new Producer({ ...conf, serializers: stringSerializers, idempotent: true })
  for (let i = 0; i < 3; i++) await p.send({ acks: -1, messages: [{ topic, partition: 0, value: `v${i}` }] })
  await p.close()
}

async function version() {
  const { version } = JSON.parse(fs.readFileSync(path.join(process.env.NODE_PATH, '@platformatic/kafka/package.json')))
  console.log('@platformatic/kafka', version)
}

const [verb, ...args] = process.argv.slice(2)
const verbs = { produce, consume, group, positions, time, topics, settings, forget, idempotent, version }
const lacking = e => e.code === 'PLT_KFK_UNSUPPORTED_COMPRESSION' || (e.errors || []).concat(e.cause || []).some(lacking) // zstd needs node 22
verbs[verb](...args).then(() => process.exit(0), e => { console.error(e); process.exit(lacking(e) ? 78 : 1) })
