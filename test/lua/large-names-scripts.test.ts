/** One script reads few large names of other programs with all its commands together, and goes on when it is repeated. */
import { expect } from 'chai'
import * as groupScripts from '../../src/store/reliable-group-scripts.js'
import * as scripts from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import type { Sender } from '../../src/store/sender.js'
import { ASIDE, FUTURE, LARGE, merged, move, named, place, useCounts, type Counts } from './large-names-support.js'
import {
  NOW,
  pollArgs,
  record,
  useReliable,
  type QueueState,
  type RawState,
  type ReliableFixture,
  type State,
} from './reliable-support.js'

/** The most large values that one script reads: 256 KiB, a page that it has begun, and some single ones. */
const MOST = 64
/** And 1 MiB of what can be messages: the first places of groups, or the ids in a schedule. */
const MOST_WITH_IDS = 96
/** Three for each of about 1,000 removed places, and those for the messages. */
const MOST_COMMANDS = 6_000
const MOST_ROUNDS = 300
const GROUPS = named('g', 60, 0)
const TASKS = named('t', 60, 0)
const X = 'x'.repeat(LARGE)

const recordIn = (group: string): string => `\u0005,,0,${group.length}${group}payload`
const config = (...pairs: [string, string][]): State => ({ config: pairs })

/** A message of each group: `start` and the group are its id. */
const stored = (start: string): QueueState => ({ messages: GROUPS.map((group) => [start + group, recordIn(group)]) })
const waiting = (start: string): State => ({
  ...stored(start),
  due: { 10: GROUPS.map((group) => [start + group, 5]) },
  groupOrder: GROUPS.map((group) => [place(group, 5, start + group), 0]),
  config: [['grouped', '1']],
})
const claimed = (start: string, until: number): State => ({
  ...stored(start),
  deliveries: GROUPS.map((group) => [start + group, '1 t']),
  inFlight: GROUPS.map((group) => [`g${start}${group}`, until]),
  groups: GROUPS.map((group) => [group, '1 ']),
  config: [['grouped', '1']],
})
/** Places without a message, before all others of each group. */
const forged = (many: number, of: (n: number) => string): QueueState => ({
  groupOrder: GROUPS.flatMap((group) => Array.from({ length: many }, (_, n) => [place(group, 1, of(n)), 0] as const)),
})
const largePlaces = forged(3, (n) => `${n}${X}`)
const smallPlaces = forged(100, (n) => String(n).padStart(10, '0'))
/** Large names set aside under the number of each task, in three schedules. */
const largeAside: State = {
  due: Object.fromEntries(
    [0, 1, 2].map((priority) => [
      priority,
      TASKS.map((_, n) => [`${priority}${n}${X}`, ASIDE + 2 * (n + 1) * 2 ** 43] as const),
    ]),
  ),
}
const short = (score: number) => named('0', 2, 0).map((name) => [name, score] as const)
const large = (start: string, many: number, score: number) =>
  named(start, many, LARGE).map((name, n) => [name, score + n] as const)
const both = (score: number) => [...short(score), ...large('y', 17, score + 1)]
const inSchedules = (of: (priority: number) => (readonly [string, number])[]): State => ({
  due: Object.fromEntries(Array.from({ length: 10 }, (_, priority) => [priority, of(priority)])),
})

/** Runs one action, and returns the names that it got. */
type Action = (queue: ReliableFixture) => (of: Sender) => Promise<readonly string[]>

