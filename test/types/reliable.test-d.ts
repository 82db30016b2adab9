/** The uses of reliable queues and workers that the types allow and refuse. Nothing here runs: `npm run lint` compiles it. */
import {
  createClient,
  type Added,
  type BatchCounts,
  type ChangeBatch,
  type ChangePage,
  type ChangeStatus,
  type HandlerContext,
  type MessageBatch,
  type ReliableMessage,
  type ReliableQueue,
  type ShardedReliableQueue,
  type Tasks,
  type Worker,
} from '../../src/index.js'
import { is } from './is.js'

interface Mail {
  readonly to: string
}
interface Invoice {
  readonly amount: number
}
const client = createClient()
const mails = client.getReliableQueue<Mail>('mails')
const invoices = client.getReliableQueue<Invoice>('invoices')
const tasks = client.getReliableQueue<Tasks<{ welcome: Mail; bill: Invoice }>>('tasks')
const reports = client.getReliableQueue<Tasks<{ daily: string }>>('reports')

export async function queues(): Promise<void> {
  is<ReliableQueue<Mail>>()(mails)
  is<ReliableMessage<Mail> | null>()(await mails.poll({ timeout: 1_000 }))
  is<ReliableMessage<Mail>[]>()(await mails.pollMany({ count: 10 }))
  is<Added>()(await mails.add({ to: 'ada' }, { delay: 5_000, id: 'a', priority: 3 }))
  is<Added[]>()(await mails.addMany([{ payload: { to: 'ada' } }]))
  is<Added>()(await mails.addTask('welcome', { to: 'ada' }))

  is<Added>()(await mails.add({ to: 'ada' }, { batch: 'import-7' }))
  is<Added[]>()(await mails.addMany([{ payload: { to: 'ada' } }], { batch: 'import-7' }))
  is<MessageBatch<Mail>>()(mails.batch('import-7'))
  is<BatchCounts | null>()(await mails.batch('import-7').counts())
  is<BatchCounts>()(await mails.batch('import-7').close({ last: { payload: { to: 'ada' }, priority: 3 } }))
  is<BatchCounts>()(await mails.batch('import-7').waitUntilFinished({ timeout: '1m' }))
  // @ts-expect-error one batch for all messages of a call
  await mails.addMany([{ payload: { to: 'ada' }, batch: 'import-7' }])
  // @ts-expect-error a payload of another type
  await mails.batch('import-7').close({ last: { payload: { amount: 1 } } })
  await tasks.batch('import-7').close({ last: { task: 'bill', payload: { amount: 1 } } })
  // @ts-expect-error the payload of no task
  await tasks.batch('import-7').close({ last: { task: 'bill', payload: { bill: 1 } } })
  // @ts-expect-error the counts are read
  ;(await mails.batch('import-7').close()).pending = 0

  for await (const batch of mails.changes({ group: 'g', from: 'start' })) {
    is<ChangeBatch>()(batch)
    is<number>()(await mails.acknowledgeChanges('g', batch.position))
    is<ChangePage>()(await mails.readChanges({ after: batch.position, count: 10 }))
    is<boolean>()(await mails.releaseChanges('g', batch.position.id))
  }
  is<ChangeStatus>()(await mails.changeStatus())
  is<() => Promise<void>>()(await mails.allEvents())
  await mails.setConfig({ changes: { keep: 'groups', payloads: true } })
  await mails.setConfig({ changes: false })
  // @ts-expect-error there is no such way to keep them
  await mails.setConfig({ changes: { keep: 'all' } })
  // @ts-expect-error a position, not its id alone
  mails.changes({ from: '1-1' })

  // @ts-expect-error a payload of another type
  await mails.add({ amount: 1 })
  // @ts-expect-error
  await mails.addMany([{ payload: { amount: 1 } }])
  // @ts-expect-error
  await mails.addTask('welcome', { amount: 1 })
  // @ts-expect-error a task has a name
  await mails.addTask(1, { to: 'ada' })
  // @ts-expect-error there is no such option
  await mails.add({ to: 'ada' }, { wait: 5_000 })
  // @ts-expect-error
  await mails.poll({ visibility: 1_000 })
  // @ts-expect-error only `pollMany` takes several
  await mails.poll({ count: 2 })
  // @ts-expect-error
  await mails.upsertSchedule('daily', { amount: 1 }, { every: 1_000 })
}

