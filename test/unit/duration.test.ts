import { expect } from 'chai'
import { InvalidArgumentError } from '../../src/errors.js'
import { durationMs } from '../../src/duration.js'

const MAX = Number.MAX_SAFE_INTEGER

describe('a duration', () => {
  const texts: [text: string, ms: number][] = [
    ['0ms', 0],
    ['500ms', 500],
    ['5s', 5_000],
    ['15m', 900_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
    ['1.5s', 1_500],
    ['4.35s', 4_350],
    ['1.005s', 1_005],
    ['0.25h', 900_000],
    ['01s', 1_000],
    ['104249991d', 9_007_199_222_400_000],
  ]
  for (const [text, ms] of texts) {
    it(`of '${text}' is ${ms} ms`, () => {
      expect(durationMs('delay', text)).to.equal(ms)
    })
  }

  it('is a number of milliseconds within its bounds', () => {
    for (const ms of [0, 1, 1_500, MAX]) expect(durationMs('delay', ms)).to.equal(ms)
    expect(durationMs('timeout', '10m', 100, 600_000)).to.equal(600_000)
  })

  const forms = (min: number, max: string): string =>
    `a whole number of milliseconds from ${min} to ${max}, or a text such as '5s', '15m', '2h'`
  const shown: [given: unknown, got: string][] = [
    ['5 minutes', '"5 minutes"'],
    ['-5s', '"-5s"'],
    ['5S', '"5S"'],
    ['1h30m', '"1h30m"'],
    ['1.5ms', '"1.5ms"'],
    ['104249992d', '"104249992d"'],
    ['1s', '"1s"'], // less than the least
    ['12m', '"12m"'], // more than the most
    ['5000', 'a string of 4 characters'], // may be a payload in the wrong place
    ['soon', 'a string of 4 characters'],
    ['', 'an empty string'],
    ['5s\n', 'a string of 3 characters'],
    [1.5, '1.5'],
    [-0, '0'],
    [NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [5n, '5n'],
    [null, 'null'],
    [undefined, 'undefined'],
    [{}, 'an object (Object)'],
  ]
  for (const [given, got] of shown) {
    it(`is not ${got}: the error names both forms`, () => {
      expect(() => durationMs('timeout', given, 2_000, 600_000))
        .to.throw(InvalidArgumentError)
        .with.property('message', `timeout: expected ${forms(2_000, '600000')}, got ${got}`)
    })
  }
})
