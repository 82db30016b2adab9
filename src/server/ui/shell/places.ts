import type { Session } from '../api/types.js'

export interface NavigationPlace {
  readonly path: string
  readonly name: string
  /** The letter after `g`. */
  readonly key: string
  /** What is drawn beside the name, in a square of 16. */
  readonly icon: string
}

const OF_SERVICE: readonly (readonly [group: string, places: readonly NavigationPlace[]])[] = [
  [
    'Now',
    [
      { path: '/', name: 'Overview', key: 'o', icon: 'M2 2h5v5H2zM9 2h5v3H9zM9 7h5v7H9zM2 9h5v5H2z' },
      { path: '/agenda', name: 'Agenda', key: 'a', icon: 'M2 4h12v10H2zM2 7.5h12M5 2v3M11 2v3' },
    ],
  ],
  [
    'Messages',
    [
      { path: '/topics', name: 'Topics', key: 't', icon: 'M8 2l6 3-6 3-6-3zM2 8l6 3 6-3M2 11l6 3 6-3' },
      { path: '/messages', name: 'Messages', key: 'm', icon: 'M2 3.5h12v9H2zM2 4l6 5 6-5' },
      {
        path: '/dead-letters',
        name: 'Dead letters',
        key: 'd',
        icon: 'M2 3h12v3H2zM3 6v7h10V6M6.5 8.5l3 3M9.5 8.5l-3 3',
      },
      { path: '/endpoints', name: 'Endpoints', key: 'e', icon: 'M2 3v10M5 8h9M10.5 4.5L14 8l-3.5 3.5' },
    ],
  ],
  [
    'Service',
    [
      { path: '/journal', name: 'Journal & restores', key: 'j', icon: 'M3 2h10v12H3zM6 2v12M8.5 5.5h2' },
      { path: '/instances', name: 'Instances', key: 'i', icon: 'M2 3h12v4H2zM2 9h12v4H2zM5 5h.1M5 11h.1' },
      { path: '/doctor', name: 'Doctor', key: 'c', icon: 'M1 8h3l2-5 3 10 2-5h4' },
      { path: '/audit', name: 'Audit log', key: 'l', icon: 'M3 4h10M3 8h10M3 12h6' },
    ],
  ],
]

const OF_QUEUES: typeof OF_SERVICE = [
  [
    'Queues',
    [
      { path: '/queues', name: 'Queues', key: 'q', icon: 'M8 2l6 3-6 3-6-3zM2 8l6 3 6-3M2 11l6 3 6-3' },
      { path: '/doctor', name: 'Doctor', key: 'c', icon: 'M1 8h3l2-5 3 10 2-5h4' },
    ],
  ],
]

export function placesOf({ readOnly }: Pick<Session, 'readOnly'>): typeof OF_SERVICE {
  return readOnly === true ? OF_QUEUES : OF_SERVICE
}
