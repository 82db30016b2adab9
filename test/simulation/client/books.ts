/** The messages sent and their outcomes, as the server, the network and the callers saw them, not as the client reports. */

export interface Message {
  readonly payload: string
  readonly delay: number
  /** The server's clock when the call began. */
  readonly begun: number
  /** The true time when the call ended. */
  settledAt?: number
  /** The end of the call; unknown if the call has not ended, or its process is gone. */
  outcome: 'accepted' | 'unknown' | 'refused'
  /** True times when it came to where it is taken from: pushed to the list, or given its record. */
  readonly arrived: number[]
  /** True times when its record was removed. */
  readonly removed: number[]
  /** How often a waiter got it, or a handler was called. */
  handled: number
  /** How many handlers have it now. */
  active: number
  succeeded: boolean
  /** It reached a process that lived, as the reply to its take. */
  handed: number
}

/** A call of the public interface that has not ended. */
interface Call {
  readonly what: string
  readonly since: number
  readonly within: number
}

export class Books {
  readonly messages = new Map<string, Message>()
  readonly calls = new Set<Call>()
  violation: string | undefined

  /** The first one counts: what follows may be its consequence. */
  violate(what: string): void {
    this.violation ??= what
  }

  add(payload: string, delay: number, begun: number): Message {
    const message: Message = {
      payload,
      delay,
      begun,
      outcome: 'unknown',
      arrived: [],
      removed: [],
      handled: 0,
      active: 0,
      succeeded: false,
      handed: 0,
    }
    this.messages.set(payload, message)
    return message
  }

  get(payload: string): Message | undefined {
    const found = this.messages.get(payload)
    if (found === undefined) this.violate(`${JSON.stringify(payload)} came and was never sent`)
    return found
  }

  begin(what: string, since: number, within: number): Call {
    const call = { what, since, within }
    this.calls.add(call)
    return call
  }

  end(call: Call, now: number): void {
    if (this.calls.delete(call) && now - call.since > call.within) {
      this.violate(`${call.what} took ${Math.round(now - call.since)} ms, more than ${call.within}`)
    }
  }

  overdue(now: number): void {
    for (const { what, since, within } of this.calls) {
      if (now - since > within) this.violate(`${what} has not ended after ${Math.round(now - since)} ms`)
    }
  }
}
