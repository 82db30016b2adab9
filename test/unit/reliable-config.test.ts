import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { MAX_VISIBILITY_MS } from '../../src/reliable/visibility.js'
import { MAX_VISIBILITY_MS as OF_THE_SERVICE } from '../../src/server/topics/visibility.js'
import { configArgs, CONFIG_NAMES, isSetting, readConfig, type StoredQueueConfig } from '../../src/reliable/config.js'

/** A value of each setting; a new one needs it to compile. `changes` is left out: the script completes its text. */
const SAMPLES: Required<Omit<StoredQueueConfig, 'changes'>> = {
  visibilityTimeout: 30_000,
  deliveryLimit: 3,
  timeToLive: 60_000,
  delay: 5_000,
  maxSize: 100,
  maxMessageBytes: 1_024,
  deadLetters: false,
  keepCompleted: 1,
  keepCompletedFor: 1_000,
  keepDeadLetters: 7,
  keepDeadLettersFor: 2_000,
  concurrency: 5,
  rateLimit: { max: 100, perMs: 1_000 },
  groupConcurrency: 5,
  groupRateLimit: { max: 100, perMs: 1_000 },
}

const stored = (name: string, value: unknown): string => configArgs({ [name]: value })[1] ?? ''
const read = (name: string, text: string): unknown =>
  readConfig(CONFIG_NAMES.map((each) => (each === name ? text : null)))[name as keyof StoredQueueConfig]

describe('the configuration of a reliable queue', () => {
  it('has a sample of each setting here', () => {
    expect(Object.keys(SAMPLES)).to.have.members(CONFIG_NAMES.filter((name) => name !== 'changes'))
  })

  for (const [name, value] of Object.entries(SAMPLES)) {
    it(`reads ${name} as it was written`, () => {
      const text = stored(name, value)
      expect(isSetting(name, text)).to.equal(true)
      expect(read(name, text)).to.deep.equal(value)
    })

    if (typeof value === 'boolean') {
      it(`reads both values of ${name}, and no other text`, () => {
        expect(read(name, stored(name, true))).to.equal(true)
        expect(read(name, stored(name, false))).to.equal(false)
        for (const text of ['', '2', '01', 'true', 'false']) expect(isSetting(name, text), text).to.equal(false)
      })
    }
  }
})

it('the longest visibility timeout is that of the scripts and of the service', () => {
  expect(OF_THE_SERVICE).to.equal(MAX_VISIBILITY_MS)
  const script = readFileSync(new URL('../../src/store/scripts/shared/longest-visibility.lua', import.meta.url), 'utf8')
  expect(script).to.include(`local LONGEST_VISIBILITY = ${MAX_VISIBILITY_MS}\n`)
})
