import { expect } from 'chai'
import { atMost, pause } from '../../src/timing/pause.js'

const LONG_MS = 600_000

describe('pause', () => {
  it('ends at once when the signal has aborted before, and when it aborts', async () => {
    const controller = new AbortController()
    const early = pause(LONG_MS, controller.signal)
    controller.abort()
    await Promise.all([early, pause(LONG_MS, controller.signal)])
  })
})

describe('atMost', () => {
  it('resolves with what the promise resolves with, else with undefined', async () => {
    expect(await atMost(LONG_MS, Promise.resolve(5))).to.equal(5)
    expect(await atMost(LONG_MS, Promise.reject(new Error('no')))).to.equal(undefined)
    expect(await atMost(1, new Promise<number>(() => undefined))).to.equal(undefined)
  })
})
