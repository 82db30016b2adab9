// Three queues, one worker: while all have some, it takes six of ten messages from the first, three from the second and one
// from the third, so that nothing is starved. With `strict: true` it would empty them one after another.
import assert from 'node:assert/strict'
import { createClient } from 'redelayed'
import { log, uniqueName, until, url } from './support.js'

const client = createClient({ url })
const express = client.getReliableQueue<string>(uniqueName('express'))
const standard = client.getReliableQueue<string>(uniqueName('standard'))
const bulk = client.getReliableQueue<string>(uniqueName('bulk'))
const EACH = 10
const handled: string[] = []

try {
  for (const [queue, kind] of [
    [bulk, 'bulk'],
    [standard, 'standard'],
    [express, 'express'],
  ] as const) {
    await queue.addMany(Array.from({ length: EACH }, () => ({ payload: kind })))
  }
  log(`${EACH} parcels are waiting in each of three queues`)

  const worker = client.createWorker(
    [{ queue: express, weight: 6 }, { queue: standard, weight: 3 }, bulk],
    (kind) => void handled.push(kind),
  )
  await until(worker, () => worker.counts.completed === 3 * EACH)
  log(`the first ten:  ${handled.slice(0, 10).join(' ')}`)
  log(`the others:     ${handled.slice(10).join(' ')}`)

  const among = (kinds: readonly string[], kind: string): number => kinds.filter((other) => other === kind).length
  const kinds = ['express', 'standard', 'bulk']
  const firstTen = handled.slice(0, 10)
  assert.deepEqual(
    kinds.map((kind) => among(firstTen, kind)),
    [6, 3, 1],
  )
  assert.deepEqual(
    kinds.map((kind) => among(handled, kind)),
    [EACH, EACH, EACH],
  )
} finally {
  await Promise.all([express.clear(), standard.clear(), bulk.clear()])
  await client.shutdown()
}
