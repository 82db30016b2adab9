import { eventually } from '../../support/events.js'
import { loseMaster } from '../scenarios/failover.js'
import type { HttpBench, Where } from './bench.js'
import { VISIBILITY_MS } from './messages.js'

/** A fault that happens to a bench, and its repair. */
export interface HttpFault {
  readonly name: string
  /** Redis and its connections work: no message comes late, early or twice. */
  readonly isRedisWell?: true
  /** How long consumers may be behind after it: thousands of messages are accepted and due at once. */
  readonly catchUpMs?: number
  /** CI has it, too. */
  readonly isShort?: true
  /** It takes minutes: only the long form has it. */
  readonly isLong?: true
  /** Default: one Redis. */
  readonly where?: Where
  /** What the database or the instances must be for it. */
  readonly needs?: 'a server' | 'a small disk' | 'two instances' | 'one instance'
  readonly fault: (bench: HttpBench) => Promise<void>
}

const CROWD = 30
/** Longer than the visibility: by then others have the messages of the instance. */
const AWAY = { min: VISIBILITY_MS + 1_000, max: VISIBILITY_MS + 3_000 }
/** The longest time between an answer of Redis and its write to disk with `everysec`. */
const POSTPONED_MS = 2_000
/** A restore counts as interrupted when its instance has been silent for 30 s. */
const RESTORED_MS = 90_000
/** So many that a restore is not over before its instance is killed. */
const LARGE_BACKLOG = 6_000
const FULL = /ERR_JOURNAL_FULL/
const FULL_MS = 60_000
/** A request that fits into the buffer of nginx, which may not write larger ones into a folder of root. */
const [BULK, BULK_BYTES] = [20, 8_192]

/** SQL is stopped: consumers and webhooks go on meanwhile with what was accepted before. */
async function stopSql(bench: HttpBench, min: number, max: number): Promise<void> {
  const { books, sql, traffic } = bench
  const accepted = await traffic.pushDue(CROWD, 1_000, 5_000)
  sql.pause?.(true)
  try {
    await bench.pause(min, max)
    const open = new Set(books.open())
    for (const message of accepted.filter((each) => open.has(each)).slice(0, 5))
      books.wrong('late', `${message.item.id} was due, and not handled while SQL was stopped`)
  } finally {
    sql.pause?.(false)
  }
}

/** Waits until SQL has nothing that Redis lacks, by restores that only count. */
async function restored({ traffic, books }: HttpBench): Promise<void> {
  // what is acknowledged between the two reads of a restore would count
  traffic.produce(false)
  await traffic.pushed()
  const until = Date.now() + RESTORED_MS
  let last: Record<string, unknown>
  do last = await traffic.ended(await traffic.restore({ dryRun: true }))
  while ((last['state'] !== 'done' || last['restored'] !== 0) && Date.now() < until)
  if (last['state'] !== 'done' || last['restored'] !== 0)
    books.wrong('other', `a restore still finds what Redis lacks: ${JSON.stringify(last)}`)
}

/** Redis dies while messages are pushed and removed, and comes back without anything. The result resolves when the pushes and removals have ended. */
async function wipe(bench: HttpBench, meanwhile = async (): Promise<void> => {}): Promise<() => Promise<void>> {
  const { redis, books, traffic } = bench
  const removing = traffic.pushAndRemove(CROWD)
  await bench.pause(20, 300)
  books.loses(-Infinity)
  await redis.kill()
  await meanwhile()
  await bench.pause(200, 1_200)
  await redis.restartEmpty()
  return () => removing
}

/** Redis dies, and returns in its state before messages were removed. */
async function goBack(bench: HttpBench): Promise<void> {
  const { redis, books, traffic } = bench
  const remove = await traffic.pushForRemoval(CROWD)
  const back = Date.now()
  await redis.takeSnapshot()
  await remove()
  await bench.pause(300, 1_500)
  books.loses(back)
  await redis.kill()
  await bench.pause(100, 1_000)
  await redis.restartFromSnapshot()
}

