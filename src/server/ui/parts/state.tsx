import type { JSX } from 'preact'
import { visibleLine } from '../lib/visible-text.js'

const KINDS: Readonly<Record<string, 'good' | 'warn' | 'bad' | 'info' | 'quiet'>> = {
  visible: 'info',
  delayed: 'quiet',
  inFlight: 'info',
  accepted: 'quiet',
  dead: 'bad',
  refused: 'bad',
  handled: 'good',
  removed: 'quiet',
  expired: 'warn',
  moved: 'quiet',
  running: 'info',
  done: 'good',
  failed: 'bad',
  gone: 'bad',
  interrupted: 'warn',
  delivered: 'good',
  enabled: 'good',
  disabled: 'bad',
  paused: 'warn',
  error: 'bad',
  critical: 'bad',
  warning: 'warn',
  warn: 'warn',
  info: 'info',
  ok: 'good',
  open: 'bad',
  'half-open': 'warn',
}

const WORDS: Readonly<Record<string, string>> = { inFlight: 'in flight', visible: 'due' }

/** A state as a word with a coloured dot, as colour alone is not accessible. */
export function State({ of, as }: { readonly of: string; readonly as?: string }): JSX.Element {
  const text = as ?? WORDS[of] ?? of
  return <span class={`state ${KINDS[of] ?? 'quiet'}`}>{visibleLine(text, 40)}</span>
}
