/** Every place of the public API that takes a time span takes milliseconds and a text with its unit. */
import { expect } from 'chai'
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { InvalidArgumentError, OfferAllError, createClient, dueOf, retryIn, type Duration } from '../../src/index.js'
import { deadLettersOf, listKeys, queueKeys, reliableKeys } from '../../src/keys.js'
import { createTestKit } from '../../src/testing/index.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, onCleanup, redisNow } from './fixtures.js'

const SRC = fileURLToPath(new URL('../../src', import.meta.url))

type Objects = ReturnType<typeof make>
type Place = [where: string, what: string, call: (given: Duration, objects: Objects) => unknown, good?: Duration]

/** An object of each kind, on names of their own. */
function make() {
  const client = makeClient()
  const names = ['list', 'deque', 'mails', 'sharded', 'sharded-mails'].map((kind) => uniqueName(kind)) as [
    ...[string, string, string, string, string],
  ]
  const [list, deque, mails, sharded, shardedMails] = names
  onCleanup(async () => {
    const all = [...names, ...[sharded, shardedMails].flatMap((name) => [`{0:${name}}`, `{1:${name}}`])]
    const keys = all.flatMap((name) => [queueKeys(name), reliableKeys(name), reliableKeys(deadLettersOf(name))])
    await rawClient().unlink(...keys.flatMap(listKeys))
  })
  const queue = client.getBlockingQueue<string>(list)
  return {
    client,
    queue,
    delayed: client.getDelayedQueue(queue, { deliver: false }),
    deque: client.getBlockingDeque<string>(deque),
    mails: client.getReliableQueue<string>(mails),
    sharded: client.getShardedDelayedQueue<string>(sharded, { shards: 2, deliver: false }),
    shardedMails: client.getShardedReliableQueue<string>(shardedMails, { shards: 2 }),
  }
}

const backoff = (policy: unknown, { client, mails }: Objects): Promise<void> =>
  client.createWorker(mails, () => undefined, { backoff: policy as Duration[] }).close()

const ofWorker = (name: string): Place => [
  `the worker's ${name}`,
  name,
  (given, { client, mails }) => client.createWorker(mails, () => undefined, { [name]: given }).close(),
  '5s',
]
const ofClient = (name: string): Place => [
  `the client's ${name}`,
  name,
  (given) => createClient({ url: redisUrl(), [name]: given }).shutdown(),
  '5s',
]
const ofConfig = (name: string): Place => [
  `the configuration's ${name}`,
  `config.${name}`,
  (given, { mails }) => mails.setConfig({ [name]: given }),
]

