import { begin, replace, type Fault } from '../../simulation/plant.js'
import type { Wrong } from './books.js'
import type { Kind } from './sql.js'

/** A fault that a change could bring into the journal, and the check that must show it. */
export interface Plant extends Fault {
  readonly on: Kind
  /** Runs also in the short form, because it is found soon and each time. */
  readonly isShort?: true
  /** Names of faults begin with these; they are done in turn until one shows it. */
  readonly shownBy: readonly string[]
  /** The bench must find one of these: other findings could have another cause. */
  readonly foundAs: readonly Exclude<Wrong, 'other'>[]
}

const WITHOUT_DATA = 'Redis is killed and comes back without data'
const SNAPSHOT = 'Redis is killed and comes back with an old snapshot'
const SLOW_RESTORE = 'consumers go on between the pages'
const WITH_ALL = 'Redis is killed and comes back with everything'
const SQL_KILLED = 'SQL is killed'
const SQL_FULL = "SQL's disk"
const SQL_AND_MEMBER = 'SQL and a member are killed, and Redis loses'

export const PLANTS: readonly Plant[] = [
  {
    what: 'the message goes to Redis before the row is committed',
    isShort: true,
    on: 'sqlite',
    shownBy: [SQL_FULL],
    foundAs: ['refused'],
    changes: [
      replace(
        'Accepter.#accept',
        'this.#commits.submit(pending)',
        'addAll(attached, pending).then(() => this.#commits.submit(pending))',
      ),
    ],
  },
  {
    what: 'the producer is answered before the row is committed',
    on: 'postgres',
    shownBy: [SQL_AND_MEMBER],
    foundAs: ['lost'],
    changes: [
      replace(
        'Accepter.#accept',
        'await this.#commits.submit(pending)',
        'void this.#commits.submit(pending).catch(() => undefined)',
      ),
    ],
  },
  {
    what: 'changes are written without their order',
    isShort: true,
    on: 'sqlite',
    shownBy: [WITH_ALL, WITHOUT_DATA],
    foundAs: ['verify'],
    changes: [
      begin('isNewer', 'return false'),
      replace(
        'Drain.#run',
        'this.#write(attached, position, $end, batches)',
        'this.#write(attached, position, $end, [...batches].reverse())',
      ),
    ],
  },
  {
    what: 'an older change overwrites a newer one',
    isShort: true,
    on: 'sqlite',
    shownBy: [SNAPSHOT],
    foundAs: ['cancelled'],
    changes: [begin('Reread.news', 'return page')],
  },
  {
    what: 'the epoch and the last entry of the stream are not checked',
    isShort: true,
    on: 'sqlite',
    shownBy: [SNAPSHOT],
    foundAs: ['lost', 'verify'],
    changes: [
      replace(
        'Drain.#run',
        'attached.queue.readChanges(position, PAGE)',
        'attached.queue.readChanges({ ...position, epoch: null }, PAGE)',
      ),
    ],
  },
  {
    what: 'a restore does not read the changes of the meantime first',
    isShort: true,
    on: 'sqlite',
    shownBy: [SLOW_RESTORE],
    foundAs: ['twice'],
    changes: [replace('Repair.#look', '(await drained.run()).hasForgotten', 'false')],
  },
  {
    what: 'the stream is trimmed before SQL has its entries',
    isShort: true,
    on: 'sqlite',
    shownBy: [SQL_FULL, SQL_KILLED],
    foundAs: ['twice'],
    changes: [
      replace(
        'Drain.#run',
        'this.#write(attached, position, $end, batches)',
        '(batches.length > 0 ? attached.queue.releaseChanges(JOURNAL_GROUP, id!) : Promise.resolve()).then(() => this.#write(attached, position, $end, batches))',
      ),
    ],
  },
  {
    what: 'the position is committed before the rows',
    on: 'postgres',
    shownBy: [SQL_FULL, SQL_KILLED],
    foundAs: ['verify', 'twice'],
    changes: [
      replace(
        'Drain.#write',
        'this.#positions.advance(sql, attached.key, position, end)',
        'this.#database.run((apart) => this.#positions.advance(apart as never, attached.key, position, end))',
      ),
    ],
  },
  {
    what: 'what SQL knows as final stays in Redis',
    isShort: true,
    on: 'sqlite',
    shownBy: [SNAPSHOT],
    foundAs: ['cancelled'],
    changes: [begin('Repair.#remove', 'return true')],
  },
  {
    what: 'what SQL knows as open is not put back',
    isShort: true,
    on: 'sqlite',
    shownBy: [WITHOUT_DATA],
    foundAs: ['lost', 'verify'],
    changes: [begin('Repair.#restore', 'return true')],
  },
  {
    what: 'what was accepted and never came to Redis is not added',
    on: 'sqlite',
    shownBy: [WITH_ALL],
    foundAs: ['lost'],
    changes: [begin('adopt', 'return 0')],
  },
  {
    what: 'a cancelled message stays open in SQL until its change is read',
    on: 'sqlite',
    shownBy: [WITHOUT_DATA],
    foundAs: ['cancelled'],
    changes: [begin('JournalQueue.cancel', 'return this.#attached.queue.cancel(id)')],
  },
  {
    what: 'what is put back is due at once',
    isShort: true,
    on: 'sqlite',
    shownBy: [WITHOUT_DATA],
    foundAs: ['early'],
    changes: [replace('messageOf', 'dueAt: row.due_at', 'dueAt: 1')],
  },
  {
    what: 'what is put back has no attempts behind it',
    on: 'sqlite',
    shownBy: [WITHOUT_DATA],
    foundAs: ['changed'],
    changes: [replace('messageOf', 'attempts: row.attempts', 'attempts: 0')],
  },
  {
    what: 'a new due time does not come into SQL',
    isShort: true,
    on: 'sqlite',
    shownBy: [WITHOUT_DATA],
    foundAs: ['changed', 'verify', 'lost'],
    changes: [begin('applyChange', "if (change.change === 'rescheduled') return draft")],
  },
  {
    what: 'an older due time in Redis stays when it is restored',
    on: 'sqlite',
    shownBy: [SNAPSHOT],
    foundAs: ['changed', 'verify', 'lost'],
    changes: [replace('Repair.#restore', 'isSame(message, row)', 'isSame({ ...message, dueAt: row.due_at }, row)')],
  },
  {
    what: 'an older payload in Redis stays when it is restored',
    isShort: true,
    on: 'sqlite',
    shownBy: [SNAPSHOT],
    foundAs: ['changed', 'verify'],
    changes: [replace('Repair.#restore', 'isSame(message, row)', 'isSame({ ...message, payload: row.payload }, row)')],
  },
  {
    what: 'an update of the payload does not come into SQL',
    on: 'sqlite',
    shownBy: [WITHOUT_DATA],
    foundAs: ['changed', 'verify'],
    changes: [begin('applyChange', "if (change.change === 'updated') return draft")],
  },
  {
    what: 'a message under the id of a handled one counts as handled',
    on: 'sqlite',
    shownBy: [WITHOUT_DATA],
    foundAs: ['lost', 'verify'],
    changes: [
      replace('writersOf', '!STAMP.includes(name)', "!STAMP.includes(name) && name !== 'state'"),
      begin(
        'applyChange',
        "if (change.change === 'added' && draft !== undefined && FINAL_STATES.includes(draft.row.state)) return draft",
      ),
    ],
  },
  {
    what: 'the next life of a queue counts as the one before',
    on: 'sqlite',
    shownBy: [WITHOUT_DATA, SNAPSHOT],
    foundAs: ['lost'],
    changes: [begin('Positions.begin', 'return true')],
  },
]
