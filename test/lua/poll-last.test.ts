import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { pollLast } from '../../src/store/scripts.js'
import {
  ALL_BYTES,
  commandCalls,
  expected,
  old,
  ordered,
  readable,
  rejection,
  unordered,
  useRedis,
  type Bytes,
  type Fixture,
  type State,
} from './support.js'

describe('poll-last.lua', () => {
  const rig = useRedis()
  // the target is the destination: any list will do
  const pollIn = (queue: Fixture, inOrder: boolean): Promise<Buffer | null> =>
    run(rig.sender, pollLast, { ...queue.keys, target: queue.keys.destination }, { ordered: inOrder })

  const [a, b, c, e] = [ordered('a', 'A'), ordered('b', ALL_BYTES), unordered('c', 'C'), old('e', 'E')]
  const all: State = {
    timeouts: [
      [a, 1],
      [b, 2],
      [e, 3],
      [c, 4],
    ],
    order: [a, e, b],
    destination: ['there'],
  }

  const cases: [what: string, before: State, inOrder: boolean, reply: Bytes | null, after: State][] = [
    [
      'moves the last offered to the front of the other list',
      all,
      true,
      ALL_BYTES,
      { timeouts: [[a, 1], [e, 3], [c, 4]], order: [a, e], destination: [ALL_BYTES, 'there'] }, // prettier-ignore
    ],
    [
      'moves the last due when there is no order',
      all,
      false,
      'C',
      { timeouts: [[a, 1], [b, 2], [e, 3]], order: [a, e, b], destination: ['C', 'there'] }, // prettier-ignore
    ],
    [
      'takes the last due out of the order list too',
      { timeouts: [[a, 1], [b, 2]], order: [b, a] }, // prettier-ignore
      false,
      ALL_BYTES,
      { timeouts: [[a, 1]], order: [a], destination: [ALL_BYTES] },
    ],
    ['moves one of the old format', { timeouts: [[e, 1]], order: [e] }, true, 'E', { destination: ['E'] }],
    [
      'moves an empty payload',
      { timeouts: [[ordered('z', ''), 1]], order: [ordered('z', '')] },
      true,
      '',
      { destination: [''] },
    ],
    [
      'passes over what was delivered already',
      { timeouts: [[a, 1]], order: [a, b, e] },
      true,
      'A',
      { destination: ['A'] },
    ],
    ['gives nothing from an empty order list', { timeouts: [[c, 1]] }, true, null, { timeouts: [[c, 1]] }],
    ['gives nothing from an empty schedule', { destination: ['there'] }, false, null, { destination: ['there'] }],
  ]
  for (const [what, before, inOrder, reply, after] of cases) {
    it(what, async () => {
      const queue = await rig.queue(before)
      const payload = await pollIn(queue, inOrder)
      expect(payload && readable(payload)).to.equal(reply === null ? null : readable(reply))
      expect(await queue.read()).to.deep.equal(expected(after))
    })
  }

  for (const inOrder of [true, false]) {
    it(`sets unreadable entries aside, and continues (ordered: ${inOrder})`, async () => {
      const queue = await rig.queue({
        timeouts: [
          [a, 1],
          ['garbage', 2],
        ],
        order: [a, 'garbage'],
      })
      expect((await pollIn(queue, inOrder))?.toString()).to.equal('A')
      const { timeouts, order, destination, quarantine } = await queue.read()
      expect({ timeouts, order, destination }).to.deep.equal({ timeouts: [], order: [], destination: ['A'] })
      expect(quarantine).to.have.lengthOf(1)
      expect(quarantine[0]).to.match(/^malformed \d{13} garbage$/)
    })
  }

  for (const inOrder of [true, false]) {
    it(`leaves entries that the quarantine does not take, and continues (ordered: ${inOrder})`, async () => {
      const before = { timeouts: [[a, 1] as const, ['garbage', 2] as const], order: [a, 'garbage'] }
      const queue = await rig.queue(before)
      await rig.redis.set(queue.keys.quarantine, 'in the way')
      expect((await pollIn(queue, inOrder))?.toString()).to.equal('A')
      await rig.redis.del(queue.keys.quarantine)
      const after = { timeouts: [['garbage', 2] as const], order: ['garbage'], destination: ['A'] }
      expect(await queue.read()).to.deep.equal(expected(after))
    })
  }

  it('does not search a long order list for an unreadable entry', async () => {
    const bad = Array.from({ length: 900 }, (_, n) => [`unreadable ${n}`, 9 + n] as const)
    const order = [...Array.from({ length: 1_001 }, (_, n) => `stranger ${n}`), a]
    const queue = await rig.queue({ timeouts: [[a, 1], ...bad], order })
    const calls = await commandCalls(rig.redis, async () => {
      expect((await pollIn(queue, false))?.toString()).to.equal('A')
    })
    expect(calls.lrem).to.equal(1) // of the one that is taken
    const after = await queue.read()
    expect({ timeouts: after.timeouts, set: after.quarantine.length }).to.deep.equal({ timeouts: [], set: 900 })
  })

  it('passes over a bounded number in one script', async () => {
    const stale = Array.from({ length: 1_001 }, (_, n) => ordered(`s${n}`, 'S'))
    const queue = await rig.queue({ timeouts: [[a, 1]], order: [a, ...stale] })
    expect(await pollIn(queue, true)).to.equal(null)
    expect((await queue.read()).order).to.have.lengthOf(2)
  })

  for (const key of ['destination', 'order'] as const) {
    it(`changes nothing when the ${key === 'order' ? 'order list' : 'other list'} is not a list`, async () => {
      const queue = await rig.queue({ timeouts: [[a, 1]], order: key === 'order' ? [] : [a] })
      await rig.redis.set(queue.keys[key], 'in the way')
      for (const inOrder of [true, false]) {
        expect(await rejection(pollIn(queue, inOrder))).to.include({ code: 'ERR_WRONG_TYPE' })
      }
      expect(await rig.redis.get(queue.keys[key])).to.equal('in the way')
      await rig.redis.del(queue.keys[key])
      expect(await queue.read()).to.deep.equal(expected({ timeouts: [[a, 1]], order: key === 'order' ? [] : [a] }))
    })
  }
})
