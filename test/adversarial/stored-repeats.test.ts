/** Stored repeats of any size that consist of nothing but elements: JSON of them takes seconds, and hundreds of megabytes. */
import { expect } from 'chai'
import { DecodeError } from '../../src/errors.js'
import { readState } from '../../src/reliable/repeats/repeat-definition.js'
import { leastCpuMs } from '../support/cpu.js'

const MAX_PAYLOAD_BYTES = 16 * 2 ** 20
const BYTES = 22 * 2 ** 20
const MAX_CPU_MS = 500
const MAX_HEAP_BYTES = 100 * 2 ** 20

const of = (text: string): string => text.repeat(Math.floor(BYTES / text.length))
const SHAPES: Readonly<Record<string, () => string>> = {
  'arrays in arrays': () => '['.repeat(BYTES / 2) + ']'.repeat(BYTES / 2),
  'objects in objects': () => '{"":'.repeat(BYTES / 5) + '1' + '}'.repeat(BYTES / 5),
  'empty arrays': () => `[${of('[],')}1]`,
  'empty objects': () => `[${of('{},')}1]`,
  numbers: () => `[${of('1,')}1]`,
  'empty texts': () => `[${of('"",')}1]`,
  names: () => `{${Array.from({ length: BYTES / 12 }, (_, n) => `"${n.toString(36)}":1`).join()}}`,
  'objects of different names': () =>
    `[${Array.from({ length: BYTES / 14 }, (_, n) => `{"${n.toString(36)}":1}`).join()}]`,
  'texts beside each other': () => of('""'),
  'escaped quotes': () => `"${of('\\"')}"`,
  digits: () => of('1'),
  spaces: () => `${of(' ')}1`,
}

describe('stored repeats', function () {
  this.timeout(60_000)

  for (const [what, make] of Object.entries(SHAPES)) {
    it(`${what} are refused soon, and in little memory`, async () => {
      const value = Buffer.from(`5 {"every":1000,"headers":${make()},"payload":""}`)
      const heapBefore = process.memoryUsage().heapUsed
      let thrown: unknown
      let most = 0
      const ms = await leastCpuMs(MAX_CPU_MS, () => {
        try {
          readState(value, MAX_PAYLOAD_BYTES)
        } catch (error) {
          thrown = error
          most = Math.max(most, process.memoryUsage().heapUsed - heapBefore)
        }
      })
      expect(thrown).to.be.instanceOf(DecodeError)
      expect(ms).to.be.lessThan(MAX_CPU_MS)
      expect(most).to.be.lessThan(MAX_HEAP_BYTES)
    })
  }

  it('reads the largest one that can be stored', () => {
    const headers = Object.fromEntries(Array.from({ length: 6_000 }, (_, n) => [n.toString(36), '']))
    const payload = Buffer.alloc(MAX_PAYLOAD_BYTES, 'x').toString('base64')
    const state = { every: 1_000, missed: 'all', priority: 0, headers, payload }
    const { definition } = readState(Buffer.from(`5 ${JSON.stringify(state)}`), MAX_PAYLOAD_BYTES)
    expect(definition.payload.length).to.equal(payload.length)
    expect(Object.keys(definition.headers ?? {})).to.have.length(6_000)
  })
})
