/** `layout: 'compact'`: entries with short ids that are not in the order list, in a queue that Java uses as ever. */
import { expect } from 'chai'
import { dueOf } from '../../../src/index.js'
import { rawClient } from '../../support/redis.js'
import { LATER, NEW_ENTRIES, both, expectOnTime, s, scenario, strings, type Side } from '../support/side.js'

const NONE = { layout: 'compact' } as const

export function unorderedScenarios(side: Side): void {
  scenario(
    side,
    "layout: 'compact': Java delivers and takes what Node offers",
    async () => {
      const { java, delayed, transferred } = both(side, { options: NEW_ENTRIES })
      await java.hold()
      const node = delayed({ ...NONE, deliver: false })
      const taken = java.take()
      const ticket = await node.offer('of Node', 300)
      expect(await taken).to.deep.equal(s('of Node'))
      expectOnTime(dueOf(ticket))
      expect(transferred()).to.equal(0)
    },
    { needsNewEntries: true },
  )

  scenario(side, "layout: 'compact': Node delivers and takes what Java offers", async () => {
    const { java, delayed, queue } = both(side, { options: NEW_ENTRIES })
    const node = delayed(NONE)
    const taken = queue.take()
    const { before } = await java.offerAndLeave(s('of Java'), 300)
    expect(await taken).to.equal('of Java')
    expectOnTime(before + 300)
    expect(await node.size()).to.equal(0)
  })

  scenario(
    side,
    "layout: 'compact': Node sees all that is pending, Java what it has offered itself",
    async () => {
      const { java, delayed } = both(side, { options: NEW_ENTRIES })
      await java.hold()
      const node = delayed({ ...NONE, deliver: false })
      await node.offer('of Node', LATER)
      await java.offer(s('of Java'), LATER + 1000)
      expect(await node.readAll()).to.deep.equal(['of Node', 'of Java'])
      expect(await java.readAll()).to.deep.equal(strings(['of Java']))
      expect(await java.pollPending()).to.deep.equal(s('of Java'))
      expect(await node.readAll()).to.deep.equal(['of Node'])
    },
    { needsNewEntries: true },
  )

  for (const who of ['Java', 'Node'] as const) {
    scenario(
      side,
      `layout: 'compact': both kinds in one queue, ${who} delivers each once`,
      async () => {
        const { java, delayed, queue, name } = both(side, { options: NEW_ENTRIES })
        await java.hold()
        const none = delayed({ ...NONE, deliver: false })
        const list = delayed({ deliver: who === 'Node' })
        const numbers = Array.from({ length: 40 }, (_, i) => i)
        const due = new Date(Date.now() + 800)
        await Promise.all(
          numbers.map(async (i) => {
            await none.offerAt(`none ${i}`, due)
            await list.offerAt(`list ${i}`, due)
            await java.offer(s(`java ${i}`), Math.max(0, due.getTime() - Date.now()))
          }),
        )
        if (who === 'Node') await java.destroy()
        const taken: string[] = []
        while (taken.length < 3 * numbers.length) taken.push(await queue.take())
        expect(taken.sort()).to.deep.equal(numbers.flatMap((i) => [`none ${i}`, `list ${i}`, `java ${i}`]).sort())
        expect(await queue.poll(200)).to.equal(null)
        expect(
          await rawClient().exists(`redisson_delay_queue:{${name}}`, `redisson_delay_queue_timeout:{${name}}`),
        ).to.equal(0)
      },
      { needsNewEntries: true },
    )
  }
}
