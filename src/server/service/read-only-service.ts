import { rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { ApiKeys, makeKeysFile } from '../api/api-keys.js'
import { createReadOnlyApp } from '../api/read-only-app.js'
import type { ServerSettings } from '../config/server-settings.js'
import { Doctor } from '../console/doctor.js'
import { LibraryCommand } from '../console/library-command.js'
import { MemorySessions } from '../console/memory-sessions.js'
import { readPageFiles } from '../console/page-files.js'
import { Queues } from '../console/queues.js'
import { Sessions } from '../console/sessions.js'
import { addressOf, plainClient } from './connections.js'
import { closedWithin, urlOf } from './listening.js'
import type { Service } from './running.js'

/**
 * Starts a service that shows the queues of a Redis and writes nothing to it: its connection and the library's command line only read, and
 * sessions are in the memory of this process.
 *
 * @throws RedelayedError something that it needs is missing; nothing stays open
 */
export async function startReadOnlyService(
  settings: ServerSettings,
  version: string,
  pageFolder: string,
): Promise<Service> {
  const keysPath = settings.apiKeys ?? join(settings.dataDir, 'api-keys')
  const madeKey = settings.apiKeys === undefined ? makeKeysFile(keysPath) : undefined
  const { redis, close: closeRedis } = plainClient(settings, undefined)
  const command = new LibraryCommand(addressOf(settings, undefined))
  const closeClients = async (): Promise<void> => {
    await command.stop()
    closeRedis()
  }
  try {
    let log = (_thrown: unknown): void => undefined
    redis.on('error', (error: unknown) => log(error))
    const { app, waits } = await createReadOnlyApp({
      ...{ settings, version },
      keys: new ApiKeys(keysPath, (error) => log(error)),
      sessions: new Sessions(new MemorySessions()),
      queues: new Queues(command, redis),
      doctor: new Doctor(command, Date.now),
      page: settings.ui ? readPageFiles(pageFolder) : undefined,
    })
    log = (thrown) => app.log.error(thrown)
    await app.listen({ host: settings.host, port: settings.port })
    return {
      ...{ madeKey, keysPath, ownRedis: undefined, journal: undefined },
      url: urlOf(app.server.address() as AddressInfo),
      failed: new Promise<never>(() => undefined),
      async close() {
        waits.leave()
        await command.stop()
        await closedWithin(settings.shutdownTimeout, app)
        closeRedis()
      },
    }
  } catch (thrown) {
    // an unseen key must not be the only one
    if (madeKey !== undefined) rmSync(keysPath, { force: true })
    await closeClients()
    throw thrown
  }
}