const places: Place[] = [
  ['offer', 'delay', (given, { delayed }) => delayed.offer('x', given)],
  ['offer of a sharded queue', 'delay', (given, { sharded }) => sharded.offer('x', given)],
  [
    'offerAll',
    'items[0].delay',
    (given, { delayed }) => delayed.offerAll([{ value: 'x', delay: given }]).catch(firstFailure),
  ],
  ['reschedule', 'delay', async (given, { delayed }) => delayed.reschedule(await delayed.offer('x', '1h'), given)],
  ['poll', 'timeout', (given, { queue }) => queue.poll(given)],
  ['poll with options', 'timeout', (given, { queue }) => queue.poll(given, {})],
  ['poll of a sharded queue', 'timeout', (given, { sharded }) => sharded.poll(given)],
  ['pollFromAny', 'timeout', (given, { queue }) => queue.pollFromAny(given, undefined, [])],
  ['takeMany', 'timeout', (given, { queue }) => queue.takeMany(1, { timeout: given })],
  ['takeMany of a sharded queue', 'timeout', (given, { sharded }) => sharded.takeMany(1, { timeout: given })],
  ['pollLast', 'timeout', (given, { deque }) => deque.pollLast(given)],
  [
    'pollLastAndOfferFirstTo',
    'timeout',
    (given, { deque }) => deque.pollLastAndOfferFirstTo(`{${deque.name}}:b`, given),
  ],
  ['expire', 'duration', (given, { queue }) => queue.expire(given)],
  [
    'durability',
    'durability.timeoutMs',
    (given, { delayed }) =>
      delayed.offer('x', 0, { durability: { replicas: 1, timeoutMs: given } }).catch(unlessInvalid),
  ],
  ['add: delay', 'delay', (given, { mails }) => mails.add('x', { delay: given })],
  ['add: timeToLive', 'timeToLive', (given, { mails }) => mails.add('x', { timeToLive: given })],
  [
    'add: deduplicate',
    'deduplicate.forMs',
    (given, { mails }) => mails.add('x', { deduplicate: { by: 'payload', forMs: given } }),
  ],
  ['addMany', 'delay', (given, { mails }) => mails.addMany([{ payload: 'x', delay: given }])],
  ['add of a sharded queue', 'delay', (given, { shardedMails }) => shardedMails.add('x', { delay: given })],
  [
    'close of a batch',
    'timeToLive',
    (given, { mails }) => mails.batch('b').close({ last: { payload: 'x', timeToLive: given } }),
  ],
  [
    'waitUntilFinished of a batch',
    'timeout',
    (given, { mails }) => mails.batch('b').waitUntilFinished({ timeout: given }).catch(unlessInvalid),
  ],
  ['poll: timeout', 'timeout', (given, { mails }) => mails.poll({ timeout: given })],
  ['poll: visibilityTimeout', 'visibilityTimeout', (given, { mails }) => mails.poll({ visibilityTimeout: given })],
  [
    'poll of a sharded reliable queue',
    'visibilityTimeout',
    (given, { shardedMails }) => shardedMails.poll({ visibilityTimeout: given }),
  ],
  [
    'extend',
    'visibilityTimeout',
    async (given, { mails }) => {
      await mails.add('x')
      await (await mails.poll())?.extend(given)
    },
  ],
  [
    'progress',
    'extend',
    async (given, { mails }) => {
      await mails.add('x')
      await (await mails.poll())?.progress(1, { extend: given })
    },
  ],
  [
    'negativeAcknowledge',
    'delay',
    async (given, { mails }) => {
      await mails.add('x')
      await (await mails.poll())?.negativeAcknowledge({ delay: given })
    },
  ],
  ['reschedule of a reliable queue', 'delay', (given, { mails }) => mails.reschedule('id', given)],
  ofConfig('visibilityTimeout'),
  ofConfig('timeToLive'),
  ofConfig('delay'),
  ofConfig('keepDeadLettersFor'),
  [
    'the configuration’s rateLimit',
    'config.rateLimit.perMs',
    (given, { mails }) => mails.setConfig({ rateLimit: { max: 1, perMs: given } }),
  ],
  [
    'the configuration’s changes',
    'config.changes.maxAge',
    (given, { mails }) => mails.setConfig({ changes: { keep: 'recent', maxAge: given } }),
    '5s',
  ],
  [
    'changes',
    'claimAfter',
    async (given, { mails }) => {
      const signal = AbortSignal.abort(new Error('enough'))
      const read = async (): Promise<void> => {
        for await (const _ of mails.changes({ group: 'g', claimAfter: given, signal })) return
      }
      await read().catch(unlessInvalid)
    },
  ],
  ['upsertSchedule: every', 'every', (given, { mails }) => mails.upsertSchedule('r', 'x', { every: given }), '1h'],
  [
    'upsertSchedule: timeToLive',
    'timeToLive',
    (given, { mails }) => mails.upsertSchedule('r', 'x', { every: '1h', timeToLive: given }),
  ],
  ...['visibilityTimeout', 'timeout', 'shutdownTimeout'].map(ofWorker),
  [
    'the worker’s rateLimit',
    'rateLimit.perMs',
    (given, { client, mails }) =>
      client.createWorker(mails, () => undefined, { rateLimit: { max: 1, perMs: given } }).close(),
  ],
  ['backoff: fixed', 'backoff.delay', (given, objects) => backoff({ type: 'fixed', delay: given }, objects)],
  [
    'backoff: exponential',
    'backoff.maxDelay',
    (given, objects) => backoff({ type: 'exponential', delay: 1, maxDelay: given }, objects),
  ],
  ['backoff: listed', 'backoff[0]', (given, objects) => backoff([given], objects)],
  ['ping', 'timeout', (given, { client }) => client.ping({ timeout: given }).catch(unlessInvalid)],
  [
    'the health of a worker',
    'maxSilence',
    (given, { client, mails }) => client.createWorker(mails, () => undefined).health({ maxSilence: given }),
  ],
  ['retryIn', 'the delay of retryIn', (given) => retryIn(given)],
  ...['sweepInterval', 'pingInterval', 'connectTimeout', 'commandTimeout'].map(ofClient),
  [
    'the test kit: timeout',
    'timeout',
    async (given) => (await createTestKit({ url: redisUrl(), timeout: given })).close(),
    '5s',
  ],
  [
    'the test kit: advance',
    'by',
    async (given) => {
      await using kit = await createTestKit({ url: redisUrl() })
      await kit.advance(given)
    },
  ],
]

