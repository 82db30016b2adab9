// The screens of the page, and what is on each of them when it is of use.
export interface ScreenOf {
  readonly name: string
  readonly path: string
  /** A selector of Playwright: what an operator has come for. */
  readonly shows: string
  /** So often it is opened, where that is less often than the others. */
  readonly visits?: number
}

export function screensOf(topic: string, endpoint: string): ScreenOf[] {
  const row = 'main table tbody tr:has(a)'
  return [
    { name: 'overview', path: '/', shows: '.tile-value:text-matches("[0-9]")' },
    { name: 'topics', path: '/topics', shows: row },
    { name: 'topics, most messages first', path: '/topics?sort=total', shows: row },
    { name: 'topics, part of a name', path: '/topics?search=001', shows: row },
    { name: 'a topic', path: `/topics/${topic}`, shows: 'main >> text="Visibility timeout"' },
    { name: 'agenda, next hour', path: '/agenda', shows: 'h2:text-matches("^[1-9][0-9,]* due")' },
    { name: 'agenda, next day', path: '/agenda?range=day', shows: 'h2:text-matches("^[1-9][0-9,]* due")' },
    { name: 'agenda, overdue of all topics', path: '/agenda?show=overdue', shows: row },
    { name: 'messages, all', path: '/messages', shows: row },
    { name: 'messages of a topic', path: `/messages?topic=${topic}`, shows: row },
    { name: 'messages, by id', path: '/messages?topic=dead-7&id=order-7', shows: row },
    { name: 'messages, in flight', path: '/messages?state=inFlight', shows: 'main td.empty, main .empty' },
    { name: 'a message', path: '/topics/dead-7/messages/order-7', shows: 'main >> text="Timeline"' },
    { name: 'dead letters', path: '/dead-letters', shows: row },
    {
      name: 'dead letters of an endpoint since yesterday',
      path: `/dead-letters?endpoint=${endpoint}&since=yesterday`,
      shows: row,
    },
    { name: 'dead letters, part of the reason', path: '/dead-letters?reason=customer', shows: row },
    { name: 'endpoints', path: '/endpoints', shows: 'main >> text="Billing"' },
    { name: 'an endpoint', path: `/endpoints/${endpoint}`, shows: 'main >> text="Status 500"' },
    { name: 'journal and restores', path: '/journal', shows: 'main >> text=There is no journal' },
    { name: 'instances', path: '/instances', shows: 'main >> text=/pid [0-9]+/' },
    { name: 'audit log', path: '/audit', shows: 'main table tbody tr:has(td:nth-child(4))' },
    { name: 'doctor', path: '/doctor', shows: 'main >> text=/examined|too long/', visits: 1 },
  ]
}

/** The same with a journal, and what only a journal has. */
export function screensOfJournal(screens: readonly ScreenOf[], topic: string): ScreenOf[] {
  const row = 'main table tbody tr:has(a)'
  return [
    ...screens.map((screen) =>
      screen.path === '/journal' ? { ...screen, shows: 'main >> text="Changes that SQL lacks"' } : screen,
    ),
    { name: 'messages, by id in all topics', path: '/messages?id=order-12345', shows: row },
    { name: 'messages, by business key in all topics', path: '/messages?bizKey=customer-4711', shows: row },
    { name: 'messages of a consumer that is done, by business key', path: '/messages?bizKey=finished', shows: row },
    { name: 'messages of a topic, due in the next hours', path: `/messages?topic=${topic}&state=delayed`, shows: row },
    {
      name: 'a finished message and its timeline',
      path: '/topics/finished-1/messages/finished-7',
      shows: '.timeline li',
    },
  ]
}
