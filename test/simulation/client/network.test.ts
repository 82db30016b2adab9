import { expect } from 'chai'
import { randomFrom } from '../../support/random.js'
import { World } from '../world.js'
import { Pipe } from './network.js'

describe('The simulated network', () => {
  it('keeps the order of what is sent one way, also of items whose rounded times of arrival change places', async () => {
    const random = randomFrom(895_674_251)
    for (let round = 0; round < 200; round++) {
      const world = new World(random)
      const [sent, arrived]: [string[], string[]] = [[], []]
      const latencies = [400] // only the first item is slow: all others arrive when it does
      const pipe = new Pipe({
        world,
        latency: () => latencies.shift() ?? 0,
        deliver: ({ bytes }) => arrived.push(bytes),
      })
      for (let item = 0; item < 20; item++) {
        world.after(world.between(0, 300) / 1.1, () => {
          // the division fills all bits of a double
          sent.push(String(item))
          pipe.send({ bytes: String(item), popped: [], isEnd: false })
        })
      }
      await world.runUntil(1_000, () => undefined)
      expect(sent).to.have.lengthOf(20)
      expect(arrived).to.deep.equal(sent)
    }
  })
})
