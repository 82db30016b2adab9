/** Other programs' names can be of any size, and Redis copies a reply once more for each large one in it: a script reads few of them with one command, also behind short ones. */
import { expect } from 'chai'
import * as groupScripts from '../../src/store/reliable-group-scripts.js'
import * as scripts from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import type { Sender } from '../../src/store/sender.js'
import { ASIDE, FUTURE, LARGE, move, named, place, useCounts } from './large-names-support.js'
import { having, memberOf, NOW, pollArgs, useReliable, type ReliableFixture, type State } from './reliable-support.js'

/** The most large values in one reply: a page of `namesOf`. */
const MOST = 17

describe('large names of other programs', function () {
  this.timeout(60_000)
  const rig = useReliable()
  const counts = useCounts(rig)

  /** Short names before large ones, in the order of their bytes. */
  const names = (short: number): string[] => [...named('a', short, 0), ...named('b', 60, LARGE)]
  const grouped = (more: State): State => ({ ...more, config: [['grouped', '1'], ...(more.config ?? [])] })
  const poll = (queue: ReliableFixture) => (of: Sender) =>
    run(of, scripts.poll, queue.keys, pollArgs(queue, { count: 100 }))
  const acknowledge = (queue: ReliableFixture) => (of: Sender) =>
    run(of, scripts.acknowledge, queue.keys, {
      nowMs: NOW,
      client: 'me',
      withResults: false,
      handled: [memberOf('done'), Buffer.from('1 t')],
    })
  const done = { id: 'done', until: FUTURE }

  type Row = readonly [
    what: string,
    state: (names: string[]) => State,
    action: (queue: ReliableFixture) => (sender: Sender) => Promise<unknown>,
    most?: number,
  ]
  const at = (score: number | ((n: number) => number)) => (name: string, n: number) =>
    [name, typeof score === 'number' ? score : score(n)] as const
  const rows: Row[] = [
    ['messages of a priority', (all) => ({ due: { 3: all.map(at(1)) } }), poll],
    ['claims whose visibility has ended', (all) => ({ inFlight: all.map((id) => [`0${id}`, 1] as const) }), poll],
    ['groups whose time has come', (all) => grouped({ groupWakes: all.map(at(1)) }), poll],
    ['turns of groups', (all) => grouped({ groupTurns: all.map(at((n) => n + 1)) }), poll],
    ['turns beyond all others', (all) => grouped({ groupTurns: all.map(at(9e15)) }), poll],
    [
      'messages of a group',
      (all) =>
        grouped({
          due: { 10: all.map(at((n) => n + 1)) },
          groupOrder: all.map((id, n) => [place('g', n + 1, id), 0] as const),
          groupTurns: [['g', 1]],
        }),
      poll,
    ],
    [
      'places of groups with another score',
      (all) => grouped({ groupOrder: all.map((id, n) => [place('g', n, id), 1] as const) }),
      poll,
    ],
    [
      'states of groups',
      (all) => {
        const groups = named('g', all.length, 0)
        return grouped({
          groupTurns: groups.map(at((n) => n + 1)),
          groups: groups.map((group, n) => [group, all[n]!] as const),
        })
      },
      poll,
      8,
    ],
    [
      'deliveries of messages',
      (all) => {
        const ids = named('m', all.length, 0)
        return { due: { 0: ids.map(at(1)) }, deliveries: ids.map((id, n) => [id, all[n]!] as const) }
      },
      poll,
      MOST,
    ],
    [
      'messages of resumed tasks',
      (all) => ({
        due: { 2: all.map(at(ASIDE + 2 * 2 ** 43)) },
        taskPauses: [['task', 1_001]],
        config: [['tasks', '1']],
      }),
      poll,
    ],
    [
      'dead letters that are too old',
      (all) => ({ dead: { due: { 0: all.map(at(1)) } }, config: [['keepDeadLettersFor', '1000']] }),
      poll,
    ],
    [
      'dead letters that are too many',
      (all) => ({ dead: { due: { 0: all.map(at(1)) } }, config: [['keepDeadLetters', '1']] }),
      poll,
    ],
    [
      'dead letters of the future',
      (all) => ({ dead: { due: { 0: all.reverse().map(at((n) => FUTURE + n)) } }, config: [['keepDeadLetters', '1']] }),
      poll,
    ],
    [
      'completed messages that are too old',
      (all) => ({
        ...having([done]),
        completedAt: all.map(at(1)),
        config: [
          ['keepCompleted', '1000'],
          ['keepCompletedFor', '1000'],
        ],
      }),
      acknowledge,
    ],
    [
      'completed messages that are too many',
      (all) => ({ ...having([done]), completedAt: all.map(at(1)), config: [['keepCompleted', '1']] }),
      acknowledge,
    ],
    [
      'completed messages of the future',
      (all) => ({
        ...having([done]),
        completedAt: all.reverse().map(at((n) => FUTURE + n)),
        config: [['keepCompleted', '1']],
      }),
      acknowledge,
    ],
    [
      'finished batches that are too old',
      (all) => ({
        ...having([done]),
        batches: [
          ['mdone', 'batch'],
          ['bbatch', 'c,1,0,0,0,0,1,1,'],
          ['n', '1'],
        ],
        batchesAt: all.map((name) => [name, -1e12] as const),
        config: [['batched', '1']],
      }),
      acknowledge,
    ],
  ]

  const totals = (queue: ReliableFixture) => (of: Sender) =>
    run(of, groupScripts.totals, queue.keys, { nowMs: NOW, most: 100 })
  const lists = (cursor: string) => (queue: ReliableFixture) => (of: Sender) =>
    run(of, groupScripts.listGroups, queue.keys, { cursor: Buffer.from(cursor), count: 100 })
  rows.push(
    [
      'ids without a message that would be moved',
      (all) => ({ dead: { due: { 0: all.map(at(1)) } } }),
      ({ keys, dead, channel }) =>
        (of) =>
          move(of, dead, keys, channel, true),
    ],
    ['groups that are counted', (all) => grouped({ due: { 10: [['m', 1]] }, groupTurns: all.map(at(1)) }), totals],
    [
      'paused groups that are counted',
      (all) => grouped({ due: { 10: [['m', 1]] }, groupPauses: all.map(at(0)) }),
      totals,
    ],
    [
      'groups with claims that are listed',
      (all) => ({ groups: all.map((name) => [name, '1 '] as const) }),
      lists('s0'),
      24,
    ],
    [
      'groups with claims that are updated',
      (all) => ({ groups: all.map((name) => [name, '1 '] as const) }),
      (queue) => (of) =>
        run(of, groupScripts.refreshGroups, queue.keys, { channel: queue.channel, nowMs: NOW, cursor: '0' }),
      24,
    ],
    ['paused groups that are listed', (all) => ({ groupPauses: all.map(at(0)) }), lists('p-')],
    [
      'paused tasks that are counted',
      (all) => ({ taskPauses: all.map(at((n) => n + 1)), config: [['tasks', '1']] }),
      (queue) => (of) => run(of, scripts.count, queue.keys, { nowMs: NOW }),
    ],
  )

  for (const short of [4, 20, 48])
    for (const [what, state, action, most = MOST] of rows)
      it(`are read ${most} at a time behind ${short} short ones: ${what}`, async () => {
        const queue = await rig.queue(state(names(short)))
        const read: number[] = []
        for (let n = 0; n < 6; n++) read.push((await counts(action(queue))).inCommand)
        expect(Math.max(...read), JSON.stringify(read)).to.be.within(1, most)
      })

  it('an update of the limits reads the long state of a group once', async () => {
    const states = names(4).map((value, n) => [`g${n}`, value] as const)
    const queue = await rig.queue({ groups: states })
    let read = 0
    for (let cursor = '0', isOver = false; !isOver; isOver = cursor === '0') {
      const { bytes } = await counts(async (of) => {
        cursor = await run(of, groupScripts.refreshGroups, queue.keys, { channel: queue.channel, nowMs: NOW, cursor })
      })
      read += bytes
    }
    expect(read).to.be.within(60 * LARGE, 61 * LARGE)
    expect(await rig.redis.hlen(queue.keys.groups)).to.equal(0)
  })
})
