/** Redisson's RDeque, after RedissonDequeTest: on a deque, and on a blocking deque, which has the same methods. */
import { expect } from 'chai'
import {
  InvalidArgumentError,
  NoSuchElementError,
  UnsupportedServerError,
  codecs,
  type BlockingDeque,
  type Deque,
  type RedelayedClient,
} from '../../src/index.js'
import { requireServerBin, startRedis } from '../support/redis-server.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, expectError, makeClient, numbers, onCleanup } from './fixtures.js'

const string = { codec: codecs.string() }
const raw = rawClient

type Make = (client: RedelayedClient, name: string) => Deque<string> | BlockingDeque<string>
const kinds: [kind: string, make: Make][] = [
  ['Deque', (client, name) => client.getDeque<string>(name, string)],
  ['BlockingDeque', (client, name) => client.getBlockingDeque<string>(name, string)],
]

for (const [kind, make] of kinds) {
  describe(kind, () => {
    let name: string
    let other: string
    let deque: Deque<string> | BlockingDeque<string>
    const stored = (of = name) => raw().lrange(of, 0, -1)

    beforeEach(() => {
      name = uniqueName()
      other = uniqueName('other')
      deque = make(makeClient(), name)
    })
    afterEach(cleanUp)

    it('addFirst puts values in front one after the other, addLast appends them', async () => {
      expect(await deque.addFirst('a')).to.equal(undefined)
      expect(await deque.addFirst('b', 'c')).to.equal(undefined)
      expect(await deque.addLast('d')).to.equal(undefined)
      expect(await deque.addLast('e', 'f')).to.equal(undefined)
      expect(await stored()).to.deep.equal(['c', 'b', 'a', 'd', 'e', 'f'])
    })

    it('addFirstIfExists and addLastIfExists add only to an existing deque, and return the new size', async () => {
      expect(await deque.addFirstIfExists('a', 'b')).to.equal(0)
      expect(await deque.addLastIfExists('a')).to.equal(0)
      expect(await deque.isExists()).to.equal(false)
      await deque.offer('x')
      expect(await deque.addFirstIfExists('a', 'b')).to.equal(3)
      expect(await deque.addLastIfExists('c')).to.equal(4)
      expect(await stored()).to.deep.equal(['b', 'a', 'x', 'c'])
    })

    it('offerFirst, offerLast, push and pop', async () => {
      expect([await deque.offerFirst('a'), await deque.offerLast('b')]).to.deep.equal([true, true])
      expect(await deque.push('c')).to.equal(undefined)
      expect(await stored()).to.deep.equal(['c', 'a', 'b'])
      expect([await deque.pop(), await deque.pop(), await deque.pop()]).to.deep.equal(['c', 'a', 'b'])
    })

    it('pollFirst and pollLast take from the ends, or give null', async () => {
      expect([await deque.pollFirst(), await deque.pollLast()]).to.deep.equal([null, null])
      await deque.addLast('a', 'b', 'c')
      expect([await deque.pollLast(), await deque.pollFirst(), await deque.pollFirst()]).to.deep.equal(['c', 'a', 'b'])
    })

    it('peekFirst and peekLast return null for an empty deque, getFirst and getLast throw', async () => {
      expect([await deque.peekFirst(), await deque.peekLast()]).to.deep.equal([null, null])
      const wanted = { code: 'ERR_NO_SUCH_ELEMENT', queue: name }
      for (const call of ['getFirst', 'getLast', 'removeFirst', 'removeLast', 'pop'] as const) {
        await expectError([NoSuchElementError, wanted], () => deque[call]())
      }
      await deque.addLast('a', 'b')
      expect([await deque.peekFirst(), await deque.peekLast()]).to.deep.equal(['a', 'b'])
      expect([await deque.getFirst(), await deque.getLast()]).to.deep.equal(['a', 'b'])
      expect([await deque.removeLast(), await deque.removeFirst()]).to.deep.equal(['b', 'a'])
    })

    it('removeFirstOccurrence and removeLastOccurrence', async () => {
      await deque.addLast('a', 'b', 'a', 'b')
      expect([await deque.removeFirstOccurrence('x'), await deque.removeLastOccurrence('x')]).to.deep.equal([
        false,
        false,
      ])
      expect(await deque.removeFirstOccurrence('b')).to.equal(true)
      expect(await stored()).to.deep.equal(['a', 'a', 'b'])
      expect(await deque.removeLastOccurrence('a')).to.equal(true)
      expect(await stored()).to.deep.equal(['a', 'b'])
    })

    it('descendingIterator walks from the end, in pages', async () => {
      await deque.addAll(numbers(250))
      for (const pageSize of [100, 125, 1_000]) {
        const seen: string[] = []
        for await (const value of deque.descendingIterator({ pageSize })) seen.push(value)
        expect(seen, `pages of ${pageSize}`).to.deep.equal(numbers(250).reverse())
      }
      for await (const value of deque.descendingIterator()) {
        expect(value).to.equal('249')
        break
      }
    })

    it('move goes from any end to any end, also of the deque itself', async () => {
      const moves = [
        ['first', 'first', 'a', ['b', 'c'], ['a', 'x']],
        ['first', 'last', 'a', ['b', 'c'], ['x', 'a']],
        ['last', 'first', 'c', ['a', 'b'], ['c', 'x']],
        ['last', 'last', 'c', ['a', 'b'], ['x', 'c']],
      ] as const
      for (const [from, at, moved, left, there] of moves) {
        await deque.delete()
        await raw().del(other)
        expect(await deque.move({ from, to: other, at })).to.equal(null)
        await deque.addLast('a', 'b', 'c')
        await raw().rpush(other, 'x')
        expect(await deque.move({ from, to: other, at })).to.equal(moved)
        expect([await stored(), await stored(other)]).to.deep.equal([left, there])
      }
      expect(await deque.move({ from: 'last', to: name, at: 'first' })).to.equal('b')
      expect(await stored()).to.deep.equal(['b', 'a'])
    })

    it('refuses no values, null, and moves of no sense', async () => {
      const none = [] as unknown as [string]
      for (const call of ['addFirst', 'addLast', 'addFirstIfExists', 'addLastIfExists'] as const) {
        const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name }
        await expectError([InvalidArgumentError, wanted], () => deque[call](...none))
        await expectError([InvalidArgumentError, wanted], () => deque[call]('a', null as unknown as string))
      }
      const move = { from: 'first', to: other, at: 'last' } as const
      for (const wrong of [{ from: 'left' }, { at: 'middle' }, { to: '' }, { count: 1 }]) {
        await expectError([InvalidArgumentError, { code: 'ERR_INVALID_ARGUMENT', queue: name }], () =>
          deque.move({ ...move, ...wrong } as typeof move),
        )
      }
      expect(await stored()).to.deep.equal([])
    })
  })
}

