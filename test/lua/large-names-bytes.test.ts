/** One number bounds the bytes of large names of other programs that a script reads, wherever it reads them; what is left the next script reads. */
import { expect } from 'chai'
import * as scripts from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import type { Sender } from '../../src/store/sender.js'
import { FUTURE, merged, place, useCounts } from './large-names-support.js'
import { NOW, pollArgs, record, useReliable, type ReliableFixture, type State } from './reliable-support.js'

/** The most bytes of large names; a script reads single ones beyond them. */
const MOST = 262_144
/** When the one message of a queue is visible. */
const AT = NOW + 100_000
const PRIORITIES = Array.from({ length: 10 }, (_, priority) => priority)
const GROUPS = Array.from({ length: 60 }, (_, n) => `g${String(n).padStart(2, '0')}`)

/** Names of these sizes, each with its score from `from` on. */
function sized(start: string, sizes: readonly number[], from: number) {
  return sizes.map((size, n) => [start + String(n) + 'x'.repeat(size), from + n] as const)
}

/** Before each message of a schedule names of these sizes, in all schedules that a poll asks for the next time. */
function beforeNext(sizes: readonly number[]): State {
  return {
    due: Object.fromEntries(PRIORITIES.map((priority) => [priority, sized(String(priority), sizes, NOW + 1_000)])),
    ticks: sized('t', sizes, NOW + 1_000),
    inFlight: sized('0', sizes, NOW + 1_000),
  }
}

const plain: State = { messages: [['m', record()]], due: { 0: [['m', AT]] } }
const inGroup: State = {
  messages: [['m', '\u0005,,0,1gpayload']],
  due: { 10: [['m', AT]] },
  groupOrder: [[place('g', AT, 'm'), 0]],
  groupWakes: [['g', AT]],
  config: [['grouped', '1']],
}
/** The size of large names that are no longer than names in schedules can be. */
const SIZE = 20_000
const X = 'x'.repeat(SIZE)
const few = (size: number): number[] => Array<number>(6).fill(size)

