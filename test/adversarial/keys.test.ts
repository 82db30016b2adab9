/**
 * Hostile data in every key of every kind of queue: an attacker with nothing but a connection to Redis must not stop, kill or fool a
 * process. The keys come from src/keys.ts, so that a new one without a row here fails.
 */
import { expect } from 'chai'
import { Redis } from 'ioredis'
import { codecs, createClient, RedelayedError, type RedelayedClient } from '../../src/index.js'
import { deadLettersOf, queueKeys, reliableKeys } from '../../src/keys.js'
import { shardOfKey } from '../../src/sharding/shard-of-key.js'
import { LostTime } from '../support/lag.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'

type Type = 'string' | 'zset' | 'list' | 'hash' | 'stream' | 'channel'
interface Row {
  readonly type: Type
  /** Without it nothing can be delivered: while it is of another type, calls reject with a typed error. */
  readonly isCore?: true
}

const DELAYED: Readonly<Record<string, Row>> = {
  destination: { type: 'list', isCore: true },
  timeouts: { type: 'zset', isCore: true },
  order: { type: 'list', isCore: true }, // of another type, it refuses offers; what was offered is delivered
  channel: { type: 'channel' },
  quarantine: { type: 'list' },
  leader: { type: 'string' },
  wheel: { type: 'zset' },
  horizon: { type: 'string' },
}
const WHEEL = { ...DELAYED, wheel: { type: 'zset', isCore: true } } as const

const RELIABLE: Readonly<Record<string, Row>> = {
  messages: { type: 'hash', isCore: true },
  deliveries: { type: 'hash', isCore: true },
  failures: { type: 'hash' },
  config: { type: 'hash', isCore: true }, // with defaults in place of the settings a paused queue would hand out messages
  once: { type: 'zset' },
  inFlight: { type: 'zset', isCore: true },
  repeats: { type: 'hash' },
  ticks: { type: 'zset' },
  due: { type: 'zset' },
  changes: { type: 'stream' },
  completed: { type: 'hash' },
  completedAt: { type: 'zset' },
  rate: { type: 'string' },
  groupOrder: { type: 'zset' },
  groupTurns: { type: 'zset' },
  groupWakes: { type: 'zset' },
  groups: { type: 'hash' },
  groupPauses: { type: 'zset' },
  taskPauses: { type: 'zset' },
  batches: { type: 'hash' },
  batchesAt: { type: 'zset' },
  ends: { type: 'channel' },
  batchEnds: { type: 'channel' },
  channel: { type: 'channel' },
}

const MIB = 1_048_576
const SCORES = ['-inf', '-1e308', '-1', '0', '1', '1e308', 'inf']
const NUMBERS = ['nan', '-inf', 'inf', '-1', '0', '1e308', '9'.repeat(400), '', '\0', '1 \n2']
const lying = (bytes: number) =>
  Buffer.concat([Buffer.from([8]), Buffer.alloc(8), Buffer.alloc(8, bytes), Buffer.from('x')])
const JUNK: readonly (string | Buffer)[] = [
  '',
  '\0',
  Buffer.from([0xff, 0xfe, 0x80]),
  Buffer.alloc(MIB, 'x'),
  Buffer.alloc(MIB, '\n'),
  ...[0, 1, 0x7f, 0xff].map(lying),
  ...NUMBERS,
  '5 {"every":1,"missed":"all","priority":0,"payload":{"length":100000000}}',
  '1,1,99999999',
]
const ANNOUNCED = [...NUMBERS, ...SCORES, '9007199254740991', '9007199254740992', '1'.repeat(MIB), 'x'.repeat(MIB)]
const FIELDS = [
  'visibilityTimeout',
  'deliveryLimit',
  'timeToLive',
  'delay',
  'maxSize',
  'maxMessageBytes',
  'deadLetters',
  'keepCompleted',
  'keepCompletedFor',
  'keepDeadLetters',
  'keepDeadLettersFor',
  'concurrency',
  'rateLimit',
  'groupConcurrency',
  'groupRateLimit',
  'grouped',
  'batched',
  '',
  'x',
]
const OTHERS: Readonly<Record<string, (redis: Redis, key: string) => Promise<unknown>>> = {
  string: (redis, key) => redis.set(key, 'in the way'),
  list: (redis, key) => redis.rpush(key, 'in the way'),
  set: (redis, key) => redis.sadd(key, 'in the way'),
  zset: (redis, key) => redis.zadd(key, 5, 'in the way'),
  hash: (redis, key) => redis.hset(key, 'in', 'the way'),
  stream: (redis, key) => redis.xadd(key, '*', 'in', 'the way'),
}

