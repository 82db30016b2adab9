import { expect } from 'chai'
import { ConnectionError } from '../../src/errors.js'
import type { ShardSource } from '../../src/sharding/shard-source.js'
import { ShardedConsumer } from '../../src/sharding/sharded-consumer.js'
import { FakeClock } from '../support/fake-clock.js'
import { randomFrom } from '../support/random.js'

/** An element names the list that it was pushed to. */
const MAX_LISTS = 4

type Random = () => number
type Turns = (most: number) => Promise<void>

/** A server with one list: commands arrive after some turns, take effect in one, and are answered after some more. */
class DistantList implements ShardSource<number> {
  readonly list: number[] = []
  readonly #random: Random
  readonly #turns: Turns
  #serve: (() => void) | undefined

  constructor(random: Random, turns: Turns) {
    this.#random = random
    this.#turns = turns
  }

  push(element: number): void {
    this.list.push(element)
    this.#serve?.()
  }

  async wait(max: number, signal: AbortSignal): Promise<number[]> {
    await this.#turns(3)
    if (this.#random() < 0.05) throw new ConnectionError('no place is known', 'not-applied')
    const popped = await new Promise<number[]>((resolve) => {
      const serve = (): void => {
        if (this.#serve !== serve || (this.list.length === 0 && !signal.aborted)) return
        this.#serve = undefined
        signal.removeEventListener('abort', interrupt)
        resolve(signal.aborted && this.#random() < 0.5 ? [] : this.list.splice(0, max))
      }
      const interrupt = (): void => void this.#turns(3).then(serve)
      this.#serve = serve
      signal.addEventListener('abort', interrupt)
      serve()
    })
    await this.#turns(3)
    if (popped.length === 0) throw new Error('aborted')
    return popped
  }

  async drain(max: number): Promise<number[]> {
    await this.#turns(3)
    if (this.#random() < 0.05) throw new ConnectionError('refused', 'not-applied')
    const popped = this.list.splice(0, max)
    await this.#turns(3)
    return popped
  }

  async putBack(elements: readonly number[]): Promise<void> {
    await this.#turns(3)
    if (this.#random() < 0.2) throw new ConnectionError('refused', 'not-applied')
    this.list.unshift(...elements)
    this.#serve?.()
    await this.#turns(3)
  }
}

/** Calls at random, one after the other or side by side, and then the end; what was taken and what is left. */
async function play(seed: number, sideBySide: boolean) {
  const random = randomFrom(seed)
  const below = (limit: number): number => Math.floor(random() * limit)
  const turns: Turns = async (most) => {
    for (let turn = below(most + 1); turn > 0; turn--) await new Promise((resolve) => setImmediate(resolve))
  }
  const clock = new FakeClock()
  const lists = Array.from({ length: 1 + below(MAX_LISTS) }, () => new DistantList(random, turns))
  const lost: number[] = []
  const consumer = new ShardedConsumer<number>({
    sources: lists,
    buffers: new Set(),
    clock,
    random,
    closedError: () => new Error('closed'),
    isShutDown: () => false,
    onFailure: () => {},
    onLost: (_, count) => lost.push(count),
  })
  const taken: number[] = []
  const calls = new Set<Promise<void>>()
  let pushed = 0
  const push = (list: number): void => lists[list]!.push(MAX_LISTS * pushed++ + list)
  const call = (): void => {
    const controller = new AbortController()
    if (random() < 0.3) void turns(20).then(() => controller.abort(new Error('enough')))
    const timeoutMs = 1 + below(60)
    const elements =
      random() < 0.25
        ? consumer.drain(1 + below(4))
        : consumer.take(random() < 0.7 ? 1 : 1 + below(8), { timeoutMs, signal: controller.signal })
    const ended: Promise<void> = elements
      .then((some) => void taken.push(...some))
      .catch(() => {})
      .finally(() => calls.delete(ended))
    calls.add(ended)
  }
  for (let step = 0; step < 150; step++) {
    if (random() < 0.6) for (let i = below(4); i > 0; i--) push(below(lists.length))
    if (calls.size === 0 ? random() < 0.6 : sideBySide && calls.size < 4 && random() < 0.5) call()
    // slowly during a call, as the server is no further away than a few milliseconds
    await clock.advance(calls.size === 0 && random() < 0.3 ? 60 : below(5))
  }
  const closed = consumer.close()
  let isClosed = false
  void closed.then(() => (isClosed = true))
  for (let step = 0; step < 1_000 && (!isClosed || calls.size > 0); step++) await clock.advance(10)
  expect(isClosed && calls.size === 0, 'it ends').to.equal(true)
  return {
    taken,
    left: lists.map(({ list }) => list),
    lost: lost.reduce((sum, count) => sum + count, 0),
    pushed,
    clock,
  }
}

const ascending = (elements: number[]) => elements.toSorted((a, b) => a - b)

describe('the consumer of a sharded queue, at random', () => {
  for (const sideBySide of [true, false]) {
    it(`calls ${sideBySide ? 'side by side' : 'one after the other'}: every element is taken once or still there`, async () => {
      let notTaken = 0
      for (let seed = 1; seed <= 300; seed++) {
        const { taken, left, lost, pushed, clock } = await play(seed, sideBySide)
        const all = ascending([...taken, ...left.flat()])
        const where = `seed ${seed}`
        expect(new Set(all).size, `${where}: twice`).to.equal(all.length)
        expect(all.length + lost, `${where}: lost`).to.equal(pushed)
        for (const [index, list] of left.entries()) {
          const ofList = sideBySide ? [] : taken.filter((element) => element % MAX_LISTS === index)
          expect([...ofList, ...list], `${where}: order`).to.deep.equal(ascending([...ofList, ...list]))
        }
        expect(clock.pending, `${where}: timers`).to.deep.equal([])
        notTaken += left.flat().length
      }
      expect(notTaken, 'something was left over').to.be.greaterThan(50)
    }).timeout(60_000)
  }
})
