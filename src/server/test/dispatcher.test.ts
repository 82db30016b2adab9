import { expect } from 'chai'
import { Dispatcher, type DispatcherParts } from '../delivery/dispatcher.js'

describe('the dispatcher', () => {
  it('refreshes once more for all calls during a refresh, and once for each call at other times', async () => {
    let looks = 0
    let release = (): void => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    const parts = {
      endpoints: { list: () => Promise.resolve([]) },
      topics: {
        list: async () => {
          looks++
          await released
          return []
        },
      },
      onError: (error: unknown) => expect.fail(String(error)),
    }
    const dispatcher = new Dispatcher(parts as unknown as DispatcherParts)
    const first = dispatcher.refresh()
    while (looks === 0) await new Promise((resolve) => setImmediate(resolve))
    const others = Array.from({ length: 100 }, () => dispatcher.refresh())
    release()
    await Promise.all([first, ...others])
    expect(looks).to.equal(2)
    await dispatcher.refresh()
    expect(looks).to.equal(3)
    await dispatcher.stop(0)
  })
})