/** Values of the right type that only another program writes, and 5,000 of them. */
async function fill(redis: Redis, key: string, type: Type): Promise<void> {
  const pipeline = redis.pipeline()
  const many = Array.from({ length: 5_000 }, (_, n) => `bad${n}`)
  if (type === 'channel') for (const text of ANNOUNCED) pipeline.publish(key, text)
  if (type === 'string') pipeline.set(key, `9007199254740991 ${'x'.repeat(MIB)}`)
  if (type === 'list') pipeline.rpush(key, ...JUNK, ...many)
  if (type === 'stream') {
    for (const text of [...JUNK, ...many]) pipeline.xadd(key, '*', 'changes', text).xadd(key, '*', text, text, 'x', 'y')
  }
  if (type === 'zset') {
    for (const [n, member] of JUNK.entries()) pipeline.zadd(key, SCORES[n % SCORES.length]!, member)
    pipeline.zadd(key, ...many.flatMap((member, n) => [n, member]))
  }
  if (type === 'hash') {
    for (const [n, value] of JUNK.entries()) pipeline.hset(key, FIELDS[n % FIELDS.length]!, value, value, 'x')
    for (const field of many) pipeline.hset(key, field, '9'.repeat(20))
  }
  for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
}

/** Makes the scripts meet the values under these names. */
async function pointAt(redis: Redis, keys: ReturnType<typeof reliableKeys>, part: string): Promise<void> {
  const names = FIELDS.flatMap((name) => [5, name])
  if (part === 'changes') await redis.hset(keys.config, part, 'r,1000,,1,epoch')
  if (part === 'repeats') await redis.zadd(keys.ticks, ...names)
  if (part === 'inFlight') await redis.hset(keys.config, 'concurrency', '3', 'groupConcurrency', '1')
  if (part === 'rate') await redis.hset(keys.config, 'rateLimit', '1000/1000')
  if (part.startsWith('group')) await redis.hset(keys.config, 'grouped', '1')
  if (part.startsWith('batches')) await redis.hset(keys.config, 'batched', '1')
  if (part.startsWith('completed')) await redis.hset(keys.config, 'keepCompleted', '3')
  if (['messages', 'deliveries', 'failures'].includes(part)) await redis.zadd(keys.due[0]!, ...names)
  if (part === 'deliveries') for (const name of FIELDS) await redis.hset(keys.messages, name, '\0x')
}

const KINDS = [
  { kind: 'delayed, layout: redisson', layout: 'redisson', rows: DELAYED, keysOf: queueKeys },
  { kind: 'delayed, layout: compact', layout: 'compact', rows: DELAYED, keysOf: queueKeys },
  { kind: 'delayed, layout: wheel', layout: 'wheel', rows: WHEEL, keysOf: queueKeys },
  { kind: 'reliable', layout: undefined, rows: RELIABLE, keysOf: reliableKeys },
  { kind: 'the dead letters of a reliable queue', layout: undefined, rows: RELIABLE, keysOf: deadKeys },
] as const

function deadKeys(name: string) {
  return reliableKeys(deadLettersOf(name))
}

