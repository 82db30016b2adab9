// Measures one figure of one built checkout, for compare-commits.ts: `compare-child.ts <folder> <figure> <redis url>` prints it as
// JSON. It uses only what both checkouts have, an old one by its old names.
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Redis } from 'ioredis'
import { OPERATIONS, spentOn, WAYS } from '../benchmarks/lib/operations.js'
import type { DelayedQueue, DelayedQueueOptions, createClient as CreateClient, Worker } from '../src/index.js'

const [, , folder = '', figure = '', url = ''] = process.argv
interface Entry {
  readonly default: string
  readonly import?: Entry
}
const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { exports: { '.': Entry } }
const entry = exports['.'].import?.default ?? exports['.'].default
const { createClient } = (await import(pathToFileURL(join(folder, entry)).href)) as {
  createClient: typeof CreateClient
}
const declared = readFileSync(join(folder, 'dist/queues/delayed-queue.d.ts'), 'utf8')
const COMPACT = (declared.includes('order?:') ? { order: 'none' } : { layout: 'compact' }) as DelayedQueueOptions

const PAYLOAD = 'x'.repeat(100)
const HOUR_MS = 3_600_000
const raw = new Redis(url)
const client = createClient({ url })
const queue = client.getBlockingQueue('compared')
const delayed = (): DelayedQueue => client.getDelayedQueue(queue, COMPACT)
const now = (): number => performance.timeOrigin + performance.now()
const perSecond = async (count: number, action: () => Promise<unknown>): Promise<number> => {
  const begin = performance.now()
  await action()
  return count / ((performance.now() - begin) / 1_000)
}
const offerMany = async (count: number, delayOf: () => number): Promise<void> => {
  for (let done = 0; done < count; done += 5_000) {
    const size = Math.min(5_000, count - done)
    await delayed().offerAll(Array.from({ length: size }, () => ({ value: PAYLOAD, delay: delayOf() })))
  }
}

const takesPerSecond = async (
  by: typeof client,
  size: number,
  { consumers, batch }: { consumers: number; batch: number },
): Promise<number> => {
  for (let done = 0; done < size; done += 5_000) await queue.addAll(Array.from({ length: 5_000 }, () => PAYLOAD))
  const target = by.getBlockingQueue('compared')
  let left = size
  const consumer = async (): Promise<void> => {
    while (left > 0) {
      const taken = await target.takeMany(Math.min(batch, left), { timeout: 20 })
      left -= taken.length
    }
  }
  return perSecond(size, () => Promise.all(Array.from({ length: consumers }, consumer)))
}

