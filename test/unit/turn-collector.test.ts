import { expect } from 'chai'
import { TurnCollector } from '../../src/timing/turn-collector.js'

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('TurnCollector', () => {
  it('sends the items of one turn together, in order', async () => {
    const sent: number[][] = []
    const collector = new TurnCollector<number>((items) => sent.push([...items]))
    collector.add(1)
    await Promise.resolve().then(() => collector.add(2))
    expect(sent).to.deep.equal([])
    await turn()
    expect(sent).to.deep.equal([[1, 2]])
    collector.add(3)
    await turn()
    expect(sent).to.deep.equal([[1, 2], [3]])
  })

  it('sends at most so many together, all in the same turn', async () => {
    const sent: number[][] = []
    const collector = new TurnCollector<number>((items) => sent.push([...items]), 2)
    for (const item of [1, 2, 3, 4, 5]) collector.add(item)
    await turn()
    expect(sent).to.deep.equal([[1, 2], [3, 4], [5]])
  })

  it('sends before the end of the turn when it is flushed, and nothing twice', async () => {
    const sent: number[][] = []
    const collector = new TurnCollector<number>((items) => sent.push([...items]))
    collector.flush()
    collector.add(1)
    collector.flush()
    expect(sent).to.deep.equal([[1]])
    collector.add(2)
    await turn()
    await turn()
    expect(sent).to.deep.equal([[1], [2]])
  })
})
