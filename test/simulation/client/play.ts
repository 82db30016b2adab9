import { reliableKeys } from '../../../src/keys.js'
import { randomFrom } from '../../support/random.js'
import { Server } from '../redis/server.js'
import { Process, World } from '../world.js'
import { Books, type Message } from './books.js'
import type { ClientCode } from './code.js'
import { FAULTS } from './faults.js'
import { Network } from './network.js'
import { Member } from './member.js'
import { virtualize } from './virtual-time.js'

/** Faults begin and end before this. */
export const HEALED_AT = 5_000
const END = HEALED_AT + 22_000
/** A sweep, the time limits of connecting and of a command, and the longest back-off of a transfer. */
const LATE_AFTER_HEALING_MS = 12_000
const LATE_WHEN_CALM_MS = 150
/** Where only published messages are lost: the longest sweep. */
const LATE_WHEN_LOSSY_MS = 2_400 + LATE_WHEN_CALM_MS
/** From then on it is as calm as if nothing had ever been wrong. */
const CALM_AGAIN_AT = HEALED_AT + 13_000
/** A client that begins alone has to connect twice and to subscribe. */
const LATE_AFTER_START_MS = 200
/** How long an offer may take that is accepted: beyond that lateness counts. */
const MOST_ACCEPT_MS = 4_000
const MOST_COMMANDS_PER_SECOND = 400
const MOST_TIMERS_PER_SECOND = 1_500

export interface Outcome {
  readonly seed: number
  readonly violation: string | undefined
  readonly calm: boolean
  readonly delivered: number
  readonly commands: number
  readonly faults: readonly string[]
}

export interface Scene {
  readonly world: World
  readonly books: Books
  readonly server: Server
  readonly network: Network
  readonly members: Set<Member>
  readonly calm: boolean
  readonly trouble: Trouble
  readonly start: () => Member
}

/** The network for all processes. */
export interface Trouble {
  /** The probability that a published message is lost although the connection stays. */
  lossOfPublished: number
  /** Everything takes up to so many milliseconds longer. */
  delay: number
}

