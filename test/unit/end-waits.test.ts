import { expect } from 'chai'
import { EndWaits } from '../../src/reliable/end-waits.js'
import { systemClock } from '../../src/timing/clock.js'
import { leastCpuMs } from '../support/cpu.js'

const MOST_CPU_MS = 50

describe('the calls that wait for an end', () => {
  /** With one call that waits for the id `x\n`, and the ids that it asked for. */
  function waiting() {
    const asked: string[] = []
    const waits = new EndWaits({
      address: { name: 'q', channel: 'c' },
      readEnds: async (ids) => {
        asked.push(...ids)
        return { keeps: true, ends: ids.map(() => ({ is: 'waits' })) }
      },
      onError: (error) => expect.fail(error.message),
      noConnectionYet: () => undefined,
      clock: systemClock,
    })
    const ended = waits.wait('x\n', { timeoutMs: undefined, signal: undefined }).catch(() => undefined)
    const end = () => Promise.all([waits.stop(), ended])
    return { waits, asked, end }
  }

  const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

  for (const [what, sign] of [
    ['line feeds', '\n'],
    ['backslashes', '\\'],
    ['escapes', '\\n'],
    ['short ids', 'a\n'],
  ] as const) {
    it(`read four million ${what} of another program in less than ${MOST_CPU_MS} ms`, async () => {
      const { waits, asked, end } = waiting()
      await turn()
      const text = sign.repeat((4 * 2 ** 20) / sign.length)
      expect(await leastCpuMs(MOST_CPU_MS, () => waits.onMessage(text))).to.be.lessThan(MOST_CPU_MS)
      await turn()
      expect(asked).to.deep.equal(['x\n'])
      await end()
    })
  }

  it('ask for an id among as many as one script can end', async () => {
    const { waits, asked, end } = waiting()
    await turn()
    waits.onMessage(`${'other\n'.repeat(5_000)}x\\n`)
    await turn()
    expect(asked).to.deep.equal(['x\n', 'x\n'])
    await end()
  })
})
