import { expect } from 'chai'
import type { Added, ExistingPolicy } from '../../src/index.js'
import { allowedIn } from '../faults/bench/suite.js'
import type { Remains } from '../faults/reliable/contents.js'
import { findingsOf, lineOf, problemsOf, WRONGS, type Findings, type Limits } from '../faults/reliable/findings.js'
import { batchesOf, endOf, historiesOf, type Delivery } from '../faults/reliable/history.js'
import { CROWD, LIMIT, POISON_LIMIT, type Entry, type Plan, type Said, type Waited } from '../faults/reliable/job.js'
import { BROKEN, type Broken } from '../faults/reliable/promises.js'
import type { Wrong } from '../faults/reliable/rules.js'

/** The judge of the reliable queue's faults must see each wrong, or all its verdicts are worth nothing. */
describe('the books of the reliable fault bench', () => {
  const HEALED = 10_000
  const HOUR = 3_600_000
  const VISIBILITY = 1_000

  interface Ends {
    readonly left?: readonly string[]
    readonly dead?: Remains['dead']
  }

  const check = (entries: readonly Entry[], { left = [], dead = [] }: Ends = {}): Findings =>
    findingsOf(historiesOf(entries), HEALED, { left: new Set(left), dead })
  const wrongsOf = (entries: readonly Entry[], ends?: Ends): Partial<Record<Wrong, number>> => {
    const findings = check(entries, ends)
    return Object.fromEntries(WRONGS.flatMap((wrong) => (findings[wrong] > 0 ? [[wrong, findings[wrong]]] : [])))
  }

  const added = (plan: Partial<Plan> = {}, at = 10): Entry[] => [
    ['try', '1', { at: 0, delay: 0, limit: LIMIT, poison: false, ...plan }],
    ['ok', '1', at],
  ]
  const got = (attempt: number, from: number, token = ''): Entry => [
    'got',
    '1',
    `${attempt} t${attempt}${token}`,
    from,
    from,
    from + VISIBILITY,
  ]
  const answered = (attempt: number, said: Said, at: number, done = true): Entry[] => [
    ['answering', '1', `${attempt} t${attempt}`, said, at],
    ['answer', '1', `${attempt} t${attempt}`, done, at + 2],
  ]
  const extended = (attempt: number, until: number | null): Entry[] => [
    ['extending', '1', `${attempt} t${attempt}`],
    ['extended', '1', `${attempt} t${attempt}`, until],
  ]
  const changed = (how: 'cancel' | 'move' | 'remove', delay: number, at: number, done?: boolean): Entry[] => [
    ['changing', '1', how, delay, at],
    ...(done === undefined ? [] : [['changed', '1', done, at + 2] as const]),
  ]
  const restored = (at: number, done?: boolean): Entry[] => [
    ['restoring', '1', at],
    ...(done === undefined ? [] : [['restored', '1', done, at + 2] as const]),
  ]
  const addedAgain = (existing: ExistingPolicy, outcome: Added['outcome'] | undefined, at: number): Entry[] => [
    ['adding again', '1', existing, 0, at],
    ...(outcome === undefined ? [] : [['added again', '1', outcome, at + 2] as const]),
  ]
  /** Another one, with the payload of that `add`. */
  const gotAgain = (attempt: number, from: number): Entry => [...got(attempt, from), 'queue', 1] as unknown as Entry
  const poisoned = added({ poison: true, limit: POISON_LIMIT })
  const failures = (attempts: number): Entry[] =>
    Array.from({ length: attempts }, (_, n) => [got(n + 1, 100 * n), ...answered(n + 1, 'failed', 100 * n + 50)]).flat()
  const buried = { dead: [{ id: '1', name: '1', attempts: [1, 2, 3] }] }
  const done = [...added(), got(1, 500), ...answered(1, 'done', 600)]
  const far = added({ delay: HOUR })
  /** The same of a second message. */
  const asTwo = (entries: readonly Entry[]) =>
    entries.map(([kind, , ...rest]) => [kind, '2', ...rest] as unknown as Entry)

  it('find nothing where all went well', () => {
    const entries = [...done, ...asTwo(far)]
    expect(wrongsOf(entries, { left: ['2'] })).to.deep.equal({})
    expect(check(entries, { left: ['2'] })).to.include({
      added: 2,
      delivered: 1,
      acknowledged: 1,
      dead: 0,
      excess: 0,
      tooLate: 0,
    })
    expect(wrongsOf([...poisoned, ...failures(POISON_LIMIT)], buried)).to.deep.equal({})
  })

  it('each rule is listed with what breaks it, so that none is forgotten', () => {
    const broken: Record<Wrong, [readonly Entry[], Ends?]> = {
      lost: [added()],
      dropped: [far],
      overlapping: [[...added(), got(1, 500), got(2, 1_499), ...answered(2, 'done', 1_600)]],
      late: [[...added(), got(1, 500), ...answered(1, 'done', 1_500)]],
      again: [[...done, got(1, 700, 'b')]],
      denied: [
        [...added(), got(1, 500), ...answered(1, 'done', 600, false), got(2, 1_500), ...answered(2, 'done', 1_600)],
      ],
      early: [[...added({ delay: 501 }), got(1, 500), ...answered(1, 'done', 600)]],
      cancelled: [[...added(), ...changed('cancel', 0, 100, true), got(1, 102), ...answered(1, 'done', 110)]],
      unremoved: [[...added(), got(1, 500), ...changed('remove', 0, 600, false), ...answered(1, 'done', 700)]],
      unrestored: [[...added(), ...changed('remove', 0, 100, true), ...restored(200, true)]],
      revived: [[...done, ...addedAgain('keep', 'added', 700)]],
      merged: [[...added(), ...addedAgain('keep', 'duplicate', 100), got(1, 500), ...answered(1, 'done', 600)]],
      unfound: [[...far, ['asking', '1', 20], ['asked', '1', false, 30]], { left: ['1'] }],
      stray: [[got(1, 500), ...answered(1, 'done', 600)]],
      buried: [[...poisoned, ...failures(2)], { dead: [{ id: '1', name: '1', attempts: [1, 2] }] }],
      spoilt: [added(), { dead: [{ id: '1', name: '1', attempts: Array.from({ length: LIMIT }, (_, n) => n + 1) }] }],
    }
    for (const [wrong, [entries, ends]] of Object.entries(broken))
      expect(wrongsOf(entries, ends), wrong).to.deep.equal({ [wrong]: 1 })
    expect(Object.keys(broken)).to.have.members(WRONGS)
  })

  it('a message that was asked for is unfound unless it may be gone, or may not be there yet', () => {
    const asked = (at: number, found?: boolean): Entry[] => [
      ['asking', '1', at],
      ...(found === undefined ? [] : [['asked', '1', found, at + 10] as const]),
    ]
    const ends = { left: ['1'] }
    expect(wrongsOf([...far, ...asked(20, true)], ends)).to.deep.equal({})
    expect(wrongsOf([...far, ...asked(20)], ends), 'no answer').to.deep.equal({})
    expect(wrongsOf([...far, ...asked(9, false)], ends), 'it was not known yet to be there').to.deep.equal({})
    expect(wrongsOf([...done, ...asked(490, false)]), 'a consumer got it').to.deep.equal({})
    expect(wrongsOf([...done, ...asked(480, false)]), 'before that').to.deep.equal({ unfound: 1 })
    expect(wrongsOf([...added(), ...changed('cancel', 0, 15, true), ...asked(20, false)])).to.deep.equal({})
  })

  it('a removed message is gone for everybody until it is restored', () => {
    const removed = (done?: boolean): Entry[] => changed('remove', 0, 600, done)
    const held = [...added(), got(1, 500)]
    expect(wrongsOf([...held, ...removed(true), ...answered(1, 'done', 700, false)])).to.deep.equal({})
    expect(wrongsOf([...held, ...removed(true), ...answered(1, 'done', 700)])).to.deep.equal({ cancelled: 1 })
    expect(wrongsOf([...held, ...removed(), ...answered(1, 'done', 700)]), 'no answer').to.deep.equal({})
    const denied = answered(1, 'done', 590, false)
    expect(wrongsOf([...held, ...removed(true), ...denied]), 'while it was removed').to.deep.equal({ denied: 1 })
    expect(wrongsOf([...added(), ...removed(true), got(1, 603)])).to.deep.equal({ cancelled: 1 })
    expect(wrongsOf([...added(), ...removed(true), got(1, 602)]), 'claimed in the same millisecond').to.deep.equal({})
    expect(wrongsOf([...added(), ...removed(true)], { left: ['1'] })).to.deep.equal({ cancelled: 1 })
    const early = [...added(), got(1, 500), ...removed(false), ...answered(1, 'done', 601)]
    expect(wrongsOf(early), 'the consumer may have been first').to.deep.equal({})
    const back = (at: number): Entry[] => [got(1, at), ...answered(1, 'done', at + 50)]
    expect(wrongsOf([...added(), ...removed(true), ...restored(700, true), ...back(710)])).to.deep.equal({})
    expect(wrongsOf([...added(), ...removed(true), ...restored(700), ...back(710)])).to.deep.equal({})
    expect(wrongsOf([...added(), ...removed(true), ...restored(700, true), ...back(690)])).to.deep.equal({
      cancelled: 1,
    })
    expect(wrongsOf([...added(), ...removed(true), ...restored(700, false)])).to.deep.equal({ unrestored: 1 })
    expect(wrongsOf([...added(), ...removed(true), ...restored(700)]), 'no answer').to.deep.equal({})
  })

  it('another add within the deduplication changes what its answer says', () => {
    const claimed = (from: number, entry = got(1, from)): Entry[] => [entry, ...answered(1, 'done', from + 50)]
    const changedAt = 700
    for (const existing of ['keep', 'replace', 'postpone'] as const) {
      expect(wrongsOf([...done, ...addedAgain(existing, 'duplicate', changedAt)]), existing).to.deep.equal({})
      expect(wrongsOf([...done, ...addedAgain(existing, undefined, changedAt), got(1, 800, 'b')])).to.deep.equal({})
      expect(wrongsOf([...added(), ...addedAgain(existing, 'duplicate', 100), ...claimed(500)])).to.deep.equal({
        merged: 1,
      })
    }
    const keep = addedAgain('keep', 'kept', 100)
    expect(wrongsOf([...added(), ...keep, ...claimed(500)])).to.deep.equal({})
    expect(wrongsOf([...added(), ...keep, ...claimed(500, gotAgain(1, 500))])).to.deep.equal({ merged: 1 })
    expect(wrongsOf([...added(), ...addedAgain('keep', 'replaced', 100), ...claimed(500)])).to.deep.equal({ merged: 1 })
    const replace = addedAgain('replace', 'replaced', 100)
    expect(wrongsOf([...added(), ...replace, ...claimed(500, gotAgain(1, 500))])).to.deep.equal({})
    expect(wrongsOf([...added(), ...replace, ...claimed(500)]), 'the old one').to.deep.equal({ merged: 1 })
    expect(wrongsOf([...added(), ...replace, ...claimed(101)]), 'before the answer').to.deep.equal({})
    const next: Entry[] = [
      ['got', '1', '1 t1b', 110, 110, 1_110, 'queue', 1],
      ['answering', '1', '1 t1b', 'done', 200],
      ['answer', '1', '1 t1b', true, 202],
    ]
    const twice = [got(1, 50), ...replace, ...next]
    expect(wrongsOf([...added(), ...twice, ...answered(1, 'done', 120, false)]), 'taken away').to.deep.equal({})
    expect(wrongsOf([...added(), ...twice, ...answered(1, 'done', 120)]), 'and it counted').to.include({ cancelled: 1 })
    const postpone: Entry[] = [
      ['adding again', '1', 'postpone', 1_000, 100],
      ['added again', '1', 'postponed', 102],
    ]
    expect(wrongsOf([...added(), ...postpone, ...claimed(1_100)])).to.deep.equal({})
    expect(wrongsOf([...added(), ...postpone, ...claimed(1_000)])).to.deep.equal({ early: 1 })
    const kept = addedAgain('postpone', 'kept', 550)
    expect(wrongsOf([...added(), got(1, 500), ...kept, ...answered(1, 'done', 600)]), 'held').to.deep.equal({})
    expect(wrongsOf([...added(), ...kept, ...claimed(600)]), 'not held').to.deep.equal({ merged: 1 })
  })

  it('a tick of a schedule comes though no producer has added it, not early, and is skipped where others came before and after', () => {
    const tick = (at: number, from = at, id = `schedule-1@${at}`): Entry[] =>
      [got(1, from), ...answered(1, 'done', from + 10)].map(
        ([kind, , ...rest]) => [kind, id, ...rest] as unknown as Entry,
      )
    const ticks = (...times: number[]): Entry[] => times.flatMap((at) => tick(at))
    expect(wrongsOf(ticks(800, 1_200))).to.deep.equal({})
    expect(check(ticks(800, 1_200)).skipped).to.equal(0)
    expect(wrongsOf(tick(800, 799))).to.deep.equal({ early: 1 })
    expect(check(ticks(800, 2_000)).skipped).to.equal(2)
    expect(problemsOf(check(ticks(800, 1_600)), {}, 1_000_000).join('\n')).to.include('skipped: schedule-1@1200')
    expect(wrongsOf(tick(800).slice(0, 1)), 'delivered, and then nowhere').to.deep.equal({ lost: 1 })
  })

  it('a tick of two shards is a message of each, and counted', () => {
    const tick = (part: string, attempt = 1, from = 800): Entry[] =>
      [got(attempt, from, part), ['answering', '1', `${attempt} t${attempt}${part}`, 'done', from + 10] as const].map(
        ([kind, , ...rest]) => [kind, 'schedule-1@800', ...rest, ...(kind === 'got' ? [part] : [])] as unknown as Entry,
      )
    const done = (part: string): Entry => ['answer', 'schedule-1@800', `1 t1${part}`, true, 815]
    const both = [...tick('a'), done('a'), ...tick('b'), done('b')]
    expect(wrongsOf(both)).to.deep.equal({})
    expect(check(both).doubled).to.equal(1)
    expect(problemsOf(check(both), {}, 1_000_000).join('\n')).to.include('1 doubled, at most 0 may be')
    expect(check([...tick('a'), done('a')]).doubled).to.equal(0)
    expect(wrongsOf([...both, ...tick('b', 2, 900)]), 'once more in one of them').to.deep.equal({ again: 1 })
  })

  it('a message that is visible goes before those of lower priorities in its queue, when it was never delivered before', () => {
    const claimed = (id: string, priority: number, visibleAt: number, from: number, part = 'a'): Entry[] => [
      ['try', id, { at: 0, delay: 0, limit: LIMIT, poison: false, priority }],
      ['ok', id, 10],
      ['got', id, `1 ${id}`, visibleAt, from, from + VISIBILITY, part],
    ]
    const disorderIn = (...entries: readonly Entry[][]): number => check(entries.flat()).disordered
    const low = claimed('low', 1, 100, 600)
    expect(disorderIn(low, claimed('high', 2, 598, 601))).to.equal(1)
    expect(disorderIn(low, claimed('high', 2, 599, 601)), 'it may have come after').to.equal(0)
    expect(disorderIn(low, claimed('high', 2, 500, 600)), 'at once').to.equal(0)
    expect(disorderIn(low, claimed('high', 1, 500, 601)), 'no higher').to.equal(0)
    expect(disorderIn(low, claimed('high', 2, 500, 601, 'b')), 'in another queue').to.equal(0)
    const again: Entry = ['got', 'high', '2 high', 550, 601, 1_601, 'a']
    expect(disorderIn(low, claimed('high', 2, 500, 540), [again]), 'it was held or given back').to.equal(0)
    const high = claimed('high', 2, 500, 601)
    const heard = (...entries: Entry[]): number => disorderIn(low, high, entries)
    const moved: Entry = ['changing', 'high', 'move', 0, 400]
    expect(heard(moved, ['changed', 'high', true, 598])).to.equal(1)
    expect(heard(moved, ['changed', 'high', true, 599]), 'it was moved there').to.equal(0)
    expect(heard(moved), 'it was moved there, when is unknown').to.equal(0)
    const later: Entry = ['changing', 'high', 'move', 0, 602]
    expect(heard(later, ['changed', 'high', true, 610]), 'after its claim').to.equal(1)
    const removed: Entry[] = [
      ['changing', 'high', 'remove', 0, 400],
      ['changed', 'high', true, 410],
    ]
    expect(heard(...removed, ['restoring', 'high', 420], ['restored', 'high', true, 598])).to.equal(1)
    expect(heard(...removed, ['restoring', 'high', 420], ['restored', 'high', true, 599]), 'it was put back').to.equal(
      0,
    )
    const found = check([...low, ...claimed('high', 2, 500, 601)])
    expect(problemsOf(found, {}, 1_000_000).join('\n')).not.to.include('disordered, at most')
    expect(problemsOf(found, { disordered: 0 }, 1_000_000).join('\n')).to.include('1 disordered, at most 0 may be')
  })

  it('a group may have so many at once; what has ended counts no more', () => {
    const ofGroup = (group: string) => added({ group })
    const named = (entries: readonly Entry[], id: string) =>
      entries.map(([kind, , ...rest]) => [kind, id, ...rest] as unknown as Entry)
    const three = (from: number) => [
      ...[...ofGroup('a'), got(1, 500), ...answered(1, 'done', 900)],
      ...named([...ofGroup('a'), got(1, 600), ...answered(1, 'done', 1_000)], '2'),
      ...named([...ofGroup('a'), got(1, from), ...answered(1, 'done', from + 10)], '3'),
      ...named([...ofGroup('b'), got(1, 650), ...answered(1, 'done', 700)], '4'),
    ]
    const crowdedOf = (entries: readonly Entry[], limit?: number) =>
      findingsOf(
        historiesOf(entries),
        HEALED,
        { left: new Set(), dead: [] },
        { limits: limit === undefined ? {} : { groupConcurrency: limit } },
      ).crowded
    expect(crowdedOf(three(899), 2), 'before one ended').to.equal(1)
    expect(crowdedOf(three(900), 2), 'when one ended').to.equal(0)
    expect(crowdedOf(three(899), 3)).to.equal(0)
    expect(crowdedOf(three(899))).to.equal(0)
    const killed = [...ofGroup('a'), got(1, 500)]
    const next = (from: number) => named([...ofGroup('a'), got(1, from), ...answered(1, 'done', from + 10)], '2')
    expect(crowdedOf([...killed, ...next(1_499)], 1), 'its visibility has not ended').to.equal(1)
    expect(crowdedOf([...killed, ...next(1_500)], 1)).to.equal(0)
    const findings = findingsOf(
      historiesOf(three(899)),
      HEALED,
      { left: new Set(), dead: [] },
      { limits: { groupConcurrency: 2 } },
    )
    expect(problemsOf(findings, {}, 1_000_000).join('\n')).to.include('crowded: 3 was claimed at 899, while a had 2')
  })

  describe('of a queue with limits', () => {
    const claimed = (id: string, from: number, until = from + 10): Entry[] =>
      [...added(), got(1, from), ...answered(1, 'done', until)].map(
        ([kind, , ...rest]) => [kind, id, ...rest] as unknown as Entry,
      )
    const limitedTo = (limits: Limits, ...entries: readonly Entry[][]) =>
      findingsOf(historiesOf(entries.flat()), HEALED, { left: new Set(), dead: [] }, { limits })

    it('it has at most `concurrency` messages at once, whatever their groups', () => {
      const three = (from: number) => [claimed('1', 500, 900), claimed('2', 600, 1_000), claimed('3', from)]
      const crowdedOf = (from: number, concurrency: number) => limitedTo({ concurrency }, ...three(from)).crowded
      expect(crowdedOf(899, 2), 'before one ended').to.equal(1)
      expect(crowdedOf(900, 2), 'when one ended').to.equal(0)
      expect(crowdedOf(899, 3)).to.equal(0)
      const problems = problemsOf(limitedTo({ concurrency: 2 }, ...three(899)), {}, 1_000_000).join('\n')
      expect(problems).to.include('1 crowded, at most 0').and.include('3 was claimed at 899, while the queue had 2')
    })

    it('it has at most `max` deliveries in any period of `perMs`', () => {
      const rushedOf = (from: number, max = 2) =>
        limitedTo({ rate: { max, perMs: 300 } }, claimed('1', 500), claimed('2', 700), claimed('3', from)).rushed
      expect(rushedOf(799), 'within the period').to.equal(1)
      expect(rushedOf(800), 'when it has ended').to.equal(0)
      expect(rushedOf(799, 3)).to.equal(0)
      const fullestOf = (...at: number[]) =>
        limitedTo({ rate: { max: 9, perMs: 300 } }, ...at.map((from, id) => claimed(`${id}`, from))).fullest
      expect(fullestOf(500, 700, 799, 800, 1_400)).to.equal(3)
      expect(fullestOf(500, 800)).to.equal(1)
      const ofGroup = (id: string, group: string, from: number): Entry[] => [
        ['try', id, { at: 0, delay: 0, limit: LIMIT, poison: false, group }],
        ...claimed(id, from).slice(1),
      ]
      const both = (group: string) =>
        limitedTo({ groupRate: { max: 1, perMs: 300 } }, ofGroup('1', 'a', 500), ofGroup('2', group, 799)).rushed
      expect(both('a'), 'of one group').to.equal(1)
      expect(both('b'), 'of two groups').to.equal(0)
      const findings = limitedTo({ rate: { max: 1, perMs: 300 } }, claimed('1', 500), claimed('2', 700))
      const problems = problemsOf(findings, {}, 1_000_000).join('\n')
      expect(problems)
        .to.include('1 rushed, at most 0')
        .and.include('2 was claimed at 700, and the queue had had 1 since 500')
    })

    it('all its slots are in use at once after the fault, or have leaked', () => {
      const unusedOf = (concurrency: number | undefined, ...entries: readonly Entry[][]) =>
        limitedTo(concurrency === undefined ? {} : { concurrency }, ...entries).unused
      const both = (from: number) => [claimed('1', from, from + 200), claimed('2', from + 100)]
      expect(unusedOf(2, ...both(HEALED))).to.equal(0)
      expect(unusedOf(3, ...both(HEALED))).to.equal(1)
      expect(unusedOf(2, claimed('1', HEALED), claimed('2', HEALED + 100)), 'one after the other').to.equal(1)
      const since = (overAt: number): number => {
        const entries = historiesOf(both(HEALED - 500).flat())
        const books = { left: new Set<string>(), dead: [] }
        return findingsOf(entries, HEALED, books, { limits: { concurrency: 2 }, overAt }).unused
      }
      expect(since(HEALED), 'during the fault').to.equal(2)
      expect(since(HEALED - 500), 'between the fault and the healing').to.equal(0)
      expect(unusedOf(undefined, ...both(HEALED)), 'without a limit').to.equal(0)
      expect(problemsOf(limitedTo({ concurrency: 3 }, ...both(HEALED)), {}, 1_000_000)[0]).to.equal(
        '1 unused, at most 0 may be',
      )
    })
  })

  describe('of batches, waits and turns', () => {
    const named = (id: string, entries: readonly Entry[]) =>
      entries.map(([kind, , ...rest]) => [kind, id, ...rest] as unknown as Entry)
    const LAST: Entry = ['last', 'l', 'b']
    const counts = { state: 'finished', total: 2, pending: 0, completed: 2, dead: 0, expired: 0, removed: 0 } as const
    const times = { openedAt: 0, closedAt: 20, finishedAt: 1_200 }
    const two = [...done, ...named('2', [...added(), got(1, 900), ...answered(1, 'done', 1_000)])]
    const opened: Entry = ['batch', 'b', 'opened', ['1', '2']]
    const closed: Entry = ['batch', 'b', 'closed']
    const finished: Entry = ['batch', 'b', 'finished', { ...counts, ...times }]
    const last = (from: number): Entry[] => [LAST, ...named('l', [got(1, from), ...answered(1, 'done', from + 10)])]
    const whole = [...two, opened, closed, finished, ...last(1_100)]
    const waited = (how: Waited, result?: unknown): Entry[] => [
      ['waiting', '1'],
      ['waited', '1', how, result],
    ]
    const brokenOf = (entries: readonly Entry[], { dead = [] }: Ends = {}, isExact = true) => {
      const books = { left: new Set<string>(), dead }
      const more = { batches: batchesOf(entries), isExact }
      const findings = findingsOf(historiesOf(entries), HEALED, books, more)
      const kinds = [...BROKEN, ...WRONGS]
      return Object.fromEntries(kinds.flatMap((kind) => (findings[kind] > 0 ? [[kind, findings[kind]]] : [])))
    }
    const ofGroup = (id: string, group: string, from: number, visibleAt = from) =>
      named(id, [
        ...added({ group }),
        ['got', '1', '1 t1', visibleAt, from, from + VISIBILITY],
        ...answered(1, 'done', from + 10),
      ])

    it('nothing is found where all went well', () => {
      expect(brokenOf(whole)).to.deep.equal({})
      expect(brokenOf([...done, ...waited('completed', 'done with 1')])).to.deep.equal({})
      expect(brokenOf([...added(), ...changed('cancel', 0, 50, true), ...waited('gone')])).to.deep.equal({})
      expect(brokenOf([...poisoned, ...failures(POISON_LIMIT), ...waited('dead')], buried)).to.deep.equal({})
      const other = ofGroup('9', 'tenant 9', 600, 500)
      expect(brokenOf([...ofGroup('1', CROWD, 550), ...ofGroup('2', CROWD, 601), ...other])).to.deep.equal({})
    })

    it('each promise is listed with what breaks it, so that none is forgotten', () => {
      const few = { ...counts, ...times, total: 1, completed: 1 }
      const broken: Record<Broken, readonly Entry[]> = {
        unfinished: [...two, opened, closed],
        reopened: [...two, opened, closed, ['batch', 'b', 'reopened'], finished, ...last(1_100)],
        miscounted: [...two, opened, closed, ['batch', 'b', 'finished', few], ...last(1_100)],
        unlike: [...two, opened, closed, finished],
        premature: [...two, opened, closed, finished, ...last(999)],
        hung: [...done, ['waiting', '1']],
        missed: [...done, ...waited('gone')],
        outrun: [...ofGroup('1', CROWD, 550), ...ofGroup('2', CROWD, 599), ...ofGroup('9', 'tenant 9', 600, 500)],
      }
      for (const [kind, entries] of Object.entries(broken)) expect(brokenOf(entries), kind).to.deep.equal({ [kind]: 1 })
      expect(Object.keys(broken)).to.have.members(BROKEN)
    })

    it('a batch ends once: a second last message, a late end and wrong counts are seen', () => {
      const second = [['last', 'm', 'b'] as const, ...named('m', last(1_200).slice(1))]
      expect(brokenOf([...whole, ...second])).to.deep.equal({ unlike: 1 })
      expect(brokenOf([...two, opened, ...last(1_100)]), 'not finished').to.deep.equal({ unlike: 1 })
      const late: Entry = ['batch', 'b', 'late']
      expect(brokenOf([...two, opened, closed, late, finished, ...last(1_100)])).to.deep.equal({ unfinished: 1 })
      const finishedAs = (change: object): Entry => ['batch', 'b', 'finished', { ...counts, ...times, ...change }]
      const more = (change: object) => brokenOf([...two, opened, closed, finishedAs(change), ...last(1_100)])
      for (const change of [{ pending: 1 }, { state: 'closed' }, { total: 3, completed: 3 }, { completed: 1, dead: 1 }])
        expect(more(change), JSON.stringify(change)).to.deep.equal({ miscounted: 1 })
      const lost = [...two, opened, closed, finishedAs({ total: 3, completed: 3 }), ...last(1_100)]
      expect(brokenOf(lost, {}, false), 'a reply was lost').to.deep.equal({})
    })

    it('a wait is for the end of its own message', () => {
      expect(brokenOf([...done, ...waited('completed', 'done with 2')])).to.deep.equal({ missed: 1 })
      expect(brokenOf([...done, ...waited('dead')])).to.deep.equal({ missed: 1 })
      expect(brokenOf([...done, ...waited('late')])).to.deep.equal({ hung: 1 })
      const again: Entry[] = [...waited('late'), ['waited', '1', 'completed', 'done with 1']]
      expect(brokenOf([...done, ...again])).to.deep.equal({ hung: 1 })
      const open = waited('open')
      expect(brokenOf([...done, ...open]), 'never').to.deep.equal({ hung: 1 })
      expect(brokenOf([...done, ...open, ['waited', '1', 'completed', 'done with 1']])).to.deep.equal({})
      const kept = changed('cancel', 0, 50, false)
      expect(brokenOf([...done, ...kept, ...waited('gone')]), 'was not cancelled').to.deep.equal({ missed: 1 })
    })
  })

  it('a message is lost unless it was acknowledged, perhaps at least, or is a dead letter', () => {
    expect(wrongsOf([...added(), got(1, 500)]), 'only delivered').to.deep.equal({ lost: 1 })
    expect(wrongsOf([...added(), got(1, 500), ...answered(1, 'failed', 600)])).to.deep.equal({ lost: 1 })
    expect(wrongsOf([...added(), got(1, 500), ...answered(1, 'done', 1_600, false)])).to.deep.equal({ lost: 1 })
    const killed: Entry[] = [...added(), got(1, 500), ['answering', '1', '1 t1', 'done', 600]]
    expect(wrongsOf(killed), 'killed while it acknowledged').to.deep.equal({})
    expect(wrongsOf(done, { left: ['1'] }), 'still there').to.include({ lost: 1 })
    expect(wrongsOf([['try', '1', { at: 0, delay: 0, limit: LIMIT, poison: false }]]), 'never answered').to.deep.equal(
      {},
    )
    expect(wrongsOf([...added(), ...changed('cancel', 0, 100)]), 'perhaps cancelled').to.deep.equal({})
    expect(wrongsOf([...added(), ...changed('cancel', 0, 100, false)]), 'not cancelled').to.deep.equal({ lost: 1 })
    expect(wrongsOf([...added(), ...changed('move', 0, 100, true)]), 'moved').to.deep.equal({ lost: 1 })
    expect(wrongsOf(poisoned), 'poison that never failed').to.deep.equal({ lost: 1 })
  })

  it('two leases that are both valid overlap; one that was left or has ended does not count', () => {
    const both = (...between: Entry[]) => [
      ...added(),
      got(1, 500),
      ...between,
      got(2, 1_600),
      ...answered(2, 'done', 1_700),
    ]
    expect(wrongsOf(both()), 'its visibility ended').to.deep.equal({})
    expect(wrongsOf(both(...extended(1, 1_601))), 'it was extended').to.deep.equal({ overlapping: 1 })
    expect(wrongsOf(both(...extended(1, 1_601), ...answered(1, 'failed', 1_550))), 'given back').to.deep.equal({})
    const refused = [...extended(1, 1_650), ...answered(1, 'failed', 1_550, false)]
    expect(wrongsOf(both(...refused)), 'what was refused lets go of nothing').to.have.property('overlapping', 1)
    const unanswered: Entry[] = [...extended(1, 1_650), ['answering', '1', '1 t1', 'failed', 1_550]]
    expect(wrongsOf(both(...unanswered)), 'perhaps given back').to.deep.equal({})
    const third = [got(2, 1_000), ...answered(2, 'failed', 1_100), got(3, 1_200), ...answered(3, 'done', 1_300)]
    expect(wrongsOf([...added(), got(1, 500), ...third]), 'with one after the next').to.deep.equal({ overlapping: 1 })
  })

  it('a lease ends when its consumer lets go of it, or its visibility ends', () => {
    const lease: Delivery = { attempt: 1, revision: 0, visibleAt: 0, from: 0, until: 1_000, unanswered: 0, answers: [] }
    expect(endOf(lease)).to.equal(1_000)
    const answer = { said: 'done', sentAt: 400 } as const
    expect(endOf({ ...lease, answers: [answer] }), 'an unknown outcome').to.equal(400)
    expect(
      endOf({
        ...lease,
        answers: [
          { ...answer, done: false },
          { ...answer, sentAt: 500 },
        ],
      }),
    ).to.equal(500)
  })

  it('an answer may count only while the message is its own', () => {
    const after = [got(2, 1_600), ...answered(2, 'done', 1_700)]
    expect(wrongsOf([...added(), got(1, 500), ...answered(1, 'failed', 1_500), ...after])).to.deep.equal({ late: 1 })
    expect(wrongsOf([...added(), got(1, 500), ...answered(1, 'failed', 1_499), ...after])).to.deep.equal({})
    const stolen = [...added(), got(1, 500), ...extended(1, 3_000), got(2, 700), ...answered(1, 'failed', 800)]
    expect(wrongsOf([...stolen, ...answered(2, 'done', 900)])).to.include({ late: 1 })
    const extending: Entry[] = [...added(), got(1, 500), ['extending', '1', '1 t1'], ...answered(1, 'done', 1_700)]
    expect(wrongsOf(extending), 'perhaps extended').to.deep.equal({})
    expect(wrongsOf([...added(), got(1, 500), ...extended(1, 1_800), ...answered(1, 'done', 1_700)])).to.deep.equal({})
    const lost = [...added(), got(1, 500), ...extended(1, null), ...answered(1, 'done', 1_700)]
    expect(wrongsOf(lost), 'its extension was refused').to.deep.equal({ late: 1 })
  })

  it('it is denied when it was its own, unless an answer before may have counted', () => {
    const answers = (...first: Entry[]) => [...added(), got(1, 500), ...first, ...answered(1, 'done', 600, false)]
    const again = [got(2, 1_500), ...answered(2, 'done', 1_600)]
    expect(wrongsOf([...answers(), ...again])).to.deep.equal({ denied: 1 })
    expect(wrongsOf(answers(['answering', '1', '1 t1', 'done', 550]))).to.deep.equal({})
    const slow = [...added(), got(1, 500), ...answered(1, 'done', 1_499, false), ...again]
    expect(wrongsOf(slow), 'its end came on the way').to.deep.equal({})
  })

  it('what was acknowledged is delivered again only if it was added once more', () => {
    const twice = [got(1, 500), ...answered(1, 'done', 600), got(1, 700, 'b')]
    const second: Entry[] = [
      ['answering', '1', '1 t1b', 'done', 800],
      ['answer', '1', '1 t1b', true, 802],
    ]
    expect(wrongsOf([...added({}, 650), ...twice, ...second]), 'its answer came later').to.deep.equal({})
    expect(wrongsOf([...added({}, 600), ...twice, ...second])).to.deep.equal({ again: 1 })
    const third = got(2, 900)
    expect(wrongsOf([...added({}, 650), ...twice, ...second, third]), 'the second time').to.deep.equal({ again: 1 })
    const ends = { dead: [{ id: '1', name: '1', attempts: Array.from({ length: LIMIT }, (_, n) => n + 1) }] }
    expect(wrongsOf(done, ends)).to.deep.equal({ again: 1, spoilt: 1 })
  })

  it('put off, it may not come at the old time; perhaps put off, it may', () => {
    const moved = (done: boolean | undefined, from: number) => [
      ...added({ delay: 500 }),
      ...changed('move', 400, 300, done),
      got(1, from),
      ...answered(1, 'done', from + 10),
    ]
    expect(wrongsOf(moved(true, 699))).to.deep.equal({ early: 1 })
    expect(wrongsOf(moved(true, 700))).to.deep.equal({})
    expect(wrongsOf(moved(false, 500))).to.deep.equal({})
    expect(wrongsOf(moved(undefined, 500))).to.deep.equal({})
    expect(wrongsOf(moved(undefined, 499))).to.deep.equal({ early: 1 })
    const sooner = [
      ...added({ delay: 900 }),
      ...changed('move', 0, 300, true),
      got(1, 302),
      ...answered(1, 'done', 310),
    ]
    expect(wrongsOf(sooner), 'put forward').to.deep.equal({})
  })

  it('what was cancelled is gone, and no consumer had it', () => {
    const cancel = changed('cancel', 0, 700, true)
    expect(wrongsOf([...added(), ...cancel])).to.deep.equal({})
    expect(wrongsOf([...added(), ...cancel], { left: ['1'] })).to.deep.equal({ cancelled: 1 })
    const before = [got(1, 500), ...answered(1, 'failed', 600)]
    expect(wrongsOf([...added(), ...before, ...cancel]), 'between two deliveries').to.deep.equal({})
    expect(wrongsOf([...added(), got(1, 500), ...cancel]), 'from under a consumer').to.deep.equal({ cancelled: 1 })
    const moved = [...changed('move', 0, 700, true), got(2, 1_500), ...answered(2, 'done', 1_600)]
    expect(wrongsOf([...added(), got(1, 500), ...moved])).to.deep.equal({ cancelled: 1 })
    const tooLate = changed('cancel', 0, 700, false)
    expect(wrongsOf([...added(), got(1, 500), ...tooLate, ...answered(1, 'done', 800)])).to.deep.equal({})
  })

  it('refused or never added, and yet there', () => {
    const refused: Entry[] = [...added().slice(0, 1), ['no', '1', 'ERR_READ_ONLY']]
    expect(wrongsOf(refused)).to.deep.equal({})
    expect(check(refused)).to.include({ refused: 1, added: 0 })
    expect(wrongsOf([...refused, got(1, 500), ...answered(1, 'done', 600)])).to.deep.equal({ stray: 1 })
    expect(wrongsOf(refused, { left: ['1'] })).to.deep.equal({ stray: 1 })
    expect(wrongsOf(done, { left: ['7'] }), 'without a line').to.deep.equal({ stray: 1 })
  })

  it('a dead letter has failed once for each attempt', () => {
    for (const attempts of [[], [1, 2], [1, 3], [1, 2, 2], [1, 2, 3, 4]])
      expect(
        wrongsOf([...poisoned, ...failures(3)], { dead: [{ id: '1', name: '1', attempts }] }),
        attempts.join(),
      ).to.deep.equal({
        buried: 1,
      })
  })

  it('attempts beyond the limit are counted, however they are numbered', () => {
    expect(check([...poisoned, ...failures(3)], buried)).to.include({ excess: 0 })
    expect(check([...poisoned, ...failures(4)], buried)).to.include({ excess: 1 })
    const other = (attempt: number, from: number): Entry => got(attempt, from, 'b')
    expect(check([...poisoned, ...failures(3), other(2, 400), other(3, 500)], buried)).to.include({ excess: 2 })
    const back: Entry[] = [other(3, 400), ['answering', '1', '3 t3b', 'released', 450]]
    expect(check([...poisoned, ...failures(3), ...back], buried), 'released').to.include({ excess: 0 })
    const unbegun = [got(2, 80, 'b'), ...failures(3)]
    expect(check([...poisoned, ...unbegun], buried), 'over before its handler began').to.include({ excess: 0 })
    const unheard: Entry[] = [
      got(2, 80, 'b'),
      ['handling', '1', '2 t2b', true, 82],
      ['answering', '1', '2 t2b', 'failed', 84],
    ]
    expect(check([...poisoned, ...unheard, ...failures(3)], buried), 'its answer got lost').to.include({ excess: 0 })
    const refused: Entry[] = [...unheard, ['answer', '1', '2 t2b', false, 1_200]]
    expect(check([...poisoned, ...refused, ...failures(3)], buried), 'it came too late').to.include({ excess: 0 })
    const died = (token: string): Entry[] => [got(1, 0, token), ['handling', '1', `1 t1${token}`, true, 2]]
    const before = added({ poison: true, limit: POISON_LIMIT }, -1)
    expect(check([...before, ...died('a'), ...failures(3)], buried), 'its process died').to.include({ excess: 0 })
    const early = [...died('a'), ...died('b'), ...failures(3)]
    expect(check([...before, ...early], buried), 'begun, and its process died twice').to.include({ excess: 1 })
    const late = added({ poison: true, limit: POISON_LIMIT }, 350)
    const lives = [...failures(3), other(1, 400), other(2, 500), other(3, 600)]
    expect(check([...late, ...lives], buried), 'added once more').to.include({ excess: 0 })
    expect(check([...late, ...lives, got(1, 700, 'c')], buried), 'known by then').to.include({ excess: 1 })
    expect(check([...poisoned, ...lives], buried)).to.include({ excess: 3 })
  })

  it('late is counted from when it was visible, or from the healing', () => {
    const from = (visibleAt: number, at: number): Entry[] => [
      ...added(),
      ['got', '1', '1 t1', visibleAt, at, at + VISIBILITY],
      ...answered(1, 'done', at + 10),
    ]
    expect(check(from(500, HEALED + 300))).to.include({ latestMs: 300, medianMs: 300 })
    expect(check(from(HEALED + 200, HEALED + 300))).to.include({ latestMs: 100 })
    expect(check(from(500, HEALED - 1)), 'before the healing').to.include({ latestMs: 0 })
  })

  it('what was in the hands of the killed, and what came too late, is counted', () => {
    const handling: Entry = ['handling', '1', '1 t1', false, 510]
    expect(check([...added(), got(1, 500), handling])).to.include({ abandoned: 1, tooLate: 0 })
    expect(check([...added(), got(1, 500)]), 'never begun').to.include({ abandoned: 0 })
    const late = [...added(), got(1, 500), handling, ...answered(1, 'done', 1_600, false)]
    expect(check(late)).to.include({ abandoned: 0, tooLate: 1 })
    const unheard = (at: number): Entry[] => [...added(), got(1, 500), handling, ['answering', '1', '1 t1', 'done', at]]
    expect(check(unheard(1_600)), 'sent too late').to.include({ abandoned: 0, tooLate: 1 })
    expect(check(unheard(1_400)), 'sent in time').to.include({ abandoned: 0, tooLate: 0 })
  })

  it('consumers may be read before producers, and each delivery has its own lines', () => {
    const [first, second] = [got(1, 500), got(2, 1_600)]
    const entries = [first, ...answered(1, 'done', 1_550, false), second, ...answered(2, 'done', 1_700), ...added()]
    expect(wrongsOf(entries)).to.deep.equal({})
    expect(() => historiesOf(answered(1, 'done', 600))).to.throw('answering of a delivery of 1 that never came')
  })

  it('the verdict names what is more than may be, and what never happened', () => {
    const good = check([...done, ...asTwo([...poisoned, ...failures(3)])], {
      dead: [{ id: '2', name: '2', attempts: [1, 2, 3] }],
    })
    expect(problemsOf(good, {}, 1_000)).to.deep.equal([])
    expect(problemsOf({ ...good, again: 2, examples: ['again: 1 …'] }, { again: 1 }, 1_000)).to.deep.equal([
      '2 again, at most 1 may be',
      'again: 1 …',
    ])
    expect(problemsOf({ ...good, again: 2 }, { again: 2 }, 1_000)).to.deep.equal([])
    for (const kind of [...WRONGS, 'excess'] as const)
      expect(problemsOf({ ...good, [kind]: 1 }, {}, 1_000)[0]).to.equal(`1 ${kind}, at most 0 may be`)
    expect(problemsOf({ ...good, latestMs: 1_001 }, {}, 1_000)[0]).to.match(/^1001 ms late/)
    expect(problemsOf({ ...good, latestMs: 1_001 }, { laterMs: 1 }, 1_000)).to.deep.equal([])
    expect(problemsOf({ ...good, latestMs: 1_002 }, { laterMs: 1 }, 1_000)[0]).to.match(/^1002 ms late .* 1001 may be/)
    expect(problemsOf({ ...good, acknowledged: 0 }, {}, 1_000)[0]).to.equal('nothing was acknowledged')
    expect(problemsOf({ ...good, dead: 0 }, {}, 1_000)[0]).to.equal('there is no dead letter')
  })

  it('each takeover of one fault may forget as much as one alone', () => {
    expect(allowedIn(0, { again: 2, laterMs: 10 })).to.deep.equal({ again: 2, laterMs: 10 })
    expect(allowedIn(3, { again: 2, disordered: 0 })).to.deep.equal({ again: 6, disordered: 0 })
    expect(allowedIn(3)).to.deep.equal({})
  })

  it('the line for people has each count, and of the wrongs those there are', () => {
    const line = lineOf({ ...check(done), late: 2 })
    expect(line).to.match(/^late 2, added 1, refused 0, .*excess 0; after the healing late by 0 ms \(median\), 0 ms/)
    expect(line).not.to.include('overlapping')
  })
})
