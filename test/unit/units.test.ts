import { expect } from 'chai'
import { InvalidArgumentError } from '../../src/errors.js'
import { toMillis } from '../../src/timing/units.js'

describe('durations', () => {
  const good: [amount: number, unit: string | undefined, millis: number][] = [
    [0, undefined, 0],
    [1, undefined, 1],
    [5000, 'milliseconds', 5000],
    [Number.MAX_SAFE_INTEGER, undefined, Number.MAX_SAFE_INTEGER],
    [5, 'seconds', 5000],
    [1.5, 'seconds', 1500],
    [0.25, 'minutes', 15_000],
    [2, 'minutes', 120_000],
    [1, 'hours', 3_600_000],
    [30, 'days', 2_592_000_000],
    [104_249_991, 'days', 9_007_199_222_400_000],
    [0, 'days', 0],
  ]
  for (const [amount, unit, millis] of good) {
    it(`of ${amount} ${unit ?? 'without a unit'} are ${millis} ms`, () => {
      expect(toMillis('delay', amount, unit)).to.equal(millis)
    })
  }

  const whole = "a whole number of milliseconds from 0 to 2^53-1, or a text such as '5s', '15m', '2h'"
  const units = 'milliseconds, seconds, minutes, hours, days'
  const bad: [amount: unknown, unit: unknown, message: string][] = [
    [-1, undefined, `delay: expected ${whole}, got -1`],
    [-0, undefined, `delay: expected ${whole}, got 0`],
    [0.5, undefined, `delay: expected ${whole}, got 0.5`],
    [NaN, undefined, `delay: expected ${whole}, got NaN`],
    [Infinity, undefined, `delay: expected ${whole}, got Infinity`],
    [2 ** 53, undefined, `delay: expected ${whole}, got 9007199254740992`],
    [0.0001, 'seconds', `delay: expected ${whole}, got 0.0001 seconds`],
    [-5, 'seconds', `delay: expected ${whole}, got -5 seconds`],
    [104_249_992, 'days', `delay: expected ${whole}, got 104249992 days`],
    ['5', undefined, `delay: expected ${whole}, got a string of 1 character`],
    [5n, undefined, `delay: expected ${whole}, got 5n`],
    [null, undefined, `delay: expected ${whole}, got null`],
    [undefined, undefined, `delay: expected ${whole}, got undefined`],
    [new Date(0), undefined, `delay: expected ${whole}, got 1970-01-01T00:00:00.000Z`],
    ['5', 'seconds', 'delay: expected a number of seconds, got a string of 1 character'],
    ['5s', 'seconds', 'delay: expected a number of seconds, got a string of 2 characters'],
    [5, 'second', `unit of delay: expected ${units}, got a string of 6 characters`],
    [5, 'SECONDS', `unit of delay: expected ${units}, got a string of 7 characters`],
    [5, null, `unit of delay: expected ${units}, got null`],
    [5, 1000, `unit of delay: expected ${units}, got 1000`],
    [5, 'toString', `unit of delay: expected ${units}, got a string of 8 characters`],
    [5, '__proto__', `unit of delay: expected ${units}, got a string of 9 characters`],
  ]
  for (const [amount, unit, message] of bad) {
    it(`are refused: ${message}`, () => {
      expect(() => toMillis('delay', amount, unit))
        .to.throw(InvalidArgumentError)
        .with.property('message', message)
    })
  }
})