/** Plays one seed: clients as users make them, on a simulated network and server, in virtual time. */
export async function playClient(seed: number, code: ClientCode, trace?: (line: string) => void): Promise<Outcome> {
  const world = new World(randomFrom(seed))
  const books = new Books()
  const trouble: Trouble = { lossOfPublished: 0, delay: 0 }
  const calm = world.chance(0.25)
  const lossy = calm && world.chance(0.4)
  if (lossy) trouble.lossOfPublished = 0.6
  const members = new Set<Member>()
  const everyone: Member[] = []
  const epoch = 1.7e12 + world.between(0, 1000)
  const reliable = reliableKeys('jobs')
  const commandsBy = new Map<Process, number>()
  let commands = 0
  const server: Server = new Server(
    {
      now: () => epoch + world.now,
      after: (ms, run) => {
        const event = world.after(ms, run)
        return () => (event.run = undefined)
      },
      passes: () => !world.chance(trouble.lossOfPublished),
      onCommand: (session, command) => {
        if (session === undefined) return
        commands++
        const connection = [...network.connections].find((each) => each.session === session)
        if (connection === undefined) return
        commandsBy.set(connection.owner, (commandsBy.get(connection.owner) ?? 0) + 1)
        trace?.(
          `${world.now.toFixed(1)} ${everyone.findIndex((m) => m.process === connection.owner)}#${session.id} ${command}`,
        )
      },
    },
    {
      onPushed: (key, payload) => key === 'orders' && onArrived(payload),
      onPopped: (key, payload) => key === 'orders' && network.onPopped(payload),
      onFieldAdded: (key, id, record) => {
        if (key !== reliable.messages) return
        const payload = /m\d+$/.exec(record)?.[0] ?? ''
        payloadOf.set(id, payload)
        books.get(payload)?.arrived.push(world.now)
      },
      onFieldRemoved: (key, id) => {
        if (key === reliable.messages) onRemoved(payloadOf.get(id) ?? '')
      },
    },
  )
  const payloadOf = new Map<string, string>()
  const near = world.chance(0.5) ? 0.3 : 3
  const network = new Network(world, server, () => world.between(0.05, near) + world.between(0, trouble.delay))
  network.onHanded = (_, elements) => {
    for (const element of elements) {
      const message = books.get(element)
      if (message !== undefined) message.handed++
    }
  }
  const faults: string[] = []
  let startsAt = 0

  const restore = virtualize(world, () => network.connect())
  try {
    const kind = world.random()
    const roles = kind < 0.45 ? ['delayed'] : kind < 0.9 ? ['reliable'] : ['delayed', 'reliable']
    const start = (): Member => {
      const process = new Process(world)
      process.wallSkew = world.between(-3_600_000, 3_600_000)
      const member = new Member({ world, process, books, code, server, roles, calm })
      members.add(member)
      everyone.push(member)
      world.after(0, () => member.run(), process)
      return member
    }
    const scene: Scene = { world, books, server, network, members, calm, trouble, start }
    // messages that are there before the first client that could deliver them: no client announces them
    const count = 1 + Math.floor(world.between(0, 3))
    for (let n = 0; n < count; n++) start()
    for (const member of [...members].slice(1)) if (world.chance(0.35)) member.worksFrom = Infinity
    if (calm && !lossy && world.chance(0.5)) {
      startsAt = world.between(100, 4_000)
      for (const member of members) member.worksFrom = startsAt
    }
    plan(scene, faults, roles)

    const guard = spinGuard()
    await world.runUntil(END, () => {
      books.overdue(world.now)
      guard()
      if (books.violation !== undefined) throw new Stop()
    })
    verdict()
    // at the very end: everything stops, and nothing is left
    const stopped = [...members]
    for (const member of stopped) world.after(0, () => member.shutdown(), member.process)
    await world.runUntil(END + 25_000, () => books.overdue(world.now))
    for (const { process } of stopped) {
      if (process.pendingTimers > 0) books.violate('a client that was shut down has left a timer')
      const open = network.of(process).filter(({ socket }) => !socket.destroyed)
      if (open.length > 0) books.violate('a client that was shut down has left a connection')
    }
    for (const call of books.calls) books.violate(`${call.what} has not ended at the very end`)
  } catch (error) {
    if (!(error instanceof Stop)) throw error
  } finally {
    restore()
  }
  const delivered = [...books.messages.values()].filter(({ handled }) => handled > 0).length
  return { seed, violation: books.violation, calm, delivered, commands, faults }

  function onArrived(payload: string): void {
    const message = books.get(payload)
    if (message === undefined) return
    if (epoch + world.now < message.begun + message.delay) books.violate(`${payload} was delivered early`)
    message.arrived.push(world.now)
  }

  function onRemoved(payload: string): void {
    const message = books.get(payload)
    if (message === undefined) return
    message.removed.push(world.now)
    if (!message.succeeded) books.violate(`${payload} was acknowledged before its handler had ended`)
  }

  function verdict(): void {
    for (const message of books.messages.values()) {
      judge(message)
      if (message.payload.startsWith('m')) judgeTimes(message)
    }
    if (server.unknown.size > 0) books.violate(`the simulated server does not know ${[...server.unknown].join()}`)
  }

  function judge({ payload, outcome, arrived, removed, handled, handed, settledAt = Infinity }: Message): void {
    const isJob = payloadOf.size > 0 && [...payloadOf.values()].includes(payload)
    if (outcome === 'accepted' && arrived.length === 0) books.violate(`${payload} was accepted and is lost`)
    if (outcome === 'refused' && arrived.length > 0) books.violate(`${payload} was refused and came`)
    if (isJob) {
      // a repeated immediate add can follow the acknowledgement while its call is under way: see docs/reliable-queue.md
      const again = arrived.slice(1)
      if (again.some((at) => at > settledAt)) books.violate(`${payload} was added again after its call had ended`)
      if (outcome === 'accepted' && removed.length === 0) books.violate(`${payload} was never acknowledged`)
      if (handled === 0 && arrived.length > 0) books.violate(`${payload} was never handled`)
      return
    }
    if (arrived.length > 1) books.violate(`${payload} was delivered ${arrived.length} times`)
    if (handled > arrived.length) books.violate(`${payload} was taken ${handled} times`)
    if (handed > handled) books.violate(`${payload} reached a process, and no waiter got it`)
    if (calm && arrived.length > handled) books.violate(`${payload} was delivered and not taken`)
    if (server.store.list('orders')?.includes(payload) === true) books.violate(`${payload} was not taken`)
  }

  function judgeTimes({ payload, begun, delay, arrived, handled, settledAt = Infinity }: Message): void {
    // an idle connection may have died: its first call finds that out, and is accepted later
    const accepted = Math.min(settledAt, begun - epoch + MOST_ACCEPT_MS)
    const due = accepted + delay
    const [at] = arrived
    if (at === undefined) return
    const bound = lossy
      ? LATE_WHEN_LOSSY_MS
      : startsAt > 0
        ? LATE_AFTER_START_MS
        : calm || begun - epoch > CALM_AGAIN_AT
          ? LATE_WHEN_CALM_MS
          : LATE_AFTER_HEALING_MS
    const late = Math.round(at - Math.max(due, calm ? startsAt : HEALED_AT))
    if (late > bound) books.violate(`${payload} was ${late} ms late, ${calm ? 'without faults' : 'after healing'}`)
    if (calm && handled > 1) books.violate(`${payload} was handled ${handled} times without faults`)
  }

  function spinGuard(): () => void {
    let next = 1_000
    const before = new Map<Process, readonly [commands: number, timers: number]>()
    return () => {
      if (world.now < next) return
      next = world.now + 1_000
      for (const { process } of everyone) {
        const [commandsBefore, timersBefore] = before.get(process) ?? [0, 0]
        const now = [commandsBy.get(process) ?? 0, process.timersMade] as const
        before.set(process, now)
        if (now[0] - commandsBefore > MOST_COMMANDS_PER_SECOND)
          books.violate(`a client sends ${now[0] - commandsBefore} commands a second`)
        if (now[1] - timersBefore > MOST_TIMERS_PER_SECOND)
          books.violate(`a client sets ${now[1] - timersBefore} timers a second`)
      }
    }
  }
}

