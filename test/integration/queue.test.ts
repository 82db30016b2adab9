import { expect } from 'chai'
import { InvalidArgumentError, NoSuchElementError, codecs, type BlockingQueue, type Queue } from '../../src/index.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, expectError, makeClient, numbers } from './fixtures.js'

const string = { codec: codecs.string() }
const raw = rawClient

const kinds: [kind: string, make: (name: string) => Queue<string> | BlockingQueue<string>][] = [
  ['Queue', (name) => makeClient().getQueue(name, string)],
  ['BlockingQueue', (name) => makeClient().getBlockingQueue(name, string)],
]

for (const [kind, make] of kinds) {
  describe(kind, () => {
    let name: string
    let queue: Queue<string> | BlockingQueue<string>
    const stored = () => raw().lrange(name, 0, -1)

    beforeEach(() => {
      name = uniqueName()
      queue = make(name)
    })
    afterEach(cleanUp)

    it('offer and add append, poll takes from the front', async () => {
      expect(await queue.offer('a')).to.equal(true)
      expect(await queue.add('b')).to.equal(true)
      expect(await stored()).to.deep.equal(['a', 'b'])
      expect(await queue.poll()).to.equal('a')
      expect(await queue.poll()).to.equal('b')
      expect(await queue.poll()).to.equal(null)
    })

    it('addAll keeps the order, also of thousands', async () => {
      expect(await queue.addAll([])).to.equal(false)
      expect(await queue.addAll(new Set(numbers(2_500)))).to.equal(true)
      expect(await stored()).to.deep.equal(numbers(2_500))
    })

    it('addAll with one bad value adds no message', async () => {
      const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name, says: ['values[1]', 'null'] }
      await expectError([InvalidArgumentError, wanted], () => queue.addAll(['a', null as unknown as string]))
      expect(await stored()).to.deep.equal([])
    })

    it('size, isEmpty, peek, readAll and iterate take nothing', async () => {
      expect([await queue.size(), await queue.isEmpty(), await queue.peek(), await queue.readAll()]).to.deep.equal([
        0,
        true,
        null,
        [],
      ])
      await queue.addAll(numbers(250))
      expect([await queue.size(), await queue.isEmpty(), await queue.peek()]).to.deep.equal([250, false, '0'])
      expect(await queue.readAll()).to.deep.equal(numbers(250))
      for (const pageSize of [100, 125, 1_000]) {
        const seen: string[] = []
        for await (const value of queue.iterate({ pageSize })) seen.push(value)
        expect(seen, `pages of ${pageSize}`).to.deep.equal(numbers(250))
      }
      expect(await stored()).to.deep.equal(numbers(250))
    })

    it('contains and remove go by value', async () => {
      await queue.addAll([...numbers(1_500), 'twice', 'twice'])
      expect(await queue.contains('1499')).to.equal(true)
      expect(await queue.contains('1500')).to.equal(false)
      expect(await queue.remove('twice')).to.equal(true)
      expect(await queue.remove('1500')).to.equal(false)
      expect(await stored()).to.deep.equal([...numbers(1_500), 'twice'])
    })

    it('remove() takes the first, and rejects on an empty queue', async () => {
      await queue.offer('a')
      expect(await queue.remove()).to.equal('a')
      await expectError([NoSuchElementError, { code: 'ERR_NO_SUCH_ELEMENT', queue: name }], () => queue.remove())
    })

    it('drainTo takes up to max, or all', async () => {
      await queue.addAll(numbers(2_010))
      expect(await queue.drainTo(0)).to.deep.equal([])
      expect(await queue.drainTo(10)).to.deep.equal(numbers(10))
      expect(await queue.size()).to.equal(2_000)
      expect(await queue.drainTo()).to.deep.equal(numbers(2_000, 10))
      expect(await queue.drainTo()).to.deep.equal([])
    })

    it('clear and delete drop the elements', async () => {
      await queue.offer('a')
      expect(await queue.delete()).to.equal(true)
      expect(await queue.delete()).to.equal(false)
      await queue.offer('b')
      await queue.clear()
      expect(await raw().exists(name)).to.equal(0)
    })
  })
}

describe('Queue', () => {
  afterEach(cleanUp)

  it('poll(limit) takes so many', async () => {
    const queue = makeClient().getQueue<string>(uniqueName(), string)
    await queue.addAll(numbers(5))
    expect(await queue.poll(3)).to.deep.equal(['0', '1', '2'])
    expect(await queue.poll(0)).to.deep.equal([])
    expect(await queue.poll(9)).to.deep.equal(['3', '4'])
  })
})
