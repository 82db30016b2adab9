// What `npm run test:model` checks: the worlds that the model is played in, and the faults that are planted.

/**
 * No single world could hold all clients, faults and delays at once and be searched in seconds. The bounds of worlds without a
 * fault are the smallest that hold, so that a change for the worse shows.
 */
export const WORLDS: readonly { name: string; world: readonly string[] }[] = [
  {
    name: 'one client starts, and subscribes at any time',
    world: ['-DUP=1', '-DSTARTS', '-DFAULTS=0', '-DLATENCY=1', '-DLONGEST_DELAY=9', '-DEND=22', '-DLATE=4'],
  },
  {
    name: 'three clients, no fault, scripts are counted',
    world: ['-DFAULTS=0', '-DEND=9', '-DLATE=2', '-DMOST_SCRIPTS=5'],
  },
  {
    name: 'three clients, no fault, two leaders at first',
    world: ['-DFAULTS=0', '-DTWO_LEADERS', '-DEND=9', '-DLATE=2', '-DMOST_SCRIPTS=4'],
  },
  {
    name: 'three clients, no fault, slow network',
    world: ['-DFAULTS=0', '-DLATENCY=1', '-DLAST_OFFER=2', '-DLONGEST_DELAY=1', '-DEND=9', '-DLATE=5'],
  },
  {
    name: 'three clients, one fault',
    world: ['-DFAULTS=1', '-DLAST_OFFER=2', '-DEND=13'],
  },
  {
    name: 'two clients, one fault',
    world: ['-DUP=2', '-DFAULTS=1', '-DLAST_OFFER=2', '-DEND=13'],
  },
  {
    name: 'one client, two faults',
    world: ['-DUP=1', '-DFAULTS=2', '-DLAST_OFFER=2'],
  },
]

const STARTS = 'one client starts, and subscribes at any time'
const COUNTED = 'three clients, no fault, scripts are counted'
const TWO_LEADERS = 'three clients, no fault, two leaders at first'
const FAULT = 'two clients, one fault'
const LONE = 'one client, two faults'

/** A bug that could be put into the code, and the world in which SPIN has to find it. */
export const PLANTED: readonly { name: string; define: string; world: string }[] = [
  { name: 'the script moves what is due a moment later', define: 'EARLY', world: LONE },
  { name: 'an offer is repeated after its delivery', define: 'REPEATED_OFFER', world: LONE },
  { name: 'no sweep', define: 'NO_SWEEP', world: LONE },
  { name: 'no transfer after a subscription', define: 'NO_TRANSFER_AFTER_SUBSCRIBE', world: LONE },
  { name: 'no back-off timer after a failure', define: 'NO_RETRY', world: LONE },
  { name: 'a wake-up during a transfer is forgotten (no `again`)', define: 'AGAIN_LOST', world: LONE },
  { name: 'stopping leaves the timer armed', define: 'STOP_LEAVES_TIMER', world: LONE },
  { name: 'announcements are ignored', define: 'DEAF', world: LONE },
  { name: "the process's own clock is taken for that of Redis", define: 'PROCESS_CLOCK', world: LONE },
  { name: 'a stale reply replaces the deadline', define: 'REPLIES_REPLACE', world: STARTS },
  { name: 'a reply does not arm the timer', define: 'REPLIES_IGNORED', world: STARTS },
  { name: 'only the leader ever delivers', define: 'ONLY_THE_LEADER', world: COUNTED },
  {
    name: 'an announcement only lowers the deadline of a follower',
    define: 'LOWERS_FOR_A_FOLLOWER',
    world: COUNTED,
  },
  {
    name: 'an announcement replaces the deadline of the leader',
    define: 'REPLACES_FOR_THE_LEADER',
    world: COUNTED,
  },
  {
    name: 'the script publishes the head before it removes it',
    define: 'PUBLISHES_THE_OLD_HEAD',
    world: COUNTED,
  },
  { name: 'a leader that never yields', define: 'NEVER_YIELDS', world: TWO_LEADERS },
  { name: 'a lease that does not end', define: 'LEASE_WITHOUT_END', world: FAULT },
]