describe('Deque', () => {
  afterEach(cleanUp)

  it('poll, pollFirst and pollLast take up to a limit', async () => {
    const deque = makeClient().getDeque<string>(uniqueName(), string)
    await deque.addAll(numbers(2_500))
    expect(await deque.pollLast(3)).to.deep.equal(['2499', '2498', '2497'])
    expect(await deque.pollFirst(2)).to.deep.equal(['0', '1'])
    expect(await deque.poll(1)).to.deep.equal(['2'])
    expect(await deque.pollLast(0)).to.deep.equal([])
    expect(await deque.pollLast(9_999)).to.deep.equal(numbers(2_494, 3).reverse())
    const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: deque.name, says: ['limit'] }
    await expectError([InvalidArgumentError, wanted], () => deque.pollLast(-1))
  })

  it('on a server before 6.2: the one move that it knows', async function () {
    requireServerBin(this)
    const server = await startRedis({ args: ['--rename-command', 'LMOVE', '', '--rename-command', 'BLMOVE', ''] })
    onCleanup(() => server.stop())
    const deque = makeClient({ url: server.url }).getBlockingDeque<string>('one', string)
    await deque.addLast('a', 'b', 'c')
    expect(await deque.move({ from: 'last', to: 'two', at: 'first' })).to.equal('c')
    expect(await deque.move(5, 'seconds', { from: 'last', to: 'two', at: 'first' })).to.equal('b')
    expect(await deque.takeLastAndOfferFirstTo('two')).to.equal('a')
    const waiting = deque.move(5, 'seconds', { from: 'last', to: 'two', at: 'first' })
    await deque.offer('d')
    expect(await waiting).to.equal('d')
    const wanted = { code: 'ERR_UNSUPPORTED_SERVER', queue: 'one' }
    for (const call of [
      () => deque.move({ from: 'first', to: 'two', at: 'first' }),
      () => deque.move(5, 'seconds', { from: 'first', to: 'two', at: 'last' }),
    ]) {
      await expectError([UnsupportedServerError, wanted], call)
    }
  })
})
