// `redelayed-server key [--scopes push,consume] [--topics orders,mails-*] [--hide-payloads]`: makes an API key, and the line of the keys
// file for it.
import { parseArgs } from 'node:util'
import { makeKey, SCOPES, type Scope } from '../api/api-keys.js'
import { TOPIC_NAME } from '../topics/topic-name.js'

const HELP = `redelayed-server key [flags]   makes an API key, and the line for the file of the keys

  --scopes <scope,scope,…>   What it is for: ${SCOPES.join(', ')}. Default all.
  --topics <topic,topic,…>   For which topics; a name that ends with * stands for all that begin so. Default *.
  --hide-payloads            It sees no bodies, headers and answers of endpoints, unless it may consume or administer.`

const problems: string[] = []
const given = read()
if (given?.help === true) console.log(HELP)
else if (given !== undefined) {
  const scopes = given.scopes.split(',').flatMap((each): Scope[] => SCOPES.filter((scope) => scope === each.trim()))
  if (scopes.length < given.scopes.split(',').length) problems.push(`--scopes: expected some of ${SCOPES.join(',')}`)
  const topics = given.topics.split(',').map((each) => each.trim())
  if (!topics.every((topic) => new RegExp(TOPIC_NAME).test(topic.replace(/\*$/, 'x'))))
    problems.push('--topics: expected names of topics, or prefixes with *')
  if (problems.length === 0) {
    const { key, line } = makeKey([...new Set(scopes)], [...new Set(topics)], given['hide-payloads'])
    console.log(`The key, for the client:          ${key}`)
    console.log(`A line for the file of the keys:  ${line}`)
  }
}
if (problems.length > 0) {
  console.error(problems.join('\n'))
  process.exitCode = 2
}

function read() {
  try {
    return parseArgs({
      args: process.argv.slice(3),
      options: {
        scopes: { type: 'string', default: SCOPES.join(',') },
        topics: { type: 'string', default: '*' },
        'hide-payloads': { type: 'boolean', default: false },
        help: { type: 'boolean', default: false, short: 'h' },
      },
    }).values
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error))
    return undefined
  }
}
