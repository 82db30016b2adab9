// A service process of the journal's fault bench: it has a journal with the queue attached, and does what the bench says.
import { RedelayedError, codecs, createClient, type RedelayedClient, type ReliableQueue } from '../../../src/index.js'
import { openJournal } from '../../../src/server/journal/journal.js'
import type { Journal } from '../../../src/server/journal/journal.js'
import type { JournalQueue } from '../../../src/server/journal/journal-queue.js'
import type { AddAnswer, Answers, Flow, Item, Job, Lying, Order, Payload, Point, ReviseAnswer } from './protocol.js'
import { digestOf, machineNow, say, serve } from './serve.js'

const RETRY_MS = 200
/** Many times the limit of a command, so that no message comes twice on a busy machine. */
const ADOPT_AFTER_MS = 15_000
/** The most differences to collect. */
const MOST_DIFFERENCES = 10

let client: RedelayedClient | undefined
let queue: ReliableQueue<Payload> | undefined
let journal: Journal | undefined
let handle: JournalQueue<Payload> | undefined
let armed: Point | undefined
let pageMs = 0

/** Never resolves at the point that is armed: the process is gone. */
function pass(point: Point): Promise<void> | undefined {
  if (armed !== point) return undefined
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => undefined)
}

async function start({ name, client: options, queue: queueName, url }: Job): Promise<undefined> {
  client = createClient({
    ...options,
    codec: codecs.json(),
    ioredis: { ...options.ioredis, connectionName: name },
  })
  client.on('error', (error) => say({ said: 'error', code: codeOf(error) }))
  queue = client.getReliableQueue<Payload>(queueName)
  journal = await opened(url)
  journal.on('error', (error) => say({ said: 'error', code: codeOf(error) }))
  for (const said of ['forgotten', 'restored', 'adopted'] as const) {
    journal.on(said, (from: string) => say({ said, queue: from }))
  }
  handle = await journal.attach(queue)
  return undefined
}

/** SQL may be down when the process starts. */
async function opened(url: string): Promise<Journal> {
  for (;;) {
    try {
      return await openJournal(
        { url, sweepMs: 500, adoptAfterMs: ADOPT_AFTER_MS },
        {
          afterCommit: () => pass('afterCommit'),
          afterAdd: () => pass('afterAdd'),
          afterPage: () => pass('afterPage') ?? pause(pageMs),
        },
      )
    } catch (error) {
      say({ said: 'error', code: codeOf(error) })
      await pause(RETRY_MS)
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function add(items: readonly Item[]): Promise<AddAnswer[]> {
  try {
    const results = await must(handle).addMany(items)
    return results.map((result) => (result instanceof RedelayedError ? { error: codeOf(result) } : result))
  } catch (error) {
    return items.map(() => ({ error: codeOf(error) }))
  }
}

async function cancel(id: string): Promise<Answers['cancel']> {
  try {
    return { done: await must(handle).cancel(id) }
  } catch (error) {
    return { error: codeOf(error) }
  }
}

/** What the queue itself changes, which the journal learns from the change stream. */
async function revise(action: (queue: ReliableQueue<Payload>) => Promise<boolean>): Promise<ReviseAnswer> {
  try {
    const from = await must(queue).now()
    const done = await action(must(queue))
    return { done, from, to: await must(queue).now() }
  } catch (error) {
    return { error: codeOf(error) }
  }
}

async function redrive(count: number): Promise<Answers['redrive']> {
  try {
    return { moved: await must(queue).redrive(count) }
  } catch (error) {
    return { error: codeOf(error) }
  }
}

async function verify(): Promise<string[]> {
  const found: string[] = []
  for (const each of [must(handle), await deadLetters()]) {
    for await (const { queue: name, id, what, sql, redis } of each.verify()) {
      found.push(`${name} ${id}: ${what} (SQL ${sql}, Redis ${redis})`)
      if (found.length >= MOST_DIFFERENCES) return found
    }
  }
  return found
}

/** What the attaching of the queue attached, too. */
function deadLetters(): Promise<JournalQueue<Payload>> {
  return must(journal).attach(must(queue).deadLetters)
}

async function flow(ids: readonly string[]): Promise<Flow[]> {
  const flows: Flow[] = []
  for (const id of ids) flows.push((await must(handle).flow(id)).map(({ change, at }) => ({ change, at })))
  return flows
}

/** All that is known of a message that has not come. */
async function explain(id: string): Promise<string> {
  const found = [await explainIn(must(queue), must(handle), id)]
  found.push(await explainIn(must(queue).deadLetters, await deadLetters(), id))
  return `at ${await must(queue).now()}: ${found.join('; dead letters: ')}`
}

async function explainIn(
  where: Pick<ReliableQueue<Payload>, 'getAllRaw'>,
  known: JournalQueue<Payload>,
  id: string,
): Promise<string> {
  const row = await known.get(id)
  const [message] = await where.getAllRaw([id])
  const flow = await known.flow(id)
  const sql = row === null ? 'nothing' : `${row.state}, due ${row.dueAt}, updated ${row.updatedAt}`
  const redis = message === null || message === undefined ? 'nothing' : `due ${message.dueAt}`
  return `SQL ${sql}; Redis ${redis}; flow ${flow.map(({ change, at }) => `${change} ${at}`).join(', ')}`
}

async function lying(ids: readonly string[], dead: boolean): Promise<(Lying | null)[]> {
  const from = dead ? must(queue).deadLetters : must(queue)
  const all = await from.getAllRaw(ids)
  return all.map((message) => {
    if (message === null) return null
    const { id, dueAt, attempts, priority, headers, payload } = message
    return { id, dueAt, attempts, priority, headers, digest: digestOf(must(queue).codec.decode(Buffer.from(payload))) }
  })
}

async function stop(): Promise<undefined> {
  await journal?.close()
  await client?.shutdown()
  return undefined
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('it was not started')
  return value
}

function codeOf(error: unknown): string {
  return error instanceof RedelayedError ? error.code : String(error)
}

serve(async (order: Order) => {
  switch (order.kind) {
    case 'start':
      return start(order.job)
    case 'add':
      return add(order.items)
    case 'cancel':
      return cancel(order.id)
    case 'reschedule':
      return revise((known) => known.reschedule(order.id, new Date(order.dueAt)))
    case 'update':
      return revise((known) => known.updatePayload(order.id, order.payload))
    case 'redrive':
      return redrive(order.count)
    case 'arm':
      armed = order.point
      return undefined
    case 'slow':
      pageMs = order.pageMs
      return undefined
    case 'restore':
      return must(handle).restore()
    case 'verify':
      return verify()
    case 'flow':
      return flow(order.ids)
    case 'lying':
      return lying(order.ids, order.dead)
    case 'explain':
      return explain(order.id)
    case 'date':
      Date.now = () => machineNow() + order.shiftMs
      return undefined
    case 'stop':
      return stop()
  }
})
