// `redelayed-server key [--scopes push,consume] [--topics orders,mails-*] [--hide-payloads]`: makes an API key, and the line of the keys file for it.
import { parseArgs } from 'node:util'
import { makeKey, SCOPES, type Scope } from '../api/api-keys.js'
import { TOPIC_NAME } from '../topics/topic-name.js'

try {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      scopes: { type: 'string', default: SCOPES.join(',') },
      topics: { type: 'string', default: '*' },
      'hide-payloads': { type: 'boolean', default: false },
    },
  })
  const scopes = values.scopes.split(',').map((given) => {
    const scope = SCOPES.find((each) => each === given)
    if (scope === undefined) throw new Error(`--scopes: expected some of ${SCOPES.join(',')}`)
    return scope satisfies Scope
  })
  const topics = values.topics.split(',')
  for (const topic of topics) {
    if (!new RegExp(TOPIC_NAME).test(topic.replace(/\*$/, 'x')))
      throw new Error('--topics: expected names of topics, or their beginnings and *')
  }
  const { key, line } = makeKey(scopes, topics, values['hide-payloads'])
  console.log(`The key, for the client:          ${key}`)
  console.log(`A line for the file of the keys:  ${line}`)
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = 2
}
