import { eventually } from '../../support/events.js'
import { leaveMaster, loseMaster } from '../scenarios/failover.js'
import type { Bench } from './bench.js'
import type { Loss, Span } from './books.js'
import type { MemberProcess } from './member-process.js'
import { SentinelPlace, SinglePlace } from './place.js'
import type { Point } from './protocol.js'

/** A fault that happens to a bench, and its repair. */
export interface JournalFault {
  readonly name: string
  readonly place: 'single' | 'sentinel'
  /** The database must be a server. */
  readonly needsServer?: true
  /** Runs only in the long form: it takes minutes, or shows more on a busy machine. */
  readonly isLong?: true
  /** The database must have a disk that can be filled. */
  readonly needsQuota?: true
  readonly fault: (bench: Bench) => Promise<void>
}

const POINT_MS = 60_000
/** The longest time between an answer of Redis and its write to disk with `everysec`. */
const POSTPONED_MS = 2_000
const CROWD = 40
/** After each page of a slow restore: consumers handle many messages meanwhile. */
const SLOW_MS = 700
/** Some pages are read after the first pause: messages that become due meanwhile are handled before their page. */
const SLOW_BACKLOG = 6_000
/** MariaDB can also end if it has no room for changes that it has promised. */
const FULL = /ERR_JOURNAL_FULL/
const FULL_MS = 30_000
const BULK = 50
const BULK_BYTES = 8_192
const STOPPED = { min: 1_500, max: 4_000 }
/** Longer than a statement waits. */
const STOPPED_LONG = { min: 120_000, max: 150_000 }

function single({ place }: Bench): SinglePlace {
  if (!(place instanceof SinglePlace)) throw new Error('it needs one Redis')
  return place
}

/** Notes that Redis loses what it wrote after `back`, from now until the end of `action`. */
async function losing(
  bench: Bench,
  { what, back, isAlone = true }: { what: string; back: number; isAlone?: boolean },
  action: () => Promise<void>,
): Promise<Loss> {
  const never = { to: Infinity, toAtRedis: Infinity, seenAt: Infinity, restoredAt: Infinity }
  const loss: Loss = { what, back, from: Date.now(), ...never, isAlone }
  bench.books.losses.push(loss)
  await action()
  loss.to = Date.now()
  loss.toAtRedis = await bench.place.now()
  return loss
}

/** Redis dies, and returns in its state before messages were cancelled. */
async function goBack(bench: Bench, crowdMs: readonly [min: number, max: number]): Promise<Loss> {
  const place = single(bench)
  await bench.addCrowd(CROWD * 5, ...crowdMs)
  const cancel = await bench.addForCancel(CROWD)
  const back = Date.now()
  await place.takeSnapshot()
  await cancel()
  await bench.pause(300, 1_500)
  bench.addAndCancel(CROWD)
  await bench.pause(20, 300)
  return losing(bench, { what: 'since a snapshot', back }, async () => {
    await place.kill()
    await bench.pause(100, 1_000)
    await place.restartFromSnapshot()
  })
}

/** Redis dies while messages are added and cancelled, and comes back without anything. */
async function wipe(bench: Bench, isAlone = true, between = async (): Promise<void> => {}): Promise<void> {
  const place = single(bench)
  bench.addAndCancel(CROWD)
  await bench.pause(20, 300)
  await losing(bench, { what: 'all', back: -Infinity, isAlone }, async () => {
    await place.kill()
    await between()
    await bench.pause(200, 1_200)
    await place.restartEmpty()
  })
}

async function killAt(bench: Bench, point: Point): Promise<void> {
  const member = bench.oneMember()
  await member.order({ kind: 'arm', point })
  await endedWithin(member)
  await bench.pause(100, 1_000)
  await bench.revive(member)
}

async function endedWithin(member: MemberProcess): Promise<void> {
  await eventually(
    () => {
      if (member.isAlive) throw new Error(`${member.name} did not come to the point at which it ends`)
    },
    POINT_MS,
    20,
  )
}

