import { expect } from 'chai'
import { queueKeys } from '../../src/keys.js'
import { DelayedStore, FIRST_ATTEMPT } from '../../src/store/delayed-store.js'
import { rejection } from '../integration/fixtures.js'

const bytes = (...parts: string[]): Buffer[] => parts.map((part) => Buffer.from(part))

/** The results of two joined offers for a reply of the server. */
async function offerTwo(reply: unknown): Promise<number[]> {
  const sender = { call: async () => reply, pipeline: async () => [] }
  const store = new DelayedStore(sender, queueKeys('jobs'))
  const offered = { entry: Buffer.from('entry'), due: { delayMs: 7 }, undeliveredUntilMs: FIRST_ATTEMPT }
  return store.offerTogether([offered, offered])
}

describe('DelayedStore.offerTogether', () => {
  it('returns the due time of each, or the error of the server', async () => {
    expect(await offerTwo(bytes('5'))).to.deep.equal([12, 12])
    expect(await offerTwo(bytes('5', '1', '-2'))).to.deep.equal([12, -2])
  })

  for (const [what, reply] of Object.entries({
    'that is empty': [],
    'of other offers': bytes('5', '2', '-1'),
    'without an end': bytes('5', '1'),
    'that is nil': null,
    'of integers that are none': bytes('5', 'a', '1'),
  })) {
    it(`refuses a reply ${what}`, async () => {
      expect(await rejection(offerTwo(reply))).to.include({ code: 'ERR_INTERNAL' })
    })
  }
})
