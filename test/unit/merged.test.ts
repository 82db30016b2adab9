import { expect } from 'chai'
import { merged } from '../../src/sharding/merged.js'
import { rejection } from '../integration/fixtures.js'

/** A source whose values come when the test says so. */
class Source implements AsyncIterator<string, undefined> {
  asked = 0
  readonly #waiting: {
    resolve: (result: IteratorResult<string, undefined>) => void
    reject: (error: Error) => void
  }[] = []

  next(): Promise<IteratorResult<string, undefined>> {
    this.asked++
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }

  give(value: string): void {
    this.#waiting.shift()?.resolve({ value, done: false })
  }

  end(): void {
    this.#waiting.shift()?.resolve({ value: undefined, done: true })
  }

  fail(error: Error): void {
    this.#waiting.shift()?.reject(error)
  }
}

describe('several iterators as one', () => {
  it('give values in the order in which they come, and ask each source again only when its value was taken', async () => {
    const [a, b] = [new Source(), new Source()]
    const all = merged([a, b])
    const first = all.next()
    b.give('b1')
    a.give('a1')
    expect((await first).value).to.equal('b1')
    expect([a.asked, b.asked]).to.deep.equal([1, 1])
    expect((await all.next()).value).to.equal('a1')
    expect([a.asked, b.asked]).to.deep.equal([1, 2])
    const third = all.next()
    expect([a.asked, b.asked]).to.deep.equal([2, 2])
    a.give('a2')
    expect((await third).value).to.equal('a2')
  })

  it('serve all, also beside one that always has something', async () => {
    const busy = (name: string) =>
      (async function* () {
        for (;;) yield name
      })()
    const seen: string[] = []
    for await (const name of merged([busy('a'), busy('b'), busy('c')])) {
      seen.push(name)
      if (seen.length === 30) break
    }
    for (const name of ['a', 'b', 'c']) expect(seen.filter((each) => each === name)).to.have.length(10)
  })

  it('reject with the first that fails, and end with the first that ends', async () => {
    const [a, b] = [new Source(), new Source()]
    const failing = merged([a, b])
    const next = rejection(failing.next())
    b.fail(new Error('it is gone'))
    expect((await next).message).to.equal('it is gone')
    const [c, d] = [new Source(), new Source()]
    const ending = merged([c, d])
    const last = ending.next()
    c.end()
    expect((await last).done).to.equal(true)
    expect(d.asked).to.equal(1)
  })
})
