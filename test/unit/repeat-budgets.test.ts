import { expect } from 'chai'
import { CatchUp } from '../../src/reliable/repeats/catch-up.js'
import { Turns } from '../../src/reliable/repeats/turns.js'

const TURN_MS = 2

function busy(): void {
  for (const until = performance.now() + TURN_MS + 1; performance.now() < until;) continue
}

describe('Turns', () => {
  it('lets the event loop continue after each computation that took too long', async () => {
    const turns = new Turns(TURN_MS)
    const order: string[] = []
    await Promise.all(
      ['a', 'b', 'c'].map((name) =>
        turns.take(() => {
          busy()
          order.push(name)
          setImmediate(() => order.push(`after ${name}`))
        }),
      ),
    )
    expect(order.slice(0, 5)).to.deep.equal(['a', 'after a', 'b', 'after b', 'c'])
  })

  it('gives what was computed, and continues after what throws', async () => {
    const turns = new Turns(TURN_MS)
    const failed = turns.take(() => {
      throw new Error('odd')
    })
    const next = turns.take(() => 5)
    expect(await failed.catch((error: unknown) => (error as Error).message)).to.equal('odd')
    expect(await next).to.equal(5)
  })
})

describe('CatchUp', () => {
  it('has room for ten thousand ticks, and for a thousand more each second', () => {
    let now = 5
    const catchUp = new CatchUp(() => now)
    expect(catchUp.room).to.equal(10_000)
    catchUp.spend(9_000)
    expect(catchUp.room).to.equal(1_000)
    catchUp.giveBack(500)
    expect(catchUp.room).to.equal(1_500)
    catchUp.spend(5_000)
    expect(catchUp.room).to.equal(0)
    now += 1_500
    expect(catchUp.room).to.equal(1_500)
    now += 1e9
    catchUp.giveBack(500)
    expect(catchUp.room).to.equal(10_000)
  })
})
