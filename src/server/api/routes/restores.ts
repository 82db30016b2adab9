import { covers, type ApiKey } from '../api-keys.js'
import { assertCovers } from '../authorize.js'
import type { App, Context } from '../context.js'
import { BadRequest } from '../problem.js'
import type { RestoreRecord } from '../restores.js'
import * as schemas from '../schemas.js'

const tags = ['restores']

/** Restores from the journal by hand. The service puts back what Redis loses also without them. */
export function restoreRoutes(app: App, { topics, restores }: Context): void {
  app.post(
    '/v1/restores',
    {
      config: { scope: 'admin', bodyIsOptional: true },
      schema: {
        tags,
        operationId: 'startRestore',
        summary:
          'Start a restore of the messages that the journal has and Redis lacks: one message, a topic, or all topics of the key',
        body: schemas.RestoreInput,
        response: { 202: schemas.RestoreOutput },
      },
    },
    async (request, reply) => {
      const { topic = null, id: messageId = null, expired = false, dryRun = false } = request.body
      const { apiKey } = request
      if (!topics.hasJournal) throw new BadRequest('no-journal', 'there is nothing to restore from')
      if (topic !== null) assertCovers(apiKey, topic)
      if (!dryRun) await topics.restoreNames()
      const names = topic === null ? await namesOf(apiKey) : [(await topics.open(topic)).name]
      const record = await restores.start({ names, topic, messageId, expired, dryRun, key: apiKey.id })
      void reply.header('Location', `/v1/restores/${record.id}`)
      return reply.code(202).send(record)
    },
  )

  app.get(
    '/v1/restores/:restore',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'getRestore',
        summary: 'The progress of a restore, whichever instance runs it',
        params: schemas.RestoreParams,
        response: { 200: schemas.RestoreOutput },
      },
    },
    async ({ params, apiKey }) => {
      const record = await restores.get(params.restore)
      if (record === null || !maySee(apiKey, record))
        throw new BadRequest('restore-not-found', 'only the last hundred restores are known')
      return record
    },
  )

  app.get(
    '/v1/restores',
    {
      config: { scope: 'read' },
      schema: {
        tags,
        operationId: 'listRestores',
        summary: 'The last restores of all instances, the newest first',
        response: { 200: schemas.RestoreList },
      },
    },
    async ({ apiKey }) => ({ restores: (await restores.list()).filter((record) => maySee(apiKey, record)) }),
  )

  async function namesOf(key: ApiKey): Promise<string[]> {
    return (await topics.matching('*')).filter((name) => covers(key, name))
  }
}

/** Whether a key may see a restore: its own, and those of its topics. */
function maySee(key: ApiKey, { topic, key: owner }: RestoreRecord): boolean {
  return owner === key.id || covers(key, topic ?? '*')
}
