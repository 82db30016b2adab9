import { expect } from 'chai'
import { ConnectionError, ShutdownError } from '../../src/errors.js'
import type { PolledRecord, PollReply } from '../../src/store/reliable-scripts.js'
import { Poller } from '../../src/reliable/poller.js'
import { nextTurn } from '../../src/timing/pause.js'
import { rejection } from '../integration/fixtures.js'
import { FakeClock } from '../support/fake-clock.js'

const NOW = 1_000_000

function reply(ids: readonly string[], next: number | null = null): PollReply {
  const messages = ids.map((id) => ({
    ...{ id, member: `0${id}`, delivery: '1 token', priority: 0, record: Buffer.from('\0') },
    ...{ visibleAt: NOW, polledAt: NOW, visibleUntil: NOW + 30_000, heldUntil: 30_000 },
  }))
  const others = { returned: 0, expired: 0, deadLettered: 0, problem: '', changed: ids.length, repeats: [] }
  return { now: NOW, next, subscribers: 1, visibilityMs: 30_000, ...others, messages }
}

function setUp(
  answer: (count: number, visibilityMs: number) => PollReply | Promise<PollReply>,
  { noConnection }: { noConnection?: Error } = {},
) {
  const asked: [count: number, visibilityMs: number][] = []
  const released: string[] = []
  const errors: Error[] = []
  const clock = new FakeClock()
  const poller = new Poller({
    fineWaits: undefined,
    address: { name: 'mails', channel: 'mails-channel' },
    poll: async (count, { visibilityMs }) => {
      asked.push([count, visibilityMs])
      return answer(count, visibilityMs)
    },
    release: async (polled) => void released.push(...polled.map(({ id }) => id)),
    onError: (error) => errors.push(error),
    noConnectionYet: () => noConnection,
    clock,
    random: () => 0,
  })
  return { poller, asked, released, errors, clock }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await nextTurn()
}

const idsOf = (polled: readonly PolledRecord[]): string[] => polled.map(({ id }) => id)

