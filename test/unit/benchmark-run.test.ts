import { expect } from 'chai'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { environment, markdown, tableOfGoals, type Run } from '../../benchmarks/lib/report.js'
import { OtherCode, OutOfTime, RunState } from '../../benchmarks/lib/run-state.js'
import {
  atLeast,
  atMost,
  inNoRound,
  paired,
  rounds,
  type Bench,
  type Row,
  type Scenario,
} from '../../benchmarks/lib/scenario.js'

const HEAD = {
  stem: 'one',
  env: environment({ commit: 'abc', code: '123' }, 'npm run bench', 2, {}),
  options: { quick: false, only: undefined, runs: 2 },
}

const FIRST = { boot: 'one', machine: 'linux, 2 x A', since: '2026-01-01' }
const SECOND = { boot: 'two', machine: 'linux, 2 x B', since: '2026-01-02' }

describe('a run of the benchmarks', () => {
  let dir: string
  let file: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-bench-run-'))
    file = join(dir, 'run.jsonl')
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  const notMeasured = (): Promise<never> => Promise.reject(new Error('it was measured again'))

  it('continues where it stopped, with the earlier measurements', async () => {
    const first = RunState.begin(file, HEAD, Infinity)
    await first.measured('s', 'a', 1, () => {
      first.curve('a', [[1, 2]])
      return Promise.resolve({ ms: 3, late: Infinity })
    })
    const second = RunState.resume(file, HEAD.env, Infinity)
    const again = await second?.measured('s', 'a', 1, notMeasured)
    expect(again?.figures).to.deep.equal({ ms: 3, late: Infinity })
    expect(again?.curves).to.deep.equal({ a: [[1, 2]] })
    expect(second?.head.env.commit).to.equal('abc')
  })

  it('begins no measurement when its time is over, and returns the earlier ones', async () => {
    await RunState.begin(file, HEAD, Infinity).measured('s', 'a', 1, () => Promise.resolve({ ms: 3 }))
    const state = RunState.resume(file, HEAD.env, -1)
    expect((await state?.measured('s', 'a', 1, notMeasured))?.figures).to.deep.equal({ ms: 3 })
    const refused = await state?.measured('s', 'a', 2, notMeasured).catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(OutOfTime)
  })

  it('keeps a failure, and tries it again in the next call', async () => {
    const first = await RunState.begin(file, HEAD, Infinity).measured('s', 'a', 1, () =>
      Promise.reject(new Error('gone')),
    )
    expect(first.error).to.include('gone')
    const state = RunState.resume(file, HEAD.env, Infinity)
    await state?.measured('s', 'a', 1, () => Promise.resolve({ ms: 3 }))
    expect(state?.of('s').map(({ error, figures }) => error ?? figures)).to.deep.equal(['Error: gone', { ms: 3 }])
  })

  it('keeps a failure of a scenario that has ended', async () => {
    const first = RunState.begin(file, HEAD, Infinity)
    await first.measured('s', 'a', 1, () => Promise.reject(new Error('gone')))
    first.end('s')
    const state = RunState.resume(file, HEAD.env, Infinity)
    expect((await state?.measured('s', 'a', 1, notMeasured))?.error).to.include('gone')
  })

  it('measures an unfinished scenario again on another machine, and only that one', async () => {
    const first = RunState.begin(file, HEAD, Infinity, FIRST)
    await first.measured('whole', 'a', 1, () => Promise.resolve({ ms: 1 }))
    first.end('whole')
    await first.measured('part', 'a', 1, () => Promise.resolve({ ms: 2 }))
    expect(RunState.resume(file, HEAD.env, Infinity, FIRST)?.of('part'), 'on the same machine').to.have.length(1)
    const second = RunState.resume(file, HEAD.env, Infinity, SECOND)
    expect(second?.places).to.deep.equal([FIRST, SECOND])
    expect(second?.of('part')).to.deep.equal([])
    await second?.measured('whole', 'a', 1, notMeasured)
    await second?.measured('part', 'a', 1, () => Promise.resolve({ ms: 3 }))
    const third = RunState.resume(file, HEAD.env, Infinity, SECOND)
    expect(third?.measurements.map(({ place, figures }) => [place, figures])).to.deep.equal([
      [1, { ms: 1 }],
      [2, { ms: 3 }],
    ])
    expect(third?.places).to.have.length(2)
  })

  it('does not go on with other code or versions, and changes nothing of its file', async () => {
    expect(RunState.resume(file, HEAD.env, Infinity)).to.equal(undefined)
    const first = RunState.begin(file, HEAD, Infinity, FIRST)
    await first.measured('part', 'a', 1, () => Promise.resolve({ ms: 2 }))
    const before = readFileSync(file, 'utf8')
    for (const other of [
      { ...HEAD.env, code: '124' },
      { ...HEAD.env, versions: { ...HEAD.env.versions, redis: '9' } },
    ]) {
      expect(() => RunState.resume(file, other, Infinity, SECOND)).to.throw(OtherCode, 'one run is of one code')
      expect(readFileSync(file, 'utf8')).to.equal(before)
    }
    expect(RunState.resume(file, { ...HEAD.env, commit: 'another' }, Infinity, FIRST)?.of('part')).to.have.length(1)
  })

  it('reads a file whose last line was not written whole', async () => {
    await RunState.begin(file, HEAD, Infinity).measured('s', 'a', 1, () => Promise.resolve({ ms: 3 }))
    appendFileSync(file, '{"scenario":"s","subj')
    const state = RunState.resume(file, HEAD.env, Infinity)
    expect(state?.measurements).to.have.length(1)
    await state?.measured('s', 'b', 1, () => Promise.resolve({ ms: 4 }))
    expect(RunState.resume(file, HEAD.env, Infinity)?.measurements.map(({ subject }) => subject)).to.deep.equal([
      'a',
      'b',
    ])
  })

  it('keeps an unfinished run besides the next one', () => {
    RunState.begin(file, HEAD, Infinity)
    RunState.begin(file, { ...HEAD, stem: 'two' }, Infinity)
    expect(RunState.resume(file, HEAD.env, Infinity)?.head.stem).to.equal('two')
    expect(readFileSync(`${file}.${HEAD.env.date.replaceAll(':', '-')}`, 'utf8')).to.include('"one"')
  })
})