/** Functions that the worker calls when a handler fails; test/unit/retry-delays.test.ts has them. */
const ELSEWHERE = ['what backoff returns']

function firstFailure(thrown: unknown): never {
  throw thrown instanceof OfferAllError ? thrown.failures[0]?.error : thrown
}

function unlessInvalid(thrown: unknown): void {
  if (thrown instanceof InvalidArgumentError) throw thrown
}

describe('a time span can be milliseconds or a text with its unit', () => {
  afterEach(cleanUp)

  for (const [where, what, call, good = '10ms'] of places) {
    it(`in ${where}`, async () => {
      const objects = make()
      await call(good, objects)
      const thrown = await new Promise((resolve) => resolve(call('5 minutes' as Duration, objects))).then(
        () => undefined,
        (error: unknown) => error,
      )
      expect(thrown).to.be.an.instanceOf(InvalidArgumentError)
      const { message } = thrown as Error
      expect(message).to.match(/: expected a whole number of milliseconds from .* '5s', '15m', '2h', got "5 minutes"$/)
      expect(message).to.include(`${what}: expected`)
    })
  }

  it('and no place in the source is missing in this table', () => {
    const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
      (file) =>
        file.endsWith('.ts') && !file.startsWith('server') && !file.startsWith('timing') && file !== 'duration.ts',
    )
    const calls = files.flatMap((file) => [
      ...readFileSync(`${SRC}/${file}`, 'utf8').matchAll(/(?:durationMs|toMillis)\((?:'([^']+)'|`([^`]+)`)/g),
    ])
    const last = (name: string): string => (name.split('.').at(-1) ?? '').replace(/\[.*\]$/, '')
    const checked = new Set([...places.map(([, what]) => last(what)), ...ELSEWHERE])
    const inSource = calls.map(([, plain, template]) => last(plain ?? template ?? ''))
    expect(inSource).to.include.members(['delay', 'timeout', 'maxAge'])
    expect([...new Set(inSource)].filter((name) => !checked.has(name))).to.deep.equal([])
  })

  it('and has the meaning of its text', async () => {
    const { delayed, mails, client } = make()
    const now = await redisNow()
    expect(dueOf(await delayed.offer('x', '2h')) - now).to.be.within(7_200_000 - 1, 7_200_000 + 60_000)
    await mails.setConfig({ visibilityTimeout: '15m', timeToLive: '1.5h', delay: '1d' })
    expect(await mails.getConfig()).to.deep.equal({
      visibilityTimeout: 900_000,
      timeToLive: 5_400_000,
      delay: 86_400_000,
    })
    await mails.upsertSchedule('hourly', 'x', { every: '1h' })
    expect((await mails.listSchedules())[0]).to.include({ name: 'hourly', every: 3_600_000 })
    await client.shutdown()
  })
})
