import { expect } from 'chai'
import {
  EncodeError,
  InvalidArgumentError,
  InvalidTicketError,
  OfferAllError,
  PayloadTooLargeError,
  WrongTypeError,
  codecs,
  dueOf,
  type BlockingQueue,
  type Codec,
  type DelayedQueue,
  type RedelayedClient,
} from '../../src/index.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { ORDERS, cleanUp, expectError, makeClient, makePair, rawKeys, rawState, type Wanted } from './fixtures.js'

const LATER = 600_000
const INVALID = 'ERR_INVALID_ARGUMENT'
const MAX = Number.MAX_SAFE_INTEGER

/** Values of the wrong type, as JavaScript callers pass them. */
const as = (value: unknown): never => value as never

const delays: [delay: unknown, unit: string | number | null | undefined, ...says: string[]][] = [
  [-1, undefined, 'delay', 'whole number of milliseconds from 0', '-1'],
  [-0, undefined, 'delay', 'whole number of milliseconds from 0', 'got 0'],
  [NaN, undefined, 'delay', 'NaN'],
  [Infinity, undefined, 'delay', 'Infinity'],
  [-Infinity, undefined, 'delay', '-Infinity'],
  [1.5, undefined, 'delay', 'whole number of milliseconds', '1.5'],
  [0.0001, 'seconds', 'delay', 'whole number of milliseconds', '0.0001 seconds'],
  [MAX + 1, undefined, 'delay', '2^53-1', String(MAX + 1)],
  [MAX, 'days', 'delay', '2^53-1', 'days'],
  ['5000', undefined, 'delay', 'whole number of milliseconds', "'5s', '15m', '2h'", 'a string of 4 characters'],
  [5n, undefined, 'delay', 'whole number of milliseconds', "'5s', '15m', '2h'", '5n'],
  [null, undefined, 'delay', 'whole number of milliseconds', "'5s', '15m', '2h'", 'null'],
  [undefined, undefined, 'delay', 'whole number of milliseconds', "'5s', '15m', '2h'", 'undefined'],
  [{}, undefined, 'delay', 'whole number of milliseconds', "'5s', '15m', '2h'", 'an object (Object)'],
  [5, 'weeks', 'unit of delay', 'milliseconds, seconds, minutes, hours, days', 'a string of 5 characters'],
  [5, 'toString', 'unit of delay', 'a string of 8 characters'],
  [5, null, 'unit of delay', 'null'],
  [5, 1000, 'unit of delay', '1000'],
]

const values: [value: unknown, ...says: string[]][] = [
  [null, 'value', 'null'],
  [undefined, 'value', 'undefined'],
]

const cycle: Record<string, unknown> = {}
cycle['self'] = cycle
const sparse = Array<number>(2)
sparse[1] = 1
const unencodable: [what: string, codec: Codec, value: unknown, path: string, ...says: string[]][] = [
  ['a function', codecs.msgpack(), () => {}, '$', 'a function'],
  ['a symbol in an object', codecs.msgpack(), { a: [1, { b: Symbol('s') }] }, '$.a[1].b', 'a symbol'],
  ['a Map', codecs.msgpack(), { order: { items: new Map() } }, '$.order.items', 'Map'],
  ['a cycle', codecs.msgpack(), cycle, '$.self.self', 'contains itself'],
  ['an odd key', codecs.msgpack(), { 'a b': () => {} }, '$["a b"]', 'a function'],
  ['a bigint above 64 bits', codecs.msgpack(), { n: 2n ** 64n }, '$.n'],
  ['an invalid date', codecs.msgpack(), { at: new Date(NaN) }, '$.at', 'an invalid Date'],
  ['a bigint in JSON', codecs.json(), { n: 5n }, '$.n', '5n'],
  ['NaN in JSON', codecs.json(), [1, NaN], '$[1]', 'NaN'],
  ['a hole in JSON', codecs.json(), { list: sparse }, '$.list[0]', 'undefined'],
  ['a number as string', codecs.string(), 5, '$', 'a string', '5'],
  ['half a surrogate pair', codecs.string(), 'a\ud800', '$', 'surrogate'],
  ['a string as bytes', codecs.bytes(), 'text', '$', 'Uint8Array', 'a string of 4 characters'],
]

