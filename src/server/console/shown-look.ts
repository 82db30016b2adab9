/** A payload as a reader may see it. */
export interface ShownPayload {
  /** The payload as JSON, cut if it is long. */
  readonly text: string | null
  readonly isCut: boolean
  /** For a payload that the codec cannot decode: its first 256 bytes, its size, and why. */
  readonly hex: string | null
  readonly size: number | null
  readonly problem: string | null
}

export interface ShownMessage {
  readonly id: string | null
  readonly shard: string | null
  readonly state: string
  /** When the message becomes, became, or becomes again visible. */
  readonly at: number
  readonly ticket: string | null
  readonly priority: number | null
  readonly attempts: number | null
  readonly failure: string | null
  readonly payload: ShownPayload | null
}

export interface ShownLook {
  readonly name: string
  readonly at: number | null
  readonly delayed: {
    readonly pending: number
    readonly ready: number
    readonly scheduled: ShownMessage[]
    readonly delivered: (ShownPayload | null)[]
    readonly quarantined: {
      readonly reason: string
      readonly at: number
      readonly hex: string | null
      readonly size: number
    }[]
  } | null
  readonly reliable: {
    readonly visible: number
    readonly delayed: number
    readonly inFlight: number
    readonly dead: number
    readonly paused: string[]
    readonly messages: ShownMessage[]
    readonly deadLetters: ShownMessage[]
  } | null
}

/** A payload that the command line could not decode. */
interface Undecodable {
  readonly hex: string
  readonly size: number
  readonly problem: string
}

interface PrintedMessage {
  readonly queue: string
  readonly id: string
  readonly state: string
  readonly visibleAt: number
  readonly priority: number
  readonly attempts: number
  readonly payload: unknown
  readonly undecodable?: Undecodable
  readonly failures: readonly { readonly attempt: number; readonly reason: string }[]
}

/** The output of `redelayed peek --json`. */
interface Printed {
  readonly queue: string
  readonly now: number | null
  readonly pending: number
  readonly scheduled: readonly {
    readonly value: unknown
    readonly due: number
    readonly ticket: string | null
    readonly shard?: string
  }[]
  readonly delivered: number
  readonly ready: readonly unknown[]
  readonly undecodable: readonly (Undecodable & { readonly list: string; readonly index: number })[]
  readonly quarantined: readonly {
    readonly reason: string
    readonly at: string
    readonly hex: string
    readonly size: number
  }[]
  readonly reliable: {
    readonly now: number
    readonly visible: number
    readonly delayed: number
    readonly inFlight: number
    readonly dead: number
    readonly addPaused: boolean
    readonly pollPaused: boolean
    readonly messages: readonly PrintedMessage[]
    readonly deadLetters: readonly PrintedMessage[]
  } | null
}

const MOST_TEXT = 4_096
const MOST_REASON = 500

/** Extracts bounded texts from a document that `peek` printed, without keeping the document in memory. */
export function shownLook(printed: unknown): ShownLook {
  const { queue: name, now, reliable, ...delayed } = printed as Printed
  return {
    name,
    at: now ?? reliable?.now ?? null,
    delayed: now === null ? null : shownDelayed(delayed),
    reliable: reliable && {
      ...{ visible: reliable.visible, delayed: reliable.delayed, inFlight: reliable.inFlight, dead: reliable.dead },
      paused: [...(reliable.addPaused ? ['add'] : []), ...(reliable.pollPaused ? ['poll'] : [])],
      messages: reliable.messages.map((one) => shownMessage(one, name)),
      deadLetters: reliable.deadLetters.map((one) => ({ ...shownMessage(one, name), state: 'dead' })),
    },
  }
}

/** The same for a reader who may not see payloads. */
export function withoutPayloads({ delayed, reliable, ...look }: ShownLook): ShownLook {
  const blind = (message: ShownMessage): ShownMessage => ({ ...message, payload: null })
  return {
    ...look,
    delayed: delayed && {
      ...delayed,
      scheduled: delayed.scheduled.map(blind),
      delivered: delayed.delivered.map(() => null),
      quarantined: delayed.quarantined.map((entry) => ({ ...entry, hex: null })),
    },
    reliable: reliable && {
      ...reliable,
      messages: reliable.messages.map(blind),
      deadLetters: reliable.deadLetters.map(blind),
    },
  }
}

function shownDelayed({
  pending,
  delivered,
  scheduled,
  ready,
  undecodable,
  quarantined,
}: Omit<Printed, 'queue' | 'now' | 'reliable'>): ShownLook['delayed'] {
  const payload = (list: string, index: number, value: unknown): ShownPayload =>
    shownPayload(
      value,
      undecodable.find((one) => one.list === list && one.index === index),
    )
  return {
    pending,
    ready: delivered,
    scheduled: scheduled.map(({ value, due, ticket, shard = null }, index) => ({
      ...{ id: null, shard, state: 'delayed', at: due, ticket, priority: null, attempts: null, failure: null },
      payload: payload('scheduled', index, value),
    })),
    delivered: ready.map((value, index) => payload('ready', index, value)),
    quarantined: quarantined.map(({ reason, at, hex, size }) => ({
      ...{ reason: start(reason, MOST_REASON), at: Date.parse(at), hex, size },
    })),
  }
}

function shownMessage(message: PrintedMessage, name: string): ShownMessage {
  const { queue, id, state, visibleAt: at, priority, attempts, payload, undecodable, failures } = message
  return {
    ...{ id, shard: queue === name ? null : queue, state, at, ticket: null, priority },
    // a dead letter counts its attempts anew; its failures have the earlier ones
    attempts: Math.max(attempts, failures.at(-1)?.attempt ?? 0),
    failure: start(failures.at(-1)?.reason ?? null, MOST_REASON),
    payload: shownPayload(payload, undecodable),
  }
}

function shownPayload(value: unknown, undecodable: Undecodable | undefined): ShownPayload {
  if (undecodable !== undefined) {
    const { hex, size, problem } = undecodable
    return { text: null, isCut: false, hex, size, problem: start(problem, MOST_REASON) }
  }
  const text = JSON.stringify(value)
  const isCut = text.length > MOST_TEXT
  return { text: start(text, MOST_TEXT), isCut, hex: null, size: null, problem: null }
}

/** Copies the beginning of a text: a slice would keep the whole text in memory. */
function start<T extends string | null>(text: T, most: number): T {
  if (text === null || text.length <= most) return text
  return Buffer.from(text.slice(0, most), 'utf16le').toString('utf16le') as T
}
