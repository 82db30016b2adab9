import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { stats, type StatsReply } from '../../src/store/scripts.js'
import { expected, ordered, rejection, unordered, useRedis, type State } from './support.js'

describe('stats.lua', () => {
  const rig = useRedis()
  const NOW = 1_000_000
  const [a, b, c] = [ordered('a', 'A'), ordered('b', 'B'), unordered('c', 'C')]
  const nothing: StatsReply = {
    now: NOW,
    pending: 0,
    overdue: 0,
    nextDue: null,
    delivered: 0,
    quarantined: 0,
    subscribers: 1,
    more: null,
  }

  const cases: [what: string, before: State, reply: Partial<StatsReply>][] = [
    ['an empty queue', {}, {}],
    [
      'what is pending, due, delivered and in quarantine',
      {
        timeouts: [
          [a, NOW - 5],
          [c, NOW],
          [b, NOW + 1],
        ],
        order: [a, b],
        destination: ['x', 'y'],
        quarantine: ['z'],
      },
      { pending: 3, overdue: 2, nextDue: NOW - 5, delivered: 2, quarantined: 1 },
    ],
    [
      'negative due times',
      {
        timeouts: [
          [a, -7],
          [b, NOW + 1],
        ],
      },
      { pending: 2, overdue: 1, nextDue: -7 },
    ],
    ['an infinite due time', { timeouts: [[a, '+inf']] }, { pending: 1, nextDue: Infinity }],
    ['the largest due time', { timeouts: [[a, '9007199254740991']] }, { pending: 1, nextDue: Number.MAX_SAFE_INTEGER }],
  ]
  for (const [what, before, reply] of cases) {
    it(`counts ${what}, and changes nothing`, async () => {
      const queue = await rig.queue(before)
      const args = { channel: queue.keys.channel, nowMs: NOW }
      const state = await queue.read()
      expect(await run(rig.sender, stats, queue.keys, args)).to.deep.equal({ ...nothing, ...reply })
      expect(await queue.read()).to.deep.equal(state)
      expect(await queue.published()).to.deep.equal([])
    })
  }

  it('uses the clock of the server without a given time', async () => {
    const queue = await rig.queue({
      timeouts: [
        [a, 1],
        [b, 2 ** 50],
      ],
    })
    const [seconds] = (await rig.redis.time()) as unknown as [string, string]
    const reply = await run(rig.sender, stats, queue.keys, { channel: queue.keys.channel, nowMs: -1 })
    expect(reply.now).to.be.within(Number(seconds) * 1000, Number(seconds) * 1000 + 5000)
    expect(reply).to.include({ pending: 2, overdue: 1 })
    expect(await queue.read()).to.deep.equal(
      expected({
        timeouts: [
          [a, 1],
          [b, 2 ** 50],
        ],
      }),
    )
  })

  it('rejects when a key has another type', async () => {
    const queue = await rig.queue()
    await rig.redis.set(queue.keys.destination, 'in the way')
    const counted = run(rig.sender, stats, queue.keys, { channel: queue.keys.channel, nowMs: -1 })
    expect(await rejection(counted)).to.include({ code: 'ERR_WRONG_TYPE' })
  })
})
