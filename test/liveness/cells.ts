import { eventually } from '../support/events.js'
import { PLACES, type Place, type PlaceName, type Way } from './places.js'
import { COMMAND_MS, CONNECT_MS, Fleet, MARGIN_MS, SWEEP_MS } from './fleet.js'
import type { Lost, Role, Stage, StageProxy } from './stage-proxy.js'

export interface Cell {
  readonly name: string
  readonly place: PlaceName
  /** The fault changes the servers, so it needs its own ones. */
  readonly isAlone?: true
  /** Returns the problems. */
  run(place: Place, random: () => number): Promise<string[]>
}

/** A connection is given up, another one opened, and what was missed meanwhile is found by a sweep. */
const RECOVERY_MS = SWEEP_MS + 2 * (CONNECT_MS + COMMAND_MS) + MARGIN_MS
/** A blocking command waits so long at the server, and its reply may be so late. */
const BLOCKED_MS = 10_000 + 3_500
/** ioredis asks one node after the other for the slots, a second each: with all of them silent a client waits for that long. */
const MOST_ASKED = 2
/** The additional time that a cluster needs to know its nodes again if all connections must be reopened. */
const ASKED_MS = 3_000
/** Two connections in a row may be silent: a call that met the first is repeated on the second. */
const SECOND_MS = COMMAND_MS + 500
/**
 * A call that is repeated begins again within its usual time, after the nodes were asked who has the slot; so it may take twice that,
 * and an `add`, which is repeated as a whole, three times.
 */
const REPEATED_MS = 2 * (CONNECT_MS + COMMAND_MS) + 1_000
/** A replica becomes the master after the time after which a node counts as dead, and an election. */
const FAILOVER_MS = 10_000
/** Two seconds for what is under way and two for the end of the connections; a worker waits five for its last answers. */
const SHUTDOWN_MS = 9_000
/** A dead blocking connection may pop at the server what its waits asked for, which are lost: `take()` is at most once. */
const IN_HAND = 100

const LOST: readonly Lost[] = ['both', 'toServer', 'toClient']
type SomeRole = Role | 'sentinel'
const STAGES: Readonly<Record<SomeRole, readonly Stage[]>> = {
  commands: ['accept', 'HELLO', 'INFO'],
  subscriber: ['accept', 'HELLO', 'INFO', 'SUBSCRIBE'],
  blocking: ['accept', 'HELLO', 'INFO', 'CLIENT ID'],
  durable: ['accept', 'HELLO', 'INFO', 'SCRIPT LOAD', 'WAIT'],
  sentinel: ['accept', 'SENTINEL', 'SUBSCRIBE'],
}
const FIRST: readonly Stage[] = ['accept', 'HELLO', 'INFO', 'CLIENT ID', 'SUBSCRIBE', 'SCRIPT LOAD', 'WAIT', 'BLMPOP']

const HANDSHAKE: readonly Stage[] = ['accept', 'TLS']

/** The places where a replica takes over. */
const FAILING_OVER: readonly PlaceName[] = ['replicated', 'sentinel', 'cluster', 'borrowed cluster']

/** Old sockets never heal and new ones work: at every stage of each role's connections, in every place. */
export function allCells(): Cell[] {
  const cells: Cell[] = []
  for (const place of PLACES) {
    // what passes within TLS is the same as without
    for (const stage of [
      ...(place === 'TLS' ? HANDSHAKE : FIRST),
      ...(place.includes('cluster') ? ['CLUSTER'] : []),
      ...(place === 'sentinel' ? ['SENTINEL'] : []),
    ]) {
      cells.push({ name: `${place}: the first connections fall silent at ${stage}`, place, run: firstOpening(stage) })
    }
    for (const role of ['commands', 'subscriber', 'blocking', 'durable', 'sentinel'] as const) {
      if (role === 'sentinel' && place !== 'sentinel') continue
      const stages = [
        ...(place === 'TLS' ? HANDSHAKE : STAGES[role]),
        ...(role === 'commands' && place.includes('cluster') ? ['CLUSTER'] : []),
      ]
      for (const stage of stages) {
        const name = `${place}: ${role} connections are reset, and the next ones fall silent at ${stage}`
        cells.push({
          name,
          place,
          run: reopening(role, stage, role === 'commands' && place.includes('cluster') ? ASKED_MS : 0),
        })
      }
      for (const lost of place === 'TLS' ? (['both'] as const) : LOST) {
        const what = { both: 'all bytes', toServer: 'bytes to the server', toClient: 'bytes to the client' }[lost]
        cells.push({ name: `${place}: ${role} connections in use lose ${what}`, place, run: inUse(role, lost) })
      }
    }
    if (FAILING_OVER.includes(place)) {
      cells.push({
        name: `${place}: SIGSTOP of the master, a replica takes over`,
        place,
        isAlone: true,
        run: masterFrozen,
      })
    }
  }
  return cells
}

function firstOpening(stage: Stage): Cell['run'] {
  return async (place, random) =>
    live(place, { slackMs: SECOND_MS }, async ({ way, fleet }) => {
      const proxy = stage === 'SENTINEL' ? way.sentinels : way.servers
      proxy.arm(stage, 'both', 1 + Math.floor(random() * 2))
      fleet.start()
      await fleet.works(0, RECOVERY_MS + BLOCKED_MS)
      await reached(proxy, stage, 0) // without a subscriber the work goes on by sweeps
      return 'commands'
    })
}

