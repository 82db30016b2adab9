import { randomUUID } from 'node:crypto'
import type { Form } from '../records/record-in.js'
import { StreamLog, type LogCommands, type LogPage } from '../delivery/stream-log.js'

/** An administrative request. */
export interface AuditEntry {
  /** Epoch milliseconds, by the clock of the instance. */
  readonly at: number
  /** The id of the key; `service` for actions of the service itself. */
  readonly key: string
  readonly method: string
  /** With its query. */
  readonly path: string
  /** 5xx: the request may have taken effect. */
  readonly status: number
  readonly requestId: string
}

const KEY = 'redelayed:service:audit'
const FORM: Form<AuditEntry> = {
  ...{ at: 'number', key: 'text', method: 'text', path: 'text', status: 'number', requestId: 'text' },
}
const BOUNDS = { count: 10_000 }
const PATH_CHARS = 500

/** The entry for an endpoint that the service disables itself, because it is gone or has failed for days. */
export function disabling(endpoint: string, reason: 'gone' | 'failing'): AuditEntry {
  const path = `/v1/endpoints/${endpoint}?disabled=${reason}`
  return { at: Date.now(), key: 'service', method: 'PATCH', path, status: 200, requestId: randomUUID() }
}

/** The last administrative requests of all instances. Entries are removed only when there are too many. */
export class AuditLog {
  readonly #log: StreamLog<AuditEntry>

  constructor(redis: LogCommands) {
    this.#log = new StreamLog(redis, FORM, BOUNDS)
  }

  add(entry: AuditEntry): Promise<void> {
    return this.#log.add(KEY, { ...entry, path: entry.path.slice(0, PATH_CHARS) })
  }

  /** The newest first, before a place in the log. */
  list(count: number, before?: string): Promise<LogPage<AuditEntry>> {
    return this.#log.list(KEY, count, before)
  }
}
