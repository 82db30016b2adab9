import type { QueueKeys } from '../keys.js'

/** A command that an ACL user needs, with arguments as the library could send them. */
export interface NeededCommand {
  readonly name: string
  readonly args: (keys: QueueKeys) => readonly string[]
}

/** Commands and their purpose; `null`: every user needs them. */
export interface NeededGroup {
  readonly purpose: string | null
  readonly onlyInCluster?: boolean
  readonly commands: readonly NeededCommand[]
}

const timeouts = (name: string, ...rest: string[]): NeededCommand => ({
  name,
  args: (keys) => [keys.timeouts, ...rest],
})
const order = (name: string, ...rest: string[]): NeededCommand => ({ name, args: (keys) => [keys.order, ...rest] })
const destination = (name: string, ...rest: string[]): NeededCommand => ({
  name,
  args: (keys) => [keys.destination, ...rest],
})
const wheel = (name: string, ...rest: string[]): NeededCommand => ({ name, args: (keys) => [keys.wheel, ...rest] })
const channel = (name: string, ...rest: string[]): NeededCommand => ({ name, args: (keys) => [keys.channel, ...rest] })
const move = (name: string, ...rest: string[]): NeededCommand => ({
  name,
  args: ({ destination: key }) => [key, key, ...rest],
})
const plain = (name: string, ...args: string[]): NeededCommand => ({ name, args: () => args })

/** The list of docs/wire-format.md, in its order; a test compares them. */
export const NEEDED: readonly NeededGroup[] = [
  {
    purpose: null,
    commands: [
      { name: 'EVAL', args: (keys) => ['return 1', '1', keys.timeouts] },
      { name: 'EVALSHA', args: (keys) => ['0'.repeat(40), '1', keys.timeouts] },
      plain('SCRIPT|LOAD', 'return 1'),
      plain('TIME'),
      timeouts('ZADD', '1', 'entry'),
      timeouts('ZREM', 'entry'),
      timeouts('ZRANGE', '0', '0'),
      timeouts('ZRANGEBYSCORE', '0', '1'),
      timeouts('ZREMRANGEBYRANK', '0', '0'),
      timeouts('ZCOUNT', '0', '1'),
      timeouts('ZCARD'),
      timeouts('ZSCORE', 'entry'),
      timeouts('ZMSCORE', 'entry'),
      { name: 'RPUSH', args: (keys) => [keys.quarantine, 'entry'] },
      { name: 'GETRANGE', args: (keys) => [keys.leader, '0', '0'] },
      { name: 'SET', args: (keys) => [keys.leader, 'client', 'PX', '1'] },
      destination('LPOP'),
      order('LREM', '1', 'entry'),
      order('LRANGE', '0', '0'),
      order('LTRIM', '0', '0'),
      order('LINDEX', '0'),
      destination('LLEN'),
      timeouts('EXISTS'),
      timeouts('UNLINK'),
      channel('PUBLISH', '1'),
      channel('SUBSCRIBE'),
      plain('UNSUBSCRIBE'),
      channel('PUBSUB|NUMSUB'),
      destination('BLPOP', '1'),
      { name: 'BLMPOP', args: (keys) => ['1', '1', keys.destination, 'LEFT'] },
      plain('CLIENT|ID'),
      plain('CLIENT|UNBLOCK', '1'),
      plain('CLIENT|KILL', 'ID', '1'),
      plain('PING'),
      plain('INFO'),
      plain('QUIT'),
    ],
  },
  {
    purpose: 'a cluster',
    onlyInCluster: true,
    commands: [plain('CLUSTER|SLOTS'), plain('CLUSTER|INFO'), plain('CLUSTER|KEYSLOT', 'x'), plain('ASKING')],
  },
  {
    purpose: 'finding a replica that no table of slots has named',
    onlyInCluster: true,
    commands: [plain('CLUSTER|NODES')],
  },
  {
    purpose: 'noticing that a node is not the one that the table of slots names',
    onlyInCluster: true,
    commands: [plain('CLUSTER|MYID')],
  },
  {
    purpose: 'noticing that a connection is at another database, with a db other than 0',
    commands: [plain('CLIENT|INFO')],
  },
  {
    purpose: 'deques',
    commands: [
      destination('LPUSH', 'x'),
      destination('LPUSHX', 'x'),
      destination('RPUSHX', 'x'),
      destination('RPOP'),
      destination('BRPOP', '1'),
      move('LMOVE', 'LEFT', 'RIGHT'),
      move('BLMOVE', 'LEFT', 'RIGHT', '1'),
    ],
  },
  {
    purpose: 'moves before Redis 6.2, and pollLastAndOfferFirstTo',
    commands: [move('RPOPLPUSH'), move('BRPOPLPUSH', '1')],
  },
  {
    purpose: 'containsAll, removeAll and retainAll',
    commands: [destination('LSET', '0', 'x'), timeouts('ZRANK', 'entry')],
  },
  {
    purpose: 'the methods of RObject and RExpirable',
    commands: [
      timeouts('PTTL'),
      timeouts('PEXPIRE', '1'),
      timeouts('PEXPIREAT', '1'),
      timeouts('PEXPIRETIME'),
      timeouts('PERSIST'),
      { name: 'RENAME', args: (keys) => [keys.timeouts, keys.timeouts] },
      { name: 'COPY', args: (keys) => [keys.timeouts, keys.timeouts] },
      timeouts('DUMP'),
      timeouts('RESTORE', '0', 'x'),
      timeouts('TOUCH'),
      timeouts('MEMORY|USAGE'),
    ],
  },
  {
    purpose: "layout: 'wheel'",
    commands: [wheel('SADD', 'x'), wheel('SISMEMBER', 'x'), wheel('SCARD'), wheel('PERSIST')],
  },
  { purpose: 'offers with durability', commands: [plain('WAIT', '0', '1'), plain('WAITAOF', '0', '0', '1')] },
]

/** One command for each key and the channel of a queue: a user who may use them with one command may usually use them with all. */
export function accessTo(keys: QueueKeys): readonly (readonly string[])[] {
  return [
    ['ZADD', keys.timeouts, '1', 'entry'],
    ['RPUSH', keys.order, 'entry'],
    ['RPUSH', keys.destination, 'entry'],
    ['RPUSH', keys.quarantine, 'entry'],
    ['SET', keys.leader, 'client', 'PX', '1'],
    ['ZADD', keys.wheel, '1', 'entry'],
    ['PUBLISH', keys.channel, '1'],
  ]
}

/** `SCRIPT|LOAD` as the words of the command. */
export function wordsOf({ name, args }: NeededCommand, keys: QueueKeys): string[] {
  return [...name.split('|'), ...args(keys)]
}
