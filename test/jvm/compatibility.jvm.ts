/** Redisson itself on the other side, in every version that scripts/test-jvm.ts has built. */
import { cleanUp } from '../integration/fixtures.js'
import { codecTests } from './codecs.js'
import { cancellingScenarios } from './scenarios/cancelling.js'
import { deliveryScenarios } from './scenarios/delivery.js'
import { fleetScenario } from './scenarios/fleet.js'
import { lifecycleScenarios } from './scenarios/lifecycle.js'
import { nameAndPayloadScenarios } from './scenarios/names.js'
import { oldEntryScenarios } from './scenarios/old-entries.js'
import { pendingScenarios } from './scenarios/pending.js'
import { unorderedScenarios } from './scenarios/unordered.js'
import { builds } from './support/builds.js'
import { Jvm } from './support/jvm.js'
import { makeSide } from './support/side.js'

const FULL = { messages: 20_000, overMs: 15_000, kills: 16 }
const SHORT = { messages: 2_000, overMs: 4_000, kills: 4 }
const all = builds()
const newest = all.at(-1)

for (const build of all) {
  describe(`Redisson ${build.version}`, () => {
    let jvm: Jvm
    const side = makeSide(build, () => jvm)

    before(async function () {
      this.timeout(60_000)
      jvm = await Jvm.start(build)
      await jvm.open()
    })
    after(() => jvm.stop())
    afterEach(cleanUp)
    afterEach(function () {
      if (this.currentTest?.state === 'failed' && jvm.log !== '') console.error(`Redisson's log:\n${jvm.log}`)
    })

    describe('codecs', () => codecTests(side))
    describe('delivery', () => deliveryScenarios(side))
    describe('pending messages', () => pendingScenarios(side))
    describe('cancel and reschedule', () => cancellingScenarios(side))
    describe('names and payloads', () => nameAndPayloadScenarios(side))
    describe('leaving', () => lifecycleScenarios(side))
    describe('without the order list', () => unorderedScenarios(side))
    describe('old entries', () => oldEntryScenarios(side))
    // in full on the newest version only: it takes half a minute
    describe('mixed fleet', () => fleetScenario(side, build === newest ? FULL : SHORT))
  })
}
