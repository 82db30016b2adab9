import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { checkOrdered } from '../../src/store/scripts.js'
import { expected, old, ordered, raw, rejection, useRedis, type State } from './support.js'

const [a, b, c] = [ordered('a', 'A'), ordered('b', 'B'), old('c', 'C')]
const idOf = (entry: Buffer): Buffer => entry.subarray(0, entry === c ? 8 : 9)

describe('check-ordered.lua', () => {
  for (const [server, args] of [
    ['with LPOS', undefined],
    ['as before Redis 6.0.6, without LPOS', ['--rename-command', 'LPOS', '']],
  ] as const) {
    describe(server, () => {
      const rig = useRedis(args && [...args])
      const timeouts: State['timeouts'] = [
        [a, 5],
        [b, 5],
        [c, 6],
      ]
      const cases: [what: string, order: Buffer[], asked: [Buffer, due: string], missing: boolean][] = [
        ['one that is in the list', [b, a], [a, '5'], false],
        ['one that is missing', [a], [b, '5'], true],
        ['one that is missing in no list', [], [a, '5'], true],
        ['one of the old format', [a, b], [c, '6'], true],
        ['one of another due time', [], [a, '6'], false],
        ['one that is not pending', [], [ordered('z', 'Z'), '5'], false],
      ]
      for (const [what, order, [entry, due], missing] of cases) {
        it(`${what}: ${missing ? 'missing, and pushed' : 'not missing, never pushed'}`, async () => {
          const queue = await rig.queue({ timeouts, order })
          const ask = (restore: boolean) =>
            run(rig.sender, checkOrdered, queue.keys, { due, prefix: idOf(entry), restore })
          expect(await ask(false)).to.equal(missing)
          expect(await queue.read()).to.deep.equal(expected({ timeouts, order }))
          expect(await ask(true)).to.equal(missing)
          expect(await queue.read()).to.deep.equal(expected({ timeouts, order: missing ? [...order, entry] : order }))
          expect(await ask(true)).to.equal(false)
          expect(await queue.published()).to.deep.equal([])
        })
      }

      for (const [behind, missing] of [
        [0, false],
        [1_999, false],
        [2_000, true],
      ] as const) {
        it(`looks for one with ${behind} behind it, and many before it: ${missing ? 'too far' : 'found'}`, async () => {
          const others = (count: number): Buffer[] => Array.from({ length: count }, (_, i) => raw(`other ${i}`))
          const queue = await rig.queue({ timeouts, order: [...others(3_000), a, ...others(behind)] })
          const ask = (entry: Buffer) =>
            run(rig.sender, checkOrdered, queue.keys, { due: '5', prefix: idOf(entry), restore: false })
          expect([await ask(a), await ask(b)]).to.deep.equal([missing, true])
        })
      }

      it('rejects when the order list has another type', async () => {
        const queue = await rig.queue({ timeouts })
        await rig.redis.set(queue.keys.order, 'in the way')
        const asked = run(rig.sender, checkOrdered, queue.keys, { due: '5', prefix: idOf(a), restore: true })
        expect(await rejection(asked)).to.include({ code: 'ERR_WRONG_TYPE' })
      })
    })
  }
})
