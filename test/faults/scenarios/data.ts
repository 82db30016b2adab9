import { expect } from 'chai'
import { eventually } from '../../support/events.js'
import { SWEEP_MS, type Bench } from '../bench/bench.js'
import type { StandaloneStage } from '../bench/stage.js'
import type { Scenario } from './scenario.js'

const CROWD = 50_000
const QUEUES = 10_000

/** Header of an entry that is in the order list: an id of 8 bytes, and how many bytes follow. */
function header(length: number): Buffer {
  const bytes = Buffer.alloc(17)
  bytes[0] = 8
  bytes.writeUInt32LE(length, 9)
  return bytes
}

/** Nothing of this can be read: cut off, too long, of another program, or another codec's. */
const MALFORMED: readonly Buffer[] = [
  Buffer.alloc(0),
  Buffer.from('plain text of another program'),
  Buffer.from([0]),
  Buffer.from([8]),
  Buffer.from([255, 1, 2, 3]),
  header(5),
  Buffer.concat([header(1_000_000), Buffer.from('{}')]),
  Buffer.concat([header(1), Buffer.from('{}')]),
  Buffer.alloc(64, 0xff),
  Buffer.from('{"a":1}'),
]
const UNDECODABLE = Buffer.concat([header(9), Buffer.from('{not json')])

/** Faults in the data: much of it, or wrong data. */
export const data: readonly Scenario<StandaloneStage>[] = [
  {
    name: `${CROWD} messages due in the same millisecond`,
    alone: true,
    bench: { takes: 200 },
    async fault(bench) {
      const [producer] = bench.workers.producer
      await producer?.order({ kind: 'burst', count: CROWD, delay: 4_000 })
      await nothingDue(bench, 30_000)
    },
    also: (result) => void expect(result.delivered).to.be.greaterThan(CROWD),
  },
  {
    name: 'the destination holds another type, and is repaired',
    async fault(bench) {
      const redis = await bench.raw()
      const { destination } = bench.keys
      const aside = `${destination}:aside`
      // what waits to be taken must not be lost by the fault itself
      await redis.eval(
        "if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[2]) end redis.call('SET', KEYS[1], 'x')",
        2,
        destination,
        aside,
      )
      await bench.pause(2 * SWEEP_MS)
      await redis.eval(
        "redis.call('DEL', KEYS[1]) if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('RENAME', KEYS[2], KEYS[1]) end",
        2,
        destination,
        aside,
      )
    },
    also: (result) => void expect(result.errors).to.have.property('ERR_WRONG_TYPE'),
  },
  {
    name: 'poison of every shape between good messages',
    allowed: { quarantined: 2 * MALFORMED.length + 2 },
    async fault(bench) {
      const redis = await bench.raw()
      const { timeouts, order } = bench.keys
      const now = Date.now()
      for (const [i, entry] of MALFORMED.entries()) {
        // together, as a script would: set aside between the two it would leave itself in the list
        await redis
          .multi()
          .zadd(timeouts, now + 150 * i, entry)
          .rpush(order, entry)
          .exec()
        await bench.pause(0, 100)
      }
      for (const [i, entry] of MALFORMED.entries())
        await redis.zadd(timeouts, -1 - i, Buffer.concat([entry, Buffer.from('n')]))
      await redis.zadd(timeouts, now, UNDECODABLE)
      await redis.rpush(bench.keys.destination, 'not json either')
      await nothingDue(bench, 10_000)
    },
  },
  {
    name: `${QUEUES} queues in one client`,
    alone: true,
    async fault(bench) {
      const [producer] = bench.workers.producer
      await producer?.order({ kind: 'queues', count: QUEUES, prefix: `${bench.queue}:`, delay: 8_000 })
    },
    also: (result) => void expect(result.delivered).to.be.greaterThan(QUEUES),
  },
]

async function nothingDue(bench: Bench, withinMs: number): Promise<void> {
  const redis = await bench.raw()
  const due = (): Promise<number> => redis.zcount(bench.keys.timeouts, '-inf', Date.now() - SWEEP_MS)
  const ready = (): Promise<number> => redis.llen(bench.keys.destination)
  await eventually(async () => expect((await due()) + (await ready())).to.be.below(50), withinMs, 50)
}