const poll: Action = (queue) => async (of) => {
  const { messages } = await run(of, scripts.poll, queue.keys, pollArgs(queue, { count: 100 }))
  return messages.map(({ id }) => id)
}
const nothing = (action: (queue: ReliableFixture, of: Sender) => Promise<unknown>): Action => {
  return (queue) => async (of) => {
    await action(queue, of)
    return []
  }
}
const add = nothing(({ keys, channel }, of) =>
  run(of, scripts.add, keys, {
    ...{ channel, nowMs: NOW, existing: 'keep', sentAgoMs: -1, durable: false, batch: '', client: 'me' },
    items: GROUPS.flatMap((group) => [`m${group}`, `g${group.length},@${NOW},,,0,,`, `${group}payload`]),
  }),
)
const restore = nothing(({ keys, channel }, of) =>
  run(of, scripts.restore, keys, {
    ...{ channel, client: 'me', known: false },
    items: GROUPS.flatMap((group) => [`m${group}`, `g${group.length},5,0,,,0,0,`, `${group}payload`]).map((text) =>
      Buffer.from(text),
    ),
  }),
)
const acknowledge = nothing(({ keys }, of) =>
  run(of, scripts.acknowledge, keys, {
    ...{ nowMs: NOW, client: 'me', withResults: false },
    handled: GROUPS.flatMap((group) => [`ga${group}`, '1 t']).map((text) => Buffer.from(text)),
  }),
)
const giveBack = nothing(({ keys, channel, deadChannel }, of) =>
  run(of, scripts.negativeAcknowledge, keys, {
    ...{ channel, deadChannel, nowMs: NOW, how: 'failed', delayMs: 0, reason: '""', client: 'me' },
    handled: GROUPS.flatMap((group) => [`ga${group}`, '1 t']).map((text) => Buffer.from(text)),
  }),
)
const remove = nothing(({ keys }, of) =>
  run(of, scripts.remove, keys, {
    ...{ nowMs: NOW, alsoHeld: false, client: 'me' },
    ids: GROUPS.map((group) => `a${group}`),
  }),
)
const refreshGroups = nothing(async ({ keys, channel }, of) => {
  let cursor = '0'
  do cursor = await run(of, groupScripts.refreshGroups, keys, { channel, nowMs: NOW, cursor })
  while (cursor !== '0')
})

const redrive = nothing(({ keys, dead, channel }, of) => move(of, dead, keys, channel, true))
const moveAway = nothing(({ keys, dead, deadChannel }, of) => move(of, keys, dead, deadChannel))

/** Pages of names; each run reads the next one. */
function list(): Action {
  let cursor: Buffer | undefined
  return (queue) => async (of) => {
    const reply = await run(of, groupScripts.listGroups, queue.keys, { cursor: cursor ?? Buffer.alloc(0), count: 100 })
    cursor = reply.cursor
    return reply.names.map(String)
  }
}
const count: Action = (queue) => async (of) =>
  (await run(of, scripts.count, queue.keys, { nowMs: NOW })).asides.map(String)
const totals: Action = (queue) => async (of) => [
  String((await run(of, groupScripts.totals, queue.keys, { nowMs: NOW, most: 100 })).visible),
]

interface Row {
  readonly what: string
  readonly state: State
  /** Runs once. */
  readonly first?: Action
  /** Runs until it has got all of these names. */
  readonly then: Action
  readonly names: readonly string[]
  /** And until this holds of what is in Redis. */
  readonly isOver?: (state: RawState) => boolean
  /** The most large values in a script of `then`, if not `MOST`. */
  readonly mostThen?: number
  /** If not `MOST_COMMANDS`. */
  readonly mostCommands?: number
}

