import { expect } from 'chai'
import { InvalidArgumentError } from '../../src/errors.js'
import { durationForms } from '../../src/duration.js'
import { boolean, integer, nonEmptyString, oneOf, onlyKnown, resolveSettings, type Tuning } from '../../src/options.js'

describe('options', () => {
  const defaults = {
    localTime: Date.now,
    clock: 'redis',
    sweepInterval: 5_000,
    pingInterval: 10_000,
    connectTimeout: 10_000,
    commandTimeout: 10_000,
    blockingConnections: 4,
    entryFormat: 'Bc0Lc0',
    fineWaits: true,
    consumersDeliver: true,
    maxPayloadBytes: 16_777_216,
  }

  it('have defaults', () => {
    expect(resolveSettings({})).to.deep.equal(defaults)
  })

  it('that are undefined count as not given', () => {
    const tuning = Object.fromEntries(Object.keys(defaults).map((key) => [key, undefined])) as Tuning
    expect(resolveSettings(tuning)).to.deep.equal(defaults)
  })

  it('are copied and frozen', () => {
    const tuning = { sweepInterval: 100 }
    const settings = resolveSettings(tuning)
    tuning.sweepInterval = 200
    expect(settings.sweepInterval).to.equal(100)
    expect(Object.isFrozen(settings)).to.equal(true)
  })

  const bounds: [name: keyof Tuning, min: number, max: number][] = [
    ['sweepInterval', 100, 3_600_000],
    ['pingInterval', 100, 3_600_000],
    ['connectTimeout', 10, 600_000],
    ['commandTimeout', 100, 600_000],
    ['blockingConnections', 1, 64],
    ['maxPayloadBytes', 1, 536_870_912],
  ]
  const counts: readonly string[] = ['blockingConnections', 'maxPayloadBytes']
  for (const [name, min, max] of bounds) {
    it(`take ${name} from ${min} to ${max}`, () => {
      expect(resolveSettings({ [name]: min })).to.include({ [name]: min })
      expect(resolveSettings({ [name]: max })).to.include({ [name]: max })
      for (const [wrong, got] of [
        [min - 1, String(min - 1)],
        [max + 1, String(max + 1)],
        [min + 0.5, String(min + 0.5)],
        [NaN, 'NaN'],
        [Infinity, 'Infinity'],
        [String(min), `a string of ${String(min).length} character${min === 1 ? '' : 's'}`],
        [BigInt(min), `${min}n`],
        [true, 'true'],
        [null, String(min)],
      ] as const) {
        if (wrong === null) continue // null counts as not given
        expect(() => resolveSettings({ [name]: wrong }))
          .to.throw(InvalidArgumentError)
          .that.includes({
            code: 'ERR_INVALID_ARGUMENT',
            message: counts.includes(name)
              ? `${name}: expected a whole number from ${min} to ${max}, got ${got}`
              : `${name}: expected ${durationForms(min, max)}, got ${got}`,
          })
      }
    })
  }

  const wrong: [tuning: unknown, message: string][] = [
    [{ clock: 'server' }, 'clock: expected "redis" or "local", got a string of 6 characters'],
    [{ clock: 1 }, 'clock: expected "redis" or "local", got 1'],
    [{ clock: ['redis'] }, 'clock: expected "redis" or "local", got an array of 1'],
    [{ consumersDeliver: 'yes' }, 'consumersDeliver: expected true or false, got a string of 3 characters'],
    [{ fineWaits: 1 }, 'fineWaits: expected true or false, got 1'],
    [{ consumersDeliver: 0 }, 'consumersDeliver: expected true or false, got 0'],
  ]
  for (const [tuning, message] of wrong) {
    it(`say what is wrong: ${message}`, () => {
      expect(() => resolveSettings(tuning as Tuning))
        .to.throw(InvalidArgumentError)
        .with.property('message', message)
    })
  }

  it('take the local clock, and consumers that do not deliver', () => {
    expect(resolveSettings({ clock: 'local', consumersDeliver: false })).to.include({
      clock: 'local',
      consumersDeliver: false,
    })
  })

  it('that are unknown are refused, as are values that are not objects', () => {
    expect(() => onlyKnown('options', { a: 1, b: 2 }, ['a', 'b'])).to.not.throw()
    expect(() => onlyKnown('options', {}, [])).to.not.throw()
    for (const [value, message] of [
      [{ a: 1, sweepIntervall: 2 }, 'options.sweepIntervall: expected one of a, b, got "sweepIntervall"'],
      [null, 'options: expected an object, got null'],
      [undefined, 'options: expected an object, got undefined'],
      [[], 'options: expected an object, got an array of 0'],
      ['redis://host', 'options: expected an object, got a string of 12 characters'],
      [() => {}, 'options: expected an object, got a function'],
    ] as const) {
      expect(() => onlyKnown('options', value, ['a', 'b']))
        .to.throw(InvalidArgumentError)
        .with.property('message', message)
    }
  })

  it('are checked one by one', () => {
    expect(integer('n', 3, 3, 3)).to.equal(3)
    expect(boolean('b', false)).to.equal(false)
    expect(oneOf('o', 'b', ['a', 'b'])).to.equal('b')
    expect(nonEmptyString('s', 'x')).to.equal('x')
    expect(() => nonEmptyString('s', '')).to.throw(
      InvalidArgumentError,
      's: expected a non-empty string, got an empty string',
    )
    expect(() => nonEmptyString('s', 5)).to.throw(InvalidArgumentError, 's: expected a non-empty string, got 5')
    expect(() => oneOf('o', 'toString', ['a', 'b'])).to.throw(
      InvalidArgumentError,
      'o: expected "a" or "b", got a string of 8 characters',
    )
  })
})
