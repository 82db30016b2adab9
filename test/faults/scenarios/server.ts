import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { eventually } from '../../support/events.js'
import { SWEEP_MS, TAKES, type Bench } from '../bench/bench.js'
import { DURABLE, type StandaloneStage } from '../bench/stage.js'
import type { Scenario } from './scenario.js'

const FOR_MS = 2 * SWEEP_MS
/** The messages that a dying server can have given to takes of both consumers before these got the replies. */
const IN_ALL_HANDS = 2 * TAKES

type ServerScenario = Scenario<StandaloneStage>

/** The server dies, stands still, or forgets. */
export const server: readonly ServerScenario[] = [
  {
    name: 'SIGSTOP of Redis for longer than the sweep and all timeouts',
    // what was written when the client gave up is carried out later, and a reply that comes then reaches no client
    allowed: { lost: IN_ALL_HANDS },
    async fault(_, { server }) {
      await server.kill('SIGSTOP')
      await new Promise((resolve) => setTimeout(resolve, 2 * FOR_MS))
      await server.kill('SIGCONT')
    },
  },
  {
    name: 'SIGKILL of Redis and a restart, appendfsync always',
    allowed: { lost: IN_ALL_HANDS },
    async fault(bench, { server }) {
      await server.kill('SIGKILL')
      await bench.pause(300, 1_000)
      await server.restart()
    },
  },
  {
    name: 'a restart that takes time to load: LOADING',
    allowed: { lost: IN_ALL_HANDS },
    async fault(bench, stage) {
      const filler = `${bench.queue}:filler`
      const redis = await stage.raw('')
      await redis.eval("for i = 1, 20000 do redis.call('SET', KEYS[1] .. i, i, 'PX', 30000) end", 1, filler)
      await redis.call('BGREWRITEAOF')
      await eventually(
        async () => expect(await redis.info('persistence')).to.include('aof_rewrite_in_progress:0'),
        10_000,
        50,
      )
      await stage.server.kill('SIGKILL')
      await stage.server.restart([...DURABLE, '--key-load-delay', '80'])
    },
  },
  {
    name: 'a restart without data: the loss is counted, and the queue goes on',
    alone: true,
    allowed: { lost: Infinity, dropped: Infinity },
    async fault(bench, { server }) {
      await server.kill('SIGKILL')
      await server.restart(['--appendonly', 'no', '--dbfilename', 'none.rdb'])
      await bench.pause(500)
    },
    also: (result) => {
      expect(result.lost, 'what was pending is gone, and the books say so').to.be.greaterThan(0)
      expect(result.delivered).to.be.greaterThan(100)
    },
  },
  {
    name: 'CLIENT KILL TYPE pubsub, again and again',
    fault: (bench) => again(bench, 4, async (redis) => void (await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub'))),
  },
  {
    name: 'CLIENT KILL TYPE normal, again and again',
    allowed: { lost: 4 * IN_ALL_HANDS },
    fault: (bench) =>
      again(bench, 4, async (redis) => void (await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'))),
  },
  {
    name: 'SCRIPT FLUSH, again and again',
    fault: (bench) => again(bench, 10, async (redis) => void (await redis.script('FLUSH'))),
  },
  {
    name: 'CLIENT PAUSE of all commands, and of writes',
    async fault(bench) {
      const redis = await bench.raw()
      await redis.call('CLIENT', 'PAUSE', 1_000, 'ALL')
      await bench.pause(1_200)
      await redis.call('CLIENT', 'PAUSE', 1_000, 'WRITE')
      await bench.pause(1_200)
    },
  },
  {
    name: 'CONFIG SET hz to 1 and to 500',
    async fault(bench) {
      const redis = await bench.raw()
      for (const hz of ['1', '500', '10']) {
        await redis.config('SET', 'hz', hz)
        await bench.pause(600)
      }
    },
  },
  {
    name: "another client's script that runs for seconds: BUSY",
    async fault(bench, stage) {
      const redis = await bench.raw()
      await redis.config('SET', 'busy-reply-threshold', 100)
      const busy = redis.duplicate()
      busy.on('error', () => {})
      const running = busy.eval('while true do end', 0).catch((error: Error) => error.message)
      await bench.pause(1_500)
      await eventually(async () => (await stage.to(stage.server.port)).script('KILL'), 5_000)
      expect(await running).to.match(/killed/i)
      busy.disconnect()
      await redis.config('SET', 'busy-reply-threshold', 5_000)
    },
    also: sawErrors,
  },
]

/** Seconds-long refusals of a server that is otherwise well. */
export const refusals: readonly ServerScenario[] = [
  {
    name: 'OOM with noeviction',
    async fault(bench) {
      const redis = await bench.raw()
      await redis.config('SET', 'maxmemory', '1')
      await bench.pause(FOR_MS)
      await redis.config('SET', 'maxmemory', '0')
    },
    also: sawErrors,
  },
  {
    name: 'READONLY: the server becomes a replica for a while',
    async fault(bench) {
      const redis = await bench.raw()
      await redis.call('REPLICAOF', '127.0.0.1', 1) // no server is there, so it keeps its data
      await bench.pause(FOR_MS)
      await redis.call('REPLICAOF', 'NO', 'ONE')
    },
    also: sawErrors,
  },
  {
    name: 'the password changes and all connections are cut, then it is as before',
    allowed: { lost: IN_ALL_HANDS },
    async fault(bench) {
      const redis = await bench.raw()
      await redis.config('SET', 'requirepass', 'another')
      await redis.call('AUTH', 'another')
      await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
      await bench.pause(FOR_MS)
      await redis.config('SET', 'requirepass', '')
    },
    also: (result) => void expect(result.errors).to.have.property('ERR_AUTH'),
  },
]

function sawErrors(result: { readonly errors: Readonly<Record<string, number>>; readonly refused: number }): void {
  expect(Object.keys(result.errors), 'no client noticed the fault').not.to.deep.equal([])
}

async function again(bench: Bench, times: number, fault: (redis: Redis) => Promise<void>): Promise<void> {
  for (let i = 0; i < times; i++) {
    await fault(await bench.raw())
    await bench.pause(100, 400)
  }
}
