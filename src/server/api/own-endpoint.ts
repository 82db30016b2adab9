import type { Endpoints } from '../delivery/endpoints.js'
import { TopicError } from '../topics/errors.js'
import type { ApiKey } from './api-keys.js'
import { BadRequest } from './problem.js'

/**
 * The problems of the endpoints that messages name for themselves, by endpoint id. Endpoints belong to all topics: a key that gives one to
 * a message gets a webhook signed with its secret.
 *
 * @throws BadRequest the key is not for all topics
 */
export async function wrongEndpoints(
  endpoints: Endpoints,
  key: ApiKey,
  messages: readonly { readonly endpoint?: string | undefined }[],
): Promise<ReadonlyMap<string, TopicError>> {
  const ids = new Set(messages.flatMap(({ endpoint }) => endpoint ?? []))
  if (ids.size === 0) return NONE
  if (!key.topics.includes('*'))
    throw new BadRequest('forbidden', 'only a key for all topics may give a message an endpoint of its own')
  const wrong = new Map<string, TopicError>()
  const look = async (id: string): Promise<void> => {
    await endpoints.assertThere(id).catch((thrown: unknown) => {
      if (!(thrown instanceof TopicError)) throw thrown
      wrong.set(id, thrown)
    })
  }
  await Promise.all(Array.from(ids, look))
  return wrong
}

const NONE: ReadonlyMap<string, TopicError> = new Map()

/** @throws TopicError no endpoint has this id @throws BadRequest */
export async function assertEndpoint(
  endpoints: Endpoints,
  key: ApiKey,
  message: { readonly endpoint?: string | undefined },
): Promise<void> {
  if (message.endpoint === undefined) return
  for (const [, problem] of await wrongEndpoints(endpoints, key, [message])) throw problem
}
