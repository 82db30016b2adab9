/** Node cancels and reschedules while Java, which knows neither, holds the queue and delivers it. */
import { expect } from 'chai'
import { dueOf } from '../../../src/index.js'
import { LATER, both, expectConsistent, expectOnTime, pause, s, scenario, strings, type Side } from '../support/side.js'
import type { JavaQueue } from '../support/jvm.js'
import { java as j } from '../support/values.js'

/** Java delivers a due message within milliseconds; a cancelled one would be there by then. */
const DELIVERED_MS = 100

async function expectNothingMore(java: JavaQueue): Promise<void> {
  await pause(DELIVERED_MS) // nothing may happen
  expect(await java.list()).to.deep.equal([])
}

export function cancellingScenarios(side: Side): void {
  scenario(side, 'Node cancels its message: Java neither shows nor delivers it', async () => {
    const { java, delayed, name } = both(side)
    await java.hold()
    const node = delayed({ deliver: false })
    const cancelled = await node.offer('cancelled', 300)
    await node.offer('kept', 600)
    expect(await java.readAll()).to.deep.equal(strings(['cancelled', 'kept']))
    expect(await node.cancel(cancelled)).to.equal(true)
    expect(await java.readAll()).to.deep.equal(strings(['kept']))
    expect(await java.contains(s('cancelled'))).to.equal(false)
    await expectConsistent(name)
    expect(await java.take()).to.deep.equal(s('kept'))
    await expectNothingMore(java)
    expect(await node.cancel(cancelled)).to.equal(false)
  })

  scenario(side, "Node cancels Java's message", async () => {
    const { java, delayed } = both(side)
    await java.hold()
    const node = delayed({ deliver: false })
    await java.offer(s('cancelled'), 400)
    await java.offer(s('kept'), 700)
    const [first] = await node.schedule()
    expect(first?.value).to.equal('cancelled')
    expect(await node.cancel(first!.ticket!)).to.equal(true)
    expect(await java.readAll()).to.deep.equal(strings(['kept']))
    expect(await java.take()).to.deep.equal(s('kept'))
    await expectNothingMore(java)
  })

  scenario(side, "Java removes Node's message: its ticket is void", async () => {
    const { java, delayed } = both(side)
    await java.hold()
    const node = delayed()
    const ticket = await node.offer('removed', LATER)
    expect(await java.remove(s('removed'))).to.equal(true)
    expect(await node.cancel(ticket)).to.equal(false)
    expect(await node.reschedule(ticket, 10)).to.equal(null)
    await expectNothingMore(java)
  })

  scenario(side, 'Node reschedules to sooner: Java delivers at the new time', async () => {
    const { java, delayed, name } = both(side)
    await java.hold()
    const node = delayed({ deliver: false })
    const ticket = await node.offer('moved', LATER)
    const taken = java.take()
    const moved = await node.reschedule(ticket, 400)
    expect(await java.readAll()).to.deep.equal(strings(['moved']))
    await expectConsistent(name)
    expect(await taken).to.deep.equal(s('moved'))
    expectOnTime(dueOf(moved!))
    await expectNothingMore(java)
    expect(await java.size()).to.equal(0)
  })

  scenario(side, 'Node reschedules to later: Java delivers at the new time only', async () => {
    const { java, delayed } = both(side)
    await java.hold()
    const node = delayed({ deliver: false })
    const ticket = await node.offer('moved', 300)
    const taken = java.take()
    const moved = await node.reschedule(ticket, 1_200)
    expect(await taken).to.deep.equal(s('moved'))
    expectOnTime(dueOf(moved!))
    expect(await java.poll(1)).to.deep.equal(j.nothing)
  })

  scenario(side, "Node reschedules Java's message, sooner and later", async () => {
    const { java, delayed } = both(side)
    await java.hold()
    const node = delayed({ deliver: false })
    await java.offer(s('sooner'), LATER)
    await java.offer(s('later'), 500)
    const [later, sooner] = await node.schedule()
    expect([later?.value, sooner?.value]).to.deep.equal(['later', 'sooner'])
    const laterTicket = await node.reschedule(later!.ticket!, 1_500)
    const soonerTicket = await node.reschedule(sooner!.ticket!, 200)
    expect(await java.take()).to.deep.equal(s('sooner'))
    expectOnTime(dueOf(soonerTicket!))
    expect(await java.take()).to.deep.equal(s('later'))
    expectOnTime(dueOf(laterTicket!))
    expect(await java.size()).to.equal(0)
  })
}
