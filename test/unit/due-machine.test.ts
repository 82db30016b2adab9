import { expect } from 'chai'
import {
  INITIAL,
  transition,
  type DueEvent,
  type DueReply,
  type DueState,
  type StateName,
  type Step,
} from '../../src/scheduler/due-machine.js'

const NOW = 1_000
/** As the deadline of every state that has one. */
const DUE = 1_100
const EARLIER = 1_050
const LATER = 1_200
const PASSED = 990

const STATES: readonly StateName[] = ['idle', 'waiting', 'deferring', 'running', 'backing off', 'stopped']

/** A follower of 20 clients, or their leader. */
function stateOf(is: StateName, more: Partial<DueState> = {}): DueState {
  const hasTimer = is === 'waiting' || is === 'deferring' || is === 'backing off'
  return { ...INITIAL, is, subscribers: 20, deadline: hasTimer ? DUE : Infinity, ...more }
}

function after(state: DueState, event: DueEvent, random = 0.5): Step {
  return transition(state, event, { now: NOW, random })
}

/** The compared parts: the state's name, its deadline, and the script if there is one. */
function seen({ state, run }: Step): string {
  const time = state.deadline === Infinity ? '' : ` until ${state.deadline}`
  const how = run === undefined ? '' : `, run(${run.announce}${run.renew ? ', renew' : ''})`
  return `${state.is}${time}${how}`
}

const SAME = {
  idle: 'idle',
  waiting: 'waiting until 1100',
  deferring: 'deferring until 1100',
  running: 'running',
  'backing off': 'backing off until 1100',
  stopped: 'stopped',
} as const
const RUN = { false: 'running, run(false)', true: 'running, run(true)', renew: 'running, run(true, renew)' }
/** 3 ms, and half of the 5 ms over which 20 clients spread. */
const DEFERRED = 'deferring until 1005.5'

interface Row {
  readonly event: string
  readonly when: DueEvent
  readonly isLeader?: boolean
  /** A state that is left out does not change. */
  readonly then: Partial<Record<StateName, string>>
}

const ROWS: readonly Row[] = [
  {
    event: 'the deadline comes for the leader',
    when: { type: 'deadline' },
    isLeader: true,
    then: { waiting: RUN.true, 'backing off': RUN.false, deferring: RUN.false },
  },
  {
    event: 'the deadline comes for a follower',
    when: { type: 'deadline' },
    then: { waiting: DEFERRED, deferring: RUN.false, 'backing off': RUN.false },
  },
  {
    event: 'a follower receives a later time: it replaces the deadline',
    when: { type: 'announced', at: LATER },
    then: {
      idle: 'waiting until 1200',
      waiting: 'waiting until 1200',
      deferring: 'waiting until 1200',
      running: 'running until 1200',
    },
  },
  {
    event: 'a follower receives an earlier time',
    when: { type: 'announced', at: EARLIER },
    then: {
      idle: 'waiting until 1050',
      waiting: 'waiting until 1050',
      deferring: 'waiting until 1050',
      running: 'running until 1050',
    },
  },
  {
    event: 'a follower receives a time that has passed',
    when: { type: 'announced', at: PASSED },
    then: { idle: DEFERRED, waiting: DEFERRED, running: 'running until 990' },
  },
  {
    event: 'the leader receives a later time: it only lowers the deadline',
    when: { type: 'announced', at: LATER },
    isLeader: true,
    then: { idle: 'waiting until 1200', deferring: 'waiting until 1200', running: 'running until 1200' },
  },
  {
    event: 'the leader receives an earlier time',
    when: { type: 'announced', at: EARLIER },
    isLeader: true,
    then: {
      idle: 'waiting until 1050',
      waiting: 'waiting until 1050',
      deferring: 'waiting until 1050',
      running: 'running until 1050',
    },
  },
  {
    event: 'the leader receives a time that has passed',
    when: { type: 'announced', at: PASSED },
    isLeader: true,
    then: { idle: RUN.renew, waiting: RUN.renew, running: 'running until 990' },
  },
  {
    event: 'an earlier time is known',
    when: { type: 'known', at: EARLIER },
    then: { idle: 'waiting until 1050', waiting: 'waiting until 1050', running: 'running until 1050' },
  },
  {
    event: 'a later time is known',
    when: { type: 'known', at: LATER },
    then: { idle: 'waiting until 1200', running: 'running until 1200' },
  },
  {
    event: 'a wake-up',
    when: { type: 'wake' },
    then: { idle: RUN.false, waiting: RUN.false, deferring: RUN.false },
  },
  {
    event: 'a subscription',
    when: { type: 'subscribed' },
    then: { idle: RUN.false, waiting: RUN.false, deferring: RUN.false, 'backing off': RUN.false },
  },
  {
    event: 'a stop',
    when: { type: 'stop' },
    then: { idle: 'stopped', waiting: 'stopped', deferring: 'stopped', running: 'stopped', 'backing off': 'stopped' },
  },
]

