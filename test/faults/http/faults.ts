import type { HttpBench } from './bench.js'
import { VISIBILITY_MS } from './messages.js'

/** A fault that happens to a bench, and its repair. */
export interface HttpFault {
  readonly name: string
  /** Redis and its connections work: no message comes late, early or twice. */
  readonly isRedisWell?: true
  /** CI has it, too. */
  readonly isShort?: true
  readonly fault: (bench: HttpBench) => Promise<void>
}

const CROWD = 30
/** Longer than the visibility: by then others have the messages of the instance. */
const AWAY = { min: VISIBILITY_MS + 1_000, max: VISIBILITY_MS + 3_000 }
/** The longest time between an answer of Redis and its write to disk with `everysec`. */
const POSTPONED_MS = 2_000

/** Redis dies while messages are pushed and removed, and comes back without anything. The result resolves when the pushes and removals have ended. */
async function wipe(bench: HttpBench, meanwhile = async (): Promise<void> => {}): Promise<() => Promise<void>> {
  const { place, books, traffic } = bench
  const removing = traffic.pushAndRemove(CROWD)
  await bench.pause(20, 300)
  books.loses(-Infinity)
  await place.kill()
  await meanwhile()
  await bench.pause(200, 1_200)
  await place.restartEmpty()
  return () => removing
}

/** Redis dies, and returns in its state before messages were removed. */
async function goBack(bench: HttpBench): Promise<void> {
  const { place, books, traffic } = bench
  const remove = await traffic.pushForRemoval(CROWD)
  const back = Date.now()
  await place.takeSnapshot()
  await remove()
  await bench.pause(300, 1_500)
  books.loses(back)
  await place.kill()
  await bench.pause(100, 1_000)
  await place.restartFromSnapshot()
}

export const HTTP_FAULTS: readonly HttpFault[] = [
  { name: 'Redis is killed and comes back without data', isShort: true, fault: async (bench) => (await wipe(bench))() },
  { name: 'Redis is killed and comes back with an old snapshot', isShort: true, fault: goBack },
  {
    name: 'Redis is killed and comes back without its last second',
    async fault(bench) {
      const { place, books } = bench
      const back = Date.now() - POSTPONED_MS
      const size = place.size()
      await bench.pause(100, 1_000)
      books.loses(back)
      await place.kill()
      const cut = size + Math.floor((place.size() - size) * bench.random() ** 2)
      await bench.pause(100, 1_000)
      await place.restartCut(cut)
    },
  },
  {
    name: 'Redis is killed and comes back with everything',
    async fault(bench) {
      const { place, books } = bench
      await place.writeAtOnce()
      await bench.pause(0, 500)
      books.loses(Date.now())
      await place.kill()
      await bench.pause(500, 3_000)
      await place.restart()
    },
  },
  {
    name: 'an instance is killed',
    isRedisWell: true,
    isShort: true,
    async fault(bench) {
      const instance = bench.oneInstance()
      await instance.end('SIGKILL')
      await bench.pause(500, VISIBILITY_MS)
      await instance.start()
    },
  },
  {
    name: 'an instance is stopped for longer than the visibility',
    isRedisWell: true,
    isShort: true,
    async fault(bench) {
      const instance = bench.oneInstance()
      instance.signal('SIGSTOP')
      await bench.pause(AWAY.min, AWAY.max)
      instance.signal('SIGCONT')
    },
  },
  {
    name: 'an instance is cut off from Redis for longer than the visibility',
    isRedisWell: true,
    isShort: true,
    async fault(bench) {
      const { line } = bench.oneInstance()
      line.blackhole(true)
      await bench.pause(AWAY.min, AWAY.max)
      line.blackhole(false)
    },
  },
  {
    name: 'the connections of an instance to Redis break again and again',
    isRedisWell: true,
    async fault(bench) {
      const { line } = bench.oneInstance()
      for (let at = 0; at < 5; at++) {
        line.cut()
        await bench.pause(50, 800)
      }
    },
  },
  {
    name: 'both instances are restarted one after the other',
    isRedisWell: true,
    isShort: true,
    async fault(bench) {
      for (const instance of bench.instances) {
        const code = await instance.end('SIGTERM')
        if (code !== 0) bench.books.wrong('other', `${instance.name} ended with ${code}: ${instance.output}`)
        await bench.pause(100, 500)
        await instance.start()
        await bench.pause(100, 500)
      }
      if (!bench.isBehindProxy) return
      const failed = bench.traffic.failures.filter(({ isRepeated }) => isRepeated)
      for (const { text } of failed.slice(0, 5)) bench.books.wrong('other', text)
    },
  },
  {
    name: 'an instance is killed while Redis loses its data',
    async fault(bench) {
      const instance = bench.oneInstance()
      const removed = await wipe(bench, () => instance.end('SIGKILL').then(() => undefined))
      await removed()
      await instance.start()
    },
  },
  {
    name: 'SQL is killed',
    isRedisWell: true,
    async fault(bench) {
      await bench.sql.kill?.()
      await bench.pause(200, 2_000)
      await bench.sql.restart?.()
    },
  },
  {
    name: 'SQL is stopped for a while',
    isRedisWell: true,
    async fault(bench) {
      bench.sql.pause?.(true)
      await bench.pause(1_500, 4_000)
      bench.sql.pause?.(false)
    },
  },
  {
    name: 'Redis loses its data while SQL is stopped',
    async fault(bench) {
      const lose = async (): Promise<() => Promise<void>> => {
        await bench.pause(300, 1_000)
        const removed = await wipe(bench)
        await bench.pause(0, 1_000)
        return removed
      }
      bench.sql.pause?.(true)
      const removed = await lose().finally(() => bench.sql.pause?.(false))
      // only now, as without SQL no push is accepted
      await removed()
    },
  },
]