describe('bytes of large names of other programs', function () {
  this.timeout(60_000)
  const rig = useReliable()
  const counts = useCounts(rig)

  async function poll(queue: ReliableFixture) {
    let next: number | null = null
    let isWork = false
    const { bytes } = await counts(async (of) => {
      const reply = await run(of, scripts.poll, queue.keys, pollArgs(queue, { count: 100 }))
      next = reply.next
      isWork = reply.changed > 0
    })
    return { bytes, next: next as number | null, isWork }
  }

  const rows: [what: string, state: State, largest: number, polls: number, next?: number][] = [
    ['of one size', merged(beforeNext(few(70_000)), plain), 70_000, 40],
    ['of a few sizes', merged(beforeNext([70_000, 400_000, 70_000, 1_100_000]), plain), 1_100_000, 60],
    [
      'where messages have groups',
      merged(beforeNext(few(400_000)), { groupWakes: sized('w', few(400_000), NOW + 1_000) }, inGroup),
      400_000,
      90,
    ],
    // those may be the ids of messages
    ['behind shorter ones', merged(beforeNext([50_000, 70_000, 70_000]), plain), 12 * 50_000, 1, NOW + 1_000],
  ]
  for (const [what, state, single, polls, next = AT] of rows)
    it(`a poll reads few of their bytes when it looks for the next time: ${what}`, async () => {
      const queue = await rig.queue(state)
      const all = [await poll(queue)]
      const isCut = () => (all.at(-1)?.next ?? AT) <= NOW
      while (isCut() && all.length < polls) all.push(await poll(queue))
      expect(all.at(-1)?.next, `after ${all.length} polls`).to.equal(next)
      expect(Math.max(...all.map(({ bytes }) => bytes))).to.be.at.most(MOST + 3 * single)
      for (const { next, isWork } of all) if (next !== null && next <= NOW) expect(isWork).to.equal(true)
    })

  it('are bounded in a count, which has the time of the first message', async () => {
    const many = [...PRIORITIES, 10].map((priority) => [priority, sized(String(priority), [400_000], AT + priority)])
    const queue = await rig.queue(
      merged({ due: Object.fromEntries(many) as NonNullable<State['due']> }, { due: { 7: [['m', AT - 1]] } }),
    )
    let first: number | null = null
    const { bytes } = await counts(async (of) => {
      first = (await run(of, scripts.count, queue.keys, { nowMs: NOW })).firstVisibleAt
    })
    expect(first).to.equal(AT - 1)
    expect(bytes).to.be.at.most(MOST + 2 * 400_000)
  })

  const claimed = (start: string, until: number): State => ({
    messages: GROUPS.map((group) => [start + group, `\u0005,,0,${group.length}${group}payload`]),
    deliveries: GROUPS.map((group) => [start + group, '1 t']),
    inFlight: GROUPS.map((group) => [`g${start}${group}`, until]),
    groups: GROUPS.map((group) => [group, '1 ']),
    config: [['grouped', '1']],
  })
  /** Places without a message before all others of each group. */
  const places: State = {
    groupOrder: GROUPS.flatMap((group) => [0, 1].map((n) => [place(group, 1, `${n}${X}`), 0] as const)),
  }
  const acknowledge = (queue: ReliableFixture) => (of: Sender) =>
    run(of, scripts.acknowledge, queue.keys, {
      ...{ nowMs: NOW, client: 'me', withResults: false },
      handled: GROUPS.flatMap((group) => [`ga${group}`, '1 t']).map((text) => Buffer.from(text)),
    })
  /** A poll that may also read 1 MiB of what can be messages reads none of them, as it asks for none. */
  const pollOnce = (queue: ReliableFixture) => (of: Sender) =>
    run(of, scripts.poll, queue.keys, pollArgs(queue, { count: 0 }))
  const old = few(SIZE).concat(few(SIZE), few(SIZE))

  const together: [what: string, state: State, action: typeof acknowledge | typeof pollOnce, single?: number][] = [
    [
      'an acknowledgement that frees groups and forgets completed messages and batches',
      merged(claimed('a', FUTURE), places, {
        messages: GROUPS.map((group) => [`m${group}`, `\u0005,,0,${group.length}${group}payload`]),
        completedAt: sized('c', old, 1),
        batchesAt: sized('b', old, -1e12),
        batches: GROUPS.flatMap((group) => [
          [`ma${group}`, `b${group}`] as const,
          [`bb${group}`, 'c,1,0,0,0,0,1,1,'] as const,
        ]),
        config: [
          ['keepCompleted', '1'],
          ['batched', '1'],
        ],
      }),
      acknowledge,
    ],
    [
      'an acknowledgement that sets the scores of places and forgets completed messages',
      merged(claimed('a', FUTURE), {
        groupOrder: [...sized('o', old.concat(old), 1), ...sized('p', old.concat(old), -100)],
        completedAt: sized('c', old, 1),
        config: [['keepCompleted', '1']],
      }),
      acknowledge,
    ],
    [
      'a poll that takes back messages, meets repeats, and looks for the next time',
      merged(claimed('m', 1), places, beforeNext(few(70_000)), { ticks: sized('y', old, 1) }),
      pollOnce,
      40_000,
    ],
    [
      'a poll that gives turns to groups, and meets repeats',
      merged(inGroup, { groupWakes: sized('w', old.concat(old), 1), ticks: sized('y', old, 1) }),
      pollOnce,
    ],
    [
      'a poll at the limit that meets repeats and claims without a message',
      merged(claimed('m', FUTURE), {
        inFlight: sized('0y', old.concat(old), FUTURE + 1),
        ticks: sized('y', old, 1),
        config: [['concurrency', '60']],
      }),
      pollOnce,
    ],
  ]
  for (const [what, state, action, single = SIZE] of together)
    it(`are bounded by one number for all that one script does: ${what}`, async () => {
      const queue = await rig.queue(state)
      const { bytes } = await counts(action(queue))
      expect(bytes).to.be.within(MOST, MOST + 5 * single)
    })
})
