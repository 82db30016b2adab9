import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { CrossSlotError, codecs, createClient } from '../../../src/index.js'
import { eventually } from '../../support/events.js'
import { NODE_TIMEOUT_MS } from '../../support/redis-server.js'
import { uniqueName } from '../../support/redis.js'
import { TAKES, type Bench } from '../bench/bench.js'
import type { ClusterStage, ReplicatedStage, Stage } from '../bench/stage.js'
import type { Scenario } from './scenario.js'

/**
 * Offers wait for both replicas; what was taken in the last moment may not have reached them, and is delivered again: mostly nothing,
 * and up to 643 in an hour of soak on a machine whose replicas were behind.
 */
const REPEATED = 1_000
/**
 * With two masters for a moment: what was pending when the second came, some 125, and what is offered to the first until all
 * have left it and is offered again then, 250 a second.
 */
const AT_BOTH = 500
/** The clients learn of a replaced master from the sentinels some seconds before it does. */
const LEFT_MS = 5_000
const IN_ALL_HANDS = 2 * TAKES
/** The time for which a master works alone before it dies. */
const CUT_OFF_MS = 700
/** Redis gives up a hand-over after five seconds. */
const GIVEN_UP_MS = 6_000
const HAND_OVER_MS = 25_000
/** Longer than a process of this machine waits for a core. */
const PATIENT_MS = 6_000

/** Another server is chosen, and the dead one comes back as its replica. */
export async function killMaster(stage: ReplicatedStage, then = async (): Promise<void> => {}): Promise<void> {
  const port = await stage.masterPort()
  const master = stage.servers.find((server) => server.port === port)
  await master?.kill('SIGKILL')
  await then()
  await eventually(async () => expect(await stage.masterPort()).not.to.equal(port), 20_000, 50)
  await master?.restart()
  const next = await stage.masterPort()
  await eventually(async () => void (await (await stage.to(port)).call('REPLICAOF', '127.0.0.1', next)), 15_000, 50)
}

/**
 * The replicas of a master lose it: what it accepts meanwhile is nowhere else. They ask for it with a password that it does not have, so
 * that nothing of it waits in a socket either.
 */
async function cutOff(stage: Stage, master: number, replicas: readonly number[]): Promise<() => Promise<void>> {
  const each = (command: (redis: Redis) => Promise<unknown>): Promise<unknown> =>
    Promise.all(replicas.map(async (port) => command(await stage.to(port))))
  await each((redis) => redis.config('SET', 'masterauth', 'wrong'))
  await (await stage.to(master)).call('CLIENT', 'KILL', 'TYPE', 'replica')
  await each((redis) =>
    eventually(async () => expect(await redis.info('replication')).to.include('master_link_status:down'), 15_000, 20),
  )
  return async () => void (await each((redis) => redis.config('SET', 'masterauth', '')))
}

/** Data that only the master has is lost with it. */
export async function loseMaster(bench: Pick<Bench, 'pause'>, stage: ReplicatedStage): Promise<void> {
  const master = await stage.masterPort()
  const replicas = stage.servers.map(({ port }) => port).filter((port) => port !== master)
  const reunite = await cutOff(stage, master, replicas)
  await bench.pause(CUT_OFF_MS)
  await killMaster(stage, reunite)
}

/** Data that only the master has is lost with it. */
export async function loseMasterOf(bench: Pick<Bench, 'pause'>, stage: ClusterStage, key: string): Promise<void> {
  const master = await stage.masterOf(key)
  const reunite = await cutOff(stage, master, await replicasOf(stage, master))
  await bench.pause(CUT_OFF_MS)
  await killMasterOf(stage, key, reunite)
}

/** For some seconds there are two masters; all clients have left the old one before it learns that it is not a master. */
export async function leaveMaster(bench: Pick<Bench, 'connectionsAt'>, stage: ReplicatedStage): Promise<void> {
  const old = await stage.promote()
  await eventually(
    async () => expect(await bench.connectionsAt(old), 'at the old master').to.deep.equal([]),
    LEFT_MS,
    50,
  )
  const [role] = await (await stage.to(old)).role()
  expect(role, 'so that it could not say so itself').to.equal('master')
}

/** The replica takes over, and the dead one comes back as its replica. */
export async function killMasterOf(
  stage: ClusterStage,
  key: string,
  then = async (): Promise<void> => {},
): Promise<void> {
  const port = await stage.masterOf(key)
  const master = stage.servers.find((server) => server.port === port)
  await master?.kill('SIGKILL')
  await then()
  await movedFrom(stage, key, port)
  await master?.restart()
}

/** The sockets of the master stay open without answers; when it goes on, it learns that it is a replica. */
export async function stopMasterOf(stage: ClusterStage, key: string): Promise<void> {
  const port = await stage.masterOf(key)
  const master = stage.servers.find((server) => server.port === port)
  await master?.kill('SIGSTOP')
  try {
    await movedFrom(stage, key, port)
  } finally {
    await master?.kill('SIGCONT')
  }
}

/** Lets the replica of the master of a key take over by agreement of both; asks again if Redis gives up because they are slow. */
export async function failOver(stage: ClusterStage, key: string): Promise<void> {
  const port = await stage.masterOf(key)
  const replicas = await replicasOf(stage, port)
  const refusals: unknown[] = []
  for (const end = Date.now() + HAND_OVER_MS; ;) {
    for (const replica of replicas)
      await (await stage.to(replica)).cluster('FAILOVER').catch((error: unknown) => refusals.push(error))
    try {
      return await movedFrom(stage, key, port, GIVEN_UP_MS)
    } catch (error) {
      if (Date.now() > end) throw new Error(`${String(error)}; ${refusals.map(String).join()}`, { cause: error })
    }
  }
}

