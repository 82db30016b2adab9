import { createClient } from '../../dist/index.js'
import { codecs } from '../../dist/codecs/index.js'
import { encodeEntry } from '../../dist/codecs/entry.js'
import { EntryIds } from '../../dist/codecs/entry-id.js'
import { queueKeys } from '../../dist/keys.js'
import { commandArgs } from '../../dist/store/script.js'
import * as lua from '../../dist/store/scripts/generated.js'
import { atLeast, medianOf, rounds, type Bench, type Goal, type Scenario } from '../lib/scenario.js'

const VALUE = { id: 'order-4711', customer: 42, total: 1999, currency: 'EUR', note: 'x'.repeat(50) }
const HOUR = 3_600_000
const PIPELINE = 250

interface Floor {
  readonly keys: [string, string]
  /** A call of the script with another entry. */
  args(): [sha: string, keys: number, ...rest: (string | Buffer)[]]
  /** Throws if a call has added nothing. */
  check(): Promise<void>
}

/** The bare commands: the same script and entry bytes, without the library around them. */
async function floorOf(bench: Bench, name: string): Promise<Floor> {
  const { timeouts, order, channel } = queueKeys(name)
  const ids = new EntryIds()
  const payload = codecs.msgpack().encode(VALUE)
  const sha = (await bench.raw.script('LOAD', lua.offer.source)) as string
  let calls = 0
  const args = { channel, nowMs: -1, delayMs: HOUR, ordered: false, undeliveredUntilMs: -1 }
  return {
    keys: [timeouts, order],
    args() {
      const entry = encodeEntry(ids.next(5), payload)
      calls++
      const [keys, ...rest] = commandArgs(lua.offer, { timeouts, order }, { ...args, entry })
      return [sha, Number(keys), ...rest]
    },
    async check() {
      const added = await bench.raw.zcard(timeouts)
      if (added !== calls) throw new Error(`${calls} bare calls have added ${added} messages`)
    },
  }
}

async function timed(count: number, concurrency: number, action: () => Promise<unknown>): Promise<number> {
  let started = 0
  const begin = performance.now()
  const worker = async (): Promise<void> => {
    while (started++ < count) await action()
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return count / ((performance.now() - begin) / 1000)
}

/** Short turns: a machine's speed changes from one second to the next, and both sides should meet the same. */
const TURNS = 20

async function single(bench: Bench, concurrency: number): Promise<Record<string, number>> {
  const count = (concurrency === 1 ? 5_000 : 40_000) / (bench.quick ? 4 : 1)
  const name = `bench-offers-${process.pid}-${Math.random().toString(36).slice(2)}`
  const floor = await floorOf(bench, `${name}-floor`)
  await using client = createClient({ url: bench.url })
  const delayed = client.getDelayedQueue(client.getBlockingQueue(name), { layout: 'compact' })
  const bare = (): Promise<unknown> => bench.raw.evalsha(...floor.args())
  const offer = (): Promise<unknown> => delayed.offer(VALUE, HOUR)
  const rates = { bare: 0, offer: 0 }
  await timed(count / 4, concurrency, bare)
  await timed(count / 4, concurrency, offer)
  for (let turn = 0; turn < TURNS; turn++) {
    rates.bare += (await timed(count / TURNS, concurrency, bare)) / TURNS
    rates.offer += (await timed(count / TURNS, concurrency, offer)) / TURNS
  }
  await floor.check()
  await delayed.delete()
  await bench.raw.unlink(...floor.keys)
  return { 'evalsha/s': rates.bare, 'offer/s': rates.offer, ratio: rates.offer / rates.bare }
}

async function bulk(bench: Bench): Promise<Record<string, number>> {
  const count = bench.quick ? 20_000 : 100_000
  const name = `bench-offers-${process.pid}-${Math.random().toString(36).slice(2)}`
  const floor = await floorOf(bench, `${name}-floor`)
  await using client = createClient({ url: bench.url })
  const delayed = client.getDelayedQueue(client.getBlockingQueue(name), { layout: 'compact' })
  const bare = async (size: number): Promise<void> => {
    let made = 0
    const worker = async (): Promise<void> => {
      while (made < size) {
        const pipeline = bench.raw.pipeline()
        for (let i = 0; i < PIPELINE && made < size; i++, made++) {
          pipeline.evalsha(...floor.args())
        }
        await pipeline.exec()
      }
    }
    await Promise.all([worker(), worker(), worker(), worker()])
  }
  const offerAll = async (size: number): Promise<void> => {
    await delayed.offerAll(Array.from({ length: size }, () => ({ value: VALUE, delay: HOUR })))
  }
  const rates = { bare: 0, offerAll: 0 }
  await bare(count / 4)
  await offerAll(count / 4)
  for (let turn = 0; turn < TURNS; turn++) {
    const t0 = performance.now()
    await bare(count / TURNS)
    const t1 = performance.now()
    await offerAll(count / TURNS)
    rates.bare += count / TURNS ** 2 / ((t1 - t0) / 1000)
    rates.offerAll += count / TURNS ** 2 / ((performance.now() - t1) / 1000)
  }
  await floor.check()
  await delayed.delete()
  await bench.raw.unlink(...floor.keys)
  return { 'evalsha/s': rates.bare, 'offer/s': rates.offerAll, ratio: rates.offerAll / rates.bare }
}

export const offers: Scenario = {
  name: 'offers',
  promise: 'at most once',
  maxRuns: 3,
  description:
    'Messages added per second, beside the same script sent by bare ioredis with ready-made entry bytes, in turns.',
  async run(bench) {
    const rows = await rounds(bench, {
      'one at a time': () => single(bench, 1),
      '64 in flight': () => single(bench, 64),
      '512 in flight': () => single(bench, 512),
      'offerAll, pipelines of 250': () => bulk(bench),
    })
    const goals: Goal[] = ['one at a time', '64 in flight', '512 in flight'].map((row) =>
      atLeast(`offer, ${row}: share of bare evalsha`, medianOf(rows, row, 'ratio'), 0.8, ''),
    )
    const share = medianOf(rows, 'offerAll, pipelines of 250', 'ratio')
    goals.push(atLeast('offerAll: share of bare pipelined evalsha', share, 0.7, ''))
    return { rows, goals }
  },
}
