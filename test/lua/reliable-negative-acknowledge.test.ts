import { expect } from 'chai'
import { negativeAcknowledge } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import { asDead, expected, handled, having, MAX, NOW, useReliable, type State } from './reliable-support.js'
import { ALL_BYTES, readable, rejection } from './support.js'

type How = 'failed' | 'rejected' | 'released'

describe('reliable-negative-acknowledge.lua', () => {
  const rig = useReliable()
  const x = { id: 'x', until: NOW + 900, attempts: 3, failures: '1 5 "x"\n', payload: 'X' }
  const other = { id: 'v', until: NOW + 3000, priority: 9 }
  const line = (attempt: number): string => `${attempt} ${NOW} "why"\n`
  const deadX = { id: 'x', at: NOW, payload: 'X', failures: `1 5 "x"\n${line(3)}` }

  const cases: {
    what: string
    before: State
    how: How
    delayMs?: number
    handled: Buffer[]
    reply: number[]
    after: State
    published: (number | string)[]
  }[] = [
    {
      what: 'does nothing when nothing is given',
      before: having([x]),
      how: 'rejected',
      handled: [],
      reply: [],
      after: having([x]),
      published: [],
    },
    {
      what: 'gives one that failed back after the delay, notes it and announces it',
      before: having([x, other]),
      how: 'failed',
      handled: handled(['x', '3 t']),
      reply: [1],
      after: having([{ id: 'x', at: NOW + 500, attempts: 3, payload: 'X', failures: `1 5 "x"\n${line(3)}` }, other]),
      published: [NOW + 500],
    },
    {
      what: 'keeps its priority',
      before: having([{ ...x, priority: 7 }]),
      how: 'failed',
      delayMs: 0,
      handled: handled(['x', '3 t', 7]),
      reply: [1],
      after: having([{ id: 'x', priority: 7, at: NOW, attempts: 3, payload: 'X', failures: `1 5 "x"\n${line(3)}` }]),
      published: [NOW],
    },
    {
      what: 'gives one that is released back as if it had not been delivered',
      before: having([x, { id: 'y', until: NOW + 900 }]),
      how: 'released',
      handled: handled(['x', '3 t'], ['y', '1 t']),
      reply: [1, 1],
      after: having([
        { id: 'x', at: NOW + 500, attempts: 2, payload: 'X', failures: '1 5 "x"\n' },
        { id: 'y', at: NOW + 500 },
      ]),
      published: [NOW + 500],
    },
    {
      what: 'releases one that was delivered as often as it may',
      before: having([{ ...x, limit: 3 }]),
      how: 'released',
      handled: handled(['x', '3 t']),
      reply: [1],
      after: having([{ id: 'x', at: NOW + 500, attempts: 2, payload: 'X', failures: '1 5 "x"\n', limit: 3 }]),
      published: [NOW + 500],
    },
    {
      what: 'says nothing when something is visible, or comes back, as early',
      before: having([x, { id: 'v', until: NOW + 500 }]),
      how: 'failed',
      handled: handled(['x', '3 t']),
      reply: [1],
      after: having([
        { id: 'x', at: NOW + 500, attempts: 3, payload: 'X', failures: `1 5 "x"\n${line(3)}` },
        { id: 'v', until: NOW + 500 },
      ]),
      published: [],
    },
    {
      what: 'says nothing when a tick of a repeat comes as early',
      before: having([x], { ticks: [['r', NOW + 500]] }),
      how: 'failed',
      handled: handled(['x', '3 t']),
      reply: [1],
      after: having([{ id: 'x', at: NOW + 500, attempts: 3, payload: 'X', failures: `1 5 "x"\n${line(3)}` }], {
        ticks: [['r', NOW + 500]],
      }),
      published: [],
    },
    {
      what: 'says nothing when it is visible later than its own visibility would have ended',
      before: having([x]),
      how: 'failed',
      delayMs: 901,
      handled: handled(['x', '3 t']),
      reply: [1],
      after: having([{ id: 'x', at: NOW + 901, attempts: 3, payload: 'X', failures: `1 5 "x"\n${line(3)}` }]),
      published: [],
    },
    {
      what: 'makes a dead letter of one that is rejected, whatever its limit',
      before: having([{ ...x, limit: 1000, expires: NOW + 1, headers: 'h' }, other]),
      how: 'rejected',
      handled: handled(['x', '3 t']),
      reply: [2],
      after: having([other], { dead: asDead([{ ...deadX, limit: 1000, headers: 'h' }]) }),
      published: [`dead ${NOW}`],
    },
    {
      what: 'makes a dead letter of one that failed as often as it may',
      before: having([
        { ...x, limit: 3 },
        { id: 'y', until: NOW + 900, attempts: 3, limit: 4 },
      ]),
      how: 'failed',
      handled: handled(['x', '3 t'], ['y', '3 t']),
      reply: [2, 1],
      after: having([{ id: 'y', at: NOW + 500, attempts: 3, limit: 4, failures: line(3) }], {
        dead: asDead([{ ...deadX, limit: 3 }]),
      }),
      published: [NOW + 500, `dead ${NOW}`],
    },
    {
      what: 'has a limit of 10 when neither message nor queue sets one',
      before: having([
        { id: 'x', until: NOW + 1, attempts: 9 },
        { id: 'y', until: NOW + 1, attempts: 10 },
      ]),
      how: 'failed',
      handled: handled(['x', '9 t'], ['y', '10 t']),
      reply: [1, 2],
      after: having([{ id: 'x', at: NOW + 500, attempts: 9, failures: line(9) }], {
        dead: asDead([{ id: 'y', failures: line(10) }]),
      }),
      published: [`dead ${NOW}`],
    },
    {
      what: 'takes the limit of the queue; that of the message comes first',
      before: having(
        [
          { id: 'x', until: NOW + 1 },
          { id: 'y', until: NOW + 1, limit: 2 },
        ],
        { config: [['deliveryLimit', '1']] },
      ),
      how: 'failed',
      handled: handled(['x', '1 t'], ['y', '1 t']),
      reply: [2, 1],
      after: having([{ id: 'y', at: NOW + 500, attempts: 1, limit: 2, failures: line(1) }], {
        config: [['deliveryLimit', '1']],
        dead: asDead([{ id: 'x', failures: line(1) }]),
      }),
      published: [`dead ${NOW}`],
    },
    {
      what: 'removes what is rejected where the queue keeps no dead letters',
      before: having([x], { config: [['deadLetters', '0']] }),
      how: 'rejected',
      handled: handled(['x', '3 t']),
      reply: [2],
      after: { config: [['deadLetters', '0']] },
      published: [],
    },
    {
      what: 'leaves a dead letter of the same id as it is; the new ones get suffixes',
      before: having([x, { ...x, id: 'x~', payload: 'other' }], {
        dead: asDead([{ id: 'x', payload: 'old', failures: 'old\n' }]),
      }),
      how: 'rejected',
      handled: handled(['x', '3 t'], ['x~', '3 t']),
      reply: [2, 2],
      after: {
        dead: asDead([
          { id: 'x', payload: 'old', failures: 'old\n' },
          { ...deadX, id: `x~${NOW}.1` },
          { ...deadX, id: 'x~', payload: 'other' },
        ]),
      },
      published: [`dead ${NOW}`],
    },
    {
      what: 'keeps an id and a payload of any bytes',
      before: having([
        { id: ALL_BYTES, until: NOW + 1, payload: ALL_BYTES },
        { id: '', until: NOW + 1, priority: 4 },
      ]),
      how: 'rejected',
      handled: handled([ALL_BYTES, '1 t'], ['', '1 t', 4]),
      reply: [2, 2],
      after: {
        dead: asDead([
          { id: ALL_BYTES, payload: ALL_BYTES, failures: line(1) },
          { id: '', failures: line(1) },
        ]),
      },
      published: [`dead ${NOW}`],
    },
    ...['\xff', 'garbage', '\x03a,bcd', '\x05,1,99'].map((damaged) => ({
      what: `keeps all bytes of the record ${readable(damaged)} among the dead letters`,
      before: having([{ id: 'x', until: NOW + 1, record: damaged }]),
      how: 'rejected' as const,
      handled: handled(['x', '1 t']),
      reply: [2],
      after: { dead: asDead([{ id: 'x', record: damaged, failures: line(1) }]) },
      published: [`dead ${NOW}`],
    })),
    {
      what: 'forgets one without a record when it is rejected',
      before: { inFlight: [['0x', NOW + 1]], deliveries: [['x', '1 t']] },
      how: 'rejected',
      handled: handled(['x', '1 t']),
      reply: [2],
      after: {},
      published: [`dead ${NOW}`],
    },
    {
      what: 'judges each for itself, also one that is given twice',
      before: having([x, { id: 'y', until: NOW }, { id: 'z', until: NOW + 1, token: 'u' }]),
      how: 'failed',
      delayMs: 0,
      handled: handled(['y', '1 t'], ['x', '3 t'], ['x', '3 t'], ['z', '1 t']),
      reply: [0, 1, 0, 0],
      after: having([
        { id: 'x', at: NOW, attempts: 3, payload: 'X', failures: `1 5 "x"\n${line(3)}` },
        { id: 'y', until: NOW },
        { id: 'z', until: NOW + 1, token: 'u' },
      ]),
      published: [],
    },
    ...(['failed', 'rejected', 'released'] as const).flatMap((how) =>
      (
        [
          ['an unknown id', {}],
          ['another token', having([{ id: 'x', until: NOW + 1, token: 'u' }])],
          ['a later attempt', having([{ id: 'x', until: NOW + 1, attempts: 2 }])],
          ['another priority', having([{ id: 'x', until: NOW + 1, priority: 3 }])],
          ['a visibility that ends right now', having([{ id: 'x', until: NOW }])],
          ['one that came back', having([{ id: 'x', at: NOW, attempts: 1 }])],
          ['one that was added anew', having([{ id: 'x', at: NOW }])],
        ] as const
      ).map(([what, state]) => ({
        what: `leaves ${what}, ${how}`,
        before: having([{ id: 'first', at: 1 }], state),
        how,
        handled: handled(['x', '1 t']),
        reply: [0],
        after: having([{ id: 'first', at: 1 }], state),
        published: [],
      })),
    ),
    {
      what: 'gives back up to the last time there is',
      before: having([{ id: 'x', until: NOW + 1 }]),
      how: 'released',
      delayMs: MAX - NOW,
      handled: handled(['x', '1 t']),
      reply: [1],
      after: having([{ id: 'x', at: MAX }]),
      published: [],
    },
    {
      what: 'does nothing beyond it',
      before: having([{ id: 'x', until: NOW + 1 }]),
      how: 'released',
      delayMs: MAX - NOW + 1,
      handled: handled(['x', '1 t'], ['y', '1 t']),
      reply: [-3],
      after: having([{ id: 'x', until: NOW + 1 }]),
      published: [],
    },
  ]
  for (const { what, before: state, how, delayMs = 500, handled: pairs, reply, after: then, published } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      const { channel, deadChannel } = queue
      const args = { channel, deadChannel, client: 'me', nowMs: NOW, how, delayMs, reason: '"why"', handled: pairs }
      expect(await run(rig.sender, negativeAcknowledge, queue.keys, args)).to.deep.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(then))
      expect(await queue.published()).to.deep.equal(published.map(String))
    })
  }

  it('keeps a reason that is longer than the limit of a history, and drops all earlier lines', async () => {
    const queue = await rig.queue(having([x]))
    const { channel, deadChannel } = queue
    const reason = `"${'long '.repeat(3000)}"`
    const args = {
      channel,
      deadChannel,
      client: 'me',
      nowMs: NOW,
      how: 'failed',
      delayMs: 0,
      reason,
      handled: handled(['x', '3 t']),
    }
    await run(rig.sender, negativeAcknowledge, queue.keys, args)
    expect((await queue.read()).queue.failures).to.deep.equal({ x: readable(`3 ${NOW} ${reason}\n`) })
  })

  for (const how of ['failed', 'rejected', 'released'] as const) {
    it(`gives a thousand back at once, ${how}`, async () => {
      const all = Array.from({ length: 1000 }, (_, n) => ({ id: `id ${n}`, priority: n % 10, payload: `${n}` }))
      const queue = await rig.queue(having(all.map((each) => ({ ...each, until: NOW + 1 }))))
      const { channel, deadChannel } = queue
      const pairs = handled(...all.map(({ id, priority }) => [id, '1 t', priority] as const))
      const args = { channel, deadChannel, client: 'me', nowMs: NOW, how, delayMs: 0, reason: '"why"', handled: pairs }
      const reply = await run(rig.sender, negativeAcknowledge, queue.keys, args)
      expect(reply).to.deep.equal(all.map(() => (how === 'rejected' ? 2 : 1)))
      const failed = all.map((each) => ({ ...each, attempts: 1, failures: line(1) }))
      const dead = asDead(all.map(({ id, payload }) => ({ id, payload, failures: line(1) })))
      expect(await queue.read()).to.deep.equal(
        expected(how === 'rejected' ? { dead } : having(how === 'failed' ? failed : all)),
      )
      expect(await queue.published()).to.deep.equal([how === 'rejected' ? `dead ${NOW}` : String(NOW)])
    })
  }

  it('uses the clock of the server without a given time', async () => {
    const seconds = Number((await rig.redis.time())[0])
    const queue = await rig.queue(
      having([
        { id: 'x', until: NOW + 1 },
        { id: 'y', until: (seconds + 1000) * 1000 },
      ]),
    )
    const { channel, deadChannel } = queue
    const pairs = handled(['x', '1 t'], ['y', '1 t'])
    const args = {
      channel,
      deadChannel,
      client: 'me',
      nowMs: -1,
      how: 'failed',
      delayMs: 7,
      reason: '',
      handled: pairs,
    }
    expect(await run(rig.sender, negativeAcknowledge, queue.keys, args)).to.deep.equal([0, 1])
    expect(Number(await rig.redis.zscore(queue.keys.due0, 'y'))).to.be.within(
      seconds * 1000 + 7,
      (seconds + 600) * 1000,
    )
  })

  const wrongs = [
    'messages',
    'deliveries',
    'failures',
    'config',
    'inFlight',
    'ticks',
    'due0',
    'due2',
    'due9',
    'deadMessages',
    'deadFailures',
    'deadDue',
  ] as const
  for (const wrong of wrongs) {
    for (const how of ['failed', 'rejected', 'released'] as const) {
      it(`the message is still somewhere, once, when ${wrong} has the wrong type and it is ${how}`, async () => {
        const queue = await rig.queue(
          having([
            { ...x, priority: 2 },
            { id: 'v', at: 1 },
          ]),
        )
        await queue.block(wrong)
        const { channel, deadChannel } = queue
        const pairs = handled(['x', '3 t', 2])
        const args = {
          channel,
          deadChannel,
          client: 'me',
          nowMs: NOW,
          how,
          delayMs: 5,
          reason: '"why"',
          handled: pairs,
        }
        let thrown = ''
        for (let n = 0; n < 3; n++) {
          await run(rig.sender, negativeAcknowledge, queue.keys, args).catch(
            (error: unknown) => (thrown = String(error)),
          )
        }
        if (thrown !== '') expect(thrown).to.match(/wrong/i)
        if (['deliveries', 'inFlight', 'config'].includes(wrong)) expect(thrown).to.match(/wrong/i)
        if (!['messages', 'deliveries', 'inFlight', 'config', 'due2'].includes(wrong)) expect(thrown).to.equal('')
        await queue.unblock(wrong)
        if (wrong === 'messages' || wrong === 'inFlight') return // where it was is gone
        const { queue: now, dead } = await queue.read()
        const places = [...Object.values(now.due ?? {}), now.inFlight ?? []].flat().map(([member]) => member)
        const isHere =
          Object.keys(now.messages ?? {}).includes('x') && places.some((member) => member === 'x' || member === '2x')
        expect(Number(isHere) + Object.keys(dead.messages ?? {}).length).to.equal(1)
      })
    }
  }

  it('changes nothing when it may not announce', async () => {
    const state = having([x])
    const queue = await rig.queue(state)
    const { channel, deadChannel } = queue
    const args = {
      channel,
      deadChannel,
      client: 'me',
      nowMs: NOW,
      how: 'failed',
      delayMs: 5,
      reason: '"why"',
      handled: handled(['x', '3 t']),
    }
    const thrown = await rig.muted([deadChannel], (sender) =>
      rejection(run(sender, negativeAcknowledge, queue.keys, args)),
    )
    expect(thrown.message).to.match(/perm|can't/i)
    expect(await queue.read()).to.deep.equal(expected(state))
  })

  it('makes the dead letter, and reports it, when it may not announce that', async () => {
    const queue = await rig.queue(having([x]))
    const { channel, deadChannel } = queue
    const args = {
      channel,
      deadChannel,
      client: 'me',
      nowMs: NOW,
      how: 'rejected',
      delayMs: 0,
      reason: '"why"',
      handled: handled(['x', '3 t']),
    }
    const outcomes = await rig.muted([channel], (sender) => run(sender, negativeAcknowledge, queue.keys, args))
    expect(outcomes).to.deep.equal([2])
    expect(await queue.read()).to.deep.equal(expected({ dead: asDead([deadX]) }))
  })
})