function reopening(role: SomeRole, stage: Stage, slackMs: number): Cell['run'] {
  return (place, random) =>
    live(place, { mayLose: role === 'blocking' }, async ({ way, fleet }) => {
      await used(way, fleet, role, random)
      const [proxy, which] = at(way, role)
      const since = performance.now()
      const before = proxy.frozen
      if (proxy.freezeNext(which, stage, 'both', stage === 'CLUSTER' ? MOST_ASKED : Infinity) === 0)
        throw new Error(`there is no ${role} connection`)
      await fleet.works(since, RECOVERY_MS + slackMs)
      await isBack(proxy, which)
      await reached(proxy, stage, before)
      return role
    })
}

function inUse(role: SomeRole, lost: Lost): Cell['run'] {
  return (place, random) =>
    live(place, { mayLose: role === 'blocking' }, async ({ way, fleet }) => {
      await used(way, fleet, role, random)
      const [proxy, which] = at(way, role)
      const since = performance.now()
      if (proxy.freeze(which, lost) === 0) throw new Error(`there is no ${role} connection`)
      await fleet.works(since, role === 'blocking' ? RECOVERY_MS + BLOCKED_MS : RECOVERY_MS)
      await isBack(proxy, which)
      return role
    })
}

const masterFrozen: Cell['run'] = (place, random) =>
  live(place, { isDurableOnly: true, mayLose: true, slackMs: REPEATED_MS }, async ({ way, fleet }) => {
    await used(way, fleet, 'commands', random)
    if (place.freezeMaster === undefined) throw new Error('this place has no replica')
    const goOn = await place.freezeMaster(fleet.key)
    try {
      await fleet.works(performance.now(), RECOVERY_MS + BLOCKED_MS + FAILOVER_MS)
    } finally {
      await goOn()
    }
    return 'commands'
  })

/** Everything works, for a random while. */
async function used(way: Way, fleet: Fleet, role: SomeRole, random: () => number): Promise<void> {
  fleet.start()
  await fleet.works(0, 15_000)
  const [proxy, which] = at(way, role)
  // on a busy machine the fleet works by sweeps before it has subscribed
  await eventually(
    () => {
      if (proxy.of(which) === 0) throw new Error(`there is no ${role} connection`)
    },
    RECOVERY_MS,
    20,
  )
  await new Promise((resolve) => setTimeout(resolve, random() * 100))
}

/** Checks that at least one more connection was frozen, because the cell proves nothing otherwise. */
async function reached(proxy: StageProxy, stage: Stage, before: number): Promise<void> {
  await eventually(
    () => {
      if (proxy.frozen <= before) throw new Error(`no connection reached ${stage}`)
    },
    RECOVERY_MS,
    20,
  )
}

/** The work could go on without, as it does by sweeps without a subscriber: the dead connection has to be replaced all the same. */
async function isBack(proxy: StageProxy, role: Role): Promise<void> {
  await eventually(
    () => {
      if (proxy.of(role) === 0) throw new Error(`no other ${role} connection was opened`)
    },
    RECOVERY_MS,
    20,
  )
}

function at(way: Way, role: SomeRole): [StageProxy, Role] {
  return role === 'sentinel' ? [way.sentinels, 'subscriber'] : [way.servers, role]
}

/** A fleet through a fault; then the connections of one role fall silent once more, and the client is shut down at once. */
async function live(
  place: Place,
  { mayLose = false, isDurableOnly = false, slackMs = 0 },
  fault: (given: { way: Way; fleet: Fleet }) => Promise<SomeRole>,
): Promise<string[]> {
  const way = await place.open()
  const fleet = new Fleet(way.client, { isDurableOnly, slackMs })
  const { calls } = fleet
  const problems: string[] = []
  try {
    const role = await fault({ way, fleet })
    problems.push(...calls.overdue())
    const [proxy, which] = at(way, role)
    proxy.freeze(which, 'both')
  } catch (error) {
    problems.push(String(error instanceof Error ? error.message : error), ...calls.overdue())
  }
  calls.stop()
  const started = performance.now()
  const isDown = await within(SHUTDOWN_MS, fleet.client.shutdown())
  const took = Math.round(performance.now() - started)
  if (!isDown) problems.push(`shutdown() has not ended after ${took} ms`)
  await within(
    1_000,
    until(() => calls.pending === 0),
  )
  if (calls.pending > 0) problems.push(`after the shutdown these calls go on: ${calls.stillPending().join(', ')}`)
  problems.push(...new Set(calls.problems))
  if (isDown && place !== undefined) {
    const isBorrowed = way.client.redis !== undefined
    if (
      !isBorrowed &&
      !(await within(
        1_000,
        until(() => way.servers.open + way.sentinels.open === 0),
      ))
    )
      problems.push(`the shutdown left ${way.servers.open + way.sentinels.open} connections open`)
    const { taken, reliable } = await fleet.lost(way.direct)
    if (taken.length > (mayLose ? IN_HAND : 0))
      problems.push(`${taken.length} acknowledged offers are lost: ${taken[0]}`)
    if (reliable.length > 0) problems.push(`${reliable.length} acknowledged additions are lost: ${reliable[0]}`)
  }
  await way.stop()
  return problems
}

function until(check: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (!check()) return
      clearInterval(timer)
      resolve()
    }, 10)
    setTimeout(() => clearInterval(timer), 30_000).unref()
  })
}

/** Whether it ended in time. */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), ms)))
  try {
    return await Promise.race([promise.then(() => true), over])
  } finally {
    clearTimeout(timer)
  }
}
