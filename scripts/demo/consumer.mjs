// Closes the orders whose message comes: nobody paid them in time. The first consumer takes them one by one, the second
// one many at once. Right after taking, each asks Redis for the time, so that no process's own clock is involved.
import { Redis } from 'ioredis'
import { client, report, runChild, settings, stopped } from './child.mjs'

const orders = /** @type {import('../../src/index.js').BlockingQueue<import('./child.mjs').Order>} */ (
  client.getBlockingQueue(settings.queue)
)
const clock = new Redis(settings.url, { protocol: 2, lazyConnect: true })
clock.on('error', () => {}) // the calls below reject with it

/** @param {import('./child.mjs').Order[]} taken */
async function close(taken) {
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
