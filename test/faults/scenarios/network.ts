import { expect } from 'chai'
import { eventually } from '../../support/events.js'
import { SWEEP_MS, TAKES, type Bench } from '../bench/bench.js'
import type { StandaloneStage } from '../bench/stage.js'
import type { Scenario } from './scenario.js'

const FOR_MS = 4 * SWEEP_MS
const IN_ALL_HANDS = 2 * TAKES
/** Within this a silent connection is noticed by the pings, given up and replaced. */
const PINGED_MS = 5_000
const SUBSCRIBING = ['SUBSCRIBE']
const BLOCKING = ['BLMPOP', 'BLPOP']

/** The network between the processes and the server breaks, or only seems to work. */
export const network: readonly Scenario<StandaloneStage>[] = [
  {
    name: 'all connections are reset, again and again',
    allowed: { lost: 4 * IN_ALL_HANDS },
    async fault(bench, { proxy }) {
      for (let i = 0; i < 4; i++) {
        proxy.cut()
        await bench.pause(100, 500)
      }
    },
  },
  {
    name: 'no server is there for seconds',
    allowed: { lost: IN_ALL_HANDS },
    async fault(bench, { proxy }) {
      proxy.refuse(true)
      proxy.cut()
      await bench.pause(FOR_MS)
      proxy.refuse(false)
    },
  },
  {
    name: 'everything is silent for seconds, also new connections',
    allowed: { lost: IN_ALL_HANDS },
    async fault(bench, { proxy }) {
      proxy.blackhole(true)
      await bench.pause(FOR_MS)
      proxy.blackhole(false)
    },
  },
  {
    name: 'the server hears everything and its answers are swallowed',
    // what it gave to waits whose answer was lost is gone, again and again until the network is whole
    allowed: { lost: 4 * IN_ALL_HANDS },
    async fault(bench, { proxy }) {
      proxy.blackhole('toClient')
      await bench.pause(FOR_MS)
      proxy.blackhole(false)
    },
  },
  {
    name: 'what is sent is swallowed, and the server can be heard',
    allowed: { lost: IN_ALL_HANDS },
    async fault(bench, { proxy }) {
      proxy.blackhole('toServer')
      await bench.pause(FOR_MS)
      proxy.blackhole(false)
    },
  },
  {
    name: 'half-open subscriber sockets: deliveries go on, and they are replaced',
    async fault(bench, { proxy }) {
      const before = await subscribers(bench)
      await halfOpen(
        bench,
        () => proxy.halfOpen(SUBSCRIBING),
        async (opened) => {
          // deliveries prove nothing here, as the sweep is enough for them; the server has not noticed and counts both
          await eventually(
            async () => expect(await subscribers(bench), 'subscribers').to.be.at.least(before + opened),
            PINGED_MS,
          )
          proxy.cut()
        },
      )
    },
    allowed: { lost: IN_ALL_HANDS },
  },
  {
    name: 'half-open command sockets: replaced while the others work',
    fault: (bench, { proxy }) =>
      halfOpen(
        bench,
        () => proxy.halfOpen({ but: [...SUBSCRIBING, ...BLOCKING] }),
        () => proxy.cut(),
      ),
    allowed: { lost: IN_ALL_HANDS },
    also: (result) => void expect(result.errors).to.have.property('ERR_CONNECTION'),
  },
  {
    name: 'half-open blocking sockets',
    allowed: { lost: 2 * IN_ALL_HANDS },
    async fault(bench, { proxy }) {
      expect(proxy.halfOpen(BLOCKING)).to.be.at.least(2)
      await bench.pause(FOR_MS)
      proxy.cut() // within the 13 s after which a silent wait is given up
    },
  },
  {
    name: '150 ms each way',
    async fault(bench, { proxy }) {
      proxy.delay(150)
      await bench.pause(FOR_MS)
      proxy.delay(0)
    },
  },
  {
    name: 'a line of 20 kB/s',
    async fault(bench, { proxy }) {
      proxy.throttle(20_000)
      await bench.pause(FOR_MS)
      proxy.throttle(Infinity)
    },
  },
]

/** The other processes deliver all the time: messages of the last second of the fault show that it was overcome. */
async function halfOpen(
  bench: Bench,
  open: () => number,
  heal: (opened: number) => Promise<void> | void,
): Promise<void> {
  const opened = open()
  expect(opened).to.be.at.least(2)
  await bench.pause(FOR_MS - 1_000)
  const before = bench.books().check(Date.now(), []).delivered
  await bench.pause(1_000)
  expect(
    bench.books().check(Date.now(), []).delivered,
    'nothing came while the sockets were half-open',
  ).to.be.greaterThan(before)
  await heal(opened)
}

async function subscribers(bench: Bench): Promise<number> {
  const [, count] = (await (await bench.raw()).call('PUBSUB', 'NUMSUB', bench.keys.channel)) as [string, number]
  return count
}
