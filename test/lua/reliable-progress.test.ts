import { expect } from 'chai'
import { get, negativeAcknowledge, poll, progress } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import {
  asDead,
  expected,
  handled,
  having,
  MAX,
  memberOf,
  NOW,
  useReliable,
  type ReliableFixture,
  type State,
  LONGEST,
} from './reliable-support.js'
import { ALL_BYTES, raw, readable, rejection, type Bytes } from './support.js'

const ON = [['changes', 'r,1000,,0,epoch']] as const

describe('reliable-progress.lua', () => {
  const rig = useReliable()

  function say(
    queue: ReliableFixture,
    value: Bytes = '50',
    { id = 'x', delivery = '2 t', priority = 0, visibilityMs = '' } = {},
  ): Promise<number | null> {
    const held = { member: memberOf(id, priority), delivery, progress: raw(value) }
    const { channel } = queue
    return run(rig.sender, progress, queue.keys, { channel, client: 'me', nowMs: NOW, visibilityMs, ...held })
  }

  const x = { id: 'x', until: NOW + 900, attempts: 2, payload: 'X' }
  const line = (value: string, attempt = 2): string => `~${attempt} ${NOW} ${value}\n`

  const cases: {
    what: string
    before?: State
    value?: Bytes
    visibilityMs?: string
    ends: number
    after: State
    published?: string[]
  }[] = [
    {
      what: 'is kept with a message that has no history',
      ends: NOW + 900,
      after: having([{ ...x, failures: line('50') }]),
    },
    {
      what: 'is kept before the history',
      before: having([{ ...x, failures: '1 5 "f"\n' }]),
      ends: NOW + 900,
      after: having([{ ...x, failures: `${line('50')}1 5 "f"\n` }]),
    },
    {
      what: 'takes the place of the last one',
      before: having([{ ...x, failures: '~1 7 10\n1 5 "f"\n' }]),
      ends: NOW + 900,
      after: having([{ ...x, failures: `${line('50')}1 5 "f"\n` }]),
    },
    {
      what: 'may be empty',
      value: '',
      ends: NOW + 900,
      after: having([{ ...x, failures: line('') }]),
    },
    {
      what: 'is one line, whatever is in it',
      value: 'a\nb\\nc\\',
      ends: NOW + 900,
      after: having([{ ...x, failures: line('a\\nb\\\\nc\\\\') }]),
    },
    {
      what: 'takes the place of a history that no script has written',
      before: having([{ ...x, failures: 'f'.repeat(65_537) }]),
      ends: NOW + 900,
      after: having([{ ...x, failures: line('50') }]),
    },
    {
      what: 'leaves what was taken beforehand as it is',
      before: having([{ ...x, until: `${NOW + 900}.75` }]),
      ends: NOW + 901,
      after: having([{ ...x, until: `${NOW + 900}.75`, failures: line('50') }]),
    },
    {
      what: 'extends the visibility where it is asked to, and begins what was taken beforehand',
      before: having([{ ...x, until: `${NOW + 900}.75` }]),
      visibilityMs: '2000',
      ends: NOW + 2000,
      after: having([{ ...x, until: NOW + 2000, failures: line('50') }]),
    },
    {
      what: 'extends it as the queue says',
      before: having([x], { config: [['visibilityTimeout', '70']] }),
      visibilityMs: '-1',
      ends: NOW + 70,
      after: having([{ ...x, until: NOW + 70, failures: line('50') }], { config: [['visibilityTimeout', '70']] }),
      published: [String(NOW + 70)],
    },
    {
      what: 'extends it by 30 s where the queue says nothing',
      visibilityMs: '-1',
      ends: NOW + 30_000,
      after: having([{ ...x, until: NOW + 30_000, failures: line('50') }]),
    },
    {
      what: 'extends it by the longest visibility at most',
      visibilityMs: String(MAX),
      ends: NOW + LONGEST,
      after: having([{ ...x, until: NOW + LONGEST, failures: line('50') }]),
    },
  ]
  for (const { what, before = having([x]), value, visibilityMs = '', ends, after, published = [] } of cases) {
    it(what, async () => {
      const queue = await rig.queue(before)
      expect(await say(queue, value, { visibilityMs })).to.equal(ends)
      expect(await queue.read()).to.deep.equal(expected(after))
      expect(await queue.published()).to.deep.equal(published)
    })
  }

  const notHeld: [what: string, before: State, more?: { priority: number }][] = [
    ['an id that is unknown', {}],
    ['another token', having([{ ...x, token: 'u' }])],
    ['a later attempt', having([{ ...x, attempts: 3 }])],
    ['another priority', having([{ ...x, priority: 1 }]), { priority: 2 }],
    ['a visibility that ends right now', having([{ ...x, until: NOW }])],
    ['one that came back', having([{ id: 'x', at: NOW, attempts: 2 }])],
    ['one that was added anew', having([{ id: 'x', at: NOW }])],
    ['one that has ended, of which another program has kept the delivery', { deliveries: [['x', '2 t']] }],
  ]
  for (const [what, before, more] of notHeld) {
    it(`leaves ${what}`, async () => {
      const queue = await rig.queue(before)
      expect(await say(queue, '50', { visibilityMs: '9', ...more })).to.equal(null)
      expect(await queue.read()).to.deep.equal(expected(before))
      expect(await queue.published()).to.deep.equal([])
    })
  }

  it('reads all bytes as they were', async () => {
    const queue = await rig.queue(having([x]))
    for (const value of [ALL_BYTES, 'a\nb\\nc\\', '\\', '\n', '']) {
      await say(queue, value)
      const { messages } = await run(rig.sender, get, queue.keys, { nowMs: NOW, ids: [raw('x')] })
      const said = messages[0]?.progress
      expect(said && { ...said, value: readable(said.value) }).to.deep.equal({
        ...{ attempt: 2, at: NOW },
        value: readable(raw(value)),
      })
    }
  })

  for (const history of ['~', '~\n', '~x 1 y\n', '~1 1\n', `~${'9'.repeat(99)} 1 y\n`, '1 1 "f"\n']) {
    it(`reads no progress of ${JSON.stringify(history.slice(0, 12))}`, async () => {
      const queue = await rig.queue(having([{ ...x, failures: history }]))
      const { messages } = await run(rig.sender, get, queue.keys, { nowMs: NOW, ids: [raw('x')] })
      expect(messages[0]?.progress).to.equal(null)
    })
  }

  it('stays when the message fails, however long its history is, and when it becomes a dead letter', async () => {
    const queue = await rig.queue(having([{ ...x, failures: '1 5 "f"\n' }]))
    await say(queue)
    const { channel, deadChannel } = queue
    const reason = `"${'long '.repeat(3000)}"`
    const args = { channel, deadChannel, client: 'me', nowMs: NOW, how: 'rejected', delayMs: 0, reason }
    await run(rig.sender, negativeAcknowledge, queue.keys, { ...args, handled: handled(['x', '2 t']) })
    expect(await queue.read()).to.deep.equal(
      expected({ dead: asDead([{ id: 'x', payload: 'X', failures: `${line('50')}2 ${NOW} ${reason}\n` }]) }),
    )
  })

  it('stays when the visibility ends', async () => {
    const queue = await rig.queue(having([{ ...x, until: NOW + 5 }]))
    await say(queue)
    const { channel, deadChannel } = queue
    await run(rig.sender, poll, queue.keys, {
      ...{ channel, deadChannel, client: 'me', nowMs: NOW + 9, budgetUs: 10_000_000, count: 0, visibilityMs: 50 },
      ...{ token: 't', idleMs: 1, announce: false, beforehand: false, repeatBytes: 1_000 },
    })
    expect((await queue.read()).queue.failures).to.deep.equal({
      x: readable(`${line('50')}2 ${NOW + 9} "its visibility ended"\n`),
    })
  })

  it('is one change of its own kind', async () => {
    const queue = await rig.queue(having([{ ...x, priority: 3 }], { config: ON }))
    await say(queue, 'a\nb', { priority: 3 })
    expect(await queue.changes()).to.deep.equal(['epoch me\ng,2,,,1,1,3\na\nbx'])
  })

  for (const wrong of ['deliveries', 'failures', 'inFlight'] as const) {
    it(`is refused, and changes nothing, where ${wrong} is of another type`, async () => {
      const queue = await rig.queue(having([x]))
      await queue.block(wrong)
      const before = await queue.read()
      expect(await rejection(say(queue, '50', { visibilityMs: '5' }))).to.include({ code: 'ERR_WRONG_TYPE' })
      expect(await queue.read()).to.deep.equal(before)
    })
  }

  it('changes nothing when it may not announce', async () => {
    const queue = await rig.queue(having([x]))
    const args = { channel: queue.channel, client: 'me', nowMs: NOW, visibilityMs: '5', delivery: '2 t' }
    const sent = { ...args, member: memberOf('x'), progress: raw('50') }
    await rig.muted([], async (sender) => {
      expect(await rejection(run(sender, progress, queue.keys, sent))).to.be.instanceOf(Error)
    })
    expect(await queue.read()).to.deep.equal(expected(having([x])))
  })
})
