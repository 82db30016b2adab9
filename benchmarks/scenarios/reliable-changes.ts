import BeeQueue from 'bee-queue'
import { Queue } from 'bullmq'
import { createClient } from '../../dist/index.js'
import { atMost, medianOf, rounds, type Bench, type Goal, type Row, type Scenario } from '../lib/scenario.js'
import { countWork } from '../lib/server-work.js'
import { onStage, PAYLOAD_BYTES } from '../lib/stage.js'
import { farAway, payloadOf, timed, timedBulk } from '../subjects/subject.js'

/** A queue whose pending messages can be changed; `M` is what it needs to find one. */
interface Changeable<M> {
  /** Adds so many that are due in one to two hours. */
  add(count: number): Promise<M[]>
  readonly cancel: (message: M) => Promise<unknown>
  readonly reschedule?: (message: M) => Promise<unknown>
  close(): Promise<unknown>
}

const PAYLOAD = payloadOf(0, PAYLOAD_BYTES)
const BULK = 500
const IN_FLIGHT = 64
const TURNS = 20
const PER_TURN = 500

function reliable(url: string): Changeable<string> {
  const client = createClient({ url })
  const queue = client.getReliableQueue<string>('bench')
  const done = (isDone: boolean): void => {
    if (!isDone) throw new Error('a message that should be there is not')
  }
  return {
    async add(count) {
      const added = await queue.addMany(Array.from({ length: count }, () => ({ payload: PAYLOAD, delay: farAway() })))
      return added.map(({ id }) => id)
    },
    cancel: async (id) => done(await queue.cancel(id)),
    reschedule: async (id) => done(await queue.reschedule(id, farAway())),
    close: () => client.shutdown(),
  }
}

function bull(url: string): Changeable<Awaited<ReturnType<Queue['addBulk']>>[number]> {
  const { hostname: host, port } = new URL(url)
  const queue = new Queue('bench', { connection: { host, port: Number(port), maxRetriesPerRequest: null } })
  const job = () => ({ name: 'job', data: PAYLOAD, opts: { delay: farAway(), removeOnComplete: true } })
  return {
    add: (count) => queue.addBulk(Array.from({ length: count }, job)),
    cancel: (added) => added.remove(),
    reschedule: (added) => added.changeDelay(farAway()),
    close: () => queue.close(),
  }
}

function bee(url: string): Changeable<string> {
  const queue = new BeeQueue<{ text: string }>('bench', {
    redis: url,
    isWorker: false,
    getEvents: false,
    sendEvents: false,
  })
  return {
    async add(count) {
      const jobs = Array.from({ length: count }, () =>
        queue.createJob({ text: PAYLOAD }).delayUntil(Date.now() + farAway()),
      )
      await queue.saveAll(jobs)
      return jobs.map(({ id }) => id)
    },
    cancel: (id) => queue.removeJob(id),
    close: () => queue.close(1_000),
  }
}

/** Takes so many out, at random. */
function draw<M>(from: M[], count: number): M[] {
  const drawn: M[] = []
  while (drawn.length < count) {
    const at = Math.floor(Math.random() * from.length)
    const [last] = from.splice(-1)
    if (last === undefined) throw new Error('there are not so many')
    const one = at === from.length ? last : (from[at] ?? last)
    if (at < from.length) from[at] = last
    drawn.push(one)
  }
  return drawn
}

/** In portions between which as many are added, so that there are always about so many pending; adding is not measured. */
async function measure<M>(
  bench: Bench,
  open: (url: string) => Changeable<M>,
  pending: number,
): Promise<Record<string, number>> {
  return onStage(bench, {}, async (stage) => {
    const side = open(stage.url)
    const there: M[] = []
    const add = (count: number): Promise<unknown> =>
      timedBulk(count, { size: BULK, inFlight: 2 }, async (from, to) => there.push(...(await side.add(to - from))))
    const spent: Record<string, number> = {}
    const change = async (what: string, messages: readonly M[], action: (message: M) => Promise<unknown>) => {
      const worked = await countWork(stage.raw)
      const seconds = await timed(messages.length, IN_FLIGHT, (turn) => action(messages[turn] as M))
      const work = await worked()
      const note = (figure: string, us: number): number =>
        (spent[figure] = (spent[figure] ?? 0) + us / TURNS / PER_TURN)
      note(`${what}: server us`, work.scriptShare * work.seconds * 1e6)
      note(`${what}: client us`, seconds * 1e6)
    }
    try {
      await add(pending)
      for (let turn = 0; turn < TURNS; turn++) {
        await add(PER_TURN)
        if (side.reschedule !== undefined) {
          const moved = draw(there, PER_TURN)
          await change('reschedule', moved, side.reschedule)
          there.push(...moved)
        }
        await change('cancel', draw(there, PER_TURN), side.cancel)
      }
      return spent
    } finally {
      await side.close()
    }
  })
}

function atMostTwice(rows: readonly Row[], [few, many]: readonly [few: string, many: string]): Goal[] {
  return ['cancel: server us', 'reschedule: server us', 'cancel: client us', 'reschedule: client us'].map((figure) =>
    atMost(`${figure}, times that of 1,000`, medianOf(rows, many, figure) / medianOf(rows, few, figure), 2, ''),
  )
}

export const reliableChanges: Scenario = {
  name: 'reliable-changes',
  promise: 'at least once',
  description:
    'What it costs to cancel and to reschedule one message by its id, with 1,000 and with 1,000,000 pending, 64 changes under way: time of the scripts at the server, and what passes at the client. BullMQ by `job.remove` and `job.changeDelay`, bee-queue by `removeJob`; it cannot reschedule.',
  maxRuns: 3,
  async run(bench) {
    const many = bench.quick ? 100_000 : 1_000_000
    const name = (pending: number): string => `redelayed, reliable queue, ${pending.toLocaleString('en-US')} pending`
    const rows = await rounds(bench, {
      [name(1_000)]: () => measure(bench, reliable, 1_000),
      [name(many)]: () => measure(bench, reliable, many),
      'BullMQ, 1,000 pending': () => measure(bench, bull, 1_000),
      'bee-queue, 1,000 pending': () => measure(bench, bee, 1_000),
    })
    return { rows, goals: atMostTwice(rows, [name(1_000), name(many)]) }
  },
}
