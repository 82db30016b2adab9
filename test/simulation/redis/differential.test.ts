import { expect } from 'chai'
import fc from 'fast-check'
import type { Redis } from 'ioredis'
import * as generated from '../../../src/store/scripts/generated.js'
import * as reliable from '../../../src/store/reliable-scripts.js'
import { commandArgs, type Script, type ScriptSource } from '../../../src/store/script.js'
import { useRedis } from '../../lua/support.js'
import { Keyspace } from '../../lua/model/keyspace.js'
import type { World } from '../../lua/model/operation.js'
import { operations } from '../../lua/model/operations.js'
import { loadScripts } from '../../lua/model/play.js'
import { randomFrom } from '../../support/random.js'
import { uniqueName } from '../../support/redis.js'
import { Server } from './server.js'
import { RedisError, Status, type Reply } from './store.js'
import { exportsOf } from '../../support/exports.js'

/** These need commands that the simulated server does not have, or are about expiry. */
const LEFT_OUT = ['copy', 'rename', 'expire', 'expireTime', 'persist', 'move']

/** The simulated server answers as the real one, and holds the same, whatever is called. */
describe('The simulated Redis', () => {
  const rig = useRedis()
  before(() => loadScripts(rig.redis))

  it('runs the scripts of delayed queues as Redis does', async () => {
    const drafts = Object.entries(operations)
      .filter(([name]) => !LEFT_OUT.includes(name))
      .map(([, { weight, drafts: arbitrary }]) => ({ weight, arbitrary }))
    const layout = fc.constantFrom('redisson' as const, 'compact' as const, 'mixed' as const)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(...drafts), { maxLength: 40, size: 'max' }), layout, async (moves, kind) => {
        const [one, two] = [await rig.queue(), await rig.queue()]
        const world: World = { redis: new Keyspace(), layout: kind, now: 1_000_000, queue: one.keys, other: two.keys }
        const server = serverWithScripts()
        // the fixture listens to both
        const listener = server.accept({ send: () => undefined, close: () => undefined })
        for (const { channel } of [one.keys, two.keys]) listener.channels.add(channel)
        for (const draft of moves) {
          const step = draft(world)
          if (step === null) continue
          const real: unknown[] = []
          const simulated: unknown[] = []
          for (const [command, args] of step.commands) {
            real.push(await outcomeOf(rig.redis, command, args, [one.keys.leader, two.keys.leader]))
            simulated.push(asClient(server.execute(command, args.map(bytesOf))))
          }
          const answer = step.decode(real.at(-1))
          expect(step.decode(simulated.at(-1)), step.name).to.deep.equal(answer)
          step.apply(world.redis, answer)
        }
        expect(server.store.dump()).to.deep.equal(await dumpOf(rig.redis, [one.keys, two.keys].flatMap(Object.values)))
      }),
      { numRuns: 60 },
    )
  }).timeout(60_000)

  it('runs the scripts of reliable queues as Redis does', async () => {
    const first = Date.now() % 1_000_000_000
    for (let seed = first; seed < first + 60; seed++) {
      const base = uniqueName('simulated')
      const server = serverWithScripts()
      const keys = new Set<string>()
      for (const { source, args } of calls(randomFrom(seed))) {
        const named = Object.fromEntries(source.keys.map((key) => [key, `{${base}}${key}`]))
        for (const key of Object.values(named)) keys.add(key)
        const list: (string | Buffer)[] = ['EVALSHA', source.sha1, ...commandArgs(source, named, args as never)]
        const [command = '', ...rest] = list.map(bytesOf)
        const real: unknown = await rig.redis.callBuffer('EVALSHA', ...list.slice(1)).catch((error: unknown) => error)
        const what = `seed ${seed}: ${source.name} ${JSON.stringify(args)}`
        expect(plain(asClient(server.execute(command, rest))), what).to.deep.equal(plain(real))
      }
      expect(server.store.dump(), `seed ${seed}`).to.deep.equal(await dumpOf(rig.redis, [...keys].sort()))
      await rig.redis.unlink(...keys)
    }
  }).timeout(60_000)
})

/** The replies of the real server. The keys stay, as at the simulated one, whose clock stands still. */
async function outcomeOf(redis: Redis, command: string, args: readonly (string | Buffer)[], keys: readonly string[]) {
  const pipeline = redis.pipeline().callBuffer(command, ...args)
  for (const key of keys) pipeline.persist(key)
  const [error, reply] = (await pipeline.exec())?.[0] ?? []
  return error ?? reply
}

