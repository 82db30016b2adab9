import { TopicError } from './errors.js'

/** The form of a topic's name, as a JSON schema pattern; `topicName` refuses some more names. */
export const TOPIC_NAME = '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'

const FORM = new RegExp(TOPIC_NAME)

/** The form of a pattern of names, in which `*` stands for any characters, also for none. */
export const TOPIC_PATTERN = '^[A-Za-z0-9*][A-Za-z0-9._:*-]{0,127}$'

/** The prefix of the service's own queues. */
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
    isOwn(name)
      ? `names that begin with ${RESERVED} or end with :dead or two numbers (of shards) are reserved`
      : expected,
  )
}

/** Whether a name matches a pattern: it contains the texts between the stars in order, each matched as early as possible. */
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
