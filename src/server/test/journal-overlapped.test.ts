import { expect } from 'chai'
import { overlapped } from '../journal/overlapped.js'

const ANY_SIZE = { mostBytes: Infinity, bytesOf: () => 1 }

describe('pages that are under way at the same time', () => {
  async function* pages(count: number): AsyncGenerator<number, void> {
    for (let n = 0; n < count; n++) yield n
  }

  /** Later pages take less time. */
  function actions(): {
    action: (page: number) => Promise<number>
    state: { now: number; most: number; begun: number }
  } {
    const state = { now: 0, most: 0, begun: 0 }
    const action = async (page: number): Promise<number> => {
      state.begun++
      state.most = Math.max(state.most, ++state.now)
      for (let n = 0; n < 20 - page; n++) await new Promise((resolve) => setImmediate(resolve))
      state.now--
      if (page === 7) throw new Error('seven')
      return page
    }
    return { action, state }
  }

  for (const atOnce of [1, 2, 3]) {
    it(`end in their order, ${atOnce} at once`, async () => {
      const { action, state } = actions()
      const found: number[] = []
      for await (const page of overlapped(pages(6), { ...ANY_SIZE, most: atOnce }, action)) found.push(page)
      expect(found).to.deep.equal([0, 1, 2, 3, 4, 5])
      expect(state).to.deep.equal({ now: 0, most: atOnce, begun: 6 })
    })
  }

  it('are fewer where they are large, and one alone that is larger than all may be', async () => {
    const sizes = [4, 4, 4, 100, 5, 5, 1]
    const bytesOf = (page: number): number => sizes[page] ?? 0
    const underWay = new Set<number>()
    const together: number[][] = []
    const action = async (page: number): Promise<number> => {
      together.push([...underWay.add(page)])
      for (let n = 0; n < 20 - page; n++) await new Promise((resolve) => setImmediate(resolve))
      underWay.delete(page)
      return page
    }
    const found: number[] = []
    for await (const page of overlapped(pages(7), { most: 4, mostBytes: 10, bytesOf }, action)) found.push(page)
    expect(found).to.deep.equal([0, 1, 2, 3, 4, 5, 6])
    expect(together).to.deep.include.members([[0, 1], [3], [4, 5]])
    for (const some of together)
      if (some.length > 1) expect(some.reduce((sum, page) => sum + bytesOf(page), 0)).to.be.at.most(10)
  })

  it('are all at their end when their reader stops', async () => {
    const { action, state } = actions()
    for await (const page of overlapped(pages(100), { ...ANY_SIZE, most: 3 }, action)) if (page === 2) break
    expect(state.now).to.equal(0)
    expect(state.begun).to.be.below(7)
  })

  it('are all at their end when one has failed', async () => {
    const { action, state } = actions()
    const found: number[] = []
    const read = async (): Promise<void> => {
      for await (const page of overlapped(pages(100), { ...ANY_SIZE, most: 3 }, action)) found.push(page)
    }
    const error = await read().catch((thrown: unknown) => thrown)
    expect(error).to.be.an('error').with.property('message', 'seven')
    expect(found).to.deep.equal([0, 1, 2, 3, 4, 5, 6])
    expect(state.now).to.equal(0)
  })
})
