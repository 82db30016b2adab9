import { useMemo } from 'preact/hooks'
import { createStore, useStore } from './store.js'

const BASE = '/ui'

export interface Place {
  /** Without the base: `/topics/orders`. */
  readonly path: string
  readonly query: URLSearchParams
}

const place = createStore(here())

function here(): Place {
  const { pathname, search } = globalThis.location
  const path = pathname.startsWith(BASE) ? pathname.slice(BASE.length) : pathname
  return { path: path === '' ? '/' : path, query: new URLSearchParams(search) }
}

export type QueryValues = Readonly<Record<string, string | number | boolean | undefined | null>>

/** The address of a screen. Empty values are left out. */
export function href(path: string, query: QueryValues = {}): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== '' && value !== false) params.set(name, String(value))
  const text = params.toString()
  return `${BASE}${path}${text === '' ? '' : `?${text}`}`
}

/** A path of segments, which may contain any characters. */
export function pathOf(...segments: string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join('')
}

/** Whether another screen was shown before this one. */
let hasMoved = false

export function moved(): boolean {
  return hasMoved
}

export function go(address: string, { replace = false } = {}): void {
  hasMoved = true
  if (replace) history.replaceState(null, '', address)
  else history.pushState(null, '', address)
  place.set(here())
}

/** Changes some parameters of the query, for filters: the address can be shared, and Back undoes the change. */
export function setQuery(values: QueryValues, { replace = false } = {}): void {
  const { path, query } = place.get()
  go(href(path, { ...Object.fromEntries(query), ...values }), { replace })
}

/** Before anything is drawn, too. */
export function isAtOverview(): boolean {
  return place.get().path === '/'
}

export function usePlace(): Place {
  return useStore(place)
}

/** One parameter of the query. */
export function useQuery(name: string): string {
  return usePlace().query.get(name) ?? ''
}

/** The segments of the path, decoded; one that cannot be decoded stays as it is. */
export function useSegments(): readonly string[] {
  const { path } = usePlace()
  return useMemo(
    () =>
      path
        .split('/')
        .filter((segment) => segment !== '')
        .map((segment) => {
          try {
            return decodeURIComponent(segment)
          } catch {
            return segment
          }
        }),
    [path],
  )
}

/** Makes links of this page change the screen without loading a document. */
export function listenForNavigation(): void {
  addEventListener('popstate', () => {
    hasMoved = true
    place.set(here())
  })
  addEventListener('click', (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return
    const link = event.target instanceof Element ? event.target.closest('a[href]') : null
    if (!(link instanceof HTMLAnchorElement) || link.origin !== location.origin || link.target !== '') return
    if (link.pathname !== BASE && !link.pathname.startsWith(`${BASE}/`)) return
    if (link.hash !== '') return
    event.preventDefault()
    go(link.pathname + link.search)
  })
}
