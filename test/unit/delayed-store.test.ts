import { expect } from 'chai'
import { queueKeys } from '../../src/keys.js'
import { DelayedStore, FIRST_ATTEMPT } from '../../src/store/delayed-store.js'
import { resolveSettings } from '../../src/options.js'
import type { Sender } from '../../src/store/sender.js'
import { WheelStore } from '../../src/store/wheel-store.js'
import { rejection } from '../integration/fixtures.js'

const bytes = (...parts: string[]): Buffer[] => parts.map((part) => Buffer.from(part))

const OFFERED = { entry: Buffer.from('entry'), due: { delayMs: 7 }, undeliveredUntilMs: FIRST_ATTEMPT }

/** A server that gives these replies. */
const senderOf = (...replies: unknown[]) => ({ call: async () => replies[0], pipeline: async () => replies })

for (const [name, storeOf] of [
  ['DelayedStore', (sender: Sender) => new DelayedStore(sender, queueKeys('jobs'))],
  ['WheelStore', (sender: Sender) => new WheelStore(sender, queueKeys('jobs'), resolveSettings({}))],
] as const)
  describe(`${name}.offerTogether`, () => {
    /** The results of two joined offers for a reply of the server. */
    const offerTwo = (reply: unknown): Promise<number[]> => storeOf(senderOf(reply)).offerTogether([OFFERED, OFFERED])

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

describe('WheelStore.offerEach', () => {
  it('makes a reply of other offers the error of its own offer', async () => {
    const store = new WheelStore(senderOf(bytes('5'), bytes('5', '1', '-1')), queueKeys('jobs'), resolveSettings({}))
    const [due, error] = await store.offerEach([OFFERED, OFFERED])
    expect(due).to.equal(12)
    expect(error).to.include({ code: 'ERR_INTERNAL' })
  })
})
