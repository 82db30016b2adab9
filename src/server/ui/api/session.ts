import { opensOverview } from '../lib/preferences.js'
import { createStore } from '../lib/store.js'
import { Problem, request } from './request.js'
import type { Scope, Session } from './types.js'

/** `undefined`: not known yet; `null`: no session. */
export const session = createStore<Session | null | undefined>(undefined)

/** Whose answer is on its way before anything is drawn. */
let asked: Promise<Session> | undefined

/** Asks for the session while the page is still being built. */
export function askForSession(): void {
  asked = request<Session>('GET', '/ui/session')
  asked.catch(() => undefined) // who waits for it learns why
}

export async function findSession(): Promise<void> {
  const answer = asked ?? request<Session>('GET', '/ui/session')
  asked = undefined
  try {
    session.set(await answer)
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

session.subscribe(() => {
  const signedIn = session.get()
  if (signedIn !== undefined) opensOverview.set(signedIn !== null && signedIn.readOnly !== true ? 'yes' : 'no')
})

/** Whether an error means that the session has ended; then the page asks for a key again. */
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
