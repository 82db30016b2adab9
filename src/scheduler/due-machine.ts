import { AFTER_BRIEF_REFUSAL, AFTER_FAILURE, backoffDelay, type Backoff } from '../timing/backoff.js'

/** After this many scripts in a row that found due entries and changed nothing, each further script waits longer. */
const MAX_STUCK = 10

/**
 * A follower defers its script by this time after the due time, plus a random part that grows with the number of clients, so that
 * few followers collide when the leader is gone. The leader's announcement calls the deferred script off. The spread is
 * independent of the lease in store/lease.ts: `MAX_SPREAD_MS` need not equal `LEASE_MS`.
 */
const FOLLOW_MS = 3
const SPREAD_MS_PER_CLIENT = 0.25
const MAX_SPREAD_MS = 25
/**
 * About the most followers that publish after a script that moved nothing. More would repeat what every client knows by then:
 * a hundred announcements to a hundred subscribers would delay the next one.
 */
const MAX_ANNOUNCING_FOLLOWERS = 8

/**
 * `idle`: no due time is known. `waiting`: for the next due time. `deferring`: the time has come, and the leader goes first.
 * `running`: the script is on its way. `backing off`: after a failure, or after scripts that changed nothing.
 */
export type StateName = 'idle' | 'waiting' | 'deferring' | 'running' | 'backing off' | 'stopped'

/** The state of one queue's scheduler in one client. Times are those of the local clock. */
export interface DueState {
  readonly is: StateName
  /**
   * When the timer fires; `Infinity` without one. While the script runs there is no timer: then it is the earliest time announced since
   * the script was sent, which may be newer than its reply.
   */
  readonly deadline: number
  /** This client delivers first; followers defer to it. */
  readonly isLeader: boolean
  readonly subscribers: number
  /** The script was requested while it was running and may have read an older state: run it once more. */
  readonly again: boolean
  /** `deferring`: whether this follower publishes even if it moves nothing. */
  readonly announce: boolean
  /** `deferring`: the due time that the script is deferred for. */
  readonly target: number
  /** Another client's announcement woke the leader, so the followers know an earlier time than its lease. */
  readonly renew: boolean
  /** Scripts in a row that failed. */
  readonly failures: number
  /** Scripts in a row that found due entries and changed nothing. */
  readonly stuck: number
}

/** Options of one run of the script. */
export interface ScriptOptions {
  /** The script publishes the time of the next transfer even if it moved nothing. */
  readonly announce: boolean
  /** The script takes a new lease and publishes it even if enough of the old one is left. */
  readonly renew: boolean
  /** The due time for which the timer fired; `Infinity` for a sweep, a subscription and a retry. */
  readonly target: number
}

/** A reply of the script; times are those of the local clock. */
export interface DueReply {
  readonly moved: number
  /** When the next entry is due, `Infinity` when there is none. */
  readonly next: number
  readonly subscribers: number
  /** Who leads; `none`: no client holds a lease. */
  readonly leader: 'self' | 'other' | 'none'
  /** When the other client's lease ends. */
  readonly leaseUntil: number
  /** Entries are due and the script changed nothing. */
  readonly isStuck: boolean
}

export type DueEvent =
  /** The timer fired. */
  | { readonly type: 'deadline' }
  /** A client published the time of the next transfer. */
  | { readonly type: 'announced'; readonly at: number }
  /** This client knows of an entry that is due at `at`. */
  | { readonly type: 'known'; readonly at: number }
  /** A sweep, or a consumer that begins to wait at a reliable queue. */
  | { readonly type: 'wake' }
  /** The channel is subscribed (again). */
  | { readonly type: 'subscribed' }
  | { readonly type: 'replied'; readonly reply: DueReply }
  /** There was no reason to run the script. */
  | { readonly type: 'skipped' }
  /** `isBrief`: the refusal can end at any moment, so the wait after it does not grow. */
  | { readonly type: 'failed'; readonly isBrief: boolean }
  | { readonly type: 'stop' }

/** The circumstances of a transition; `random` is in [0, 1). */
export interface Moment {
  readonly now: number
  readonly random: number
}

/** The result of an event: the new state, whose deadline the timer takes, and the options of the script if it runs now. */
export interface Step {
  readonly state: DueState
  readonly run?: ScriptOptions
}

export const INITIAL: DueState = Object.freeze({
  is: 'idle',
  deadline: Infinity,
  isLeader: false,
  subscribers: 1,
  again: false,
  announce: false,
  target: Infinity,
  renew: false,
  failures: 0,
  stuck: 0,
})

/**
 * The protocol of docs/decisions/0039, of which docs/architecture.md has the table. Its rule in a sentence: an announcement replaces
 * the deadline of a follower and lowers that of the leader; a reply only lowers what was announced since its script was sent.
 */