describe('hostile data in the keys of queues', function () {
  this.timeout(30_000)
  let server: RedisServer
  let redis: Redis
  // while this process cannot run, the server often cannot either, and the clock of its scripts goes on
  const lost = new LostTime()
  before(async function () {
    requireServerBin(this)
    server = await startRedis({ args: ['--slowlog-log-slower-than', '100000', '--slowlog-max-len', '1000'] })
    redis = new Redis(server.url, { protocol: 2 })
  })
  after(async () => {
    await redis?.quit()
    await server?.stop()
  })

  /** One client that is attacked, and that has to end in time, with no script that kept the server. */
  async function attacked(
    action: (client: RedelayedClient, errors: Error[]) => Promise<void>,
    mostMs = 100,
  ): Promise<void> {
    const client = createClient({ url: server.url, sweepInterval: 500 })
    const errors: Error[] = []
    client.on('error', (error) => errors.push(error))
    await redis.call('SLOWLOG', 'RESET')
    const lostBefore = lost.ms
    try {
      await action(client, errors)
    } finally {
      const startedAt = performance.now()
      await client.shutdown()
      expect(performance.now() - startedAt, 'shutdown').to.be.lessThan(5_000)
    }
    for (const error of errors) expect(error).to.be.instanceOf(RedelayedError)
    const slow = (await redis.call('SLOWLOG', 'GET', '10')) as [number, number, number, string[]][]
    const ofScripts = slow.filter(([, , , [command]]) => /^eval/i.test(command ?? '')).map(([, , us]) => us / 1_000)
    await lost.measured()
    expect(ofScripts.filter((ms) => ms > mostMs + lost.ms - lostBefore)).to.deep.equal([])
  }

  /** A message there and back: resolves when it has come, rejects with the error of a call. */
  async function roundTrip(
    client: RedelayedClient,
    name: string,
    layout: 'redisson' | 'compact' | 'wheel' | undefined,
    group?: string,
  ): Promise<void> {
    const value = `good ${Math.random()}`
    const until = performance.now() + 15_000
    const seen = async (take: () => Promise<unknown>): Promise<void> => {
      while (performance.now() < until) if ((await take()) === value) return
      throw new Error(`${name}: the good message did not come`)
    }
    const string = { codec: codecs.string() }
    if (layout === undefined) {
      const queue = client.getReliableQueue<string>(name, string)
      await queue.add(value, group === undefined ? { priority: 9 } : { group })
      return seen(async () => {
        const message = await queue.poll({ timeout: 500 })
        await message?.acknowledge()
        return message?.payload
      })
    }
    const queue = client.getBlockingQueue<string>(name, string)
    await client.getDelayedQueue(queue, { layout: layout }).offer(value, 20)
    return seen(() => queue.poll(500))
  }

  it('shows entries that another program wrote into the quarantine unchanged', async () => {
    await attacked(async (client) => {
      const name = uniqueName('quarantine')
      const odd = ['', 'x', 'malformed', 'malformed x y', `malformed ${'9'.repeat(16)} x`, `${'r'.repeat(100_000)} 5 x`]
      await redis.rpush(queueKeys(name).quarantine, ...odd, 'malformed 5 a b')
      const entries = await client.getQueue(name).readQuarantine()
      const bytes = [...odd, 'a b'].map((text) => Buffer.from(text))
      expect(entries.map((entry) => entry.bytes)).to.deep.equal(bytes)
      const named = entries.map(({ reason, at }) => `${reason} ${at.toISOString()}`)
      expect(new Set(named.slice(0, -1))).to.deep.equal(new Set(['unknown 1970-01-01T00:00:00.000Z']))
      expect(named.at(-1)).to.equal('malformed 1970-01-01T00:00:00.005Z')
    })
  })

  describe('one shard of a sharded queue', () => {
    for (const [part, { type }] of Object.entries(DELAYED)) {
      if (type === 'channel') continue
      it(`${part} of another type or filled by another program: the other shards deliver`, async () => {
        await attacked(async (client) => {
          const others = Object.keys(OTHERS).filter((other) => other !== type)
          await Promise.all(
            [...others, type].map(async (other) => {
              const sharded = client.getShardedDelayedQueue<string>(uniqueName('sharded'), {
                shards: 3,
                codec: codecs.string(),
              })
              const [hostile = '', ...good] = sharded.names
              const key = queueKeys(hostile)[part as keyof ReturnType<typeof queueKeys>]
              await (other === type ? fill(redis, key, type) : OTHERS[other]?.(redis, key))
              const offers = await Promise.allSettled(['a', 'b', 'c'].map((value) => sharded.offer(value, 20)))
              const failed = offers.filter((offer) => offer.status === 'rejected')
              for (const { reason } of failed) expect(reason).to.be.instanceOf(RedelayedError)
              expect(failed.length).to.be.lessThan(2)
              const until = performance.now() + 10_000
              const lengths = () => Promise.all(good.map((name) => redis.llen(name)))
              while ((await lengths()).some((length) => length === 0)) {
                if (performance.now() > until) throw new Error(`${part} ${other}: a good shard did not deliver`)
                await new Promise(setImmediate)
              }
              await redis.unlink(key)
            }),
          )
        })
      })
    }
  })

  describe('one shard of a sharded reliable queue', () => {
    for (const [part, { type }] of Object.entries(RELIABLE)) {
      if (type === 'channel') continue
      it(`${part} of another type or filled by another program: the other shards deliver`, async () => {
        await attacked(async (client) => {
          const others = Object.keys(OTHERS).filter((other) => other !== type)
          await Promise.all(
            [...others, type].map(async (other) => {
              const queue = client.getShardedReliableQueue<string>(uniqueName('sharded'), {
                shards: 3,
                codec: codecs.string(),
              })
              const [hostile = ''] = queue.names
              const key = [reliableKeys(hostile)[part as keyof ReturnType<typeof reliableKeys>]].flat()[0] ?? ''
              await (other === type ? fill(redis, key, type) : OTHERS[other]?.(redis, key))
              const ids = Array.from({ length: 30 }, (_, n) => `good ${n}`)
              const added = await Promise.allSettled(ids.map((id) => queue.add(id, { id })))
              for (const result of added) {
                if (result.status === 'rejected') expect(result.reason).to.be.instanceOf(RedelayedError)
              }
              const missing = new Set(ids.filter((id) => shardOfKey(id, 3) !== 0))
              const until = performance.now() + 15_000
              while (missing.size > 0) {
                if (performance.now() > until) throw new Error(`${part} ${other}: ${[...missing].join()} did not come`)
                for (const message of await queue.pollMany({ count: 50, timeout: 200 })) {
                  if (await message.acknowledge().catch(() => false)) missing.delete(message.id)
                }
              }
              await redis.unlink(key)
            }),
          )
        }, 1_000) // what it shows is the delivery; six queues at once make a busy machine slow
      })
    }
  })

  describe('messages with a group', () => {
    for (const part of ['groupTurns', 'groupWakes', 'groups'] as const) {
      it(`${part} of another type: what is added comes when it is gone`, async () => {
        await attacked(async (client, errors) => {
          const name = uniqueName('grouped')
          await redis.set(reliableKeys(name)[part], 'in the way')
          const queue = client.getReliableQueue<string>(name, { codec: codecs.string() })
          await queue.add('good', { group: 'tenant' })
          expect(await queue.poll({ timeout: 50 })).to.equal(null)
          expect(errors.map(({ message }) => message).join()).to.include('the groups')
          await redis.unlink(reliableKeys(name)[part])
          const message = await queue.poll({ timeout: 15_000 })
          expect(message?.payload).to.equal('good')
          expect(await message?.acknowledge()).to.equal(true)
          expect(await queue.size()).to.equal(0)
        })
      })
    }
  })

  for (const { kind, layout, rows, keysOf } of KINDS) {
    describe(kind, () => {
      it('every key has a row', () => {
        expect(Object.keys(keysOf('x'))).to.have.members(Object.keys(rows))
      })

      for (const [part, { type, isCore }] of Object.entries(rows)) {
        const keyOf = (name: string): readonly string[] =>
          [(keysOf(name) as unknown as Record<string, string | readonly string[]>)[part] ?? ''].flat()

        it(`${part}: filled with data that only another program writes`, async () => {
          await attacked(
            async (client) => {
              const [name, beside] = [uniqueName('hostile'), uniqueName('beside')]
              await client.getReliableQueue(name).size() // connected before
              if (layout !== undefined) client.getDelayedQueue(client.getQueue(name), { layout: layout })
              for (const key of keyOf(name)) await fill(redis, key, type)
              if (keysOf === reliableKeys) await pointAt(redis, reliableKeys(name), part)
              await Promise.all([roundTrip(client, name, layout), roundTrip(client, beside, layout)])
              if (layout === undefined) await roundTrip(client, name, layout, 'tenant')
              await redis.unlink(...keyOf(name))
            },
            part === 'due' ? 200 : undefined,
          ) // ten keys at once
        })

        if (type === 'channel') continue
        it(`${part}: of every other type`, async () => {
          await attacked(async (client, errors) => {
            const cases = Object.keys(OTHERS).filter((other) => other !== type)
            await Promise.all(
              cases.map(async (other) => {
                const name = uniqueName(`hostile-${other}`)
                // the schedule of the good message stays what it is
                const keys = keyOf(name).slice(0, 9)
                for (const key of keys) await OTHERS[other]?.(redis, key)
                const thrown = await roundTrip(client, name, layout).catch((error: unknown) => error)
                const mayFail = isCore === true && keysOf !== deadKeys
                if (!mayFail) expect(thrown, `${part} ${other}`).to.equal(undefined)
                else if (thrown !== undefined) expect(thrown).to.be.instanceOf(RedelayedError)
                else if (!(layout !== 'redisson' && part === 'order')) {
                  expect(errors.length, `${part} ${other}: neither an error nor an event`).to.be.greaterThan(0)
                }
                await redis.unlink(...keys)
                await roundTrip(client, name, layout)
              }),
            )
          })
        })
      }
    })
  }
})
