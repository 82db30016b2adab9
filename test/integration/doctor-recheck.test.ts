/** The second search for entries that seem to be missing in an order list, on a real Redis, while the list changes. */
import { expect } from 'chai'
import { queueKeys, type QueueKeys } from '../../src/keys.js'
import type { Sender } from '../../src/store/run.js'
import { inspectOrder } from '../../src/store/scripts.js'
import { inspectBoth } from '../../src/doctor/inspect-queue.js'
import { recheckSuspects } from '../../src/doctor/recheck.js'
import { ordered, senderOf } from '../lua/support.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, onCleanup } from './fixtures.js'

const DUE = Date.now() + 3_600_000

describe("the doctor's recheck", function () {
  this.timeout(30_000)
  let keys: QueueKeys
  let offered: Buffer[]

  beforeEach(() => {
    keys = queueKeys(uniqueName('recheck'))
    offered = []
    onCleanup(() => rawClient().del(keys.timeouts, keys.order))
  })
  afterEach(cleanUp)

  /** Adds an entry to both keys, as an offer does. */
  async function offer(count: number): Promise<Buffer[]> {
    const entries = Array.from({ length: count }, (_, i) => ordered(`${offered.length + i}`.padStart(8, '0'), 'x'))
    await rawClient()
      .multi()
      .zadd(keys.timeouts, ...entries.flatMap((entry) => [DUE, entry]))
      .rpush(keys.order, ...entries)
      .exec()
    offered.push(...entries)
    return entries
  }

  /** Adds an entry to the schedule alone. */
  async function lose(count: number): Promise<Buffer[]> {
    const entries = Array.from({ length: count }, (_, i) => ordered(`lost ${i}`, 'x'))
    await rawClient().zadd(keys.timeouts, ...entries.flatMap((entry) => [DUE, entry]))
    return entries
  }

  const remove = (entries: readonly Buffer[]): Promise<unknown> =>
    entries
      .reduce((multi, entry) => multi.zrem(keys.timeouts, entry).lrem(keys.order, -1, entry), rawClient().multi())
      .exec()

  /** Each command, with the script that it is for, goes through this. */
  function through(around: (ask: () => Promise<unknown>, script: unknown) => Promise<unknown>): Sender {
    const sender = senderOf(rawClient())
    return {
      pipeline: (commands) => sender.pipeline(commands),
      call: (command, args, options) => around(() => sender.call(command, args, options), args[0]),
    }
  }

  /** Calls `onPage` with the number of each page of the order list, before the page is asked for. */
  function watched(onPage: (page: number) => Promise<unknown>): Sender & { readonly pages: number } {
    let pages = 0
    const sender = through(async (ask, script) => {
      if (script === inspectOrder.source.sha1) await onPage(pages++)
      return ask()
    })
    return Object.defineProperty(sender as Sender & { pages: number }, 'pages', { get: () => pages })
  }

  const nameOf = (entry: Buffer) => ({ due: String(DUE), prefix: entry.subarray(0, 9) })
  const look = async (sender: Sender, entries: readonly Buffer[], mostMs?: number) => {
    const { missing, unsure } = await recheckSuspects(sender, keys, entries.map(nameOf), mostMs)
    return { missing: missing.map(({ prefix }) => prefix.toString('latin1')), unsure }
  }
  const found = (missing: readonly Buffer[], unsure = 0) => ({
    missing: missing.map((entry) => entry.toString('latin1', 0, 9)),
    unsure,
  })

  it('takes one page, whatever the length of the list, to find entries offered during the first pass', async () => {
    await offer(5_000)
    let pages = 0
    const sender = through(async (ask, script) => {
      if (script !== inspectOrder.source.sha1) return ask()
      pages++
      const page = await ask()
      // behind the last page of the first pass
      if (pages === 21) await offer(200)
      return page
    })
    const inspected = await inspectBoth(sender, keys, () => {})
    expect(inspected).to.deep.include({ missing: [], suspected: 0 })
    expect(pages).to.equal(22)
  })

  it('finds the missing entries among the listed ones', async () => {
    const listed = await offer(3_000)
    const lost = await lose(20)
    expect(await look(senderOf(rawClient()), [...listed.filter((_, i) => i % 100 === 0), ...lost])).to.deep.equal(
      found(lost),
    )
  })

  it('overlooks nothing while elements come and go between its pages', async () => {
    const listed = await offer(8_000)
    const lost = await lose(5)
    const suspects = [...listed.filter((_, i) => i < 5_000 && i % 50 === 0), ...lost]
    const sender = watched(async () => {
      await offer(60)
      // of those that it has seen, so that the others move towards them
      await remove(listed.splice(-200))
    })
    expect(await look(sender, suspects)).to.deep.equal(found(lost))
    expect(sender.pages, 'in one walk').to.be.at.most(8_000 / 500 + 1)
  })

  it('begins again when more came or went than it can follow', async () => {
    const listed = await offer(10_000)
    const lost = await lose(1)
    const sender = watched(async (page) => {
      if (page === 1) await offer(2_000)
      if (page === 14) await remove(offered.slice(-1_500))
    })
    expect(await look(sender, [...listed.filter((_, i) => i % 50 === 0), ...lost])).to.deep.equal(found(lost))
    expect(sender.pages).to.be.within(2 + 13 + 21, 2 + 13 + 23)
  })

  it('reports unsure entries when its time is over, or when a page of orphans is in the way', async () => {
    const listed = await offer(3_000)
    const lost = await lose(3)
    expect(await look(senderOf(rawClient()), [...listed.slice(0, 2), ...lost], 0)).to.deep.equal(found([], 5))
    const changing = watched(() => offer(600))
    expect(await look(changing, [...listed.slice(0, 2), ...lost], 300)).to.deep.equal(found([], 5))
    await rawClient().rpush(keys.order, ...Array.from({ length: 500 }, (_, i) => `orphan ${i}`))
    expect(await look(senderOf(rawClient()), [...listed.slice(0, 2), ...lost])).to.deep.equal(found([], 5))
  })

  it('leaves the server as much time as it takes', async () => {
    const listed = await offer(3_000)
    const lost = await lose(3)
    const times: [from: number, to: number][] = []
    const slow = through(async (ask) => {
      const from = performance.now()
      await new Promise((resolve) => setTimeout(resolve, 5)) // the server takes so long
      const reply = await ask()
      times.push([from, performance.now()])
      return reply
    })
    expect(await look(slow, [...listed.slice(0, 1), ...lost])).to.deep.equal(found(lost))
    expect(times).to.have.length.of.at.least(6 + 3)
    for (const [i, [from]] of times.entries()) {
      const [began, ended] = times[i - 1] ?? [0, 0]
      if (i > 0) expect(from - ended).to.be.at.least(ended - began - 2)
    }
  })
})