export const HTTP_FAULTS: readonly HttpFault[] = [
  { name: 'Redis is killed and comes back without data', isShort: true, fault: async (bench) => (await wipe(bench))() },
  { name: 'Redis is killed and comes back with an old snapshot', isShort: true, fault: goBack },
  {
    name: 'Redis is killed and comes back without its last second',
    async fault(bench) {
      const { redis, books } = bench
      const back = Date.now() - POSTPONED_MS
      const size = redis.size()
      await bench.pause(100, 1_000)
      books.loses(back)
      await redis.kill()
      const cut = size + Math.floor((redis.size() - size) * bench.random() ** 2)
      await bench.pause(100, 1_000)
      await redis.restartCut(cut)
    },
  },
  {
    name: 'Redis is killed and comes back with everything',
    async fault(bench) {
      const { redis, books } = bench
      await redis.writeAtOnce()
      await bench.pause(0, 500)
      books.loses(Date.now())
      await redis.kill()
      await bench.pause(500, 3_000)
      await redis.restart()
    },
  },
  {
    name: 'an instance is killed',
    needs: 'two instances',
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
    needs: 'two instances',
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
    needs: 'two instances',
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
    name: 'the only instance is killed',
    needs: 'one instance',
    async fault(bench) {
      const instance = bench.oneInstance()
      await instance.end('SIGKILL')
      await bench.pause(500, 2_000)
      await instance.start()
    },
  },
  {
    name: 'both instances are restarted one after the other',
    needs: 'two instances',
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
    needs: 'two instances',
    async fault(bench) {
      const instance = bench.oneInstance()
      const removed = await wipe(bench, () => instance.end('SIGKILL').then(() => undefined))
      await removed()
      await instance.start()
    },
  },
  {
    name: 'SQL is killed',
    needs: 'a server',
    isRedisWell: true,
    async fault(bench) {
      await bench.sql.kill?.()
      await bench.pause(200, 2_000)
      await bench.sql.restart?.()
    },
  },
  {
    name: 'SQL is stopped for a while',
    needs: 'a server',
    isRedisWell: true,
    async fault(bench) {
      bench.sql.pause?.(true)
      await bench.pause(1_500, 4_000)
      bench.sql.pause?.(false)
    },
  },
  {
    name: 'Redis loses its data while SQL is stopped',
    needs: 'a server',
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
  {
    name: 'SQL is stopped for a quarter of a minute',
    needs: 'a server',
    isRedisWell: true,
    isShort: true,
    fault: (bench) => stopSql(bench, 15_000, 15_000),
  },
  {
    name: 'SQL is stopped for minutes',
    needs: 'a server',
    isRedisWell: true,
    isLong: true,
    catchUpMs: 20_000,
    fault: (bench) => stopSql(bench, 120_000, 150_000),
  },
  {
    // so much is pushed meanwhile that consumers can be behind
    name: 'the disk of SQL is full',
    needs: 'a small disk',
    async fault(bench) {
      const { sql, traffic, books } = bench
      bench.forgetOutput()
      sql.quota?.fill()
      // a database has room in its files for a while: so much is pushed that this is over
      const end = traffic.pushBulk(BULK, BULK_BYTES)
      const until = Date.now() + FULL_MS
      const isSeen = (): boolean => bench.hasSeen(FULL) || sql.hasEnded?.() === true
      while (!isSeen() && Date.now() < until) await bench.pause(50)
      if (!isSeen()) books.wrong('other', `${sql.kind} took everything for ${FULL_MS} ms while its disk was full`)
      await bench.pause(500, 2_000)
      end()
      sql.quota?.relieve()
      await sql.revive?.()
    },
  },
  {
    name: 'both instances restore by hand when Redis has lost its data',
    needs: 'two instances',
    async fault(bench) {
      const { traffic, books, instances } = bench
      const removed = await wipe(bench)
      const begun = await Promise.all(instances.map(({ url }) => traffic.restore({}, url)))
      for (const restore of await Promise.all(begun.map((id) => traffic.ended(id))))
        if (restore['state'] !== 'done') books.wrong('other', `a restore did not end: ${JSON.stringify(restore)}`)
      await removed()
      await restored(bench)
    },
  },
  {
    name: 'an instance is killed while both restore by hand',
    needs: 'two instances',
    isLong: true,
    async fault(bench) {
      const { traffic, books, instances } = bench
      await traffic.fillBacklog(LARGE_BACKLOG)
      const removed = await wipe(bench)
      const begun = await Promise.all(instances.map(({ url }) => traffic.restore({}, url)))
      const instance = bench.oneInstance()
      await bench.pause(0, 200)
      await instance.end('SIGKILL')
      const ends = await Promise.all(begun.map((id) => traffic.ended(id)))
      for (const [at, end] of ends.entries()) {
        const mayBe = instances[at] === instance ? ['done', 'interrupted'] : ['done']
        if (!mayBe.includes(String(end['state'])))
          books.wrong('other', `the restore of ${instances[at]?.name} did not end: ${JSON.stringify(end)}`)
      }
      await instance.start()
      const again = await traffic.ended(await traffic.restore({}, instance.url))
      if (again['state'] !== 'done') books.wrong('other', `the repeated restore did not end: ${JSON.stringify(again)}`)
      await removed()
      await restored(bench)
    },
  },
  {
    name: 'the receiver of webhooks takes them and answers none',
    isRedisWell: true,
    async fault(bench) {
      bench.receiver.isSilent = true
      await bench.pause(2_000, 5_000)
      bench.receiver.speak()
    },
  },
  {
    name: 'an instance is killed while its webhooks have no answer',
    needs: 'two instances',
    isRedisWell: true,
    async fault(bench) {
      const { receiver } = bench
      const instance = bench.oneInstance()
      receiver.isSilent = true
      await eventually(() => {
        if (receiver.held === 0) throw new Error('no webhook has arrived')
      })
      await instance.end('SIGKILL')
      receiver.speak()
      await bench.pause(500, VISIBILITY_MS)
      await instance.start()
    },
  },
  {
    name: 'Sentinel chooses a replica that lacks the last writes',
    where: 'sentinel',
    async fault(bench) {
      const { sentinels, books } = bench
      books.loses(Date.now())
      await loseMaster(bench, sentinels.stage)
    },
  },
  {
    name: 'Sentinel chooses another master while the old one lives on',
    where: 'sentinel',
    async fault(bench) {
      const { sentinels, books } = bench
      books.loses(Date.now())
      await sentinels.stage.promote()
    },
  },
]
