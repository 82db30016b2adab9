import { createClient, type RedelayedClient } from '../../dist/index.js'
import { queueKeys } from '../../dist/keys.js'
import { TransferStore } from '../../dist/store/transfer-store.js'
import { atLeast, atMost, medianOf, rounds, type Bench, type Goal, type Scenario } from '../lib/scenario.js'

const PAYLOAD = 'x'.repeat(110)
const OVERDUE = 50_000
/** For comparing backlogs: half of the small one, so many times as make up the same number of messages. */
const PORTION = 5_000

/** Fills a queue through the library: `pending` messages due in 1 to 10 hours, in random order of their due times. */
async function fill(
  bench: Bench,
  name: string,
  layout: 'redisson' | 'compact',
  pending: number,
  due: 'mixed' | 'in-order',
): Promise<void> {
  await using client = createClient({ url: bench.url })
  const delayed = client.getDelayedQueue(client.getBlockingQueue<string>(name), { layout })
  const hour = 3_600_000
  for (let done = 0; done < pending; done += 50_000) {
    bench.progress(`${layout}: ${done.toLocaleString('en-US')} of ${pending.toLocaleString('en-US')} pending`)
    const items = Array.from({ length: Math.min(50_000, pending - done) }, (_, index) => ({
      value: PAYLOAD,
      delay: due === 'mixed' ? hour + Math.floor(Math.random() * 9 * hour) : hour + done + index,
    }))
    await delayed.offerAll(items)
  }
}

/** Makes the first `count` by due time overdue, by lowering their scores: the same members in the same order list. */
async function makeOverdue(bench: Bench, name: string, count: number): Promise<void> {
  const { timeouts } = queueKeys(name)
  for (let done = 0; done < count; done += 5_000) {
    const members = await bench.raw.zrangeBuffer(timeouts, String(done), String(Math.min(done + 5_000, count) - 1))
    await bench.raw.zadd(timeouts, ...members.flatMap((member, index) => [String(done + index), member]))
  }
}

/** Lets a client deliver everything overdue; its consumers stay away, so that only the transfer is measured. */
async function drain(bench: Bench, name: string, count: number): Promise<Record<string, number>> {
  await bench.raw.config('RESETSTAT')
  await bench.raw.config('SET', 'slowlog-log-slower-than', '500')
  await bench.raw.slowlog('RESET')
  const client: RedelayedClient = createClient({ url: bench.url })
  const seconds = await new Promise<number>((resolve, reject) => {
    let left = count
    let started = 0
    client.on('error', reject)
    client.on('subscribed', () => (started = performance.now()))
    client.on('transferred', (event) => {
      left -= event.count
      if (left <= 0) resolve((performance.now() - started) / 1000)
    })
    client.getDelayedQueue(client.getBlockingQueue(name))
  })
  await client.shutdown()
  await bench.raw.unlink(name)
  return { 'transfers/s': count / seconds, 'longest script ms': await longestScript(bench) }
}

/**
 * Moves as many as `OVERDUE`, in portions that are replaced, so that a small backlog can give as many as a large one. In
 * turns with the floor: the same three commands in a script that does nothing else.
 */
async function drainInPortions(bench: Bench, pending: number): Promise<Record<string, number>> {
  const name = `bench-transfers-${process.pid}-${Math.random().toString(36).slice(2)}`
  await fill(bench, name, 'compact', pending, 'mixed')
  const seconds = { library: 0, floor: 0 }
  let longest = 0
  for (let moved = 0; moved < OVERDUE; moved += PORTION) {
    await makeOverdue(bench, name, PORTION)
    seconds.floor += await floorDrain(bench, name, PORTION)
    await fill(bench, name, 'compact', PORTION, 'mixed')
    await makeOverdue(bench, name, PORTION)
    const figures = await drain(bench, name, PORTION)
    seconds.library += PORTION / (figures['transfers/s'] ?? NaN)
    longest = Math.max(longest, figures['longest script ms'] ?? NaN)
    await fill(bench, name, 'compact', PORTION, 'mixed')
  }
  await bench.raw.unlink(queueKeys(name).timeouts)
  return {
    'transfers/s': OVERDUE / seconds.library,
    'bare commands/s': OVERDUE / seconds.floor,
    'longest script ms': longest,
  }
}

const FLOOR = `
local due = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 640)
if #due > 0 then
  redis.call('RPUSH', KEYS[2], unpack(due))
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, #due - 1)
end
return #due`

async function floorDrain(bench: Bench, name: string, count: number): Promise<number> {
  const sha = (await bench.raw.script('LOAD', FLOOR)) as string
  const started = performance.now()
  for (let left = count; left > 0;) {
    left -= (await bench.raw.evalsha(sha, 2, queueKeys(name).timeouts, name, Date.now())) as number
  }
  const seconds = (performance.now() - started) / 1000
  await bench.raw.unlink(name)
  return seconds
}

