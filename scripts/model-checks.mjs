// What `npm run test:model` checks: the worlds that the model is played in, the protocols, and the faults that are planted.

/** @typedef {'today' | 'leader key'} Protocol */

/** @type {Readonly<Record<Protocol, readonly string[]>>} */
export const PROTOCOLS = { today: [], 'leader key': ['-DLEADER_KEY'] }

/**
 * No single world could hold all clients, faults and delays at once and be searched in seconds. The bounds of worlds without a
 * fault are the smallest that hold, so that a change for the worse shows.
 * @type {readonly { name: string, world: readonly string[], bounds: Readonly<Record<Protocol, readonly string[]>> }[]}
 */
export const WORLDS = [
  {
    name: 'one client starts, and subscribes at any time',
    world: ['-DUP=1', '-DSTARTS', '-DFAULTS=0', '-DLATENCY=1', '-DLONGEST_DELAY=9', '-DEND=22'],
    bounds: both('-DLATE=4'),
  },
  {
    name: 'three clients, no fault, scripts are counted',
    world: ['-DFAULTS=0', '-DEND=9', '-DLATE=2'],
    bounds: { today: ['-DMOST_SCRIPTS=6'], 'leader key': ['-DMOST_SCRIPTS=5'] },
  },
  {
    name: 'three clients, no fault, two leaders at first',
    world: ['-DFAULTS=0', '-DTWO_LEADERS', '-DEND=9', '-DLATE=2'],
    bounds: both('-DMOST_SCRIPTS=4'),
  },
  {
    name: 'three clients, no fault, slow network',
    world: ['-DFAULTS=0', '-DLATENCY=1', '-DLAST_OFFER=2', '-DLONGEST_DELAY=1', '-DEND=9'],
    bounds: both('-DLATE=5'),
  },
  {
    name: 'three clients, one fault',
    world: ['-DFAULTS=1', '-DLAST_OFFER=2', '-DEND=13'],
    bounds: both(),
  },
  {
    name: 'two clients, one fault',
    world: ['-DUP=2', '-DFAULTS=1', '-DLAST_OFFER=2', '-DEND=13'],
    bounds: both(),
  },
  {
    name: 'one client, two faults',
    world: ['-DUP=1', '-DFAULTS=2', '-DLAST_OFFER=2'],
    bounds: both(),
  },
]

const STARTS = 'one client starts, and subscribes at any time'
const COUNTED = 'three clients, no fault, scripts are counted'
const TWO_LEADERS = 'three clients, no fault, two leaders at first'
const FAULT = 'two clients, one fault'
const LONE = 'one client, two faults'

/**
 * A bug that could be put into the code, and the world in which SPIN has to find it.
 * @type {readonly { name: string, define: string, worlds: Readonly<Partial<Record<Protocol, string>>> }[]}
 */
export const PLANTED = [
  { name: 'the script moves what is due a moment later', define: 'EARLY', worlds: both(LONE) },
  { name: 'an offer is repeated after its delivery', define: 'REPEATED_OFFER', worlds: both(LONE) },
  { name: 'no sweep', define: 'NO_SWEEP', worlds: both(LONE) },
  { name: 'no transfer after a subscription', define: 'NO_TRANSFER_AFTER_SUBSCRIBE', worlds: both(LONE) },
  { name: 'no back-off timer after a failure', define: 'NO_RETRY', worlds: both(LONE) },
  { name: 'a wake-up during a transfer is forgotten (no `again`)', define: 'AGAIN_LOST', worlds: both(LONE) },
  { name: 'stopping leaves the timer armed', define: 'STOP_LEAVES_TIMER', worlds: both(LONE) },
  { name: 'announcements are ignored', define: 'DEAF', worlds: both(LONE) },
  { name: "the process's own clock is taken for that of Redis", define: 'PROCESS_CLOCK', worlds: both(LONE) },
  { name: 'a stale reply replaces the deadline', define: 'REPLIES_REPLACE', worlds: both(STARTS) },
  { name: 'a reply does not arm the timer', define: 'REPLIES_IGNORED', worlds: both(STARTS) },
  { name: 'only the leader ever delivers', define: 'ONLY_THE_FIRST', worlds: both(COUNTED) },
  {
    name: 'an announcement only lowers the deadline of a follower',
    define: 'LOWERS_FOR_A_FOLLOWER',
    worlds: both(COUNTED),
  },
  {
    name: 'an announcement replaces the deadline of the leader',
    define: 'REPLACES_FOR_THE_LEADER',
    worlds: both(COUNTED),
  },
  {
    name: 'the script publishes the head before it removes it',
    define: 'PUBLISHES_THE_OLD_HEAD',
    worlds: both(COUNTED),
  },
  { name: 'a leader that never yields', define: 'NEVER_YIELDS', worlds: { 'leader key': TWO_LEADERS } },
  { name: 'a lease that does not end', define: 'LEASE_WITHOUT_END', worlds: both(FAULT) },
]

/** @template [T=readonly string[]] @param {...any} flags @returns {{ today: T, 'leader key': T }} */
function both(...flags) {
  const value = /** @type {any} */ (flags.length === 1 && !flags[0].startsWith('-D') ? flags[0] : flags)
  return { today: value, 'leader key': value }
}