async function killSql(bench: Bench): Promise<() => Promise<void>> {
  const { sql } = bench
  if (sql.kill !== undefined && sql.restart !== undefined) {
    await sql.kill()
    return sql.restart
  }
  const [member] = bench.members as [MemberProcess]
  await member.kill()
  return () => bench.revive(member)
}

/** Pauses SQL; returns a function that lets it go on. */
function pauseSql({ sql, members }: Bench): () => void {
  if (sql.pause !== undefined) {
    sql.pause(true)
    return () => sql.pause?.(false)
  }
  for (const member of members) member.signal('SIGSTOP')
  return () => members.forEach((member) => member.signal('SIGCONT'))
}

const redisFaults: readonly JournalFault[] = [
  { name: 'Redis is killed and comes back without data', place: 'single', fault: (bench) => wipe(bench) },
  {
    name: 'Redis is killed and comes back with an old snapshot',
    place: 'single',
    fault: async (bench) => void (await goBack(bench, [1_500, 4_500])),
  },
  {
    name: 'Redis is killed and comes back without its last second, appendfsync everysec',
    place: 'single',
    async fault(bench) {
      const place = single(bench)
      const back = Date.now() - POSTPONED_MS
      const size = place.size()
      await bench.pause(100, 1_000)
      await losing(bench, { what: 'the last second', back }, async () => {
        await place.kill()
        const cut = size + Math.floor((place.size() - size) * bench.random() ** 2)
        await bench.pause(100, 1_000)
        await place.restartCut(cut)
      })
    },
  },
  {
    name: 'Redis is killed and comes back with everything',
    place: 'single',
    async fault(bench) {
      await single(bench).writeAtOnce()
      await bench.pause(0, 500)
      const down: Span = { from: Date.now(), to: Infinity }
      bench.books.downs.push(down)
      await single(bench).kill()
      await bench.pause(500, 3_000)
      await single(bench).restart()
      down.to = Date.now()
    },
  },
  {
    name: 'Sentinel chooses a replica that lacks the last writes',
    place: 'sentinel',
    async fault(bench) {
      const { place } = bench
      if (!(place instanceof SentinelPlace)) throw new Error('it needs sentinels')
      await losing(bench, { what: 'what no replica had', back: Date.now() }, async () => {
        await loseMaster(bench, place.stage)
        await place.healthy()
      })
    },
  },
  {
    name: 'Sentinel chooses another master while the old one lives on',
    place: 'sentinel',
    async fault(bench) {
      const { place } = bench
      if (!(place instanceof SentinelPlace)) throw new Error('it needs sentinels')
      await losing(bench, { what: 'what the old master took', back: Date.now() }, async () => {
        await leaveMaster(place, place.stage)
        await place.healthy()
      })
    },
  },
]

const sqlFaults: readonly JournalFault[] = [
  {
    name: 'SQL is killed',
    place: 'single',
    async fault(bench) {
      const restart = await killSql(bench)
      await bench.pause(200, 2_000)
      await restart()
    },
  },
  {
    name: 'SQL is stopped for a while',
    place: 'single',
    async fault(bench) {
      const goOn = pauseSql(bench)
      await bench.pause(STOPPED.min, STOPPED.max)
      goOn()
    },
  },
  {
    name: 'SQL is stopped for minutes',
    place: 'single',
    needsServer: true,
    isLong: true,
    async fault(bench) {
      const goOn = pauseSql(bench)
      await bench.pause(STOPPED_LONG.min, STOPPED_LONG.max)
      goOn()
    },
  },
  {
    name: "SQL's disk is full",
    place: 'single',
    needsQuota: true,
    async fault(bench) {
      bench.sql.quota?.fill()
      // a database has room in its files for a while: so much is added that this is over
      const until = Date.now() + FULL_MS
      const isSeen = (): boolean => bench.hasSeen(FULL) || bench.sql.hasEnded?.() === true
      while (!isSeen() && Date.now() < until) await bench.addBulk(BULK, BULK_BYTES)
      if (!isSeen()) bench.books.other(`${bench.sql.kind} took everything for ${FULL_MS} ms while its disk was full`)
      await bench.pause(500, 2_000)
      bench.sql.quota?.relieve()
      await bench.sql.revive?.()
    },
  },
]

