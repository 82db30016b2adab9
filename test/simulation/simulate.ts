import { SimClient, type Network } from './client.js'
import type { Code } from './code.js'
import { ModelRedis } from './model-redis.js'
import { randomFrom } from '../support/random.js'
import { World } from './world.js'

/** Faults happen up to here; after it everything works. */
const HEALED_AT = 12_000
const SWEEP_MS = 5_000
/** The sweep's interval with its jitter, and a second. */
const LATE_AFTER_HEALING_MS = 1.2 * SWEEP_MS + 1_000
/** Without faults no client is later than this: 3 ms for those who follow, their spread and a span of 25 ms each, a late timer, and two ways. */
const LATE_WHEN_CALM_MS = 80
const END = HEALED_AT + 3 * SWEEP_MS
/** About the sweeps of one client. */
export const SWEEPS = END / SWEEP_MS
/** More in one second of one client is a loop that spins. */
const MOST_SCRIPTS_PER_SECOND = 100
const MOST_TIMERS_PER_SECOND = 300

export interface Outcome {
  readonly seed: number
  readonly violation: string | undefined
  /** Nothing went wrong in this seed, so nothing may be late. */
  readonly calm: boolean
  readonly delivered: number
  readonly scripts: number
  readonly clients: number
  /** The lateness of all messages together. */
  readonly latenessMs: number
}

