/** Redisson before 3.21.1 writes `dLc0` entries; what it left behind is delivered, beside what Node writes. */
import { expect } from 'chai'
import { cell } from '../support/results.js'
import { LATER, both, s, type Side } from '../support/side.js'

export function oldEntryScenarios(side: Side): void {
  const absent = side.old ? undefined : 'it writes the new format'
  const oldOnly = (row: string, test: () => Promise<void>): void =>
    cell({ table: 'scenarios', row, version: side.build.version }, { absent, timeout: 20_000 }, test)

  oldOnly('old entries beside new ones of both orders: Node delivers each once, none early', async () => {
    const { java, delayed, queue } = both(side)
    const list = delayed({ deliver: false })
    const none = delayed({ order: 'none', deliver: false })
    const dues = new Map<string, number>()
    const delays = Array.from({ length: 30 }, (_, i) => 300 + ((i * 37) % 600))
    await java.hold()
    for (const delay of delays) dues.set(`old ${delay}`, (await java.offer(s(`old ${delay}`), delay)).before + delay)
    await java.destroy() // it would get stuck on what now follows
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

  oldOnly('old entries are seen in offer order, and have no ticket', async () => {
    const { java, delayed } = both(side)
    await java.offerAndLeave(s('old'), LATER)
    const node = delayed({ deliver: false })
    await node.offer('new', LATER)
    expect(await node.readAll()).to.deep.equal(['old', 'new'])
    expect(await node.contains('old')).to.equal(true)
    const [old, recent] = await node.schedule()
    expect([old?.value, old?.ticket]).to.deep.equal(['old', null])
    expect(recent?.ticket).to.be.a('string')
    expect(await node.remove('old')).to.equal(true)
    expect(await node.readAll()).to.deep.equal(['new'])
  })

  oldOnly('Java of that time takes what Node has delivered', async () => {
    const { java, delayed } = both(side)
    const taken = [java.take(), java.take()]
    const node = delayed()
    await node.offer('new', 100)
    expect(await taken[0]).to.deep.equal(s('new'))
    await node.offer('newer', 100)
    expect(await taken[1]).to.deep.equal(s('newer'))
  })
}
