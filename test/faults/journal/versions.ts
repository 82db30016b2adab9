import type { Flow, ReviseAnswer } from './protocol.js'
import type { Loss, Span } from './books.js'

/** Between what happens and what a process says of it: on a machine that is busy, a process waits for its turn. */
export const SLACK_MS = 1_000
/** The longest time until a change is in a working SQL database, on a busy machine. */
export const DRAIN_MS = 15_000

/** One value of a part of a message: of its payload, or of its due time. */
interface Version<V> {
  readonly value: V
  /** By the machine's clock. The first value has no span: it is as old as the message. */
  readonly span: Span
  /** Whether Redis took the change; `null`: unknown. */
  done: boolean | null
  /** Times of the Redis clock before and after the change. */
  atRedis?: Span
}

/** What the versions are judged by. */
export interface Known {
  readonly losses: readonly Loss[]
  readonly restores: readonly Span[]
  /** The changes of the message in SQL. */
  readonly flow: Flow
  /** When each change of any part of the message was asked for. */
  readonly touches: readonly Span[]
}

/** All values that a part of a message has had, in their order: no call begins before the one before it has ended. */
export class Versions<V> {
  readonly #change: 'updated' | 'rescheduled'
  #all: Version<V>[]

  constructor(change: 'updated' | 'rescheduled', first: V) {
    this.#change = change
    this.#all = [{ value: first, span: { from: -Infinity, to: -Infinity }, done: true }]
  }

  /** A change is asked for; the result takes its answer. */
  begin(value: V, now = Date.now): (answer: ReviseAnswer) => void {
    const span = { from: now(), to: Infinity }
    const version: Version<V> = { value, span, done: null }
    this.#all.push(version)
    return (answer) => {
      span.to = now()
      if (!('done' in answer)) return
      version.done = answer.done
      version.atRedis = { from: answer.from, to: answer.to }
    }
  }

  /** Whether the message had this value at any time. */
  has(value: V): boolean {
    return this.#all.some((version) => version.value === value && version.done !== false)
  }

  get isKnown(): boolean {
    return this.#all.every(({ done }) => done !== null)
  }

  get spans(): Span[] {
    return this.#all.slice(1).flatMap(({ span, done }) => (done === false ? [] : [span]))
  }

  /** The values that the message may have now: that of the last change that cannot be forgotten, and the later ones. */
  allowed(known: Known): V[] {
    return this.#since((version) => version.done === true && !this.#mayBeForgotten(version, known))
  }

  /** The values that a delivery at this time may have had, by the machine's clock and by that of Redis. */
  allowedAt(known: Known, { at, polledAt }: { readonly at: number; readonly polledAt: number }): V[] {
    const isBack = ({ back, from, restoredAt }: Loss, { span }: Version<V>): boolean =>
      back > -Infinity && span.to >= back && at >= from - SLACK_MS && at <= restoredAt + SLACK_MS
    return this.#since(
      (version) =>
        version.done === true &&
        (version.atRedis === undefined ? version.span.to === -Infinity : version.atRedis.to < polledAt) &&
        !known.losses.some((loss) => isBack(loss, version)) &&
        !this.#mayBeForgotten(version, known),
      (version) => version.span.from <= at,
    )
  }

  /** SQL and Redis agree on this value: no loss may bring back an earlier one. */
  agree(value: V): void {
    this.#all = [{ value, span: { from: -Infinity, to: -Infinity }, done: true }]
  }

  toString(): string {
    return this.#all.map(({ value, span, done }) => `${String(value)} ${span.from} to ${span.to}: ${done}`).join(', ')
  }

  #since(isSure: (version: Version<V>) => boolean, isThere: (version: Version<V>) => boolean = () => true): V[] {
    const first = this.#all.findLastIndex(isSure)
    return this.#all
      .slice(Math.max(0, first))
      .flatMap((each) => (each.done !== false && isThere(each) ? [each.value] : []))
  }

  /** The windows that docs/journal.md names. */
  #mayBeForgotten(version: Version<V>, { losses, restores, flow, touches }: Known): boolean {
    const { span, atRedis } = version
    if (span.to === -Infinity) return false
    if (restores.some((restore) => meets(span, restore))) return true
    const isInSql =
      atRedis !== undefined &&
      flow.some(({ change, at }) => change === this.#change && at >= atRedis.from - 1 && at <= atRedis.to + 1)
    return losses.some((loss) => {
      const { back, from, restoredAt, isAlone } = loss
      if (span.from > restoredAt + SLACK_MS || (back > -Infinity && span.to < back)) return false
      const away = { from, to: restoredAt }
      if (meets(span, away)) return true
      // Redis keeps the state in which a message was changed before the restore reached it
      const isTouched = back > -Infinity && touches.some((touch) => touch !== span && meets(touch, away))
      const isOld = span.to < from - DRAIN_MS
      // A journal can have read a change, and be stopped before SQL has it. It then writes it after the loss, when a restore may have read the older row.
      const isDrained = isAlone ? isInSql || isOld : isInSql && isOld
      return isTouched || !isDrained
    })
  }
}

function meets(a: Span, b: Span): boolean {
  return a.from <= b.to + SLACK_MS && a.to >= b.from - SLACK_MS
}
