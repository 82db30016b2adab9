import { createStore } from '../lib/store.js'
import { Problem, request } from './request.js'
import type { Scope, Session } from './types.js'

/** `undefined`: not known yet; `null`: no session. */
export const session = createStore<Session | null | undefined>(undefined)

export async function findSession(): Promise<void> {
  try {
    session.set(await request<Session>('GET', '/ui/session'))
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error
    session.set(null)
  }
}

export async function signIn(key: string): Promise<void> {
  session.set(await request<Session>('POST', '/ui/session', { body: { key } }))
}

export async function signOut(): Promise<void> {
  await request('DELETE', '/ui/session')
  session.set(null)
}

/** Whether an error says that the session has ended; then the page asks for a key again. */
export function gone(error: unknown): boolean {
  if (!(error instanceof Problem) || error.status !== 401) return false
  session.set(null)
  return true
}

export function hasScope(scope: Scope): boolean {
  return session.get()?.scopes.includes(scope) === true
}

/** Why this key may not do something, or undefined if it may. */
export function refusal(scope: Scope): string | undefined {
  if (session.get()?.readOnly === true) return 'The service is read-only.'
  return hasScope(scope) ? undefined : `This key does not have the scope ${scope}.`
}
