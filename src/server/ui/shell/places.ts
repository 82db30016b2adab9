import type { Session } from '../api/types.js'

export interface NavigationPlace {
  readonly path: string
  readonly name: string
  /** After `g`. */
  readonly key: string
}

const OF_SERVICE: readonly (readonly [group: string, places: readonly NavigationPlace[]])[] = [
  [
    'Now',
    [
      { path: '/', name: 'Overview', key: 'o' },
      { path: '/agenda', name: 'Agenda', key: 'a' },
    ],
  ],
  [
    'Messages',
    [
      { path: '/topics', name: 'Topics', key: 't' },
      { path: '/messages', name: 'Messages', key: 'm' },
      { path: '/dead-letters', name: 'Dead letters', key: 'd' },
      { path: '/endpoints', name: 'Endpoints', key: 'e' },
    ],
  ],
  [
    'Service',
    [
      { path: '/journal', name: 'Journal & restores', key: 'j' },
      { path: '/instances', name: 'Instances', key: 'i' },
      { path: '/doctor', name: 'Doctor', key: 'c' },
      { path: '/audit', name: 'Audit log', key: 'l' },
    ],
  ],
]

const OF_QUEUES: typeof OF_SERVICE = [
  [
    'Queues',
    [
      { path: '/queues', name: 'Queues', key: 'q' },
      { path: '/doctor', name: 'Doctor', key: 'c' },
    ],
  ],
]

export function placesOf({ readOnly }: Pick<Session, 'readOnly'>): typeof OF_SERVICE {
  return readOnly === true ? OF_QUEUES : OF_SERVICE
}
