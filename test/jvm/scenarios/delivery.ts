/** Who offers, who delivers and who takes may be any mixture of the two. */
import { expect } from 'chai'
import { dueOf } from '../../../src/index.js'
import { eventually } from '../../support/events.js'
import { rawClient } from '../../support/redis.js'
import { both, expectOnTime, pause, s, scenario, type Side } from '../support/side.js'

const DELAY = 300
const FAR = 60_000

export function deliveryScenarios(side: Side): void {
  scenario(side, 'Node offers, Java delivers and takes', async () => {
    const { java, delayed, transferred, name } = both(side)
    await java.hold()
    const taken = java.take()
    const ticket = await delayed({ deliver: false }).offer('from Node', DELAY)
    expect(await taken).to.deep.equal(s('from Node'))
    expectOnTime(dueOf(ticket))
    expect(await subscribers(name)).to.equal(1)
    expect(transferred()).to.equal(0)
  })

  scenario(side, 'Java offers, Node delivers and takes', async () => {
    const { java, delayed, queue, transferred } = both(side)
    delayed()
    const taken = queue.take()
    const { before } = await java.offerAndLeave(s('from Java'), DELAY)
    expect(await taken).to.equal('from Java')
    expectOnTime(before + DELAY)
    await eventually(() => expect(transferred()).to.equal(1))
  })

  scenario(side, 'Node offers, Java only delivers, Node takes', async () => {
    const { java, delayed, queue, transferred } = both(side)
    await java.hold()
    const taken = queue.take()
    const ticket = await delayed({ deliver: false }).offer('there and back', DELAY)
    expect(await taken).to.equal('there and back')
    expectOnTime(dueOf(ticket))
    expect(transferred()).to.equal(0)
  })

  scenario(side, 'Java offers, Node only delivers, Java takes', async () => {
    const { java, delayed, transferred } = both(side)
    delayed()
    const taken = java.take()
    const { before } = await java.offerAndLeave(s('there and back'), DELAY)
    expect(await taken).to.deep.equal(s('there and back'))
    expectOnTime(before + DELAY)
    await eventually(() => expect(transferred()).to.equal(1))
  })

  scenario(side, 'a Node consumer without a delayed queue delivers what Java offered', async () => {
    const { java, queue } = both(side, { options: { consumersDeliver: true } })
    const { before } = await java.offerAndLeave(s('no client holds it'), DELAY)
    expect(await queue.take()).to.equal('no client holds it')
    expectOnTime(before + DELAY)
  })

  scenario(side, 'an earlier offer of Node wakes Java', async () => {
    const { java, delayed } = both(side)
    await java.hold()
    await java.offer(s('far'), FAR)
    const taken = java.take()
    const ticket = await delayed({ deliver: false }).offer('near', DELAY)
    expect(await taken).to.deep.equal(s('near'))
    expectOnTime(dueOf(ticket))
  })

  scenario(side, 'an earlier offer of Java wakes Node', async () => {
    const { java, delayed, queue } = both(side)
    await delayed().size()
    await java.offerAndLeave(s('far'), FAR)
    const taken = queue.take()
    const { before } = await java.offerAndLeave(s('near'), DELAY)
    expect(await taken).to.equal('near')
    expectOnTime(before + DELAY)
  })

  scenario(side, 'Java goes on when the Node process that delivered has left', async () => {
    const { java, delayed, queue, client, transferred } = both(side)
    const node = delayed()
    await java.hold()
    // until Node was the faster one: then its "nothing in sight for an hour" is the last that Java has heard
    for (let i = 0; transferred() === 0 && i < 50; i++) {
      await node.offer('by Node', 20)
      expect(await queue.take()).to.equal('by Node')
      await pause(10) // so that Java is ready for the next one
    }
    expect(transferred()).to.be.greaterThan(0)
    await client.shutdown()
    const taken = java.take()
    const { before } = await java.offer(s('by Java'), DELAY)
    expect(await taken).to.deep.equal(s('by Java'))
    expectOnTime(before + DELAY)
  })

  scenario(side, 'both offer, both deliver, both take: 400 messages, once each', async () => {
    const { java, delayed, queue } = both(side)
    await java.hold()
    const node = delayed()
    const expected = Array.from({ length: 200 }, (_, i) => [`node ${i}`, `java ${i}`]).flat()
    const taken: string[] = []
    const takeInNode = async (): Promise<void> => {
      while (taken.length < expected.length) taken.push(...(await queue.takeMany(5, { timeout: 100 })))
    }
    const takeInJava = async (): Promise<void> => {
      while (taken.length < expected.length) {
        const { v } = await java.poll(1000)
        if (typeof v === 'string') taken.push(v)
      }
    }
    const offer = (value: string): Promise<unknown> => {
      const delay = Math.floor(Math.random() * 1000)
      return value.startsWith('node') ? node.offer(value, delay) : java.offer(s(value), delay)
    }
    await Promise.all([...expected.map(offer), takeInNode(), takeInJava()])
    expect(taken.sort()).to.deep.equal(expected.sort())
  })
}

async function subscribers(name: string): Promise<number> {
  const [, count] = (await rawClient().pubsub('NUMSUB', `redisson_delay_queue_channel:{${name}}`)) as [string, number]
  return count
}