const memberFaults: readonly JournalFault[] = [
  {
    name: 'a member is killed between the commit and the addition',
    place: 'single',
    fault: (bench) => killAt(bench, 'afterCommit'),
  },
  {
    name: 'a member is killed between the addition and the answer',
    place: 'single',
    fault: (bench) => killAt(bench, 'afterAdd'),
  },
  {
    name: 'a member is killed in the middle of a restore',
    place: 'single',
    async fault(bench) {
      await Promise.all(bench.members.map((member) => member.order({ kind: 'arm', point: 'afterPage' })))
      await wipe(bench)
      const dead = (): MemberProcess[] => bench.members.filter((member) => !member.isAlive)
      await eventually(
        () => {
          if (dead().length === 0) throw new Error('no restore came to the point at which its member ends')
        },
        POINT_MS,
        20,
      )
      const alive = bench.members.filter((member) => member.isReady)
      await Promise.all(alive.map((member) => member.order({ kind: 'arm', point: undefined }).catch(() => undefined)))
      await bench.pause(100, 500)
      await Promise.all(dead().map((member) => bench.revive(member)))
    },
  },
  {
    name: 'consumers go on between the pages of a slow restore, after Redis came back with an old snapshot',
    place: 'single',
    isLong: true,
    async fault(bench) {
      await bench.fillBacklog(SLOW_BACKLOG)
      await bench.slowRestores(SLOW_MS)
      // due while it is restored
      const loss = await goBack(bench, [3_000, 9_000])
      const until = Date.now() + POINT_MS
      while (loss.restoredAt === Infinity && Date.now() < until) await bench.pause(20)
      await bench.slowRestores(0)
    },
  },
  {
    name: 'two members restore by hand while a third does it by itself',
    place: 'single',
    async fault(bench) {
      await wipe(bench)
      await bench.restoreByHand()
    },
  },
  {
    name: 'the clocks of the members and of Redis differ',
    place: 'single',
    async fault(bench) {
      await bench.shiftClocks(true)
      await bench.pause(300)
      // Redis comes back on a machine whose date is another
      await wipe(bench, true, async () => single(bench).moveDate(bench.random() * 2_000 - 500))
      await bench.pause(2_000)
      await bench.shiftClocks(false)
    },
  },
]

const both: readonly JournalFault[] = [
  {
    name: 'Redis comes back with a snapshot whose last changes SQL lacks, because it is stopped',
    place: 'single',
    async fault(bench) {
      const place = single(bench)
      const goOn = pauseSql(bench)
      try {
        await bench.pause(500, 1_000)
        const back = Date.now()
        await place.takeSnapshot()
        await losing(bench, { what: 'since a snapshot', back, isAlone: false }, async () => {
          await place.kill()
          await bench.pause(100, 500)
          await place.restartFromSnapshot()
        })
      } finally {
        goOn()
      }
    },
  },
  {
    name: 'Redis loses its data while SQL is stopped',
    place: 'single',
    async fault(bench) {
      const goOn = pauseSql(bench)
      try {
        await bench.pause(300, 1_000)
        await wipe(bench, false)
        await bench.pause(0, 1_000)
      } finally {
        goOn()
      }
    },
  },
  {
    name: 'SQL and a member are killed, and Redis loses its data before they are back',
    place: 'single',
    async fault(bench) {
      const member = bench.oneMember()
      const restart = await killSql(bench)
      await member.kill()
      await bench.pause(0, 500)
      const back = wipe(bench, false)
      await restart()
      if (!member.isAlive) await bench.revive(member)
      await back
    },
  },
]

export const FAULTS: readonly JournalFault[] = [...redisFaults, ...sqlFaults, ...memberFaults, ...both]
