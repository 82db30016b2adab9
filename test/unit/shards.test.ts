import { expect } from 'chai'
import { bundlesOf, readDurations, testFiles } from '../../scripts/shards.js'

describe('The files of the tests, in bundles for processes', () => {
  const durations = {
    alone: ['lateness.test.ts'],
    waiting: ['long wait.test.ts', 'wait.test.ts'],
    seconds: {
      ...{ 'long.test.ts': 75, 'a.test.ts': 20, 'b.test.ts': 4, 'lateness.test.ts': 30 },
      ...{ 'wait.test.ts': 10, 'long wait.test.ts': 30 },
    },
  }

  it('compute, wait or run alone, the longest of each kind first', () => {
    const files = [
      'a.test.ts',
      'b.test.ts',
      'wait.test.ts',
      'c.test.ts',
      'lateness.test.ts',
      'long wait.test.ts',
      'long.test.ts',
    ]
    expect(bundlesOf(files, durations, 2)).to.deep.equal([
      { files: ['long.test.ts'], seconds: 75, kind: 'computing' },
      { files: ['a.test.ts'], seconds: 20, kind: 'computing' },
      { files: ['b.test.ts', 'c.test.ts'], seconds: 5, kind: 'computing' },
      { files: ['long wait.test.ts'], seconds: 30, kind: 'waiting' },
      { files: ['wait.test.ts'], seconds: 10, kind: 'waiting' },
      { files: ['lateness.test.ts'], seconds: 30, kind: 'alone' },
    ])
  })

  it('get shorter towards the end, so that no process waits long for another', () => {
    const files = Array.from({ length: 60 }, (_, at) => `${at}.test.ts`)
    const seconds = Object.fromEntries(files.map((file, at) => [file, 2 + (at % 5)]))
    const bundles = bundlesOf(files, { alone: [], waiting: [], seconds }, 2)
    expect(bundles.map((bundle) => bundle.seconds)).to.deep.equal([120, 59, 30, 15, 10, 6])
    expect(bundles.flatMap((bundle) => bundle.files)).to.have.members(files)
  })

  it('hold every file once', () => {
    const files = testFiles()
    expect(bundlesOf(files, readDurations(), 4).flatMap((bundle) => bundle.files)).to.have.members(files)
  })

  it('are known by names that exist', () => {
    const { alone, waiting, long, seconds } = readDurations()
    const service = testFiles(['src/server/test'])
    expect([...testFiles(), ...service]).to.include.members([...alone, ...waiting, ...long, ...Object.keys(seconds)])
  })

  it('are found by folder and by name', () => {
    expect(testFiles(['test/unit/', 'test/unit/keys.test.ts', 'test/lua']))
      .to.include.members(['test/unit/keys.test.ts', 'test/lua/transfer.test.ts'])
      .and.satisfy((files: string[]) => files.filter((file) => file === 'test/unit/keys.test.ts').length === 1)
  })
})
