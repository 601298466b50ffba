// SPDX-License-Identifier: Apache-2.0
// A member of a consumer group, of kafkajs: group_member.cjs GROUP TOPIC. As group_member.py. Its own assignor is called
// "range", since kafkajs has none that other libraries know.
'use strict'
const fs = require('fs')
const { Kafka, AssignerProtocol, logLevel } = require('kafkajs')
const { MemberAssignment, MemberMetadata } = AssignerProtocol
const [group, topic] = process.argv.slice(2)

const range = ({ cluster }) => ({
  name: 'range',
  version: 0,
  protocol: ({ topics }) => ({ name: 'range', metadata: MemberMetadata.encode({ version: 0, topics, userData: Buffer.alloc(0) }) }),
  assign: async ({ members, topics }) => {
    const ids = members.map(m => m.memberId).sort()
    const parts = cluster.findTopicPartitionMetadata(topics[0]).map(p => p.partitionId).sort((a, b) => a - b)
    const share = i => Math.floor((i * parts.length) / ids.length)
    return ids.map((memberId, i) => ({
      memberId,
      memberAssignment: MemberAssignment.encode({
        version: 0,
        assignment: { [topics[0]]: parts.slice(share(i), share(i + 1)) },
        userData: Buffer.alloc(0),
      }),
    }))
  },
})

const kafka = new Kafka({ clientId: process.env.CLIENT_ID || 'js', brokers: ['127.0.0.1:9092'], logLevel: logLevel.NOTHING, retry: { retries: 50 } })
const consumer = kafka.consumer({ groupId: group, sessionTimeout: 6000, heartbeatInterval: 1000, rebalanceTimeout: 10000,
  partitionAssigners: [range], maxWaitTimeInMs: 300 })
consumer.on(consumer.events.GROUP_JOIN, e =>
  process.stderr.write(`rebalanced: ${JSON.stringify(e.payload.memberAssignment)}\n`))
consumer.on(consumer.events.CRASH, e => process.stderr.write(`crash: ${e.payload.error}\n`))
process.on('SIGTERM', () => consumer.disconnect().finally(() => process.exit(0)))

consumer.connect()
  .then(() => consumer.subscribe({ topics: [topic], fromBeginning: true }))
  .then(() => consumer.run({
    autoCommitThreshold: 50,
    eachMessage: async ({ partition, message }) => fs.writeSync(1, `${partition} ${message.offset} ${message.value}\n`),
  }))
