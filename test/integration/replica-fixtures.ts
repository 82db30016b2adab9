import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { DurabilityError } from '../../src/index.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { FAST, startReplica } from '../support/replicas.js'
import { cleanUp, rawTo, rejection } from './fixtures.js'

export interface MasterAndReplica {
  readonly master: RedisServer
  readonly replica: RedisServer
  /** A connection to the master, of one test. */
  readonly raw: Redis
}

/** A master and its replica for the tests of a suite; `assign` is called before each. The replica goes on after each. */
export function useMasterAndReplica(assign: (servers: MasterAndReplica) => void): void {
  let master: RedisServer
  let replica: RedisServer

  before(async function () {
    requireServerBin(this)
    master = await startRedis({ args: FAST })
    replica = await startReplica(master)
  })
  beforeEach(() => assign({ master, replica, raw: rawTo(master.port) }))
  afterEach(async () => {
    await replica.kill('SIGCONT')
    await cleanUp()
  })
  after(() => Promise.all([master, replica].map((server) => server?.stop())))
}

/** How many WAITs a server has carried out. */
export async function waitsOf(redis: Redis): Promise<number> {
  return Number(/cmdstat_wait:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)
}

export async function durabilityError(promise: Promise<unknown>): Promise<DurabilityError> {
  const error = await rejection(promise)
  if (!(error instanceof DurabilityError)) throw error
  expect(error.code).to.equal('ERR_DURABILITY')
  return error
}
