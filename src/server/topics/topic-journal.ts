import type { Journal } from '../journal/journal.js'

/** What a topic asks of the journal of its queue. */
export type TopicJournal = Pick<
  Awaited<ReturnType<typeof Journal.prototype.attach<Uint8Array>>>,
  'addMany' | 'cancel' | 'get' | 'flow'
>
