import { expect } from 'chai'
import { HTTP_PLANTS } from '../faults/http/plants.js'
import { PLANTS } from '../faults/journal/plants.js'
import { journalSources } from '../faults/journal/program.js'
import { GROUP_PLANTS, LIMIT_PLANTS, PLANTS as SHARD_PLANTS, reliableSources } from '../faults/reliable/plants.js'
import { BROKEN_VARIANTS, COSTLY_VARIANTS } from '../simulation/broken-variants.js'
import { BROKEN_CLIENTS } from '../simulation/client/broken-variants.js'
import { begin, drop, parse, plant, replace, setValue, sources, type Change } from '../simulation/plant.js'

const CODE = `
const LIMIT = 10 // at most
export class Task {
  wake(): void {
    const soonest = 5
    if (soonest > LIMIT) return
    else this.#timer.lower(soonest)
    this.options.onWake?.({ at: soonest })
  }
  stop() { this.#timer.lower(0); this.#timer.lower(1) }
}
`

describe('Planted faults', function () {
  this.timeout(120_000) // the first one parses all of src
  const planted = (changes: Change[], code = CODE, file = 'task.ts'): string | undefined =>
    plant({ what: 'a fault', changes }, [parse(file, code)]).get(file)
  const failure = (changes: Change[]): string => {
    try {
      planted(changes)
    } catch (error) {
      return (error as Error).message
    }
    return 'none'
  }

  it('drop removes the statement', () => {
    expect(planted([drop('Task.wake', 'this.#timer.lower($due)')])).to.equal(
      CODE.replace('else this.#timer.lower(soonest)', 'else ;'),
    )
  })

  it('replace may use what the names of its pattern stand for', () => {
    const change = replace('Task.wake', 'this.#timer.lower($due)', 'this.#timer.replace($due + 1)')
    expect(planted([change])).to.contain('else this.#timer.replace(soonest + 1)\n')
  })

  it('$$name stands for the remaining arguments', () => {
    const change = replace('Task.wake', '$options.onWake($$event)', 'later($options, $$event)')
    expect(planted([change])).to.contain('    later(this.options, { at: soonest })\n')
  })

  it('a pattern may be a property', () => {
    expect(planted([replace('Task', 'at: $when', 'at: 0')])).to.contain('({ at: 0 })')
  })

  it('begin puts code before the first statement', () => {
    expect(planted([begin('Task.stop', 'return')])).to.contain('stop() {return; this')
  })

  it('setValue changes a constant', () => {
    expect(planted([setValue('LIMIT', 'Infinity')])).to.contain('const LIMIT = Infinity // at most')
  })

  it('several changes of one file', () => {
    const text = planted([
      setValue('LIMIT', '1'),
      begin('Task.wake', 'go()'),
      drop('Task.wake', '$options.onWake($at)'),
    ])
    expect(text).to.contain('LIMIT = 1 ').and.to.contain('{go();').and.not.to.contain('onWake')
  })

  it('formatting, comments, parentheses, names of locals and the file make no difference', () => {
    const other = CODE.replace(/soonest/g, 'first').replace(
      'this.#timer.lower(',
      '(this\n  .#timer) /* armed */ .lower( // now\n',
    )
    expect(other).not.to.equal(CODE)
    expect(planted([drop('Task.wake', 'this.#timer.lower($due)')], other, 'elsewhere/other.ts')).to.contain('else ;\n')
  })

  it('says which fault cannot be planted, where and why', () => {
    expect(failure([drop('Task.sleep', 'x()')])).to.equal(
      'The fault "a fault" cannot be planted: drop `x()` in Task.sleep: there is no Task.sleep',
    )
    expect(failure([drop('Task.wake', 'x()')])).to.match(/in Task\.wake: `x\(\)` is there 0 times instead of once$/)
    expect(failure([drop('Task.stop', 'this.#timer.lower($due)')])).to.match(/is there 2 times instead of once$/)
    expect(failure([drop('Task.wake', '$a > LIMIT')])).to.match(/is not a statement of its own$/)
    expect(failure([setValue('Task', '1')])).to.match(/it is not a constant$/)
    expect(failure([begin('LIMIT', 'return')])).to.match(/it is not a function with a body$/)
    const twice = [parse('a.ts', CODE), parse('b.ts', CODE)]
    expect(() => plant({ what: 'a fault', changes: [setValue('LIMIT', '1')] }, twice)).to.throw('several: a.ts, b.ts')
  })

  const places = [
    ...[...BROKEN_VARIANTS, ...COSTLY_VARIANTS, ...BROKEN_CLIENTS].map((fault) => ({ fault, files: sources })),
    ...PLANTS.map((fault) => ({ fault, files: journalSources })),
    ...HTTP_PLANTS.filter(({ plant: { what } }) => !PLANTS.some((each) => each.what === what)).map(
      ({ plant: fault }) => ({ fault, files: journalSources }),
    ),
    ...[...SHARD_PLANTS, ...GROUP_PLANTS, ...LIMIT_PLANTS].map((fault) => ({ fault, files: reliableSources })),
  ]
  for (const { fault, files } of places) {
    it(`src has the place of: ${fault.what}`, () => {
      for (const [file, text] of plant(fault, files())) {
        const { parseDiagnostics } = parse(file, text) as unknown as { parseDiagnostics: unknown[] }
        expect(parseDiagnostics).to.deep.equal([])
      }
    })
  }
})
