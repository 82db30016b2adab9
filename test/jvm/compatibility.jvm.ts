/** Redisson itself on the other side, in every version that scripts/test-jvm.mjs has built. */
import { cleanUp } from '../integration/fixtures.js'
import { amendingScenarios } from './scenarios/amending.js'
import { deliveryScenarios } from './scenarios/delivery.js'
import { lifecycleScenarios } from './scenarios/lifecycle.js'
import { nameAndPayloadScenarios } from './scenarios/names.js'
import { oldEntryScenarios } from './scenarios/old-entries.js'
import { pendingScenarios } from './scenarios/pending.js'
import { unorderedScenarios } from './scenarios/unordered.js'
import { builds } from './support/builds.js'
import { Jvm } from './support/jvm.js'
import { makeSide } from './support/side.js'

for (const build of builds()) {
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

    describe('delivery', () => deliveryScenarios(side))
    describe('pending messages', () => pendingScenarios(side))
    describe('cancel and reschedule', () => amendingScenarios(side))
    describe('names and payloads', () => nameAndPayloadScenarios(side))
    describe('leaving', () => lifecycleScenarios(side))
    describe('without the order list', () => unorderedScenarios(side))
    describe('old entries', () => oldEntryScenarios(side))
  })
}
