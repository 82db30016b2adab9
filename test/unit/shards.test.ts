import { expect } from 'chai'
import { bundlesOf, readDurations, testFiles } from '../../scripts/shards.js'

describe('The files of the tests, in bundles for processes', () => {
  const durations = {
    alone: ['lateness.test.ts'],
    seconds: { 'long.test.ts': 75, 'a.test.ts': 20, 'b.test.ts': 4, 'lateness.test.ts': 30 },
  }

  it('start with the longest and end with those that run alone', () => {
    const files = ['a.test.ts', 'b.test.ts', 'c.test.ts', 'lateness.test.ts', 'long.test.ts']
    expect(bundlesOf(files, durations, 1)).to.deep.equal([
      { files: ['long.test.ts'], seconds: 75, alone: false },
      { files: ['a.test.ts', 'b.test.ts', 'c.test.ts'], seconds: 25, alone: false },
      { files: ['lateness.test.ts'], seconds: 30, alone: true },
    ])
  })

  it('hold every file once', () => {
    const files = testFiles()
    expect(bundlesOf(files, readDurations(), 4).flatMap((bundle) => bundle.files)).to.have.members(files)
  })

  it('are known by names that exist', () => {
    const { alone, seconds } = readDurations()
    expect(testFiles()).to.include.members([...alone, ...Object.keys(seconds)])
  })

  it('are found by folder and by name', () => {
    expect(testFiles(['test/unit/', 'test/unit/keys.test.ts', 'test/lua']))
      .to.include.members(['test/unit/keys.test.ts', 'test/lua/transfer.test.ts'])
      .and.satisfy((files: string[]) => files.filter((file) => file === 'test/unit/keys.test.ts').length === 1)
  })
})
