/** One side leaves, and the other goes on. */
import { expect } from 'chai'
import { dueOf } from '../../../src/index.js'
import { LATER, both, expectOnTime, s, scenario, strings, type Side } from '../support/side.js'

export function lifecycleScenarios(side: Side): void {
  scenario(side, 'Java destroys its delayed queue: nothing is lost, Node delivers', async () => {
    const { java, delayed, queue } = both(side)
    await java.hold()
    const node = delayed()
    const [{ before }, ticket] = [await java.offer(s('of Java'), 400), await node.offer('of Node', 600)]
    await java.destroy()
    expect(await node.readAll()).to.deep.equal(['of Java', 'of Node'])
    expect(await queue.take()).to.equal('of Java')
    expectOnTime(before + 400)
    expect(await queue.take()).to.equal('of Node')
    expectOnTime(dueOf(ticket))
  })

  scenario(side, 'Node destroys its delayed queue: nothing is lost, Java delivers', async () => {
    const { java, delayed } = both(side)
    await java.hold()
    const node = delayed()
    const [{ before }, ticket] = [await java.offer(s('of Java'), 400), await node.offer('of Node', 600)]
    await node.destroy()
    expect(await java.readAll()).to.deep.equal(strings(['of Java', 'of Node']))
    expect(await java.take()).to.deep.equal(s('of Java'))
    expectOnTime(before + 400)
    expect(await java.take()).to.deep.equal(s('of Node'))
    expectOnTime(dueOf(ticket))
  })

  scenario(side, 'Java offers and leaves before anyone delivers: Node delivers the rest', async () => {
    const { java, delayed, queue } = both(side)
    await java.offerAndLeave(s('overdue'), 10)
    await java.offerAndLeave(s('far'), LATER)
    delayed()
    expect(await queue.take()).to.equal('overdue')
    expect(await delayed({ deliver: false }).readAll()).to.deep.equal(['far'])
  })
}
