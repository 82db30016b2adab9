/** Process warnings of the library: a test fails on one that it did not expect, and when an expected one stays away. */

interface Expected {
  readonly pattern: RegExp
  readonly arrived: (warning: Error) => void
}

const expected = new Set<Expected>()
const strays: string[] = []

/** The warnings of faults that many tests cause on purpose, and need not expect. */
const USUAL = ['REDELAYED_HANDLER_FAILED', 'REDELAYED_UNREADABLE']

/** Allows one warning of the running test; the promise gives it. */
export function expectWarning(pattern: RegExp = /redelayed/i): Promise<Error> {
  return new Promise((resolve) => expected.add({ pattern, arrived: resolve }))
}

/** For the hooks. */
export function listenForWarnings(): void {
  process.on('warning', (warning: Error & { code?: string }) => {
    const text = `${warning.name} ${warning.code ?? ''} ${warning.message}`
    const match = [...expected].find(({ pattern }) => pattern.test(text))
    if (match) {
      expected.delete(match)
      match.arrived(warning)
    } else if (!USUAL.includes(warning.code ?? '') && /redelayed|MaxListenersExceeded/i.test(text)) strays.push(text)
  })
}

/** For the hooks: what went wrong since the last call. */
export function takeWarningProblems(): string[] {
  const missing = [...expected].map(({ pattern }) => `expected a warning like ${String(pattern)}, but none came`)
  expected.clear()
  return [...strays.splice(0).map((text) => `stray warning: ${text}`), ...missing]
}