describe('figures of the benchmarks', () => {
  const rows: Row[] = [
    { subject: 'ours', promise: 'at least once', figures: { rate: [10, NaN, 30], lost: [0, 0, 0] } },
    { subject: 'theirs', promise: 'at least once', figures: { rate: [5, 6, 10], lost: [0, NaN, 0] } },
  ]

  it('compare within each round, and leave out a round without one of both', () => {
    const quotients = paired(rows, ['ours', 'rate'], ['theirs', 'rate'], (a, b) => a / b)
    expect(quotients).to.deep.equal([2, 3])
  })

  it('have the round of a failed measurement empty', async () => {
    const bench = {
      runs: 2,
      progress: () => undefined,
      measured: (_subject: string, round: number) => Promise.resolve(round === 1 ? undefined : { rate: 7 }),
    } as unknown as Bench
    const [row] = await rounds(bench, { ours: () => Promise.resolve({}) })
    expect(row?.figures).to.deep.equal({ rate: [NaN, 7] })
  })

  it('report a missing figure of a round', () => {
    expect(inNoRound(rows, 'ours', 'lost').reached).to.equal(true)
    expect(inNoRound(rows, 'theirs', 'lost').reached).to.equal(false)
  })

  it('show each figure as a multiple of its goal', () => {
    expect(atLeast('rate', [2, 4, 3], 1.5, '')).to.deep.include({ measured: 3, times: 2, reached: true })
    expect(atMost('late', 4, 2, 'ms')).to.deep.include({ times: 0.5, reached: false })
    expect(atMost('above', -1, 0, 'ms')).to.deep.include({ reached: true, times: NaN })
    expect(atLeast('rate', NaN, 1, '')).to.deep.include({ reached: false })
  })

  const scenario: Scenario = {
    name: 'burst',
    description: 'A burst.',
    run: () => Promise.reject(new Error('not run here')),
  }
  const runOf = (given: readonly Row[], missing: readonly string[]): Run => {
    const result = { rows: given, goals: [atLeast('times as fast', [2, 3], 4, '')] }
    return {
      env: HEAD.env,
      stem: 'one',
      places: [FIRST],
      finished: [{ scenario, result, measurements: [] }],
      missing,
      pictures: new Map(),
    }
  }

  it('are in a table beside the promise, and at the end with the goals', () => {
    const page = markdown(runOf(rows, []))
    expect(page).to.include('| ours | at least once | 20 (10 to 30) |')
    expect(page).to.include('0 of 1 reached')
    expect(page).to.include('| burst | times as fast | 2.5 (2 to 3) | >= 4 | 0.63 | **no** |')
    expect(page).not.to.include('not complete')
    expect(tableOfGoals(runOf(rows, []).finished).at(-1)).to.include('**no**')
  })

  it('are not shown without a promise', () => {
    expect(() => markdown(runOf([{ subject: 'ours', figures: { rate: [1] } }], []))).to.throw('what does ours promise?')
  })

  it('show on which machine a scenario was measured, where there were several', () => {
    const run = runOf(rows, [])
    const measurement = { scenario: 'burst', subject: 'ours', round: 1, at: '', seconds: 1, load: 0, stealPercent: 0 }
    const finished = run.finished.map((one) => ({ ...one, measurements: [{ ...measurement, place: 2 }] }))
    expect(markdown({ ...run, finished })).not.to.include('Machine')
    const page = markdown({ ...run, finished, places: [FIRST, SECOND] })
    expect(page).to.include('2. linux, 2 x B, since 2026-01-02').and.to.include('Machine 2, 1 round')
  })

  it('show that a run did not end', () => {
    expect(markdown(runOf(rows, ['memory', 'idle']))).to.include('not complete: it ended before memory, idle')
  })
})
