/** Redisson before 3.21.1 writes `dLc0` entries; what it left behind is delivered, beside what Node writes. */
import { expect } from 'chai'
import { rawClient, uniqueName } from '../../support/redis.js'
import { cell } from '../support/results.js'
import { LATER, NEW_ENTRIES, both, expectConsistent, s, type Side } from '../support/side.js'

export function oldEntryScenarios(side: Side): void {
  const absent = side.old ? undefined : 'it writes the new format'
  const oldOnly = (row: string, test: () => Promise<void>): void =>
    cell({ table: 'scenarios', row, version: side.build.version }, { absent, timeout: 20_000 }, test)

  oldOnly('old entries beside new ones of both orders: Node delivers each once, none early', async () => {
    const javaClient = uniqueName('old')
    await side.jvm().open({ client: javaClient })
    const { java, delayed, queue } = both(side, { options: NEW_ENTRIES, javaClient })
    const list = delayed({ deliver: false })
    const none = delayed({ layout: 'compact', deliver: false })
    const dues = new Map<string, number>()
    const delays = Array.from({ length: 30 }, (_, i) => 1_000 + ((i * 37) % 600))
    await java.hold()
    for (const delay of delays) dues.set(`old ${delay}`, (await java.offer(s(`old ${delay}`), delay)).before + delay)
    // it would get stuck on what now follows, and its timer outlives the delayed queue, but not the client
    await java.destroy()
    await side.jvm().close(javaClient)
    for (const delay of delays) {
      dues.set(`list ${delay}`, Date.now() + delay)
      await list.offer(`list ${delay}`, delay)
      dues.set(`none ${delay}`, Date.now() + delay)
      await none.offer(`none ${delay}`, delay)
    }
    expect(await list.size()).to.be.at.most(2 * delays.length)
    delayed()
    const taken: string[] = []
    while (taken.length < dues.size) {
      const value = await queue.take()
      taken.push(value)
      expect(Date.now(), value).to.be.at.least(dues.get(value)!)
    }
    expect(taken.sort()).to.deep.equal([...dues.keys()].sort())
    expect(await queue.poll(300)).to.equal(null)
    expect([await list.size(), await none.size()]).to.deep.equal([0, 0])
  })

  oldOnly('old and new entries are seen in offer order, and Node cancels and removes old ones', async () => {
    const { java, delayed, name } = both(side, { options: NEW_ENTRIES })
    await java.offerAndLeave(s('old'), LATER)
    await java.offerAndLeave(s('older still'), LATER + 1000)
    const node = delayed({ deliver: false })
    await node.offer('new', LATER)
    expect(await node.readAll()).to.deep.equal(['old', 'older still', 'new'])
    expect(await node.contains('old')).to.equal(true)
    const old = (await node.schedule()).find(({ value }) => value === 'old')
    expect(await node.cancel(old!.ticket!)).to.equal(true)
    expect(await node.remove('older still')).to.equal(true)
    expect(await node.readAll()).to.deep.equal(['new'])
    await expectConsistent(name)
  })

  oldOnly(
    '2,000 old entries, whatever their ids begin with: Node delivers each once and leaves nothing behind',
    async () => {
      const { java, delayed, queue, name } = both(side, { options: NEW_ENTRIES })
      await java.hold()
      const values = Array.from({ length: 2_000 }, (_, i) => `old ${i}`)
      await Promise.all(values.map((value) => java.offer(s(value), 5_000)))
      await java.destroy()
      // the first byte of an id is random: some begin like the length of an id of the later format
      const entries = await rawClient().lrangeBuffer(`redisson_delay_queue:{${name}}`, 0, -1)
      expect(new Set(entries.map(([first]) => first)).size).to.be.greaterThan(200)
      const node = delayed()
      const taken: string[] = []
      while (taken.length < values.length) taken.push(...(await queue.takeMany(1_000)))
      expect(taken.sort()).to.deep.equal(values.sort())
      expect(await queue.poll(300)).to.equal(null)
      expect(await node.readAll()).to.deep.equal([])
      await expectConsistent(name)
    },
  )

  oldOnly('Java of that time takes what Node has delivered', async () => {
    const { java, delayed } = both(side, { options: NEW_ENTRIES })
    const node = delayed()
    await node.offer('new', 100)
    expect(await java.take()).to.deep.equal(s('new'))
    const waiting = java.take()
    await node.offer('newer', 100)
    expect(await waiting).to.deep.equal(s('newer'))
  })
}
