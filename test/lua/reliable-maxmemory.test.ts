import { expect } from 'chai'
import * as scripts from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import {
  asDead,
  expected,
  handled,
  having,
  NOW,
  pollArgs,
  useReliable,
  type ReliableFixture,
  type State,
} from './reliable-support.js'
import { raw, rejection } from './support.js'

/** At `maxmemory` without eviction Redis takes no new message, but those that it has must reach their consumers and go. */
describe('the scripts of the reliable queue at maxmemory', () => {
  const rig = useReliable([])
  const x = { id: 'x', until: NOW + 9, attempts: 3, payload: 'X', priority: 4 }
  const [waits, given] = [{ id: 'w', payload: 'W' }, handled(['x', '3 t', 4])]
  const line = `3 ${NOW} "why"\n`

  const poll = (queue: ReliableFixture) =>
    run(rig.sender, scripts.poll, queue.keys, pollArgs(queue, { visibilityMs: 5, token: 'u', idleMs: 1 }))
  const progress = (visibilityMs: string) => (queue: ReliableFixture) =>
    run(rig.sender, scripts.progress, queue.keys, {
      ...{ channel: queue.channel, client: 'me', nowMs: NOW, visibilityMs },
      ...{ member: raw('4x'), delivery: '3 t', progress: raw('7') },
    })
  const giveBack = (how: string) => (queue: ReliableFixture) => {
    const { channel, deadChannel } = queue
    const args = { channel, deadChannel, client: 'me', nowMs: NOW, how, delayMs: 5, reason: '"why"', handled: given }
    return run(rig.sender, scripts.negativeAcknowledge, queue.keys, args)
  }
  const extend = (queue: ReliableFixture) =>
    run(rig.sender, scripts.extend, queue.keys, {
      channel: queue.channel,
      nowMs: NOW,
      visibilityMs: 50,
      unbegun: 0,
      handled: given,
    })

  const passes: { what: string; before: State; call: (queue: ReliableFixture) => Promise<unknown>; after: State }[] = [
    {
      what: 'a poll hands out',
      before: having([waits]),
      call: poll,
      after: having([{ ...waits, until: NOW + 5, token: 'u' }]),
    },
    {
      what: 'a poll brings back what was not acknowledged in time, and buries it',
      before: having([{ ...x, until: NOW, limit: 3 }]),
      call: poll,
      after: {
        dead: asDead([{ id: 'x', at: NOW, payload: 'X', limit: 3, failures: `3 ${NOW} "its visibility ended"\n` }]),
      },
    },
    {
      what: 'a poll returns a tick',
      before: { repeats: [['r', 'R']], ticks: [['r', NOW]] },
      call: poll,
      after: { repeats: [['r', 'R']], ticks: [['r', NOW + 1000]] },
    },
    {
      what: 'acknowledge removes',
      before: having([x, waits]),
      call: (queue) =>
        run(rig.sender, scripts.acknowledge, queue.keys, {
          client: 'me',
          nowMs: NOW,
          withResults: false,
          handled: given,
        }),
      after: having([waits]),
    },
    { what: 'extend gives more time', before: having([x]), call: extend, after: having([{ ...x, until: NOW + 50 }]) },
    {
      what: 'progress that extends is kept, and gives more time',
      before: having([x]),
      call: progress('50'),
      after: having([{ ...x, until: NOW + 50, failures: `~3 ${NOW} 7\n` }]),
    },
    {
      what: 'what failed is given back',
      before: having([x]),
      call: giveBack('failed'),
      after: having([{ id: 'x', at: NOW + 5, attempts: 3, payload: 'X', priority: 4, failures: line }]),
    },
    {
      what: 'what is released is given back',
      before: having([x]),
      call: giveBack('released'),
      after: having([{ id: 'x', at: NOW + 5, attempts: 2, payload: 'X', priority: 4 }]),
    },
    {
      what: 'what is rejected becomes a dead letter',
      before: having([x]),
      call: giveBack('rejected'),
      after: { dead: asDead([{ id: 'x', payload: 'X', failures: line }]) },
    },
    {
      what: 'remove removes',
      before: having([x, waits]),
      call: (queue) =>
        run(rig.sender, scripts.remove, queue.keys, { client: 'me', nowMs: NOW, alsoHeld: true, ids: [raw('x')] }),
      after: having([waits]),
    },
  ]

  const refused: { what: string; before: State; call: (queue: ReliableFixture) => Promise<unknown> }[] = [
    ...[[], ['m']].map((marks) => ({
      what: `add is refused, marks that are over: ${marks.length}`,
      before: having([waits], { once: marks.map((mark) => [mark, 1] as const) }),
      call: ({ keys, channel }: ReliableFixture) =>
        run(rig.sender, scripts.add, keys, {
          channel,
          client: 'me',
          nowMs: NOW,
          existing: 'keep',
          sentAgoMs: -1,
          durable: false,
          batch: '',
          items: ['a', '0,,,,0,,', 'A'].map(raw),
        }),
    })),
    { what: 'progress that extends nothing is refused', before: having([x]), call: progress('') },
    {
      what: 'the message of a tick is refused, and the tick stays',
      before: having([waits], { repeats: [['r', 'R']], ticks: [['r', NOW]] }),
      call: ({ keys, channel }) =>
        run(rig.sender, scripts.repeat, keys, {
          channel,
          client: 'me',
          nowMs: NOW,
          computedAt: NOW,
          name: raw('r'),
          expected: raw('R'),
          value: raw('S'),
          at: `${NOW + 5}`,
          priority: 0,
          withdrawn: raw(''),
          items: ['r@5', `${NOW + 5}`, '\0'].map(raw),
        }),
    },
  ]

  const full = async <T>(action: () => Promise<T>): Promise<T> => {
    await rig.redis.config('SET', 'maxmemory', '1')
    try {
      return await action()
    } finally {
      await rig.redis.config('SET', 'maxmemory', '0')
    }
  }

  for (const { what, before: state, call, after: then } of passes) {
    it(what, async () => {
      const queue = await rig.queue(state)
      await full(async () => {
        // what Redis refuses, so that the test fails if it refuses nothing
        expect((await rejection(rig.redis.set(queue.keys.config, 'x'))).message).to.match(/OOM/)
        await call(queue)
      })
      expect(await queue.read()).to.deep.equal(expected(then))
    })
  }

  for (const { what, before: state, call } of refused) {
    it(what, async () => {
      const queue = await rig.queue(state)
      const thrown = await full(() => rejection(call(queue)))
      expect(thrown.message).to.match(/OOM/)
      expect(await queue.read()).to.deep.equal(expected(state))
    })
  }
})