/** Ends a seed that has failed: what follows would only hide why. */
class Stop extends Error {}

function plan(scene: Scene, faults: string[], roles: readonly string[]): void {
  const { world, members, calm } = scene
  let number = 0
  for (let count = Math.floor(world.between(4, 13)); count > 0; count--) {
    const at = world.chance(0.8) ? world.between(5, HEALED_AT) : CALM_AGAIN_AT + world.between(1, 2_000)
    const role = roles[Math.floor(world.random() * roles.length)] ?? ''
    const delay = world.chance(0.2) ? 0 : Math.floor(world.between(1, 3_000))
    const payloads = Array.from({ length: world.chance(0.15) ? 3 : 1 }, () => `m${number++}`)
    world.after(at, () => {
      const member = someone(scene)
      if (member !== undefined) world.after(0, () => member.send(role, payloads, delay), member.process)
    })
  }
  if (calm) return
  for (let count = Math.floor(world.between(1, 4)); count > 0; count--) {
    const [name, fault] = FAULTS[Math.floor(world.random() * FAULTS.length)]!
    const at = world.between(20, HEALED_AT - 3_000)
    const duration = world.between(50, 2_900)
    faults.push(`${name} at ${Math.round(at)} for ${Math.round(duration)}`)
    world.after(at, () => fault(scene, duration))
  }
  world.after(HEALED_AT, () => {
    if (members.size === 0) scene.start()
  })
}

export function someone({ world, members }: Pick<Scene, 'world' | 'members'>): Member | undefined {
  return [...members][Math.floor(world.random() * members.size)]
}
