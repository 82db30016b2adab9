import { TopicError } from './errors.js'

/** As a pattern of JSON schema; `topicName` refuses some more. */
export const TOPIC_NAME = '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'

const FORM = new RegExp(TOPIC_NAME)

/** Of several topics: a name in which `*` stands for any characters, also for none. */
export const TOPIC_PATTERN = '^[A-Za-z0-9*][A-Za-z0-9._:*-]{0,127}$'

/** The queues of the service itself begin so. */
export const RESERVED = 'redelayed-server:'

/** Whether a topic can have the name. */
export function isTopicName(name: string): boolean {
  return FORM.test(name) && !isOwn(name)
}

function isOwn(name: string): boolean {
  return name.startsWith(RESERVED) || /:dead$|:\d+:\d+$/.test(name)
}

/** A topic's name is the name of its queue, so that programs with the library can use the same queue. */
export function topicName(name: string): string {
  if (isTopicName(name)) return name
  const expected = 'a topic has 1 to 128 letters, digits, ".", "_", ":" and "-", and begins with a letter or digit'
  throw new TopicError(
    'ERR_TOPIC_NAME',
    isOwn(name) ? `names that begin with ${RESERVED} or end with :dead or two numbers (of shards) are taken` : expected,
  )
}

/** Whether a name fits a pattern: its texts between the stars come in their order, each as early as it can. */
export function fits(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first)) return false
  let from = first.length
  for (const text of rest) {
    const at = name.indexOf(text, from)
    if (at < 0) return false
    from = at + text.length
  }
  return name.length - last.length >= from && name.endsWith(last)
}
