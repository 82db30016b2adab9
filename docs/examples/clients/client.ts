// Pushes a message with a delay, receives it when it is due, and acknowledges it.
import assert from 'node:assert/strict'
import { DelayClient, ProblemError } from 'redelayed-server/client'

const url = process.env['REDELAYED_SERVICE'] ?? 'http://127.0.0.1:8080'
const key = process.env['REDELAYED_KEY'] ?? ''
const client = new DelayClient({ url, key })
const orders = client.topic<{ order: number }>(process.env['REDELAYED_TOPIC'] ?? 'orders')

const started = performance.now()
const pushed = await orders.push({ id: 'close:7', delay: 500, body: { order: 7 } })
assert.equal(pushed.outcome, 'added')

// under the same id a push can be repeated: what is there stays
assert.equal((await orders.push({ id: 'close:7', delay: 500 })).outcome, 'kept')

const [message] = await orders.receive({ wait: 20_000 })
assert.ok(performance.now() - started > 490, 'it came before it was due')
assert.ok(message)
assert.deepEqual([message.id, message.body, message.attempt], ['close:7', { order: 7 }, 1])

assert.deepEqual(await client.acknowledge([message]), ['ok'])
assert.deepEqual(await client.acknowledge([message]), ['lost'])

const stranger = new DelayClient({ url, key: 'no key' }).topic(orders.name)
await assert.rejects(stranger.push({}), (error) => error instanceof ProblemError && error.code === 'unauthorized')

console.log('pushed, received after its delay, acknowledged')