const FIGURES: Readonly<Record<string, () => Promise<Record<string, number>>>> = {
  /** Of 1,000 messages a second at random moments, in microseconds. */
  async lateness() {
    const target = client.getDelayedQueue(queue, COMPACT)
    await queue.poll()
    const [begin, count] = [Date.now() + 1_000, 4_000]
    const late: number[] = []
    const abort = new AbortController()
    const consumer = async (): Promise<never> => {
      for (;;) {
        const due = Number(await queue.take({ signal: abort.signal }))
        late.push((now() - due) * 1_000)
        if (late.length === count) abort.abort()
      }
    }
    const consumers = Promise.allSettled(Array.from({ length: 4 }, consumer))
    const dues = Array.from({ length: count }, () => begin + Math.floor(Math.random() * 4_000))
    await target.offerAll(dues.map((due) => ({ value: due, date: new Date(due) })))
    await consumers
    late.sort((a, b) => a - b)
    return { 'lateness p50 us': late[count >> 1] ?? NaN, 'lateness p99 us': late[Math.floor(count * 0.99)] ?? NaN }
  },
  async offers() {
    await offerMany(50_000, () => HOUR_MS)
    return { 'bulk offers a second': await perSecond(200_000, () => offerMany(200_000, () => HOUR_MS)) }
  },
  /** 64 callers, each with one message at a time. */
  async adding() {
    const reliable = client.getReliableQueue('compared-reliable')
    const target = delayed()
    const ways = {
      'single offers a second, 64 callers': () => target.offer(PAYLOAD, HOUR_MS),
      'single reliable adds a second, 64 callers': () => reliable.add(PAYLOAD, { delay: HOUR_MS }),
    }
    const rates: Record<string, number> = {}
    for (const [what, add] of Object.entries(ways)) {
      const run = (count: number): Promise<unknown> => {
        let left = count
        const caller = async (): Promise<void> => {
          while (left-- > 0) await add()
        }
        return Promise.all(Array.from({ length: 64 }, caller))
      }
      await run(20_000)
      rates[what] = await perSecond(100_000, () => run(100_000))
    }
    return rates
  },
  async takes() {
    await takesPerSecond(client, 100_000, { consumers: 4, batch: 1_000 })
    // half a second each: the median of several, because a busy neighbour halves one
    const rates: number[] = []
    while (rates.length < 7) rates.push(await takesPerSecond(client, 600_000, { consumers: 4, batch: 1_000 }))
    return { 'taken in batches a second': rates.sort((a, b) => a - b)[3] ?? NaN }
  },
  /** Through a proxy in a process of its own that holds every piece back for 1 ms each way. */
  async network() {
    const proxy = fork(join(import.meta.dirname, '../benchmarks/lib/proxy-process.ts'), [new URL(url).port, '1'])
    const [port] = (await once(proxy, 'message')) as [number]
    const far = createClient({ url: `redis://127.0.0.1:${port}` })
    const rates: Record<string, number> = {}
    for (const [what, consumers, batch] of [
      ['4 takes of 100', 4, 100],
      ['1,000 takes of one', 1_000, 1],
    ] as const) {
      await takesPerSecond(far, 5_000, { consumers, batch })
      rates[`taken a second, 1 ms of network, ${what} at once`] = await takesPerSecond(far, 40_000, {
        consumers,
        batch,
      })
    }
    await far.shutdown()
    proxy.disconnect()
    return rates
  },
  async workers() {
    const reliable = client.getReliableQueue('compared-reliable')
    let rate = NaN
    for (const size of [20_000, 300_000]) {
      for (let done = 0; done < size; done += 5_000) {
        await reliable.addMany(Array.from({ length: 5_000 }, () => ({ payload: PAYLOAD })))
      }
      let worker: Worker | undefined
      const handled = (): Promise<void> =>
        new Promise((resolve) => {
          let left = size
          const handle = (): void => {
            if (--left === 0) resolve()
          }
          worker = client.createWorker(reliable, handle, { concurrency: 100, prefetch: 100 })
        })
      rate = await perSecond(size, handled)
      await worker?.close()
    }
    return { 'handled by a worker a second': rate }
  },
  /** Each operation of a reliable queue with its defaults, so without a change stream, alone. */
  async reliable() {
    const rates: Record<string, number> = {}
    // of the checkout that is measured, not of this one
    const connect = createClient as unknown as Parameters<typeof spentOn>[0]['connect']
    for (const [way, what] of [
      [WAYS.clients, '16 clients, one a call'],
      [WAYS.batches, '100 a call'],
    ] as const) {
      const count = way.piece * way.pieces
      const { [what]: spent } = await spentOn({ connect, url, way, queues: { [what]: undefined } })
      for (const operation of OPERATIONS) {
        rates[`${operation} of a reliable queue a second, ${what}`] = count / (spent?.[operation].seconds ?? NaN)
        rates[`server's CPU for each ${operation}, ns, ${what}`] =
          ((spent?.[operation].cpuSeconds ?? NaN) / count) * 1e9
      }
    }
    return rates
  },
  /** A new process that does nothing but load the main entry by the name of the package. */
  async load() {
    return {
      'load by import, us of CPU': loadOf(['--input-type=module'], "await import('redelayed')"),
      'load by require, us of CPU': loadOf(['--input-type=commonjs'], "require('redelayed')"),
      'load of nothing, us of CPU': loadOf([], '0'),
    }
  },
  /** Overdue ones are made by lower scores, so that the transfer alone is measured; and what one pending message costs. */
  async transfers() {
    const dataset = async (): Promise<number> => Number(/used_memory_dataset:(\d+)/.exec(await raw.info('memory'))?.[1])
    const [pending, overdue] = [1_000_000, 100_000]
    const before = await dataset()
    await offerMany(pending, () => HOUR_MS + Math.floor(Math.random() * 9 * HOUR_MS))
    const bytes = ((await dataset()) - before) / pending
    await client.shutdown()
    const key = 'redisson_delay_queue_timeout:{compared}'
    for (let done = 0; done < overdue; done += 5_000) {
      const members = await raw.zrangeBuffer(key, String(done), String(done + 4_999))
      await raw.zadd(key, ...members.flatMap((member, index) => [String(done + index), member]))
    }
    const second = createClient({ url })
    const rate = await new Promise<number>((resolve, reject) => {
      let [left, began] = [overdue, 0]
      second.on('error', reject)
      second.on('subscribed', () => (began ||= performance.now()))
      second.on('transferred', ({ count }) => {
        if ((left -= count) <= 0) resolve(overdue / ((performance.now() - began) / 1_000))
      })
      second.getDelayedQueue(second.getBlockingQueue('compared'), COMPACT)
    })
    await second.shutdown()
    return { 'transfers a second, 1,000,000 pending': rate, 'bytes per pending message': bytes }
  },
}

/** What a new process uses in all that runs this code in the folder: the median of some, in microseconds of CPU time. */
function loadOf(flags: readonly string[], code: string): number {
  const script = `${code}; const { user, system } = process.cpuUsage(); process.stdout.write(String(user + system)); process.exit()`
  const used = Array.from({ length: 15 }, () =>
    Number(execFileSync(process.execPath, [...flags, '-e', script], { cwd: folder, encoding: 'utf8' })),
  )
  return used.sort((a, b) => a - b)[used.length >> 1] ?? NaN
}

const result = await FIGURES[figure]?.()
await client.shutdown()
raw.disconnect()
console.log(JSON.stringify(result))
process.exit()
