import { JournalError, type JournalErrorCode } from '../errors.js'

interface DriverError {
  readonly code?: unknown
  readonly errno?: unknown
  readonly message?: unknown
}

type Meaning = readonly [code: JournalErrorCode, advice: string]

const access: Meaning = ['ERR_JOURNAL_ACCESS', 'check user, password, database and rights']
const unavailable: Meaning = ['ERR_JOURNAL_UNAVAILABLE', 'the database does not answer; try again']
const full: Meaning = ['ERR_JOURNAL_FULL', 'make room on its disk or raise its quota; nothing was written']
const tooLarge: Meaning = [
  'ERR_JOURNAL_TOO_LARGE',
  'a message is larger than the server takes (MySQL, MariaDB: raise max_allowed_packet); nothing was written',
]
const notADatabase: Meaning = ['ERR_JOURNAL_NOT_A_DATABASE', 'give the path of a SQLite file or of a new one']
const locked: Meaning = [
  'ERR_JOURNAL_LOCKED',
  'another process has it open; stop that process, or use PostgreSQL or MySQL for several',
]

/** The meanings by the driver's code: names of SQLite and MySQL, states of PostgreSQL, errors of sockets. */
const BY_CODE = new Map<string, Meaning>([
  ['SQLITE_NOTADB', notADatabase],
  ['SQLITE_CORRUPT', notADatabase],
  ['SQLITE_BUSY', locked],
  ['SQLITE_LOCKED', locked],
  ['SQLITE_FULL', full],
  ['SQLITE_READONLY', access],
  ['SQLITE_PERM', access],
  ['SQLITE_CANTOPEN', access],
  ['SQLITE_TOOBIG', tooLarge],
  ['28P01', access],
  ['28000', access],
  ['3D000', access],
  ['42501', access],
  ['53100', full],
  ['53300', unavailable],
  ['54000', tooLarge],
  ['ER_ACCESS_DENIED_ERROR', access],
  ['ER_DBACCESS_DENIED_ERROR', access],
  ['ER_TABLEACCESS_DENIED_ERROR', access],
  ['ER_SPECIFIC_ACCESS_DENIED_ERROR', access],
  ['ER_BAD_DB_ERROR', access],
  ['ER_DISK_FULL', full],
  ['ER_RECORD_FILE_FULL', full],
  ['ER_NET_PACKET_TOO_LARGE', tooLarge],
  ['ER_DATA_TOO_LONG', tooLarge],
  ['ER_CON_COUNT_ERROR', unavailable],
  ['ER_SERVER_SHUTDOWN', unavailable],
  ['ER_LOCK_DEADLOCK', unavailable],
  ['ER_LOCK_WAIT_TIMEOUT', unavailable],
  ['ER_CONNECTION_KILLED', unavailable],
  ['PROTOCOL_CONNECTION_LOST', unavailable],
  ['PROTOCOL_SEQUENCE_TIMEOUT', unavailable],
  ['EPIPE', unavailable],
  ['EAI_AGAIN', unavailable],
  ['ENOTFOUND', unavailable],
])

/** The driver's error as the journal's own, with what to do. */
export function asJournalError(thrown: unknown): JournalError {
  if (thrown instanceof JournalError) return thrown
  const { code, errno, message } = (thrown ?? {}) as DriverError
  const name = typeof code === 'string' ? code : ''
  const text = typeof message === 'string' ? message : 'unknown'
  const [kind, advice] = BY_CODE.get(name) ??
    byPattern(name, text, errno) ?? ['ERR_JOURNAL_QUERY', 'nothing was written']
  return new JournalError(kind, `the journal's database failed (${text}): ${advice}`, { cause: thrown })
}

function byPattern(code: string, text: string, errno: unknown): Meaning | undefined {
  // PostgreSQL: connection errors, a shutdown, serialization failures and deadlocks
  if (/^(08...|57P0[1-5]|40001|40P01|55P03|57014)$/.test(code)) return unavailable
  if (/^E(CONN(REFUSED|RESET|ABORTED)|TIMEDOUT|HOSTUNREACH|NETUNREACH)$/.test(code)) return unavailable
  if (/no space left|disk (is )?full|errno: 28\b|quota/i.test(text) || errno === 28) return full
  if (/^SQLITE_IOERR/.test(code)) return unavailable
  if (/unable to open/i.test(text)) return access
  if (/packet bigger than|max_allowed_packet/i.test(text)) return tooLarge
  if (
    /connection (terminated|timeout|is in closed state|ended)|timeout exceeded|query read timeout|server closed|closed state/i.test(
      text,
    )
  )
    return unavailable
  return undefined
}

/** Whether the statement conflicted with another transaction, so that its own can be repeated. */
export function isConflict(thrown: unknown): boolean {
  const { code } = (thrown ?? {}) as DriverError
  return ['SQLITE_CONSTRAINT', '23505', '40001', '40P01', 'ER_DUP_ENTRY', 'ER_LOCK_DEADLOCK'].includes(String(code))
}
