/** What the types of reliable queues and workers allow and what they refuse. Nothing here runs: `npm run lint` compiles it. */
import {
  createClient,
  type Added,
  type HandlerContext,
  type ReliableMessage,
  type ReliableQueue,
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

export async function queues(): Promise<void> {
  is<ReliableQueue<Mail>>()(mails)
  is<ReliableMessage<Mail> | null>()(await mails.poll({ timeout: 1_000 }))
  is<ReliableMessage<Mail>[]>()(await mails.pollMany({ count: 10 }))
  is<Added>()(await mails.add({ to: 'ada' }, { delay: 5_000, id: 'a', priority: 3 }))
  is<Added[]>()(await mails.addMany([{ payload: { to: 'ada' } }]))
  is<Added>()(await mails.addTask('welcome', { to: 'ada' }))

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