export async function shards(): Promise<void> {
  const sharded = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
  is<ShardedReliableQueue<Mail>>()(sharded)
  is<ReliableMessage<Mail> | null>()(await sharded.poll({ timeout: 1_000 }))
  is<ReliableMessage<Mail>[]>()(await sharded.pollMany({ count: 10 }))
  is<Added[]>()(await sharded.addMany([{ payload: { to: 'ada' } }]))
  is<ShardedReliableQueue<Mail>>()(sharded.deadLetters)
  is<Worker>()(client.createWorker(sharded, (mail) => is<Mail>()(mail)))
  client.createWorker([sharded, { queue: invoices, weight: 3 }], (payload) => is<Mail | Invoice>()(payload))
  client.createWorker([{ queue: sharded }], { welcome: (mail: Mail) => mail.to })

  // @ts-expect-error how many shards there are has to be said
  client.getShardedReliableQueue('mails', {})
  // @ts-expect-error
  client.getShardedReliableQueue('mails')
  // @ts-expect-error there is no such option
  client.getShardedReliableQueue('mails', { shards: 12, layout: 'compact' })
  // @ts-expect-error a payload of another type
  await sharded.add({ amount: 1 })
  // @ts-expect-error messages of another type
  await sharded.acknowledge(...(await invoices.pollMany({ count: 1 })))
  // @ts-expect-error the handler's payload is not the queue's
  client.createWorker(sharded, (invoice: Invoice) => invoice.amount)
}

/** The members of a reliable queue that a sharded one lacks. */
type LeftOut =
  | 'batch' // a batch is counted in one slot
  | 'move' // the other queue would have to be in the slot of every shard
  | 'readChanges'
  | 'releaseChanges' // pages of one stream, for what stores its position: each of `shards` has them
  | 'listGroups' // a group can be in several shards: each of `shards` lists its own
  | 'context'
  | 'identity'
  | 'addPrepared'
  | 'begin'
  | 'complete'
  | 'resultOf'
  | 'extendSome'
  | 'lastTickOf'
  | 'continueSchedule' // internal
  | 'redriveFree' // internal

/** A method that is added to one kind of queue is added to the other, or named here with its reason. */
export function sameMethods(): void {
  is<LeftOut>()(undefined as unknown as Exclude<keyof ReliableQueue, keyof ShardedReliableQueue>)
  is<'shardCount' | 'shards' | 'shardsOf' | 'names' | 'sizes' | 'queueOf'>()(
    undefined as unknown as Exclude<keyof ShardedReliableQueue, keyof ReliableQueue>,
  )
}

export async function messages(message: ReliableMessage<Mail>): Promise<void> {
  is<Mail>()(message.payload)
  is<string>()(message.id)
  is<number>()(message.attempt)
  // @ts-expect-error what came is read only
  message.payload = { to: 'bob' }
}

export function workers(): void {
  is<Worker>()(client.createWorker(mails, (mail) => is<Mail>()(mail)))
  client.createWorker([mails, { queue: invoices, weight: 3 }], (payload) => is<Mail | Invoice>()(payload))
  client.createWorker(mails, { welcome: (mail: Mail, context: HandlerContext<Mail>) => [mail, context] })
  client.createWorker([mails, invoices], {
    welcome: (mail: Mail) => mail.to,
    bill: (invoice: Invoice) => invoice.amount,
  })

  // @ts-expect-error the handler's payload is not the queue's
  client.createWorker(mails, (invoice: Invoice) => invoice.amount)
  // @ts-expect-error
  client.createWorker(mails, { bill: (invoice: Invoice) => invoice.amount })
  // @ts-expect-error a handler is a function
  client.createWorker(mails, { welcome: 'send' })
  // @ts-expect-error a worker needs handlers
  client.createWorker(mails)
  // @ts-expect-error a queue that cannot acknowledge
  client.createWorker(client.getBlockingQueue<Mail>('mails'), () => {})
  // @ts-expect-error there is no such option
  client.createWorker(mails, () => {}, { parallel: 3 })
  // @ts-expect-error
  client.createWorker(mails, () => {}, { shutdownSignals: ['SIGNAL'] })

  const worker = client.createWorker(mails, () => {})
  worker.on('settled', ({ outcome, ms }) => {
    is<number>()(ms)
    // @ts-expect-error there is no such outcome
    return outcome === 'handled'
  })
}

