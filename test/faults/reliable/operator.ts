import { isDeepStrictEqual } from 'node:util'
import type { StoredRawMessage } from '../../../src/index.js'
import { ONCE_MS, type Payload } from './job.js'
import type { BenchQueue } from './queue.js'

interface Left {
  /** What is due long after. */
  readonly left: readonly string[]
  readonly dead: readonly string[]
  readonly farMs: number
}

/** So many of the remaining messages are added again. */
const AGAIN = 12

type Steps = Readonly<Record<string, () => Promise<boolean>>>

/** Finds each remaining message by its id, changes and removes it; does the same with dead letters, and redrives them together. */
export async function operate(queue: BenchQueue, { left, dead, farMs }: Left): Promise<void> {
  const problems: string[] = []
  const check = (what: string, steps: Steps): Promise<void> => carryOut(problems, what, steps)
  await check(`${left.length} messages`, together(queue, left, false))
  for (const id of left.slice(0, AGAIN)) await check(id, addedAgain(queue, id, farMs))
  for (const id of left) {
    await check(id, {
      contains: async () => queue.contains(id),
      get: async () => (await queue.get(id))?.id === id,
      reschedule: async () => queue.reschedule(id, farMs),
      updatePayload: async () => queue.updatePayload(id, { poison: false, long: true }),
      'get after updatePayload': async () => (await queue.get(id))?.payload.long === true,
      cancel: async () => queue.cancel(id),
      'contains after cancel': async () => !(await queue.contains(id)),
    })
  }
  for (let n = 0; n < AGAIN; n++) await check(`message ${n} of the operator`, deduplicated(queue, n, farMs))
  const letters = queue.deadLetters
  for (const id of dead) {
    await check(id, {
      'contains among the dead letters': async () => letters.contains(id),
      'get among the dead letters': async () => (await letters.get(id))?.id === id,
    })
  }
  const moved = dead.length === 0 ? 0 : await queue.redrive(dead.length)
  if (moved !== dead.length) problems.push(`redrive moved ${moved} of ${dead.length} dead letters`)
  if (problems.length > 0) throw new Error(`by their ids went wrong: ${problems.join(', ')}`)
}

async function carryOut(problems: string[], what: string, steps: Steps): Promise<void> {
  for (const [step, isRight] of Object.entries(steps)) if (!(await isRight())) problems.push(`${step} of ${what}`)
}

/** Redrives dead letters by their ids, each in the shard that has it; half of them were removed and restored. */
export async function redrive(queue: BenchQueue, ids: readonly string[]): Promise<void> {
  const problems: string[] = []
  const some = ids.slice(ids.length >> 1)
  await carryOut(problems, `${some.length} dead letters`, together(queue.deadLetters, some, true))
  if (problems.length > 0) throw new Error(`by their ids went wrong: ${problems.join(', ')}`)
  const queues = 'shards' in queue ? queue.shards : [queue]
  const moved = await Promise.all(queues.map((each) => each.deadLetters.move({ to: each.name, ids })))
  const sum = moved.reduce((all, some) => all + some, 0)
  if (sum !== ids.length) throw new Error(`by their ids were redriven ${sum} of ${ids.length} dead letters`)
}

/** Reads messages in the order of their ids, with ids between them that no message has; removes them all, and restores them as they were. */
function together(queue: BenchQueue, ids: readonly string[], deadLetters: boolean): Steps {
  const asked = ids.flatMap((id) => [id, `${id} never`])
  let raw: StoredRawMessage[] = []
  const readRaw = async (): Promise<StoredRawMessage[]> =>
    (await queue.getAllRaw(ids)).flatMap((message) => message ?? [])
  const restore = async (wanted: string): Promise<boolean> => {
    const outcomes = await queue.restoreMany(raw, { deadLetters })
    return outcomes.length === ids.length && outcomes.every((outcome) => outcome === wanted)
  }
  return {
    async getAll() {
      const infos = await queue.getAll(asked)
      return asked.every((id, at) => (at % 2 === 0 ? infos[at]?.id === id : infos[at] === null))
    },
    async getAllRaw() {
      const [infos, found] = [await queue.getAll(ids), await queue.getAllRaw(asked)]
      raw = found.flatMap((message) => message ?? [])
      return asked.every((id, at) => {
        const [message, info] = [found[at], infos[at >> 1]]
        if (at % 2 === 1) return message === null
        if (message?.id !== id || message.dueAt !== info?.visibleAt || message.priority !== info.priority) return false
        return isDeepStrictEqual(JSON.parse(Buffer.from(message.payload).toString()), info.payload)
      })
    },
    containsMany: async () => (await queue.containsMany(asked)) === ids.length,
    'restoreMany of what is there': () => restore('present'),
    remove: async () => (await queue.remove(...asked)) === ids.length,
    'containsMany after remove': async () => (await queue.containsMany(asked)) === 0,
    restoreMany: () => restore('restored'),
    'getAllRaw after restoreMany': async () => isDeepStrictEqual(await readRaw(), raw),
    'restoreMany once more': () => restore('present'),
    'containsMany after restoreMany': async () => (await queue.containsMany(asked)) === ids.length,
  }
}

/** Adds a message that is there. */
function addedAgain(queue: BenchQueue, id: string, farMs: number): Steps {
  const add = async (existing: 'keep' | 'postpone' | 'replace'): Promise<string> =>
    (await queue.add({ poison: false, long: false, revision: 1 }, { id, delay: 2 * farMs, existing })).outcome
  const get = () => queue.get(id)
  let before: Awaited<ReturnType<typeof get>> = null
  return {
    async 'add with existing: keep'() {
      before = await get()
      return (await add('keep')) === 'kept' && isDeepStrictEqual(await get(), before)
    },
    async 'add with existing: postpone'() {
      if ((await add('postpone')) !== 'postponed') return false
      const now = await get()
      return isDeepStrictEqual(now?.payload, before?.payload) && (now?.visibleAt ?? 0) > (before?.visibleAt ?? Infinity)
    },
    'add with existing: replace': async () =>
      (await add('replace')) === 'replaced' && (await get())?.payload.revision === 1,
    'containsMany of one id that was replaced': async () => (await queue.containsMany([id])) === 1,
  }
}

/** Adds a message once, whatever became of it. */
function deduplicated(queue: BenchQueue, n: number, farMs: number): Steps {
  const id = `operator ${n}`
  const payload: Payload = { poison: false, long: false, revision: n + 2 }
  let drawn = ''
  const add = async (by: 'id' | 'payload'): Promise<string> => {
    const options = { delay: farMs, deduplicate: { by, forMs: ONCE_MS }, ...(by === 'id' && { id }) }
    const added = await queue.add(payload, options)
    if (added.outcome === 'added') drawn = added.id
    return added.outcome
  }
  return {
    'first add with deduplicate by id': async () => (await add('id')) === 'added',
    'second add with deduplicate by id': async () => (await add('id')) === 'kept',
    'cancel of what was deduplicated by id': () => queue.cancel(id),
    'add after the cancel with deduplicate by id': async () => (await add('id')) === 'duplicate',
    'contains after the duplicate': async () => !(await queue.contains(id)),
    'first add with deduplicate by payload': async () => (await add('payload')) === 'added',
    'second add with deduplicate by payload': async () => (await add('payload')) === 'duplicate',
    'cancel of what was deduplicated by payload': () => queue.cancel(drawn),
    'add after the cancel with deduplicate by payload': async () => (await add('payload')) === 'duplicate',
  }
}
