import { expect } from 'chai'
import { rounds } from '../../support/long-form.js'
import { BROKEN_CLIENTS } from './broken-variants.js'
import { loadClientCode, type ClientCode } from './code.js'
import { playClient } from './play.js'

/** `npm run test:simulation` plays many more. */
const SEEDS = rounds(150)
/** Most variants show within twenty seeds, the rarest in one of some 700. */
const SEEDS_TO_FIND = 3_000

describe('Simulation of whole clients, with faults', function () {
  this.timeout(540_000) // one fault takes hundreds of seeds
  let code: ClientCode

  before(async () => {
    code = await loadClientCode()
  })

  it(`${SEEDS} seeds: nothing early, lost or twice, every call ends, everything recovers, nothing is left`, async () => {
    const first = Date.now() % 1_000_000_000
    let [delivered, calm] = [0, 0]
    for (let seed = first; seed < first + SEEDS; seed++) {
      const outcome = await playClient(seed, code)
      expect(outcome.violation, `seed ${seed}`).to.equal(undefined)
      delivered += outcome.delivered
      calm += outcome.calm ? 1 : 0
    }
    expect(delivered).to.be.greaterThan(5 * SEEDS)
    expect(calm).to.be.within(0.02 * SEEDS, 0.6 * SEEDS)
  })

  it('a seed gives the same again', async () => {
    for (const seed of [1, 7, 4711]) expect(await playClient(seed, code)).to.deep.equal(await playClient(seed, code))
  })

  describe('finds out when the code is broken', () => {
    for (const variant of BROKEN_CLIENTS) {
      it(variant.what, async () => {
        const found = await firstViolation(await loadClientCode(variant), variant.firstSeed)
        expect(found, 'not found').to.be.a('string')
      })
    }
  })

  /** In a seed in which the code as it is shows none. */
  async function firstViolation(broken: ClientCode, firstSeed = 1): Promise<string | undefined> {
    for (let seed = firstSeed; seed < firstSeed + SEEDS_TO_FIND; seed++) {
      const { violation } = await playClient(seed, broken)
      if (violation === undefined) continue
      if ((await playClient(seed, code)).violation === undefined) return violation
    }
    return undefined
  }
})