const tickets: [what: string, ticket: unknown, ...says: string[]][] = [
  ['an empty text', '', 'a ticket as returned by offer', 'an empty string'],
  ['some text', 'not a ticket', 'a string of 12 characters'],
  ['a long text', 'x'.repeat(500), 'a string of 500 characters'],
  ['null', null, 'null'],
  ['a number', 5, '5'],
  ['an object', { ticket: 'x' }, 'an object'],
  ['one with a line break', `${'A'.repeat(24)}\n`, 'a ticket as returned by offer'],
]

for (const layout of ORDERS) {
  describe(`bad input, layout: '${layout}'`, () => {
    let client: RedelayedClient
    let queue: BlockingQueue
    let delayed: DelayedQueue
    let name: string
    let pending: string

    beforeEach(async () => {
      client = makeClient({ maxPayloadBytes: 1_000 })
      name = uniqueName()
      queue = client.getBlockingQueue(name)
      delayed = client.getDelayedQueue(queue, { layout: layout })
      pending = await delayed.offer('pending', LATER)
      await queue.offer('delivered')
    })
    afterEach(cleanUp)

    async function expectRefused([type, wanted]: Wanted, ...calls: (() => unknown)[]): Promise<void> {
      const before = await rawState(name)
      for (const call of calls) await expectError([type, { queue: name, ...wanted }], call)
      expect(await rawState(name), 'the state of Redis').to.deep.equal(before)
    }

    /** In `offerAll` the same error follows the item's index, and the good item beside it is not sent either. */
    async function expectItemRefused([type, wanted]: Wanted, item: unknown): Promise<void> {
      const before = await rawState(name)
      const good = { value: 'good', delay: 5 }
      const all = { code: 'ERR_OFFER_ALL', queue: name, says: ['1 of 2', 'item 1'] }
      const error = await expectError([OfferAllError, all], () => delayed.offerAll([good, as(item)]))
      const [failure] = error.failures
      expect(failure?.index).to.equal(1)
      await expectError([type, { queue: name, ...wanted, says: ['items[1]', ...(wanted.says ?? [])] }], () =>
        Promise.reject(failure!.error),
      )
      expect(await rawState(name), 'the state of Redis').to.deep.equal(before)
    }

    for (const [delay, unit, ...says] of delays) {
      it(`a delay of ${String(delay)}, unit ${String(unit)}`, async () => {
        const refused: Wanted = [InvalidArgumentError, { code: INVALID, says }]
        const unitOf = as(unit)
        await expectRefused(
          refused,
          () => delayed.offer('x', as(delay), unitOf),
          () => delayed.reschedule(pending, as(delay), unitOf),
        )
        const [first, ...rest] = says
        const inItem = first!.startsWith('unit of') ? ['unit of items[1].delay', ...rest] : says
        await expectItemRefused([InvalidArgumentError, { code: INVALID, says: inItem }], { value: 'x', delay, unit })
      })
    }

    it('a delay whose due time passes 2^53-1', async () => {
      const wanted: Wanted = [InvalidArgumentError, { code: INVALID, says: ['delay', '2^53-1', String(MAX)] }]
      await expectRefused(
        wanted,
        () => delayed.offer('x', MAX),
        () => delayed.reschedule(pending, MAX),
      )
    })

    for (const [what, date, ...says] of [
      ['an invalid date', new Date(NaN), 'a valid Date', 'an invalid Date'],
      ['a number', Date.now(), 'a valid Date'],
      ['a text', '2030-01-01', 'a valid Date', 'a string of 10 characters'],
      ['nothing', undefined, 'a valid Date', 'undefined'],
    ] as [string, unknown, ...string[]][]) {
      it(`offerAt with ${what}`, () =>
        expectRefused([InvalidArgumentError, { code: INVALID, says: ['date', ...says] }], () =>
          delayed.offerAt('x', as(date)),
        ))
    }

    for (const [value, ...says] of values) {
      it(`the value ${String(value)}`, async () => {
        const refused: Wanted = [InvalidArgumentError, { code: INVALID, says }]
        await expectRefused(
          refused,
          () => delayed.offer(value, 5),
          () => delayed.offerAt(value, new Date()),
          () => delayed.contains(value),
          () => delayed.remove(value),
          () => queue.offer(value),
          () => queue.put(value),
          () => queue.addAll(['good', value]),
          () => queue.contains(value),
          () => queue.remove(value),
        )
        await expectItemRefused(refused, { value, delay: 5 })
      })
    }

    for (const [what, codec, value, path, ...says] of unencodable) {
      it(`${what}, which the codec cannot encode`, async () => {
        const own = client.getBlockingQueue(name, { codec })
        const wanted: Wanted = [EncodeError, { code: 'ERR_ENCODE', says: [codec.name, path, ...says] }]
        await expectRefused(
          wanted,
          () => client.getDelayedQueue(own, { layout: layout }).offer(value, 5),
          () => own.offer(value),
        )
      })
    }

    it('a payload above the limit', async () => {
      const says = ['1003 bytes', '1000']
      const value = 'x'.repeat(1_000)
      const refused: Wanted = [PayloadTooLargeError, { code: 'ERR_PAYLOAD_TOO_LARGE', says }]
      await expectRefused(
        refused,
        () => delayed.offer(value, 5),
        () => queue.offer(value),
      )
      await delayed.offer('x'.repeat(997), LATER)
    })

    it('offerAll with a value that is not an item', async () => {
      for (const item of [null, undefined, 5, 'text']) {
        await expectItemRefused([InvalidArgumentError, { code: INVALID, says: ['{ value, delay, unit? }'] }], item)
      }
    })

    for (const [what, ticket, ...says] of tickets) {
      it(`${what} as ticket`, async () => {
        const wanted: Wanted = [InvalidTicketError, { code: 'ERR_INVALID_TICKET', says }]
        await expectRefused(
          wanted,
          () => delayed.cancel(as(ticket)),
          () => delayed.reschedule(as(ticket), 5),
        )
        await expectError([InvalidTicketError, { code: 'ERR_INVALID_TICKET', says }], () => dueOf(as(ticket)))
      })
    }

    it('a ticket of another queue, or one with a wrong character', async () => {
      const foreign = await makePair(layout).delayed.offer('x', LATER)
      const damaged = (pending.startsWith('B') ? 'C' : 'B') + pending.slice(1)
      for (const ticket of [foreign, damaged]) {
        const wanted: Wanted = [InvalidTicketError, { code: 'ERR_INVALID_TICKET', says: ['another queue', 'damaged'] }]
        await expectRefused(
          wanted,
          () => delayed.cancel(ticket),
          () => delayed.reschedule(ticket, 5),
        )
      }
    })

    it('limits, page sizes and timeouts out of range', async () => {
      const wanted = (...says: string[]): Wanted => [InvalidArgumentError, { code: INVALID, says }]
      for (const bad of [-1, 1.5, NaN, '5', null]) {
        await expectRefused(
          wanted('limit'),
          () => delayed.poll(as(bad)),
          () => queue.readQuarantine(as(bad)),
        )
        await expectRefused(
          wanted('max'),
          () => queue.takeMany(as(bad)),
          () => queue.drainTo(as(bad)),
        )
        await expectRefused(
          wanted('timeout'),
          () => queue.poll(as(bad)),
          () => queue.takeMany(1, { timeout: as(bad) }),
        )
        const paged = { pageSize: as(bad) }
        await expectRefused(
          wanted('pageSize'),
          () => delayed.iterate(paged).next(),
          () => queue.iterate(paged).next(),
        )
      }
      await expectRefused(wanted('unit of timeout', 'null'), () => queue.poll(1_000, as(null)))
      await expectRefused(wanted('max', '10000'), () => queue.takeMany(10_001))
      await expectRefused(wanted('options.timeOut', 'timeout, signal'), () => queue.takeMany(1, as({ timeOut: 5 })))
    })

    for (const key of layout === 'redisson' ? (['timeouts', 'order'] as const) : (['timeouts'] as const)) {
      it(`the key of the ${key} holds another type: a WrongTypeError, and nothing is changed`, async () => {
        client.on('error', () => {}) // the transfer reports the error, too
        await rawClient().set(rawKeys(name)[key], 'x')
        await expectRefused([WrongTypeError, { code: 'ERR_WRONG_TYPE' }], () => delayed.offer('x', LATER))
      })
    }
  })
}