export async function typedTasks(): Promise<void> {
  is<Added>()(await tasks.addTask('welcome', { to: 'ada' }, { delay: 5_000 }))
  is<Added>()(await tasks.addTask('bill', { amount: 1 }))
  is<Added>()(await reports.addTask('daily', 'sales'))
  await tasks.upsertSchedule('monday', { to: 'all' }, { cron: '0 9 * * 1', task: 'welcome' })

  // @ts-expect-error no task has this name
  await tasks.addTask('welcom', { to: 'ada' })
  // @ts-expect-error the payload of another task
  await tasks.addTask('welcome', { amount: 1 })
  // @ts-expect-error
  await reports.addTask('daily', 7)
  // @ts-expect-error there is no such option
  await tasks.addTask('welcome', { to: 'ada' }, { wait: 5_000 })
  // @ts-expect-error the payload of another task
  await tasks.upsertSchedule('monday', { amount: 1 }, { cron: '0 9 * * 1', task: 'welcome' })
  // @ts-expect-error no task has this name
  await tasks.upsertSchedule('monday', { to: 'all' }, { cron: '0 9 * * 1', task: 'welcom' })
  // @ts-expect-error a schedule names its task
  await tasks.upsertSchedule('monday', { to: 'all' }, { cron: '0 9 * * 1' })
  // @ts-expect-error the payload of no task
  await tasks.add({ from: 'ada' })

  const message = await tasks.poll()
  if (message !== null && 'to' in message.payload) is<string>()(message.payload.to)
  const untyped: ReliableQueue = tasks
  const anyOfThem: Mail | Invoice | undefined = message?.payload
  void [untyped, anyOfThem]
}

export function typedHandlers(): void {
  client.createWorker(tasks, {
    welcome: (mail, { message }) => {
      is<Mail>()(mail)
      is<ReliableMessage<Mail>>()(message)
    },
    bill: (invoice) => is<Invoice>()(invoice),
  })
  client.createWorker([tasks, { queue: reports, weight: 3 }], {
    welcome: (mail) => is<Mail>()(mail),
    bill: (invoice) => is<Invoice>()(invoice),
    daily: (name) => is<string>()(name),
  })
  client.createWorker([tasks, mails], { welcome: (mail: Mail) => mail.to })
  client.createWorker(tasks, (payload) => ('to' in payload ? payload.to : payload.amount))

  // @ts-expect-error messages of `bill` would fail
  client.createWorker(tasks, { welcome: (mail) => mail })
  // @ts-expect-error no task has this name
  client.createWorker(tasks, { welcome: () => {}, bill: () => {}, welcom: () => {} })
  // @ts-expect-error the payload of another task
  client.createWorker(tasks, { welcome: (invoice: Invoice) => invoice, bill: () => {} })
  // @ts-expect-error the messages of `reports` would fail
  client.createWorker([tasks, reports], { welcome: () => {}, bill: () => {} })
}

export async function shardedTasks(): Promise<void> {
  const sharded = client.getShardedReliableQueue<Tasks<{ welcome: Mail; bill: Invoice }>>('tasks', { shards: 4 })
  is<Added>()(await sharded.addTask('bill', { amount: 1 }))
  client.createWorker(sharded, { welcome: (mail) => is<Mail>()(mail), bill: (invoice) => is<Invoice>()(invoice) })
  // @ts-expect-error the payload of another task
  await sharded.addTask('welcome', { amount: 1 })
  // @ts-expect-error messages of `bill` would fail
  client.createWorker(sharded, { welcome: (mail) => mail })
}
