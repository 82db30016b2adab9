import { createClient, type ChangesConfig } from '../../dist/index.js'
import { OPERATIONS, spentOn, WAYS, type Way } from '../lib/operations.js'
import { atLeast, medianOf, paired, rounds, type Bench, type Figures, type Scenario } from '../lib/scenario.js'
import { countWork } from '../lib/server-work.js'
import { onStage, PAYLOAD_BYTES } from '../lib/stage.js'
import { payloadOf } from '../subjects/subject.js'

const PAYLOAD = payloadOf(0, PAYLOAD_BYTES)
const IN_FLIGHT = 64
const OFF = 'without changes'
const SUBJECTS: Readonly<Record<string, ChangesConfig | false>> = {
  [OFF]: false,
  "'recent'": { keep: 'recent' },
  "'groups'": { keep: 'groups' },
  "'groups' with payloads": { keep: 'groups', payloads: true },
}

/** Adds, polls and acknowledges messages, `batch` with each call. */
async function roundTrip(bench: Bench, changes: ChangesConfig | false, batch: number): Promise<Record<string, number>> {
  return onStage(bench, {}, async (stage) => {
    const count = bench.quick ? 2_000 : batch * 20_000 > 200_000 ? 200_000 : batch * 20_000
    const client = createClient({ url: stage.url })
    const queue = client.getReliableQueue<string>('bench')
    await queue.setConfig({ changes })
    const one = async (): Promise<void> => {
      await queue.addMany(Array.from({ length: batch }, () => ({ payload: PAYLOAD })))
      await queue.acknowledge(...(await queue.pollMany({ count: batch })))
    }
    for (let n = 0; n < 200; n++) await one()
    const worked = await countWork(stage.raw)
    const [startedAt, cpu] = [performance.now(), process.cpuUsage()]
    let left = count / batch
    const caller = async (): Promise<void> => {
      while (left-- > 0) await one()
    }
    await Promise.all(Array.from({ length: batch === 1 ? IN_FLIGHT : 4 }, caller))
    const { user, system } = process.cpuUsage(cpu)
    const seconds = (performance.now() - startedAt) / 1_000
    const { cpuMs } = await worked()
    await client.shutdown()
    return {
      'messages a second': count / seconds,
      'server CPU us': (cpuMs / count) * 1_000,
      'client CPU us': (user + system) / count,
    }
  })
}

function scenario(batch: number, alike: string): Scenario {
  return {
    promise: 'at least once',
    name: `change-stream-${batch === 1 ? 'single' : 'batches'}`,
    description: `A reliable queue that keeps its changes, and one that does not: messages are added, polled and acknowledged, ${alike}.`,
    async run(bench) {
      const subjects = Object.entries(SUBJECTS).map(
        ([name, changes]) => [name, () => roundTrip(bench, changes, batch)] as const,
      )
      const rows = await rounds(bench, Object.fromEntries(subjects))
      const share = (name: string): number =>
        medianOf(rows, name, 'messages a second') / medianOf(rows, OFF, 'messages a second')
      return {
        rows,
        goals: ["'recent'", "'groups'"].map((name) =>
          atLeast(`rate with ${name} to that without`, share(name), 0.85, ''),
        ),
      }
    },
  }
}

const PARTS = { [OFF]: false, "'recent'": { keep: 'recent' }, "'groups'": { keep: 'groups' } } as const
const [RATE, CPU] = ['messages a second', 'server CPU us']

/** Each operation on queues of one server that differ in their changes only, in turns. */
async function parts(bench: Bench, way: Way): Promise<Figures> {
  return onStage(bench, {}, async ({ url }) => {
    const pieces = bench.quick ? 2 : way.pieces
    const spent = await spentOn({ connect: createClient, url, way: { ...way, pieces }, queues: PARTS })
    const count = way.piece * pieces
    return Object.fromEntries(
      Object.entries(spent).flatMap(([name, of]) =>
        OPERATIONS.flatMap((operation) => [
          [`${operation}, ${name}: ${RATE}`, count / of[operation].seconds],
          [`${operation}, ${name}: ${CPU}`, (of[operation].cpuSeconds / count) * 1e6],
        ]),
      ),
    )
  })
}

function partsScenario(name: string, way: Way, calls: string): Scenario {
  return {
    promise: 'at least once',
    name: `change-stream-parts-${name}`,
    description: `Messages are added, polled and acknowledged, each alone, in queues of one server, in turns: ${calls}.`,
    async run(bench) {
      const [measured] = await rounds(bench, { all: () => parts(bench, way) })
      const valuesOf = (subject: string, figure: string): readonly number[] =>
        measured?.figures[`${subject}: ${figure}`] ?? []
      const rows = OPERATIONS.flatMap((operation) =>
        Object.keys(PARTS).map((changes) => {
          const subject = `${operation}, ${changes}`
          return { subject, figures: { [RATE]: valuesOf(subject, RATE), [CPU]: valuesOf(subject, CPU) } }
        }),
      )
      const goals = OPERATIONS.flatMap((operation) =>
        ["'recent'", "'groups'"].map((changes) => {
          const shares = paired(
            rows,
            [`${operation}, ${changes}`, RATE],
            [`${operation}, ${OFF}`, RATE],
            (a, b) => a / b,
          )
          return atLeast(`${operation}: rate with ${changes} to that without`, shares, 0.85, '')
        }),
      )
      return { rows, goals }
    },
  }
}

export const changeStream: readonly Scenario[] = [
  scenario(1, 'one with each call, 64 callers'),
  scenario(100, '100 with each call, 4 callers'),
  partsScenario('clients', WAYS.clients, 'one with each call, each from one of 16 clients'),
  partsScenario('callers', WAYS.callers, 'one with each call, 64 callers of one client'),
  partsScenario('batches', WAYS.batches, '100 with each call, 4 callers of one client'),
]
