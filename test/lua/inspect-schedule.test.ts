import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { inspectSchedule, type InspectScheduleReply } from '../../src/store/scripts.js'
import { old, ordered, readable, rejection, unordered, useRedis, type State } from './support.js'

describe('inspect-schedule.lua', () => {
  const rig = useRedis()
  const LATER = 2 ** 52
  const [a, b, c, d] = [ordered('a', 'A'), old('b', 'B'), unordered('c', 'C'), unordered('d', 'D', 5)]
  const first = { due: '-inf', skip: 0 }
  const nothing = { next: null, negative: 0, malformed: 0, malformedDue: 0, old: 0, ordered: [] as string[] }
  const readableReply = (reply: InspectScheduleReply) => ({
    ...reply,
    ordered: reply.ordered.map(({ due, prefix }) => `${due} ${readable(prefix)}`),
  })

  const cases: [what: string, before: State, reply: Partial<typeof nothing>][] = [
    ['nothing in an empty schedule', {}, {}],
    [
      'the ids of what should be in the order list, and no payload',
      {
        timeouts: [
          [a, 5],
          [c, 6],
          [d, 7],
          [b, LATER],
        ],
      },
      { old: 1, ordered: ['5 \\x08a.......', `${LATER} b.......`] },
    ],
    [
      'what cannot be read, and what of it is due',
      {
        timeouts: [
          ['junk', 0],
          ['', 5],
          ['more', LATER],
        ],
      },
      { malformed: 3, malformedDue: 2 },
    ],
    [
      'negative due times, whatever is there',
      {
        timeouts: [
          ['junk', '-inf'],
          [a, -1],
        ],
      },
      { negative: 2 },
    ],
    ['infinite due times', { timeouts: [[a, '+inf']] }, { ordered: ['inf \\x08a.......'] }],
  ]
  for (const [what, before, reply] of cases) {
    it(`returns ${what}, and changes nothing`, async () => {
      const queue = await rig.queue(before)
      const state = await queue.read()
      const found = await run(rig.sender, inspectSchedule, queue.keys, { ...first, page: 100 })
      expect(readableReply(found)).to.deep.equal({ ...nothing, ...reply })
      expect(await queue.read()).to.deep.equal(state)
      expect(await queue.published()).to.deep.equal([])
    })
  }

  for (const page of [1, 2, 3, 7, 20]) {
    it(`sees each entry once in pages of ${page}, also many of one due time`, async () => {
      const dues = [1, 1, 1, 1, 1, 2, 3, 3, 3, '+inf', '+inf']
      const queue = await rig.queue({ timeouts: dues.map((due, i) => [ordered(`id-${i}`, 'x'), due]) })
      const seen: string[] = []
      for (let next: InspectScheduleReply['next'] = first; next !== null;) {
        const reply: InspectScheduleReply = await run(rig.sender, inspectSchedule, queue.keys, { ...next, page })
        seen.push(...readableReply(reply).ordered)
        next = reply.next
      }
      expect(seen).to.have.lengthOf(dues.length)
      expect(new Set(seen).size).to.equal(dues.length)
    })
  }

  it('rejects when the key has another type', async () => {
    const queue = await rig.queue()
    await rig.redis.set(queue.keys.timeouts, 'in the way')
    const surveyed = run(rig.sender, inspectSchedule, queue.keys, { ...first, page: 10 })
    expect(await rejection(surveyed)).to.include({ code: 'ERR_WRONG_TYPE' })
  })
})
