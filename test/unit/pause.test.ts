import { expect } from 'chai'
import { getEventListeners } from 'node:events'
import { atMost, pause } from '../../src/timing/pause.js'

const LONG_MS = 600_000

describe('pause', () => {
  it('ends at once when the signal has aborted before, and when it aborts', async () => {
    const controller = new AbortController()
    const { signal } = controller
    let ended = 0
    // longer than the test may take
    const pauses = Promise.all([pause(LONG_MS, signal).then(() => ended++), pause(LONG_MS, signal).then(() => ended++)])
    await new Promise((resolve) => setImmediate(resolve))
    expect(ended, 'before the abort').to.equal(0)
    controller.abort()
    await pauses
    expect(ended).to.equal(2)
    await pause(LONG_MS, signal) // the signal has aborted
    expect(getEventListeners(signal, 'abort'), 'what is left at the signal').to.deep.equal([])
  })
})

describe('atMost', () => {
  it('resolves with what the promise resolves with, else with undefined', async () => {
    expect(await atMost(LONG_MS, Promise.resolve(5))).to.equal(5)
    expect(await atMost(LONG_MS, Promise.reject(new Error('no')))).to.equal(undefined)
    expect(await atMost(1, new Promise<number>(() => undefined))).to.equal(undefined)
  })
})
