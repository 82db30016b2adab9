import { expect } from 'chai'
import { InvalidArgumentError } from '../../src/index.js'
import { nextTickOf, tickRuleOf, type RepeatTimes } from '../../src/reliable/repeats/ticks.js'

const at = (text: string): number => Date.parse(text)

/** The first ticks after a time, as texts. */
function ticks(times: RepeatTimes, after: string, count: number): (string | null)[] {
  const nextTick = nextTickOf(tickRuleOf(times))
  const found: (string | null)[] = []
  let last: number | null = at(after)
  while (found.length < count && last !== null) {
    last = nextTick(last)
    found.push(last === null ? null : new Date(last).toISOString())
  }
  return found
}

describe('ticks', () => {
  describe('every', () => {
    it('are multiples of it since 1970, so that all processes mean the same ones', () => {
      expect(ticks({ every: 60_000 }, '2026-01-01T00:00:00.001Z', 2)).to.deep.equal([
        '2026-01-01T00:01:00.000Z',
        '2026-01-01T00:02:00.000Z',
      ])
    })

    it('begin with startAt and continue from there', () => {
      const times = { every: 1_000, startAt: new Date('2026-01-01T00:00:00.250Z') }
      expect(ticks(times, '2025-06-01T00:00:00Z', 2)).to.deep.equal([
        '2026-01-01T00:00:00.250Z',
        '2026-01-01T00:00:01.250Z',
      ])
    })

    it('are after the given time, never at it', () => {
      const nextTick = nextTickOf(tickRuleOf({ every: 7 }))
      for (let after = 0; after < 50; after++) {
        const tick = nextTick(after)
        expect(tick).to.equal((Math.floor(after / 7) + 1) * 7)
      }
    })

    it('end with endAt, which may be one itself', () => {
      const times = { every: 1_000, endAt: new Date('2026-01-01T00:00:02Z') }
      expect(ticks(times, '2026-01-01T00:00:00Z', 3)).to.deep.equal([
        '2026-01-01T00:00:01.000Z',
        '2026-01-01T00:00:02.000Z',
        null,
      ])
    })
  })

  describe('cron', () => {
    it('has five fields, or six with the seconds first', () => {
      expect(ticks({ cron: '30 9 * * 1-5' }, '2026-11-20T12:00:00Z', 1)).to.deep.equal(['2026-11-23T09:30:00.000Z'])
      expect(ticks({ cron: '*/20 * * * * *' }, '2026-11-20T12:00:00.500Z', 2)).to.deep.equal([
        '2026-11-20T12:00:20.000Z',
        '2026-11-20T12:00:40.000Z',
      ])
    })

    it('follows the time zone: an hour that is left out is made up for, one that comes twice counts once', () => {
      const times = { cron: '30 2 * * *', timeZone: 'Europe/Berlin' }
      expect(ticks(times, '2026-03-28T12:00:00Z', 2)).to.deep.equal([
        '2026-03-29T01:00:00.000Z', // 02:30 did not exist: at 03:00 summer time
        '2026-03-30T00:30:00.000Z',
      ])
      expect(ticks(times, '2026-10-24T12:00:00Z', 2)).to.deep.equal([
        '2026-10-25T00:30:00.000Z',
        '2026-10-26T01:30:00.000Z',
      ])
    })

    it('is UTC without a time zone, whatever the process has', () => {
      expect(ticks({ cron: '@daily' }, '2026-11-20T12:00:00Z', 1)).to.deep.equal(['2026-11-21T00:00:00.000Z'])
    })

    it('obeys startAt and endAt', () => {
      const times = {
        cron: '0 0 * * *',
        startAt: new Date('2027-01-01T00:00:00Z'),
        endAt: new Date('2027-01-02T12:00:00Z'),
      }
      expect(ticks(times, '2026-11-20T12:00:00Z', 3)).to.deep.equal([
        '2027-01-01T00:00:00.000Z',
        '2027-01-02T00:00:00.000Z',
        null,
      ])
    })
  })

  describe('refuses', () => {
    const bad: readonly [what: string, times: unknown, says: RegExp][] = [
      ['neither of every and cron', {}, /one of the two.*none/],
      ['both', { every: 1, cron: '* * * * *' }, /one of the two.*both/],
      ['every 0', { every: 0 }, /every/],
      ['half a millisecond', { every: 1.5 }, /every/],
      ['more than a year', { every: 367 * 86_400_000 }, /every/],
      ['every as a text that is not a duration', { every: '5 seconds' }, /every/],
      ['a time zone without cron', { every: 5, timeZone: 'UTC' }, /timeZone/],
      ['an unknown time zone', { cron: '* * * * *', timeZone: 'Mars/Base' }, /Mars\/Base/],
      ['minute 61', { cron: '61 * * * *' }, /minute/],
      ['four fields', { cron: '* * * *' }, /five, six/],
      ['an unknown field', { cron: '* * * * FOO' }, /cron/],
      ['an empty expression', { cron: '' }, /cron/],
      ['a number', { cron: 5 }, /cron/],
      ['what never comes', { cron: '0 0 30 2 *' }, /at least one tick/],
      ['a novel', { cron: '* * * * *'.padEnd(300) }, /256 characters/],
      ['a startAt that is not a date', { every: 5, startAt: '2026-01-01' }, /startAt/],
      ['an invalid date', { every: 5, endAt: new Date(NaN) }, /endAt/],
    ]
    for (const [what, times, says] of bad) {
      it(what, () => {
        expect(() => tickRuleOf(times as RepeatTimes)).to.throw(InvalidArgumentError, says)
      })
    }
  })
})