export function transition(state: DueState, event: DueEvent, moment: Moment): Step {
  if (state.is === 'stopped') return { state }
  switch (event.type) {
    case 'stop':
      return { state: { ...state, is: 'stopped', deadline: Infinity } }
    case 'deadline':
      return afterDeadline(state, moment)
    case 'announced':
      return afterAnnouncement(state, event.at, moment)
    case 'known':
      return afterKnown(state, event.at, moment)
    case 'wake':
      return state.is === 'backing off' ? { state } : requestScript(state)
    case 'subscribed':
      return requestScript(state)
    case 'replied':
      return afterReply(state, event.reply, moment)
    case 'skipped':
      return state.again ? runScript(state, false) : arm(state, state.deadline, moment)
    case 'failed': {
      const failures = state.failures + 1
      const failed = { ...state, isLeader: false, failures }
      return backOff(failed, event.isBrief ? AFTER_BRIEF_REFUSAL : AFTER_FAILURE, failures, moment)
    }
  }
}

function afterDeadline(state: DueState, moment: Moment): Step {
  switch (state.is) {
    case 'waiting':
      return state.isLeader || state.subscribers <= 1
        ? runScript(state, true, state.deadline)
        : { state: defer(state, moment) }
    case 'deferring':
      return runScript(state, state.announce, state.target)
    case 'backing off':
      return runScript(state, false)
    default:
      return { state }
  }
}

function defer(state: DueState, { now, random }: Moment): DueState {
  const spread = Math.min(state.subscribers * SPREAD_MS_PER_CLIENT, MAX_SPREAD_MS)
  const announce = random * state.subscribers < MAX_ANNOUNCING_FOLLOWERS
  return { ...state, is: 'deferring', deadline: now + FOLLOW_MS + spread * random, announce, target: state.deadline }
}

function afterAnnouncement(state: DueState, at: number, moment: Moment): Step {
  switch (state.is) {
    case 'idle':
    case 'waiting':
      if (state.isLeader && at > state.deadline) return { state }
      return arm(state, at, moment, state.isLeader)
    case 'deferring':
      return at > moment.now ? arm(state, at, moment) : { state }
    case 'running':
      return { state: { ...state, deadline: state.isLeader ? Math.min(state.deadline, at) : at } }
    default:
      return { state }
  }
}

function afterKnown(state: DueState, at: number, moment: Moment): Step {
  const deadline = Math.min(state.deadline, at)
  switch (state.is) {
    case 'idle':
    case 'waiting':
      return arm(state, deadline, moment)
    case 'running':
      return { state: { ...state, deadline } }
    default:
      return { state }
  }
}

function afterReply(state: DueState, reply: DueReply, moment: Moment): Step {
  const { moved, leader, leaseUntil, subscribers } = reply
  const isLeader = leader === 'self' || (leader === 'none' && (moved > 0 || state.isLeader))
  const next = leader === 'other' ? Math.max(reply.next, leaseUntil) : reply.next
  const renew = isLeader && state.deadline !== Infinity && state.deadline <= next
  const stuck = reply.isStuck ? state.stuck + 1 : 0
  const after = { ...state, isLeader, subscribers, renew, stuck, failures: 0 }
  if (stuck > MAX_STUCK) return backOff(after, AFTER_FAILURE, stuck - MAX_STUCK, moment)
  // the earlier of the two: a time announced while the script ran may be newer than its reply
  const deadline = Math.min(state.deadline, next)
  return state.again ? runScript(after, deadline <= moment.now, deadline) : arm(after, deadline, moment)
}

/** Runs the script, now or after the run that is on its way. */
function requestScript(state: DueState): Step {
  return state.is === 'running' ? { state: { ...state, again: true } } : runScript(state, false)
}

/** Runs the script now; its reply supersedes the earlier state. */
function runScript(state: DueState, announce: boolean, target = Infinity): Step {
  const running: DueState = {
    ...state,
    is: 'running',
    deadline: Infinity,
    again: false,
    announce: false,
    target: Infinity,
    renew: false,
  }
  return { state: running, run: { announce, renew: state.renew, target } }
}

/** Arms the timer; a deadline that has passed fires at once. */
function arm(state: DueState, deadline: number, moment: Moment, renew = state.renew): Step {
  // Field by field: every client does this at every announcement, and in Node 20 a spread takes ten times as long.
  const waiting: DueState = {
    is: deadline === Infinity ? 'idle' : 'waiting',
    deadline,
    isLeader: state.isLeader,
    subscribers: state.subscribers,
    again: state.again,
    announce: state.announce,
    target: state.target,
    renew,
    failures: state.failures,
    stuck: state.stuck,
  }
  return deadline > moment.now ? { state: waiting } : afterDeadline(waiting, moment)
}

function backOff(state: DueState, backoff: Backoff, attempt: number, { now, random }: Moment): Step {
  const deadline = now + backoffDelay(backoff, attempt, random)
  return { state: { ...state, is: 'backing off', deadline, again: false, renew: false } }
}
