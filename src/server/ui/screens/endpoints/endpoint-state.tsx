import { isNone } from '../../lib/is-none.js'
import type { JSX } from 'preact'
import type { Endpoint } from '../../api/types.js'
import { serverNow } from '../../lib/clock.js'
import { State } from '../../parts/state.js'

const REASONS: Readonly<Record<string, string>> = {
  operator: 'disabled by an operator',
  gone: 'disabled: it answered 410',
  failing: 'disabled: failing for 5 days',
}

/** Whether webhooks flow to an endpoint, and if not, why. */
export function EndpointState({ of: { enabled, disabled, gate } }: { readonly of: Endpoint }): JSX.Element {
  if (!enabled) return <State of="disabled" as={REASONS[disabled?.reason ?? ''] ?? 'disabled'} />
  if (gate?.state === 'open') return <State of="open" as="breaker open" />
  if (gate?.state === 'half-open') return <State of="half-open" as="breaker half open" />
  if (!isNone(gate?.pausedUntil) && gate.pausedUntil > serverNow()) return <State of="paused" as="asked for a pause" />
  return <State of="enabled" />
}
