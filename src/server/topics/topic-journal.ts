import type { Journal } from '../journal/journal.js'
import type { JournalQueue } from '../journal/journal-queue.js'

/** What a topic asks of the journal of its queue. */
export type TopicJournal = Pick<
  Awaited<ReturnType<typeof Journal.prototype.attach<Uint8Array>>>,
  'addMany' | 'cancel' | 'get' | 'idsWithBizKey' | 'flow' | 'restore' | 'drain' | 'size' | 'dropAccepted'
>

/** That of a topic's dead letters. */
export type DeadLetterJournal = Pick<JournalQueue<Uint8Array>, 'restore' | 'size' | 'drain'>
