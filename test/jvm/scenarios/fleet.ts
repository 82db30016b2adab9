/** The mixed fleet: 2 JVMs and 2 Node processes offer and deliver on one queue and are killed again and again. */
import { expect } from 'chai'
import { codecs } from '../../../src/index.js'
import { makeClient, onCleanup } from '../../integration/fixtures.js'
import { eventually } from '../../support/events.js'
import { rawClient, uniqueName } from '../../support/redis.js'
import { Books, Member, javaMember, nodeMember } from '../support/fleet.js'
import { Jvm, STRING } from '../support/jvm.js'
import { NO_SWEEP, formatFor, pause, scenario, type Side } from '../support/side.js'

interface FleetSize {
  readonly messages: number
  /** How long offering takes; each kill adds what a restart costs. */
  readonly overMs: number
  readonly kills: number
}

const KILL_EVERY_MS = 1_000
/** How long both processes of one kind are away. */
const OUTAGE_MS = 1_500
const MAX_DELAY = 3_000
const QUIET_MS = 1_000
const TIMEOUT_MS = 120_000

/** Consumers are not killed: taking is at most once, so what they had in hand would be lost, and rightly so. */
export function fleetScenario(side: Side, { messages, overMs, kills }: FleetSize): void {
  scenario(
    side,
    'a mixed fleet, killed again and again: nothing lost, nothing doubled, nothing early',
    async () => {
      const queue = uniqueName('fleet')
      const books = new Books()
      const each = messages / 4
      const { entryFormat } = formatFor(side)
      const job = { queue, from: 0, to: each, everyMs: overMs / each, maxDelay: MAX_DELAY }
      const members = [
        new Member(javaMember(side.build), { ...job, name: 'java-1' }, books),
        new Member(nodeMember({ layout: 'redisson', entryFormat }), { ...job, name: 'node-1' }, books),
        new Member(javaMember(side.build), { ...job, name: 'java-2' }, books),
        new Member(
          nodeMember({ layout: side.old ? 'redisson' : 'compact', entryFormat }),
          { ...job, name: 'node-2' },
          books,
        ),
      ]
      for (const member of members) onCleanup(() => member.stop())
      const restarts = members.map(() => Promise.resolve())
      onCleanup(() => Promise.allSettled(restarts))

      const takenBy = await startConsumers(side, queue, books)
      await Promise.all(members.map((member) => member.start()))
      for (let i = 0; i < kills; i++) {
        await pause(KILL_EVERY_MS) // so that each works for a while
        const at = i % members.length
        await restarts[at]
        restarts[at] = members[at]!.killAndRestart()
      }
      await Promise.all(restarts)
      for (const kind of ['java', 'node']) {
        // now those of the other kind must do all the work, and take over what these have announced
        const half = members.filter(({ name }) => name.startsWith(kind))
        await Promise.all(half.map((member) => member.kill()))
        await pause(OUTAGE_MS) // the others work alone
        await Promise.all(half.map((member) => member.start()))
      }
      await eventually(() => expect(members.filter(({ finished }) => !finished)).to.deep.equal([]), TIMEOUT_MS, 100)
      await untilQuiet(queue, books)

      const { median, max } = books.lateness()
      const killed = members.reduce((sum, member) => sum + member.kills, 0)
      const kinds = `${takenBy().node} taken in Node and ${takenBy().java} in Java`
      console.log(
        `      ${books.acknowledged} acknowledged offers and ${books.open} unanswered, ${books.taken} taken: ${kinds};` +
          ` ${killed} kills; late by ${median} ms (median), ${max} ms (at most)`,
      )
      expect(books.problems().slice(0, 20)).to.deep.equal([])
      expect(books.acknowledged + books.open).to.equal(messages)
      expect(books.open, 'offers without an answer').to.be.lessThan(messages / 20)
      expect(members.map((member) => member.kills)).to.deep.equal(members.map(() => kills / members.length + 1))
      expect(Math.min(takenBy().node, takenBy().java)).to.be.greaterThan(messages / 20)
    },
    { timeout: TIMEOUT_MS },
  )
}

/** One in this process and one in a JVM of its own; neither delivers. */
async function startConsumers(side: Side, name: string, books: Books): Promise<() => { node: number; java: number }> {
  let node = 0
  let java = 0
  const jvm = await Jvm.start(side.build, (event) => {
    books.add(event)
    java++
  })
  onCleanup(() => jvm.stop())
  await jvm.open()
  jvm.request('consume', { queue: name, codec: STRING }).catch(() => {}) // it ends with the JVM

  const client = makeClient({ ...NO_SWEEP, consumersDeliver: false })
  const queue = client.getBlockingQueue<string>(name, { codec: codecs.string() })
  queue.subscribeOnElements((value) => {
    books.take(value, Date.now())
    node++
  })
  return () => ({ node, java })
}

/** Resolves when nothing is left in Redis and nothing has come for a while. */
async function untilQuiet(name: string, books: Books): Promise<void> {
  const deadline = Date.now() + 30_000
  let taken = -1
  for (;;) {
    const left = await whatIsLeft(name)
    if (left === '' && taken === books.taken) return
    if (Date.now() > deadline) throw new Error(`this is left:${left}`)
    taken = books.taken
    await pause(QUIET_MS) // nothing may come
  }
}

async function whatIsLeft(name: string): Promise<string> {
  const redis = rawClient()
  const [order, timeouts] = [`redisson_delay_queue:{${name}}`, `redisson_delay_queue_timeout:{${name}}`]
  const left = {
    delivered: await redis.lrangeBuffer(name, 0, 9),
    ordered: await redis.lrangeBuffer(order, 0, 9),
    pending: await redis.zrangeBuffer(timeouts, '0', '9', 'WITHSCORES'),
  }
  return Object.entries(left)
    .flatMap(([what, entries]) => entries.map((entry) => `\n${what}: ${entry.toString('latin1')}`))
    .join('')
}
