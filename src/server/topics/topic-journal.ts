import type { Journal } from '../journal/journal.js'
import type { JournalQueue } from '../journal/journal-queue.js'

/** The methods of a journalled queue that a topic uses. */
export type TopicJournal = Pick<
  Awaited<ReturnType<typeof Journal.prototype.attach<Uint8Array>>>,
  'addMany' | 'cancel' | 'get' | 'idsWithBizKey' | 'flow' | 'restore' | 'drain' | 'size' | 'dropAccepted'
>

/** The same for a topic's dead letters. */
export type DeadLetterJournal = Pick<JournalQueue<Uint8Array>, 'restore' | 'size' | 'drain'>
