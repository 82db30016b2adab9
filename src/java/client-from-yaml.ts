import { TUNING, createClient, type RedelayedClient } from '../client.js'
import { readRedissonYaml, type RedissonYamlOptions } from './redisson-yaml/redisson-yaml.js'

/**
 * Creates a client from Redisson's YAML (or JSON), given as the path of a file or as text: single server, Sentinel, cluster,
 * replicated and master-slave; needs the package `yaml`. Without a `codec` in the file it is Kryo 5, as in Redisson since
 * 3.19. Settings without a meaning here are ignored with one warning each; settings that cannot be honoured are errors.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: the file is wrong; the message has the path of the setting
 * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: the file needs a feature that this package lacks
 *
 * @example
 * ```ts
 * import { createClientFromRedissonYaml } from 'redelayed/java'
 *
 * const client = createClientFromRedissonYaml('redisson.yaml')
 * ```
 */
export function createClientFromRedissonYaml(
  pathOrText: string | URL,
  options: RedissonYamlOptions = {},
): RedelayedClient {
  return createClient(readRedissonYaml(pathOrText, options, TUNING))
}
