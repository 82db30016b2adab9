import { TopicError } from './errors.js'

/** As a pattern of JSON schema; `topicName` refuses some more. */
export const TOPIC_NAME = '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'

const FORM = new RegExp(TOPIC_NAME)

/** The queues of the service itself begin so. */
export const RESERVED = 'redelayed-server:'

/** A topic's name is the name of its queue, so that programs with the library can use the same queue. */
export function topicName(name: string): string {
  const isOwn = name.startsWith(RESERVED) || /:dead$|:\d+:\d+$/.test(name)
  if (FORM.test(name) && !isOwn) return name
  const expected = 'a topic has 1 to 128 letters, digits, ".", "_", ":" and "-", and begins with a letter or digit'
  throw new TopicError(
    'ERR_TOPIC_NAME',
    isOwn ? `names that begin with ${RESERVED} or end with :dead or two numbers (of shards) are taken` : expected,
  )
}
