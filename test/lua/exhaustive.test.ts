import { expect } from 'chai'
import * as generated from '../../src/store/scripts/generated.js'
import { isLongForm } from '../support/long-form.js'
import { Game, type Move } from './model/game.js'
import { objectMoves, prologue, scheduleMoves } from './model/moves.js'
import { agree, keysOf, loadScripts, play, type Scene } from './model/play.js'
import { useRedis, type Fixture } from './support.js'
import { exportsOf } from '../support/exports.js'

/**
 * Every sequence of up to so many moves of two clients, on a real Redis: it does what the model does, and after each one
 * every message is in one place, none was delivered early, both keys agree, clients got true replies, and whoever
 * keeps the last announcement would wake up for the head. Shorter sequences stand for the states in between.
 */
describe('all short sequences of two clients', () => {
  const rig = useRedis()
  before(() => loadScripts(rig.redis))

  const END = 'end of a sequence'
  const BATCH = 500

  const alphabets: [what: string, prologue: readonly Move[], moves: readonly Move[], length: number][] = [
    ['on a schedule', [], scheduleMoves, isLongForm ? 4 : 3],
    ['on lists and whole objects', prologue, objectMoves, 3],
  ]

  function* games(start: () => Game, before: readonly Move[], moves: readonly Move[], length: number): Generator<Game> {
    for (const move of moves) {
      const sequence = [...before, move]
      const game = start()
      if (!sequence.every((each) => game.play(each))) continue
      yield game
      if (length > 1) yield* games(start, sequence, moves, length - 1)
    }
  }

  async function playAll(batch: readonly Game[], queues: readonly Fixture[]): Promise<void> {
    const keys = queues.map((queue) => queue.keys)
    const scenes = batch.map(({ turns }): Scene => {
      const ends = keys.map(({ channel }) => ['PUBLISH', [channel, END]] as const)
      return { steps: turns.map(({ step }) => step), queues: keys, epilogue: [['UNLINK', keysOf(keys)], ...ends] }
    })
    const outcomes = await play(rig.redis, scenes)
    const heard = await Promise.all(queues.map(async (queue) => split(await queue.published())))
    for (const [at, game] of batch.entries()) {
      const outcome = outcomes[at]!
      const published = heard.map((ofEach) => ofEach[at]!)
      expect(game.problems(outcome, published), game.moves.join(', ')).to.deep.equal([])
      agree(game.moves.join(', '), { ...outcome, published }, game.expected())
    }
  }

  function split(messages: readonly string[]): string[][] {
    const parts: string[][] = [[]]
    for (const message of messages) {
      if (message === END) parts.push([])
      else parts.at(-1)!.push(message)
    }
    return parts
  }

  for (const layout of ['redisson', 'compact'] as const) {
    for (const [what, prologue, moves, length] of alphabets) {
      it(`keep every promise ${what}, layout '${layout}': ${moves.length} moves, up to ${length} of them`, async () => {
        const queues = [await rig.queue(), await rig.queue()] as const
        const start = () => new Game(layout, queues[0].keys, queues[1].keys)
        let [batch, played]: [Game[], number] = [[], 0]
        for (const game of games(start, prologue, moves, length)) {
          played++
          if (batch.push(game) < BATCH) continue
          await playAll(batch, queues)
          batch = []
        }
        await playAll(batch, queues)
        // moves that made no sense anywhere would leave little to look at
        expect(played).to.be.above(isLongForm ? 4_000 : 200)
      }).timeout(60_000)
    }
  }

  it('take every script in', async () => {
    const [queue, other] = [await rig.queue(), await rig.queue()]
    const called = alphabets.flatMap(([, , moves]) =>
      moves.flatMap((move) => {
        const game = new Game('redisson', queue.keys, other.keys)
        for (const each of [...prologue, move]) game.play(each)
        return game.turns.map(({ step }) => step.name)
      }),
    )
    expect([...new Set(called)].sort()).to.deep.equal(
      Object.values(exportsOf(generated))
        .filter(({ name }) => !name.startsWith('reliable-') && !name.startsWith('wheel-')) // they have a model of their own
        .map(({ name }) => name)
        .sort(),
    )
  })
})
