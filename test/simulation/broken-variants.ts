import { begin, drop, replace, setValue, type Fault } from './plant.js'

/** Faults that could be put into the code; the simulation has to find each of them. */
export const BROKEN_VARIANTS: readonly Fault[] = [
  {
    what: 'a stale reply replaces the deadline',
    firstSeed: 211,
    changes: [replace('afterReply', 'Math.min(state.deadline, next)', 'next')],
  },
  {
    what: 'a reply never arms the timer',
    changes: [replace('afterReply', 'Math.min(state.deadline, next)', 'state.deadline')],
  },
  {
    what: 'a wake-up during a script is forgotten (no `again`)',
    firstSeed: 3_442,
    changes: [replace('requestScript', '{ ...state, again: true }', 'state')],
  },
  {
    what: 'what is left of a batch waits for the next sweep',
    changes: [begin('arm', 'if (deadline <= moment.now) deadline = Infinity')],
  },
  { what: 'no sweep', changes: [drop('Sweeper.#tick', 'this.#sweep($member)')] },
  { what: 'no transfer after a subscription', changes: [begin('DueScheduler.onSubscribed', 'return')] },
  { what: 'announcements are ignored', changes: [begin('DueScheduler.onAnnounced', 'return')] },
  {
    what: 'a follower that is waiting ignores announcements',
    changes: [begin('afterAnnouncement', "if (state.is === 'waiting' && !state.isLeader) return { state }")],
  },
  {
    what: 'only the leader ever delivers',
    changes: [replace('afterDeadline', 'defer(state, moment)', "({ ...state, is: 'idle', deadline: Infinity })")],
  },
  {
    what: 'after a failure at once once more, for ever',
    changes: [begin('backOff', 'backoff = { baseMs: 0, maxMs: 0 }')],
  },
  {
    what: 'after a failure no more, until something wakes it',
    changes: [replace('backOff', 'now + backoffDelay($$how)', 'Infinity')],
  },
  {
    what: 'what is due and does not move is tried at once once more, for ever',
    changes: [setValue('MAX_STUCK', 'Infinity')],
  },
  { what: 'the timer always waits a tenth longer', changes: [setValue('SLACK', '-0.1')] },
  {
    what: 'a wait of 30 days is handed to Node as it is',
    changes: [replace('DeadlineTimer.#wait', 'Math.min($ms, MAX_TIMEOUT_MS)', '$ms')],
  },
  {
    what: "the first estimate of Redis's clock is kept for ever",
    changes: [setValue('ROUNDING_MS', 'Infinity')],
  },
  {
    what: "the process's own clock is taken for Redis's",
    changes: [replace('RemoteClock.toLocal', '$time - this.#offset', '$time')],
  },
  {
    what: 'stopping leaves the timer armed',
    changes: [replace('transition', "{ ...state, is: 'stopped', deadline: Infinity }", "{ ...state, is: 'stopped' }")],
  },
]

/** Faults that delay nothing for long and stop nothing: they show in the scripts or the lateness of many runs without a fault. */
export const COSTLY_VARIANTS: readonly (Fault & { readonly raises: 'scripts' | 'lateness' })[] = [
  {
    what: 'an announcement only lowers the deadline of a follower',
    changes: [begin('afterAnnouncement', "if (state.is === 'waiting') at = Math.min(state.deadline, at)")],
    raises: 'scripts',
  },
  {
    what: 'the announcement of the leader does not call the followers off',
    changes: [replace('afterAnnouncement', 'at > moment.now', 'false')],
    raises: 'scripts',
  },
  {
    what: 'no follower defers to the leader',
    changes: [replace('afterDeadline', 'state.subscribers <= 1', 'true')],
    raises: 'scripts',
  },
  {
    what: 'a leader never yields',
    changes: [replace('afterReply', "leader === 'none'", 'true')],
    raises: 'scripts',
  },
  {
    what: 'an announcement replaces the deadline of the leader',
    changes: [replace('afterAnnouncement', 'at > state.deadline', 'false')],
    raises: 'lateness',
  },
]
