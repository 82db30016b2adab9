import type { Connection, Opening } from './network.js'
import { someone, type Scene } from './play.js'

type Fault = (scene: Scene, duration: number) => void

/** The faults of connections, the server and the processes; they end after `duration` milliseconds, at least for new connections. */
export const FAULTS: readonly (readonly [name: string, fault: Fault])[] = [
  ['opening hangs', (scene, duration) => opening(scene, duration, () => ({ kind: 'hangs' }))],
  [
    'opened and then silent',
    (scene, duration) => {
      const after = Math.floor(scene.world.between(0, 6))
      opening(scene, duration, () => ({ kind: 'silent', after }))
    },
  ],
  [
    'opened and then deaf',
    (scene, duration) => {
      const after = Math.floor(scene.world.between(0, 6))
      opening(scene, duration, () => ({ kind: 'deaf', after }))
    },
  ],
  [
    'connections reordered',
    (scene, duration) => opening(scene, duration, () => ({ kind: 'slow', ms: scene.world.between(0, 1_400) })),
  ],
  ['reset', (scene) => some(scene, (connection) => connection.reset('at once'))],
  [
    'half-open',
    (scene) => {
      const way = scene.world.random()
      some(scene, (connection) => {
        if (way < 0.67) connection.toServer.isDead = true
        if (way > 0.33) connection.toClient.isDead = true
      })
    },
  ],
  [
    'held to the server',
    (scene, duration) => some(scene, ({ toServer }) => (toServer.heldUntil = scene.world.now + duration)),
  ],
  [
    'held to the client',
    (scene, duration) => some(scene, ({ toClient }) => (toClient.heldUntil = scene.world.now + duration)),
  ],
  [
    'held to the server, and then reset',
    (scene, duration) => {
      const { world } = scene
      const after = world.between(0.05, 0.9) * duration
      some(scene, (connection) => {
        connection.toServer.heldUntil = world.now + duration
        world.after(after, () => connection.reset('later'))
      })
    },
  ],
  [
    'server restarts',
    (scene, duration) => {
      const { network, server, world } = scene
      network.up = false
      for (const connection of network.connections) connection.reset('at once')
      server.restart()
      world.after(duration, () => (network.up = true))
    },
  ],
  [
    'slow script',
    (scene, duration) => {
      const { network, world } = scene
      network.busyUntil = Math.max(network.busyUntil, world.now + duration)
      for (const { toServer } of network.connections)
        toServer.heldUntil = Math.max(toServer.heldUntil, network.busyUntil)
    },
  ],
  [
    'process killed',
    (scene, duration) => {
      const member = someone(scene)
      if (member === undefined) return
      member.kill()
      for (const connection of scene.network.of(member.process)) connection.onClosed()
      scene.members.delete(member)
      scene.world.after(duration, () => scene.start())
    },
  ],
  [
    'process suspended',
    (scene, duration) => {
      const member = someone(scene)
      if (member !== undefined) member.suspend(scene.world.now + duration)
    },
  ],
  [
    'published messages lost',
    (scene, duration) => {
      scene.trouble.lossOfPublished = 0.7
      scene.world.after(duration, () => (scene.trouble.lossOfPublished = 0))
    },
  ],
  [
    'slow network',
    (scene, duration) => {
      scene.trouble.delay = 300
      scene.world.after(duration, () => (scene.trouble.delay = 0))
    },
  ],
]

/** Connections that begin within some time; those there are now break, or else hardly any would begin. */
function opening(scene: Scene, duration: number, kind: () => Opening): void {
  const { network, world } = scene
  const odds = world.chance(0.5) ? 1 : 0.5
  const mine = (): Opening | undefined => (world.chance(odds) ? kind() : undefined)
  network.openings.add(mine)
  world.after(duration, () => network.openings.delete(mine))
  if (world.chance(0.8)) some(scene, (connection) => connection.reset('at once'))
}

/** All connections, or those of one process, or one. */
function some(scene: Scene, befall: (connection: Connection) => void): void {
  const { world, network } = scene
  const all = [...network.connections]
  const one = all[Math.floor(world.random() * all.length)]
  if (one === undefined) return
  const how = world.random()
  for (const connection of all) {
    if (how < 0.3 || (how < 0.6 && connection.owner === one.owner) || connection === one) befall(connection)
  }
}