/** Plays one seed: some clients, some messages, and in most seeds some faults. */
export async function simulate(seed: number, code: Code): Promise<Outcome> {
  const world = new World(randomFrom(seed))
  const calm = world.chance(0.25)
  const trouble = { loss: 0, spikes: 0 }
  const far = world.chance(0.5) ? 1 : 4
  const network: Network = {
    latency: () => (world.chance(trouble.spikes) ? world.between(5, 80) : world.between(0.1, far)),
    lose: () => world.chance(trouble.loss),
  }
  const redis = new ModelRedis(world, 3 + Math.floor(world.between(0, 6)), world.chance(0.5) ? 1 : 40)
  const clients = new Set<SimClient>()
  const everyone: SimClient[] = []
  const start = (): void => {
    const client = new SimClient(world, redis, network, code)
    clients.add(client)
    everyone.push(client)
    if (startsAt > 0 && world.chance(0.5)) client.onOffered()
  }
  // a single client that starts late receives no announcement of what was offered before
  const startsAt = calm && world.chance(0.4) ? world.between(500, 8_000) : 0
  if (startsAt > 0) world.after(startsAt, start)
  else for (let count = 1 + Math.floor(world.between(0, 4)); count > 0; count--) start()

  const faults: readonly ((duration: number) => void)[] = [
    function kill(duration) {
      const client = someone()
      if (client === undefined) return
      client.kill()
      clients.delete(client)
      world.after(duration, start)
    },
    function suspend(duration) {
      const client = someone()
      if (client !== undefined) client.process.suspendedUntil = world.now + duration
    },
    function restartRedis(duration) {
      redis.up = false
      for (const client of clients) client.cut()
      world.after(duration, () => (redis.up = true))
    },
    function cutSubscription() {
      someone()?.cut()
    },
    function halfOpenSubscription(duration) {
      const client = someone()
      if (client === undefined) return
      client.deaf = true
      world.after(duration, () => client.deaf && client.cut())
    },
    function loseHalf(duration) {
      trouble.loss = 0.5
      world.after(duration, () => (trouble.loss = 0))
    },
    function slowNetwork(duration) {
      trouble.spikes = 0.4
      world.after(duration, () => (trouble.spikes = 0))
    },
    function setRedisClock(duration) {
      const by = [3_600_000, -3_600_000, duration, -duration]
      redis.setClock(by[Math.floor(world.random() * by.length)]!)
    },
    function jamHead(duration) {
      redis.jammed = true
      world.after(duration, () => (redis.jammed = false))
    },
  ]

  plan()
  let violation: string | undefined
  const guard = spinGuard()
  await world.runUntil(END, () => (violation ??= guard()))
  violation ??= verdict()
  for (const client of clients) void client.stop()
  await world.runUntil(END + 10_000, () => undefined)
  for (const client of clients) {
    if (client.process.pendingTimers > 0) violation ??= 'a stopped client has left a timer'
  }
  const latenessMs = redis.delivered.reduce((sum, { at, dueSince }) => sum + at - dueSince, 0)
  const { delivered, scripts } = redis
  return { seed, violation, calm, delivered: delivered.length, scripts, clients: everyone.length, latenessMs }

  function plan(): void {
    for (let count = Math.floor(world.between(1, 13)); count > 0; count--) {
      const at = world.between(0, HEALED_AT)
      const kind = world.random()
      const delay = kind < 0.1 ? 0 : kind < 0.2 ? 30 * 86_400_000 : Math.floor(world.between(1, 9_000))
      const offer = (after: number, ms: number): unknown => world.after(after, () => redis.up && redis.offer(ms))
      offer(at, delay)
      // many at once, and just when others are delivered
      if (world.chance(0.3)) for (let copy = 0; copy < 6; copy++) offer(at, delay)
      if (world.chance(0.4)) {
        for (let copies = Math.ceil(world.between(0, 8)); copies > 0; copies--) {
          offer(
            at + Math.min(delay, 9_000) + world.between(-2, 4),
            Math.floor(world.between(0, world.chance(0.5) ? 3 : 40)),
          )
        }
      }
    }
    // while the client that starts has sent a script and is not subscribed yet
    if (startsAt > 0 && world.chance(0.5)) world.after(startsAt + world.between(0, 10), () => redis.offer(20))
    if (world.chance(0.2)) world.after(world.between(1_000, HEALED_AT), () => redis.cancelHead())
    if (calm) return
    for (let count = Math.floor(world.between(1, 5)); count > 0; count--) {
      world.after(world.between(0, HEALED_AT - 3_000), pick(faults))
    }
    world.after(HEALED_AT, () => {
      redis.up = true
      redis.jammed = false
      trouble.loss = trouble.spikes = 0
      for (const client of clients) if (client.deaf) client.cut()
      if (clients.size === 0) start()
    })
  }

  function verdict(): string | undefined {
    if (redis.early > 0) return `${redis.early} delivered early`
    const [bound, since] = calm ? [LATE_WHEN_CALM_MS, startsAt] : [LATE_AFTER_HEALING_MS, HEALED_AT]
    for (const { at, dueSince } of redis.delivered) {
      const late = Math.round(at - Math.max(dueSince, since))
      if (late > bound) return `${late} ms late, ${calm ? 'without faults' : 'after healing'}`
    }
    const most = everyone.length * (1.3 * (END / SWEEP_MS) + 4) + redis.delivered.length * (everyone.length + 2)
    if (calm && redis.scripts > most) return `${redis.scripts} scripts for ${redis.delivered.length} messages`
    const stuck = redis.pending.filter(({ dueSince }) => dueSince < END - LATE_AFTER_HEALING_MS)
    return stuck.length > 0 ? `${stuck.length} are stuck` : undefined
  }

  /** Looks at each client once a second. */
  function spinGuard(): () => string | undefined {
    let next = 1_000
    const before = new Map<SimClient, { scripts: number; timers: number }>()
    return () => {
      if (world.now < next) return undefined
      const seconds = (world.now - next + 1_000) / 1_000
      next = world.now + 1_000
      for (const client of everyone) {
        const last = before.get(client) ?? { scripts: 0, timers: 0 }
        const now = { scripts: client.scripts, timers: client.process.timersMade }
        before.set(client, now)
        const scripts = Math.round((now.scripts - last.scripts) / seconds)
        const timers = Math.round((now.timers - last.timers) / seconds)
        if (scripts > MOST_SCRIPTS_PER_SECOND) return `a client sends ${scripts} scripts a second`
        if (timers > MOST_TIMERS_PER_SECOND) return `a client sets ${timers} timers a second`
      }
      return undefined
    }
  }

  function someone(): SimClient | undefined {
    return [...clients][Math.floor(world.random() * clients.size)]
  }

  function pick(from: typeof faults): () => void {
    const fault = from[Math.floor(world.random() * from.length)]!
    const duration = world.between(100, 3_000)
    return () => fault(duration)
  }
}
