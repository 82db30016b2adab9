import { expect } from 'chai'
import { rounds } from '../support/long-form.js'
import { BROKEN_VARIANTS, COSTLY_VARIANTS } from './broken-variants.js'
import { loadCode, type Code } from './code.js'
import { simulate, SWEEPS } from './simulate.js'

/** A tenth of a second each thousand or so; `npm run test:simulation` plays many more. */
const SEEDS = rounds(4_000)
/** Every broken variant shows within so many; most within ten. */
const SEEDS_TO_FIND = 20_000
/** Seeds whose costs are compared: always the same, so that a seed can be judged twice. */
const SEEDS_TO_COMPARE = 600

describe('Simulation of many clients, with faults', function () {
  this.timeout(60_000)

  it(`${SEEDS} seeds: nothing early, nothing stuck, nothing late, no spin, no timer left`, async () => {
    const code = await loadCode()
    const first = Date.now() % 1_000_000_000
    let [delivered, calm] = [0, 0]
    for (let seed = first; seed < first + SEEDS; seed++) {
      const outcome = await simulate(seed, code)
      expect(outcome.violation, `seed ${seed}`).to.equal(undefined)
      delivered += outcome.delivered
      calm += outcome.calm ? 1 : 0
    }
    // it would be easy to find nothing wrong where nothing happens
    expect(delivered).to.be.greaterThan(10 * SEEDS)
    expect(calm).to.be.within(0.15 * SEEDS, 0.35 * SEEDS)
  })

  it('a seed gives the same again', async () => {
    const code = await loadCode()
    for (const seed of [1, 7, 4711]) expect(await simulate(seed, code)).to.deep.equal(await simulate(seed, code))
  })

  describe('finds out when the code is broken', () => {
    for (const variant of BROKEN_VARIANTS) {
      it(variant.what, async () => {
        const found = await firstViolation(await loadCode(variant), variant.firstSeed)
        expect(found, 'not found').to.be.a('string')
      })
    }
  })

  describe('finds out what makes the code costly, by at least a tenth', () => {
    let good: Costs
    before(async () => (good = await costsOf(await loadCode())))
    for (const variant of COSTLY_VARIANTS) {
      it(`${variant.what}: more ${variant.raises}`, async () => {
        const costs = await costsOf(await loadCode(variant))
        expect(costs[variant.raises]).to.be.greaterThan(1.1 * good[variant.raises])
      })
    }
  })

  interface Costs {
    readonly scripts: number
    readonly lateness: number
  }

  /** Per message, where several clients run without a fault; sweeps do not count. */
  async function costsOf(code: Code): Promise<Costs> {
    let [scripts, lateness, delivered] = [0, 0, 0]
    for (let seed = 1; seed <= SEEDS_TO_COMPARE; seed++) {
      const outcome = await simulate(seed, code)
      if (!outcome.calm || outcome.clients < 2) continue
      scripts += outcome.scripts - outcome.clients * SWEEPS
      lateness += outcome.latenessMs
      delivered += outcome.delivered
    }
    return { scripts: scripts / delivered, lateness: lateness / delivered }
  }

  async function firstViolation(code: Code, firstSeed = 1): Promise<string | undefined> {
    for (let seed = firstSeed; seed < firstSeed + SEEDS_TO_FIND; seed++) {
      const { violation } = await simulate(seed, code)
      if (violation !== undefined) return violation
    }
    return undefined
  }
})