/** The same work by the bare script in a loop, without the library. */
async function bareDrain(bench: Bench, name: string, count: number): Promise<Record<string, number>> {
  const keys = queueKeys(name)
  const sender = {
    call: (command: string, args: readonly (string | Buffer)[]) => bench.raw.callBuffer(command, ...args),
    pipeline: () => Promise.reject(new Error('a transfer is one call')),
  }
  const store = new TransferStore(sender, keys)
  const started = performance.now()
  for (let left = count; left > 0;) {
    const { moved } = await store.transfer({
      limit: 10_000,
      client: 'bench',
      announce: false,
      renew: false,
      buckets: false,
    })
    left -= moved
  }
  const seconds = (performance.now() - started) / 1000
  await bench.raw.unlink(name)
  return { 'transfers/s': count / seconds }
}

async function longestScript(bench: Bench): Promise<number> {
  const log = (await bench.raw.slowlog('GET', 128)) as [number, number, number, string[]][]
  const scripts = log.filter(([, , , [command]]) => /^evalsha?$/i.test(command ?? ''))
  return Math.max(0, ...scripts.map(([, , micros]) => micros / 1000))
}

async function measure(
  bench: Bench,
  options: {
    layout: 'redisson' | 'compact'
    pending: number
    due: 'mixed' | 'in-order'
    overdue: number
    bare?: boolean
  },
): Promise<Record<string, number>> {
  const name = `bench-transfers-${process.pid}-${Math.random().toString(36).slice(2)}`
  await fill(bench, name, options.layout, options.pending, options.due)
  await makeOverdue(bench, name, options.overdue)
  const figures = await (options.bare === true ? bareDrain : drain)(bench, name, options.overdue)
  const { timeouts, order } = queueKeys(name)
  await bench.raw.unlink(timeouts, order)
  return figures
}

export const transfersCompact: Scenario = {
  name: 'transfers-compact',
  promise: 'at most once',
  maxRuns: 3,
  description: `How fast one client moves overdue messages of mixed delays with \`layout: 'compact'\`, ${PORTION.toLocaleString('en-US')} at a time, by the size of the backlog.`,
  async run(bench) {
    const large = bench.quick ? 100_000 : 1_000_000
    const small = 'at 10,000 pending'
    const big = `at ${large.toLocaleString('en-US')} pending`
    const rows = await rounds(bench, {
      [small]: () => drainInPortions(bench, 10_000),
      ...(!bench.quick && { 'at 100,000 pending': () => drainInPortions(bench, 100_000) }),
      [big]: () => drainInPortions(bench, large),
    })
    const shareOf = (figure: string): number => medianOf(rows, big, figure) / medianOf(rows, small, figure)
    const goals: Goal[] = [
      atLeast(`transfers/s ${big} as a share of those ${small}`, shareOf('transfers/s'), 0.8, ''),
      atMost(
        'longest script',
        Math.max(...[small, big].map((row) => medianOf(rows, row, 'longest script ms'))),
        5,
        'ms',
      ),
      atLeast(
        `transfers/s ${big} as a share of the bare commands`,
        medianOf(rows, big, 'transfers/s') / medianOf(rows, big, 'bare commands/s'),
        0.6,
        '',
      ),
    ]
    const notes = [
      `The bare commands do nothing but move: at ${large.toLocaleString('en-US')} pending they reach ${shareOf('bare commands/s').toFixed(2)} of their rate at 10,000, the library ${shareOf('transfers/s').toFixed(2)} of its own. The server looks up and frees memory all over a large heap; no script can change that.`,
    ]
    return { rows, goals, notes, plot: { bars: 'transfers/s', unit: 'transfers a second' } }
  },
}

export const transfersRedisson: Scenario = {
  name: 'transfers-redisson',
  promise: 'at most once',
  maxRuns: 3,
  description: `How fast ${OVERDUE.toLocaleString('en-US')} overdue messages move with \`layout: 'redisson'\`, 100,000 pending; in offer order, and of mixed delays.`,
  async run(bench) {
    const pending = 100_000
    const mixed = bench.quick ? 500 : 2_000
    const rows = await rounds(bench, {
      'in offer order, the bare script in a loop': () =>
        measure(bench, { layout: 'redisson', pending, due: 'in-order', overdue: OVERDUE, bare: true }),
      'in offer order, the library': () =>
        measure(bench, { layout: 'redisson', pending, due: 'in-order', overdue: OVERDUE }),
      'mixed delays, the library': () => measure(bench, { layout: 'redisson', pending, due: 'mixed', overdue: mixed }),
    })
    const library = medianOf(rows, 'in offer order, the library', 'transfers/s')
    const bare = medianOf(rows, 'in offer order, the bare script in a loop', 'transfers/s')
    const goals: Goal[] = [
      atLeast('in offer order, transfers/s', library, 100_000, ''),
      atLeast('in offer order, share of the bare script', library / bare, 0.75, ''),
    ]
    return {
      rows,
      goals,
      notes: [
        "Mixed delays cost one LREM, O(pending), for each message: this is Redisson's layout, and why `layout: 'compact'` exists.",
      ],
    }
  },
}