describe('Poller', () => {
  it('polls once for all callers of one turn, and shares the messages in their order', async () => {
    const { poller, asked } = setUp(() => reply(['a', 'b', 'c']))
    const [first, second] = [
      poller.take(2, { visibilityMs: -1, beforehand: false }, {}),
      poller.take(5, { visibilityMs: -1, beforehand: false }, {}),
    ]
    expect([idsOf(await first), idsOf(await second)]).to.deep.equal([['a', 'b'], ['c']])
    expect(asked).to.deep.equal([[7, -1]])
    await poller.stop()
  })

  it('is used while a caller waits and for a minute after its last script', async () => {
    const { poller, clock } = setUp(() => reply([]))
    expect(poller.isUsed).to.equal(false)
    const abort = new AbortController()
    const waiting = poller.take(1, { visibilityMs: -1, beforehand: false }, { signal: abort.signal })
    await settle()
    await clock.advance(90_000)
    expect(poller.isUsed).to.equal(true)
    abort.abort(new Error('enough'))
    await rejection(waiting)
    expect(poller.isUsed).to.equal(false)
    poller.take(1, { visibilityMs: -1, beforehand: false }, { timeoutMs: 1_000 }).catch(() => undefined)
    await settle()
    await clock.advance(59_500)
    expect(poller.isUsed).to.equal(true)
    await clock.advance(1_000)
    expect(poller.isUsed).to.equal(false)
    await poller.stop()
  })

  it('waits longer and longer while something is visible and nothing changes', async () => {
    const { poller, asked, clock } = setUp(() => reply([], NOW))
    const taken = poller.take(1, { visibilityMs: -1, beforehand: false }, { timeoutMs: 60_000 })
    await clock.advance(10_000)
    expect(asked.length).to.be.within(12, 30) // without a pause it would never end
    await clock.advance(60_000)
    expect(await taken).to.deep.equal([])
    await poller.stop()
  })

  it('yields to the client that was faster, however soon the next message is visible', async () => {
    const answers = [reply(['a'], NOW + 10), reply([], NOW + 11), reply([])]
    const askedAt: number[] = []
    const { poller, clock } = setUp(() => {
      const at = clock.now() - startedAt
      askedAt.push(at)
      return { ...(answers.shift() ?? reply([])), now: NOW + at, subscribers: 20 }
    })
    const startedAt = clock.now()
    const waits = [1, 2].map(() => poller.take(1, { visibilityMs: -1, beforehand: false }, { timeoutMs: 60_000 }))
    await clock.advance(30)
    expect(askedAt, 'as the leader at 10, as a follower 3 ms after 11').to.deep.equal([0, 10, 14])
    await clock.advance(60_000)
    expect((await Promise.all(waits)).map(idsOf)).to.deep.equal([['a'], []])
    await poller.stop()
  })

  it('asks separately for different visibilities, and continues for those that got nothing', async () => {
    const answers = [reply([], NOW), reply(['b'], NOW), reply(['a'])]
    const { poller, asked } = setUp(() => answers.shift() ?? reply([]))
    const [short, long] = [
      poller.take(1, { visibilityMs: 100, beforehand: false }, {}),
      poller.take(1, { visibilityMs: 9_000, beforehand: false }, {}),
    ]
    expect([idsOf(await short), idsOf(await long)]).to.deep.equal([['a'], ['b']])
    expect(asked).to.deep.equal([
      [1, 100],
      [1, 9_000],
      [1, 100],
    ])
    await poller.stop()
  })

  it('polls first for callers that got nothing, so that a caller that polls again and again does not starve them', async () => {
    const there = ['a']
    const { poller, asked } = setUp(() => reply(there.splice(0)))
    const [greedy, patient] = [
      poller.take(1, { visibilityMs: 100, beforehand: false }, {}),
      poller.take(1, { visibilityMs: 9_000, beforehand: false }, {}),
    ]
    expect(idsOf(await greedy)).to.deep.equal(['a'])
    await settle()
    there.push('b')
    const again = poller.take(1, { visibilityMs: 100, beforehand: false }, {}).catch(() => [])
    await settle()
    expect(asked.map(([, visibilityMs]) => visibilityMs)).to.deep.equal([100, 9_000, 9_000, 100])
    expect(idsOf(await patient)).to.deep.equal(['b'])
    await poller.stop()
    await again
  })

  it('gives back messages for a caller that has gone meanwhile', async () => {
    let answer: (reply: PollReply) => void = () => undefined
    const { poller, released } = setUp(() => new Promise((resolve) => (answer = resolve)))
    const abort = new AbortController()
    const waiting = rejection(poller.take(1, { visibilityMs: -1, beforehand: false }, { signal: abort.signal }))
    await settle()
    abort.abort(new Error('gone'))
    expect((await waiting).message).to.equal('gone')
    answer(reply(['a']))
    await settle()
    expect(released).to.deep.equal(['a'])
    await poller.stop()
  })

  it('polls nothing while no call waits, whatever is announced', async () => {
    const { poller, asked } = setUp(() => reply(['a'], NOW))
    await poller.take(1, { visibilityMs: -1, beforehand: false }, {})
    poller.onMessage(String(NOW))
    poller.onSubscribed()
    poller.sweep()
    await settle()
    expect(asked).to.have.length(1)
    await poller.stop()
  })

  it('rejects the waiting calls until the first success; afterwards waits out failures', async () => {
    const failure = new ConnectionError('refused', 'not-applied')
    let works = false
    const { poller, errors } = setUp(() => {
      if (works) return reply(['a'])
      throw failure
    })
    expect(await rejection(poller.take(1, { visibilityMs: -1, beforehand: false }, {}))).to.include({
      message: 'refused',
    })
    works = true
    poller.onSubscribed() // ends the back-off
    expect(idsOf(await poller.take(1, { visibilityMs: -1, beforehand: false }, {}))).to.deep.equal(['a'])
    works = false
    const waiting = poller.take(1, { visibilityMs: -1, beforehand: false }, {})
    await settle()
    expect(errors).to.deep.equal([failure])
    works = true
    poller.onSubscribed()
    expect(idsOf(await waiting)).to.deep.equal(['a'])
    await poller.stop()
  })

  it('a stop ends waits, and later ones', async () => {
    const { poller } = setUp(() => reply([]))
    const waiting = rejection(poller.take(1, { visibilityMs: -1, beforehand: false }, {}))
    await settle()
    await poller.stop()
    expect(await waiting).to.be.instanceOf(ShutdownError)
    expect(await rejection(poller.take(1, { visibilityMs: -1, beforehand: false }, {}))).to.be.instanceOf(ShutdownError)
  })
})
