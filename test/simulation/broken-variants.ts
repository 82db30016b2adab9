import { begin, drop, replace, setValue, type Fault } from './plant.js'

/** Faults that somebody could put into the code; the simulation has to find each of them. */
export const BROKEN_VARIANTS: readonly Fault[] = [
  {
    what: 'a stale reply replaces the timer',
    changes: [replace('TransferTask.#run', 'this.#timer.lower($deadline)', 'this.#timer.replace($deadline)')],
  },
  {
    what: 'a reply never arms the timer',
    changes: [drop('TransferTask.#run', 'this.#timer.lower($deadline)')],
  },
  {
    what: 'a wake-up during a transfer is forgotten (no `again`)',
    changes: [begin('TransferTask.#request', 'if (this.#running !== undefined) return')],
  },
  {
    what: 'what is left of a batch waits for the next sweep',
    changes: [drop('TransferTask.#run', 'this.#again = true')],
  },
  { what: 'no sweep', changes: [drop('Sweeper.#tick', 'this.#sweep($member)')] },
  {
    what: 'no transfer after a subscription',
    changes: [drop('TransferTask.onSubscribed', 'this.#request($announce)')],
  },
  {
    what: 'announcements are ignored',
    changes: [drop('TransferTask.onAnnounced', 'this.#timer.replace($deadline)')],
  },
  {
    what: 'only the last winner ever delivers',
    changes: [drop('TransferTask.#onDue', 'this.#takeoverTimer.replace($deadline)')],
  },
  {
    what: 'after a failure at once once more, for ever',
    changes: [
      replace(
        'TransferTask.#onFailure',
        'this.#backOff($backoff, $attempt)',
        'this.#backOff({ baseMs: 0, maxMs: 0 }, $attempt)',
      ),
    ],
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
  { what: 'stopping leaves the timer armed', changes: [drop('TransferTask.stop', 'this.#timer.clear()')] },
]