const ofGroups = (start: string) => ({
  then: poll,
  mostThen: MOST_WITH_IDS,
  names: GROUPS.map((group) => start + group),
})
const MANY_GROUPS = named('g', 180, 0)
/** Names that are in a set since long ago, behind short ones, and where a script reads the last ones, too, some of the future. */
const inEverySet = merged(
  waiting('m'),
  config(['tasks', '1'], ['concurrency', '500'], ['groupRateLimit', '100/1000']),
  config(['keepDeadLetters', '10'], ['keepDeadLettersFor', '1000'], ['keepCompleted', '5']),
  {
    messages: [['plain', record()]],
    inFlight: both(1),
    ticks: both(1),
    groupOrder: large('o', 17, 1),
    groupTurns: [...both(-5e6), ...large('z', 17, 9e15)],
    groupWakes: [...both(1), ...large('z', 17, NOW + 1e8)],
    groupPauses: both(0),
    taskPauses: both(1_001),
    dead: { due: { 0: both(1) } },
  },
  { due: { 0: [['plain', 5]] } },
)
/** Actions beside places of other programs, which are before all messages of their groups. */
const besidePlaces: (Omit<Row, 'state'> & { readonly state: (places: QueueState) => State })[] = [
  { what: 'messages are added', state: (places) => places, first: add, ...ofGroups('m') },
  { what: 'messages are restored', state: (places) => places, first: restore, ...ofGroups('m') },
  {
    what: 'messages are acknowledged',
    state: (places) => merged(claimed('a', FUTURE), waiting('m'), places, config(['groupConcurrency', '1'])),
    first: acknowledge,
    ...ofGroups('m'),
  },
  {
    what: 'messages are given back',
    state: (places) => merged(claimed('a', FUTURE), places),
    first: giveBack,
    ...ofGroups('a'),
  },
  {
    what: 'the limit of groups is changed',
    state: (places) => merged(claimed('a', FUTURE), waiting('m'), places, config(['groupConcurrency', '5'])),
    first: refreshGroups,
    ...ofGroups('m'),
  },
  {
    what: 'messages are removed',
    state: (places) => merged(waiting('a'), waiting('m'), places),
    first: remove,
    ...ofGroups('m'),
  },
  {
    what: 'messages are redriven',
    state: (places) => ({ ...places, dead: { ...stored('m'), due: { 0: GROUPS.map((group) => [`m${group}`, 5]) } } }),
    first: redrive,
    ...ofGroups('m'),
  },
  {
    what: 'messages are moved to another queue',
    state: (places) => merged(waiting('a'), waiting('m'), places, { dead: places }),
    then: moveAway,
    names: [],
    isOver: ({ queue }) => queue.messages === undefined,
    mostCommands: 10_000, // a hundred messages, and places of both queues
  },
  { what: 'a poll takes back claims', state: (places) => merged(claimed('m', 1), places), ...ofGroups('m') },
]
const rows: Row[] = [
  ...besidePlaces.map((row) => ({ ...row, state: row.state(largePlaces) })),
  {
    what: 'a poll meets messages of paused tasks',
    state: merged(largeAside, config(['tasks', '1']), {
      messages: [
        ...TASKS.map((task) => [task, record('', { headers: JSON.stringify({ task }) })] as const),
        ['plain', record()],
      ],
      due: { 0: [...TASKS.map((task) => [task, 1] as const), ['plain', 2]] },
      taskPauses: TASKS.map((task, n) => [task, n + 1]),
    }),
    then: poll,
    names: ['plain'],
    isOver: ({ queue }) => (queue.due?.[0] as [string, string][]).every(([, score]) => Number(score) >= ASIDE),
  },
  {
    what: 'a poll meets messages of a resumed task',
    state: merged(config(['tasks', '1']), {
      messages: GROUPS.map((id) => [id, record('', { headers: '{"task":"task"}' })]),
      due: { 0: [...GROUPS.map((id) => [id, 1] as const), ...large('y', 180, ASIDE + 2 * 2 ** 43 + 2 * FUTURE)] },
      taskPauses: [['task', 1_001]],
    }),
    then: poll,
    names: GROUPS,
  },
  {
    what: 'messages set aside are counted',
    state: merged(largeAside, config(['tasks', '1'])),
    then: count,
    names: TASKS.map((_, n) => String(n + 1)),
  },
  {
    what: 'groups are listed',
    state: { groupOrder: MANY_GROUPS.map((group) => [place(group, 1, X), 0]) },
    then: list(),
    names: MANY_GROUPS,
  },
  {
    what: 'a group behind members without one is listed',
    state: { groupOrder: [...named('\0', 180, LARGE).map((name) => [name, 0] as const), [place('g', 1, 'm'), 0]] },
    then: list(),
    names: ['g'],
  },
  { what: 'totals are counted', state: inEverySet, then: totals, names: ['61'] },
  {
    what: 'a poll meets some in every sorted set',
    state: merged(
      inEverySet,
      inSchedules((n) => large('y', 2, FUTURE + n)),
    ),
    then: poll,
    names: ['plain', ...GROUPS.map((group) => `m${group}`)],
    mostThen: MOST_WITH_IDS,
  },
  {
    what: 'a poll meets some in every sorted set, also visible ones',
    state: merged(
      inEverySet,
      inSchedules(() => both(1)),
    ),
    then: poll,
    names: ['plain', ...GROUPS.map((group) => `m${group}`)],
    mostThen: 160,
  },
]

