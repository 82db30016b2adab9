// Closes the orders whose message comes: those were not paid in time. The first consumer takes them one by one, the second
// one many at once. Right after taking, each asks Redis for the time, so that no process's own clock is involved.
import { Redis } from 'ioredis'
import type { BlockingQueue } from '../../src/index.js'
import { client, report, runChild, settings, stopped, type Order } from './child.js'

const orders = client.getBlockingQueue(settings.queue) as BlockingQueue<Order>
const clock = new Redis(settings.url, { protocol: 2, lazyConnect: true })
clock.on('error', () => {}) // the calls below reject with it

async function close(taken: Order[]) {
  const [seconds = 0, micros = 0] = await clock.time()
  report({ type: 'taken', consumer: settings.number, orders: taken, at: seconds * 1000 + micros / 1000 })
}

async function oneByOne() {
  for await (const order of orders.elements({ signal: stopped })) await close([order])
}

async function manyAtOnce() {
  while (!stopped.aborted) await close(await orders.takeMany(50, { signal: stopped }))
}

await runChild(async () => {
  try {
    await Promise.all([clock.connect(), orders.size()])
    report({ type: 'ready' })
    await (settings.number === 1 ? oneByOne() : manyAtOnce())
  } finally {
    clock.disconnect()
  }
})