describe('The states of the due scheduler', () => {
  for (const { event, when, isLeader = false, then } of ROWS) {
    describe(event, () => {
      for (const is of STATES) {
        const expected = then[is] ?? SAME[is]
        it(`${is}: ${expected}`, () => {
          expect(seen(after(stateOf(is, { isLeader }), when))).to.equal(expected)
        })
      }
    })
  }

  it('does not defer when it is the only client', () => {
    for (const subscribers of [0, 1])
      expect(seen(after(stateOf('waiting', { subscribers }), { type: 'deadline' }))).to.equal(RUN.true)
  })

  it('defers by 3 ms and by at most 25 ms more, and the first eight of many followers publish', () => {
    for (const [subscribers, random, deadline, announce] of [
      [2, 0, 1003, true],
      [20, 0.39, 1004.95, true],
      [20, 0.5, 1005.5, false],
      [100, 0.07, 1004.75, true],
      [5_000, 0.5, 1015.5, false],
    ] as const) {
      const { state } = after(stateOf('waiting', { subscribers }), { type: 'deadline' }, random)
      expect(state).to.include({ is: 'deferring', deadline, announce })
      expect(seen(after(state, { type: 'deadline' }))).to.equal(RUN[`${announce}`])
    }
  })

  it('remembers a wake-up or a subscription while the script runs, and nothing else', () => {
    for (const [event, again] of [
      [{ type: 'wake' }, true],
      [{ type: 'subscribed' }, true],
      [{ type: 'announced', at: LATER }, false],
      [{ type: 'known', at: LATER }, false],
    ] as const)
      expect(after(stateOf('running'), event).state.again, event.type).to.equal(again)
  })

  describe('a reply', () => {
    const REPLY: DueReply = { moved: 0, next: Infinity, subscribers: 20, leader: 'none', leaseUntil: 0, isStuck: false }
    const replied = (state: Partial<DueState>, reply: Partial<DueReply>) =>
      after(stateOf('running', state), { type: 'replied', reply: { ...REPLY, ...reply } })

    for (const [leader, moved, before, isLeader] of [
      ['self', 0, false, true],
      ['self', 1, false, true],
      ['other', 0, true, false],
      ['other', 1, true, false],
      ['none', 0, false, false],
      ['none', 0, true, true],
      ['none', 1, false, true],
    ] as const)
      it(`"${leader}" with ${moved} moved makes ${before ? 'a leader' : 'a follower'} ${isLeader ? 'the leader' : 'a follower'}`, () => {
        expect(replied({ isLeader: before }, { leader, moved }).state.isLeader).to.equal(isLeader)
      })

    for (const [what, state, reply, expected] of [
      ['says when the next entry is due', {}, { next: LATER }, 'waiting until 1200'],
      ['says that nothing is left', {}, {}, 'idle'],
      ['lowers what was announced meanwhile', { deadline: LATER }, { next: EARLIER }, 'waiting until 1050'],
      ['does not raise what was announced meanwhile', { deadline: EARLIER }, { next: LATER }, 'waiting until 1050'],
      ['keeps what was announced when nothing is left', { deadline: EARLIER }, {}, 'waiting until 1050'],
      ['sends the leader on when more is due', {}, { leader: 'self', moved: 1, next: PASSED }, RUN.true],
      ['makes a follower defer when something is due', {}, { next: PASSED }, DEFERRED],
      [
        'makes a follower wait for the end of the lease',
        {},
        { leader: 'other', next: PASSED, leaseUntil: EARLIER },
        'waiting until 1050',
      ],
      [
        'makes a follower wait for the due time after the lease',
        {},
        { leader: 'other', next: LATER, leaseUntil: EARLIER },
        'waiting until 1200',
      ],
      ['lets a follower idle when nothing is left', {}, { leader: 'other', leaseUntil: EARLIER }, 'idle'],
      ['is followed by the script that was requested meanwhile', { again: true }, { next: LATER }, RUN.false],
      ['which publishes when something is due', { again: true }, { next: PASSED }, RUN.true],
    ] as const)
      it(what, () => {
        expect(seen(replied(state, reply))).to.equal(expected)
      })

    it('takes the number of subscribers, and ends the count of failures', () => {
      expect(replied({ failures: 3 }, { subscribers: 7 }).state).to.include({ subscribers: 7, failures: 0 })
    })

    it('has the leader renew its lease when an announcement was no later than the due time in it', () => {
      for (const [deadline, isLeader, renew] of [
        [EARLIER, true, true],
        [DUE, true, true],
        [LATER, true, false],
        [Infinity, true, false],
        [EARLIER, false, false],
      ] as const)
        expect(replied({ deadline, isLeader }, { next: DUE }).state.renew, String(deadline)).to.equal(renew)
      expect(replied({ isLeader: true }, {}).state.renew).to.equal(false)
    })

    it('that changed nothing is followed by a wait from the eleventh on', () => {
      const stuck = { leader: 'self', next: PASSED, isStuck: true } as const
      expect(seen(replied({ stuck: 9 }, stuck))).to.equal(RUN.true)
      expect(seen(replied({ stuck: 10 }, stuck))).to.equal('backing off until 1075')
      expect(seen(replied({ stuck: 11, again: true }, stuck))).to.equal('backing off until 1150')
      expect(replied({ stuck: 11 }, stuck).state).to.include({ isLeader: true, again: false })
      expect(replied({ stuck: 11 }, {}).state.stuck).to.equal(0)
    })

    it('of a client that was stopped is ignored', () => {
      expect(seen(after(stateOf('stopped'), { type: 'replied', reply: { ...REPLY, next: PASSED } }))).to.equal(
        'stopped',
      )
      expect(seen(after(stateOf('stopped'), { type: 'failed', isBrief: false }))).to.equal('stopped')
    })
  })

  it('continues with announcements and requests when there was no reason for the script', () => {
    const skipped = (state: Partial<DueState>) => seen(after(stateOf('running', state), { type: 'skipped' }))
    expect(skipped({})).to.equal('idle')
    expect(skipped({ deadline: LATER })).to.equal('waiting until 1200')
    expect(skipped({ again: true })).to.equal(RUN.false)
  })

  it('yields and waits after a failure, twice as long after each further one, up to 5 s', () => {
    const failed = (failures: number, isBrief = false) =>
      after(
        stateOf('running', { failures, isLeader: true, again: true, deadline: EARLIER }),
        { type: 'failed', isBrief },
        0,
      )
    for (const [failures, deadline] of [
      [0, 1050],
      [1, 1100],
      [5, 2600],
      [40, 3500],
    ] as const)
      expect(failed(failures).state).to.include({ is: 'backing off', deadline, isLeader: false, again: false })
    expect(failed(40, true).state.deadline).to.equal(1125)
  })
})