describe('large names of other programs in one script', function () {
  this.timeout(60_000)
  const rig = useReliable()
  const counts = useCounts(rig)

  /** Repeats an action until it has got all names, and returns the counts of each time. */
  async function repeated({ then, names, isOver }: Row, queue: ReliableFixture): Promise<Counts[]> {
    const missing = new Set(names)
    const all: Counts[] = []
    let areLeft = true
    for (let round = 0; round < MOST_ROUNDS && areLeft; round++) {
      const got: string[] = []
      all.push(await counts(async (of) => void got.push(...(await then(queue)(of)))))
      expect(
        got.filter((name) => !names.includes(name)),
        'strange names',
      ).to.deep.equal([])
      for (const name of got) missing.delete(name)
      areLeft = missing.size > 0 || isOver?.(await queue.read()) === false
    }
    expect([...missing], 'names that never came').to.deep.equal([])
    expect(areLeft, 'whether something is left to do').to.equal(false)
    return all
  }

  for (const row of rows) {
    const { what, state, first, mostThen = MOST } = row
    it(`are read ${first ? MOST : mostThen} in one script: ${what}`, async () => {
      const queue = await rig.queue(state)
      const before = first && (await counts(first(queue)))
      const after = (await repeated(row, queue)).map(({ inScript }) => inScript)
      if (before) expect(before.inScript, 'in the first script').to.be.at.most(MOST)
      expect(Math.max(...after), `in the next ones: ${JSON.stringify(after)}`).to.be.at.most(mostThen)
    })
  }

  for (const row of besidePlaces)
    it(`or many small places of groups are removed by several scripts: ${row.what}`, async () => {
      const queue = await rig.queue(row.state(smallPlaces))
      const before = row.first && (await counts(row.first(queue)))
      const after = (await repeated({ ...row, state: {} }, queue)).map(({ commands }) => commands)
      const { mostCommands = MOST_COMMANDS } = row
      if (before) expect(before.commands, 'in the first script').to.be.at.most(mostCommands)
      expect(Math.max(...after), `in the next ones: ${JSON.stringify(after)}`).to.be.at.most(mostCommands)
    })

  for (const how of ['move', 'redrive'] as const)
    it(`are arguments of commands that check and remove them only: ${how}`, async () => {
      const messages: State = {
        messages: [['good', record()]],
        due: { 0: [...large('y', 300, 1), ['good', 1_000]] },
        config: ['batched', 'keepCompleted', 'grouped'].map((name) => [name, '1']),
      }
      const queue = await rig.queue(how === 'move' ? messages : { dead: messages })
      const [own, target] = how === 'move' ? [queue.keys, queue.dead] : [queue.dead, queue.keys]
      const all: Counts[] = []
      while (all.length < MOST_ROUNDS && (await rig.redis.hlen(target.messages)) === 0)
        all.push(await counts((of) => move(of, own, target, queue.channel, how === 'redrive')))
      expect(await rig.redis.zcard(own.due0)).to.equal(0)
      const allowed = [
        `HEXISTS ${own.messages}`,
        ...[own.due0, own.due10].flatMap((schedule) => [`ZREM ${schedule}`, `ZSCORE ${schedule}`]),
      ]
      const others = all.flatMap(({ withLarge }) => withLarge).filter((each) => !allowed.includes(each))
      expect(others.slice(0, 9), 'other commands').to.deep.equal([])
      expect(Math.max(...all.map(({ inScript }) => inScript)), 'read by one script').to.be.within(1, MOST_WITH_IDS)
    })
})