function serverWithScripts(): Server {
  const startedAt = Date.now()
  const server = new Server({ now: () => startedAt, after: () => () => undefined })
  for (const { source } of Object.values(exportsOf(generated))) server.execute('SCRIPT', ['LOAD', bytesOf(source)])
  return server
}

interface Call {
  readonly source: ScriptSource
  readonly args: Readonly<Record<string, unknown>>
}

/** Few ids and payloads, so that they meet; leases and members as a client has them from a poll. */
function* calls(random: () => number): Generator<Call> {
  const below = (count: number): number => Math.floor(random() * count)
  const pick = <T>(...from: readonly T[]): T => from[below(from.length)] as T
  const call = (script: Script<ScriptSource, unknown>, args: Record<string, unknown>): Call => ({
    source: script.source,
    args: { nowMs: now, channel: 'unsubscribed', deadChannel: 'unsubscribed', client: 'me', ...args },
  })
  let now = 1_000_000
  const pairs = (): string[] =>
    Array.from({ length: below(3) }, () => [`${below(3)}${pick('a', 'b', 'c')}`, `${1 + below(3)} t`]).flat()
  for (let n = 0; n < 40; n++) {
    now += pick(0, 1, 10, 100)
    const kind = below(6)
    if (kind < 2) {
      const items = Array.from({ length: 1 + below(3) }, () => [
        pick('a', 'b', 'c', 'd'),
        `${below(3)},${pick('', '0', '50', '@1000020')},${pick('', '30')},${pick('', '1')},0,${pick('', '20')},${pick('i1', 'i2')}`,
        pick('p', 'q', ''),
      ]).flat()
      yield call(reliable.add, {
        existing: pick('keep', 'replace', 'postpone'),
        sentAgoMs: pick(-1, 0, 60),
        durable: pick(true, false),
        batch: pick('', '', 'b'),
        items,
      })
    } else if (kind < 4) {
      const args = {
        budgetUs: 1_000_000,
        count: below(4),
        visibilityMs: pick(-1, 20, 100),
        token: 't',
        idleMs: 1,
        announce: false,
        beforehand: pick(true, false),
        repeatBytes: 1_000_000,
      }
      yield call(reliable.poll, args)
    } else if (kind === 4) {
      yield pick(
        call(reliable.acknowledge as never, { withResults: false, handled: pairs() }),
        call(reliable.extend as never, { visibilityMs: pick(-1, 50), unbegun: pick(0, 0, 1), handled: pairs() }),
      )
    } else {
      const how = pick('failed', 'rejected', 'released')
      yield call(reliable.negativeAcknowledge, {
        how,
        delayMs: pick(0, 30),
        reason: '"it failed"',
        handled: pairs(),
      })
    }
  }
}

function bytesOf(arg: string | Buffer): string {
  return (typeof arg === 'string' ? Buffer.from(arg) : arg).toString('latin1')
}

/** As ioredis gives it. */
function asClient(reply: Reply): unknown {
  if (typeof reply === 'string') return Buffer.from(reply, 'latin1')
  if (reply instanceof Status) return Buffer.from(reply.text)
  if (reply instanceof RedisError || reply === null || typeof reply === 'number') return reply
  return reply.map(asClient)
}

/** Errors by their first words: what follows names the script's line. */
function plain(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return reply.toString('latin1')
  if (Array.isArray(reply)) return reply.map(plain)
  if (reply instanceof Error) return reply.message.split(' script: ')[0]
  return reply
}

async function dumpOf(redis: Redis, keys: readonly string[]): Promise<Record<string, unknown>> {
  const dump: Record<string, unknown> = {}
  for (const key of [...keys].sort()) {
    const type = await redis.type(key)
    const text = (bytes: Buffer): string => bytes.toString('latin1')
    if (type === 'string') dump[key] = text((await redis.getBuffer(key)) ?? Buffer.alloc(0))
    if (type === 'list') dump[key] = (await redis.lrangeBuffer(key, 0, -1)).map(text)
    if (type === 'zset') dump[key] = (await redis.zrangeBuffer(key, '0', '-1', 'WITHSCORES')).map(text)
    if (type === 'hash') {
      const flat = (await redis.callBuffer('HGETALL', key)) as Buffer[]
      const fields: [string, string][] = []
      for (let at = 0; at < flat.length; at += 2) fields.push([text(flat[at]!), text(flat[at + 1]!)])
      dump[key] = Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1)))
    }
  }
  return dump
}