/** Keeps replicas from taking over by themselves meanwhile, as on a busy machine: data that they miss would be lost. */
export async function withoutElections(stage: Stage, action: () => Promise<void>): Promise<void> {
  const set = async (ms: number): Promise<void> => {
    for (const { port } of stage.servers) await (await stage.to(port)).config('SET', 'cluster-node-timeout', ms)
  }
  await set(PATIENT_MS)
  try {
    await action()
  } finally {
    await set(NODE_TIMEOUT_MS)
  }
}

async function replicasOf(stage: ClusterStage, master: number): Promise<number[]> {
  const id = await (await stage.to(master)).cluster('MYID')
  const replicas: number[] = []
  for (const { port } of stage.nodes) {
    const redis = await stage.to(port)
    if (String(await redis.cluster('NODES')).includes(`myself,slave ${id}`)) replicas.push(port)
  }
  return replicas
}

/** The slot of a key goes to another master, and back. */
export async function moveSlot(bench: Pick<Bench, 'pause'>, stage: ClusterStage, key: string): Promise<void> {
  const home = await stage.masterOf(key)
  const masters = new Set<number>()
  for (const one of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) masters.add(await stage.masterOf(one))
  const other = [...masters].find((port) => port !== home)
  if (other === undefined) throw new Error('no other master')
  await migrate(stage, key, home, other)
  await bench.pause(500)
  await migrate(stage, key, other, home)
}

async function movedFrom(stage: ClusterStage, key: string, port: number, withinMs = 20_000): Promise<void> {
  await eventually(async () => expect(await stage.masterOf(key)).not.to.equal(port), withinMs, 100)
}

export const sentinels: readonly Scenario<ReplicatedStage>[] = [
  {
    name: 'SIGKILL of the master: the sentinels choose another',
    allowed: { lost: IN_ALL_HANDS, duplicated: REPEATED },
    fault: (_, stage) => killMaster(stage),
  },
  {
    name: 'SIGKILL of a master whose replicas have lost it',
    allowed: { lost: IN_ALL_HANDS, duplicated: REPEATED },
    fault: loseMaster,
  },
  {
    name: 'SENTINEL FAILOVER while the old master lives on',
    allowed: { lost: IN_ALL_HANDS, duplicated: AT_BOTH },
    fault: leaveMaster,
  },
]

export const clusters: readonly Scenario<ClusterStage>[] = [
  {
    name: 'SIGKILL of the master of the queue: its replica takes over',
    allowed: { lost: IN_ALL_HANDS, duplicated: REPEATED },
    fault: (bench, stage) => killMasterOf(stage, bench.keys.timeouts),
  },
  {
    name: 'SIGKILL of the master of the queue, whose replica has lost it',
    allowed: { lost: IN_ALL_HANDS, duplicated: REPEATED },
    fault: (bench, stage) => loseMasterOf(bench, stage, bench.keys.timeouts),
  },
  {
    name: 'SIGSTOP of the master of the queue until its replica has taken over',
    allowed: { lost: IN_ALL_HANDS, duplicated: AT_BOTH },
    fault: (bench, stage) => stopMasterOf(stage, bench.keys.timeouts),
  },
  {
    name: 'CLUSTER FAILOVER of the master of the queue',
    allowed: { lost: IN_ALL_HANDS, duplicated: REPEATED },
    fault: (bench, stage) => failOver(stage, bench.keys.timeouts),
  },
  {
    name: 'the slot of the queue moves to another master and back while it is used',
    allowed: { lost: IN_ALL_HANDS, duplicated: IN_ALL_HANDS },
    fault: (bench, stage) => moveSlot(bench, stage, bench.keys.timeouts),
  },
  {
    name: 'names whose keys lie in different slots are refused, and disturb no other queue',
    async fault(_, stage) {
      const client = createClient({ ...stage.client, codec: codecs.json() })
      try {
        for (let i = 0; i < 20; i++) {
          const delayed = client.getDelayedQueue(client.getQueue(`${uniqueName('slots')}x{y`), { deliver: false })
          const refused = await delayed.offer(i, 10).catch((error: unknown) => error)
          expect(refused).to.be.instanceOf(CrossSlotError)
        }
      } finally {
        await client.shutdown()
      }
    },
  },
]

/** Moves a slot as redis-cli does: key by key, during other commands. */
async function migrate(stage: ClusterStage, key: string, from: number, to: number): Promise<void> {
  const [source, target] = [await stage.to(from), await stage.to(to)]
  const slot = await source.cluster('KEYSLOT', key)
  const [sourceId, targetId] = [await source.cluster('MYID'), await target.cluster('MYID')]
  await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId)
  await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId)
  for (;;) {
    const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, 10)) as string[]
    if (keys.length === 0) break
    for (const one of keys) await source.call('MIGRATE', '127.0.0.1', to, one, 0, 5_000)
  }
  for (const redis of [target, source]) await redis.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId)
  await eventually(async () => expect(await stage.masterOf(key)).to.equal(to), 10_000, 50)
}
