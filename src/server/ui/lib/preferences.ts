import { createStore, type Store } from './store.js'

/** A choice of the reader, or a fact about their session, stored in this browser if it allows that. */
function preference<T extends string>(name: string, values: readonly [T, ...T[]]): Store<T> {
  const store = createStore(read(`redelayed.${name}`, values))
  store.subscribe(() => {
    try {
      localStorage.setItem(`redelayed.${name}`, store.get())
    } catch {
      // then it lasts as long as the page
    }
  })
  return store
}

function read<T extends string>(name: string, values: readonly [T, ...T[]]): T {
  try {
    const kept = localStorage.getItem(name)
    return values.find((value) => value === kept) ?? values[0]
  } catch {
    return values[0]
  }
}

export const theme = preference('theme', ['system', 'light', 'dark'])
/** Single-letter shortcuts interfere with some voice and switch controls, so they can be switched off. */
export const shortcuts = preference('shortcuts', ['on', 'off'])
/** Whether a session of this browser had an overview when it was last here: then its figures are asked for together with the session. */
export const opensOverview = preference('opens-overview', ['no', 'yes'])

const system = matchMedia('(prefers-color-scheme: dark)')

function apply(): void {
  const chosen = theme.get()
  document.documentElement.dataset['theme'] = chosen === 'system' ? (system.matches ? 'dark' : 'light') : chosen
  for (const listener of themeListeners) listener()
}

const themeListeners = new Set<() => void>()

/** Calls back when the colours have changed, for drawings on a canvas. */
export function onThemeChange(listener: () => void): () => void {
  themeListeners.add(listener)
  return () => void themeListeners.delete(listener)
}

export function followTheme(): void {
  apply()
  theme.subscribe(apply)
  system.addEventListener('change', apply)
}
