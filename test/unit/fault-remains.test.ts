import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { countOpen, keysOf } from '../faults/reliable/contents.js'

/** A server with a message that its consumer gives back at any moment between two commands; nothing comes between those of a transaction. */
class Between {
  #isGivenBack = false
  #left: number

  constructor(commands: number) {
    this.#left = commands
  }

  zcount(schedule: string): Promise<number> {
    const count = this.#countIn(schedule)
    this.#isGivenBack ||= --this.#left === 0
    return Promise.resolve(count)
  }

  multi(): { zcount(schedule: string): void; exec(): Promise<[null, number][]> } {
    const schedules: string[] = []
    return {
      zcount: (schedule) => void schedules.push(schedule),
      exec: () => Promise.resolve(schedules.map((schedule) => [null, this.#countIn(schedule)])),
    }
  }

  #countIn(schedule: string): number {
    const { due, inFlight } = keysOf('q')
    return schedule === (this.#isGivenBack ? due[0] : inFlight) ? 1 : 0
  }
}

describe('the end of a round of the reliable fault bench', () => {
  it('sees a message that is given back while it counts', async () => {
    for (let commands = 1; commands <= 11; commands++) {
      const redis = new Between(commands) as unknown as Redis
      expect(await countOpen(redis, 'q'), `given back after ${commands} commands`).to.equal(1)
    }
  })

  it('is not reached where the transaction was refused', async () => {
    const refusing = (replies: unknown): Redis =>
      ({ multi: () => ({ zcount: () => undefined, exec: () => Promise.resolve(replies) }) }) as unknown as Redis
    for (const [replies, says] of [
      [null, 'given up'],
      [[[new Error('MOVED'), undefined]], 'MOVED'],
    ] as const) {
      const error = await countOpen(refusing(replies), 'q').catch((thrown: Error) => thrown)
      expect(String(error)).to.include(says)
    }
  })
})
