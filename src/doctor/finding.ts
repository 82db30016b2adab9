/** An `info` requires no action; an `error` or a `warning` makes the exit code 1. */
export type Level = 'error' | 'warning' | 'info'

/** What a kind of finding means, and how to repair it; the codes are stable. */
export interface Meaning {
  readonly means: string
  readonly repair: string
  /** How `--fix` repairs it, if it can. */
  readonly fix?: string
}

export const MEANINGS = {
  'no-subscriber': {
    means: 'Messages wait here, and no process subscribes to their due times, so none delivers them.',
    repair: 'Start a consumer of this queue, or call getDelayedQueue on it in a process that stays; in Java too.',
  },
  overdue: {
    means: 'Their time has come, and they are not in the queue yet, so no consumer can take them.',
    repair: 'Find processes that hold the queue and are blocked or cut off; with no subscriber, start one.',
    fix: 'moves what is due to the queue, as a process that holds it would',
  },
  'not-promoted': {
    means:
      'Messages with layout wheel are still in buckets although their minute is near. Java processes do not see them.',
    repair: 'Start a consumer of this queue with this package, or call getDelayedQueue on it in a process that stays.',
  },
  'minutes-lost': {
    means:
      'The set of buckets lacks these minutes, or has a wrong time for them: size and stats may not count their messages. Consumers with this layout find them from 45 s before their minute until a day after it; after that only --fix without names of queues restores them.',
    repair: 'Find what deletes, evicts or changes single keys or members of a queue.',
    fix: 'adds the minutes to the set of buckets, with their times',
  },
  'bucket-misnamed': {
    means:
      'No version of redelayed writes these keys: another program has renamed a bucket. Its messages are never delivered under this name.',
    repair:
      'Find the minute in your own records of what was offered: the bucket does not hold it. Rename the key to redelayed:wheel-<due time in ms / 60,000>:{queue}, and run the doctor with --fix and without names.',
  },
  'order-missing': {
    means: 'They are delivered on time, but size, readAll, poll and remove of RDelayedQueue in Java do not see them.',
    repair: 'Find what deletes or evicts single keys of a queue.',
    fix: 'adds them to the end of the order list',
  },
  'order-orphan': {
    means:
      'The order list holds entries that the schedule does not: they are never delivered, yet Java still shows them.',
    repair: 'Were they delivered? If not, offer them again; find what deletes or evicts single keys of a queue.',
    fix: 'moves them to the quarantine, where they can be read',
  },
  malformed: {
    means: 'No version of Redisson or redelayed wrote these entries, or they were damaged. They stop a Java service.',
    repair: 'Find out who wrote them. When they are due, redelayed puts them in the quarantine.',
    fix: 'moves those that are due to the quarantine',
  },
  'negative-due': {
    means: 'Redisson never delivers them, and while they are the head, later offers are not announced.',
    repair: 'Find out who offered with such a delay. redelayed puts them in the quarantine when it next transfers.',
    fix: 'moves them to the quarantine',
  },
  'old-format': {
    means:
      'Redisson before 3.21.1 or entryFormat dLc0 wrote them. redelayed delivers them; later Redisson gets stuck on them.',
    repair: 'Nothing, unless services with a later Redisson use this queue: let it run empty before they start.',
  },
  quarantine: {
    means: 'These were set aside because they could not be read or delivered. No client takes them by itself.',
    repair: 'Read them with readQuarantine(), offer again what is needed, and delete the list.',
  },
  'wrong-type': {
    means:
      'The key holds a value of another type than the queue expects. Calls that need the key fail or have no effect.',
    repair: 'Find out what else uses the name, and rename or delete that key.',
  },
  expires: {
    means: 'Redis deletes the key at that time, with all that is in it then, also messages that are added later.',
    repair:
      'If it is not intended, remove it: with clearExpire for a delayed queue, with PERSIST for a reliable queue or a bucket. Consumers of a reliable queue, and the next offer into the minute of a bucket, also remove it. On a set of cancelled ids the next cancellation removes it; if Redis deletes that set first, the cancelled messages are delivered.',
  },
  'setting-without-effect': {
    means: 'It is not a value of this setting, so the queue uses the default. setConfig did not write it.',
    repair: 'Find out who wrote it, and set it again with setConfig; null removes it.',
  },
  'repeat-unreadable': {
    means: 'No process prepares messages of it. upsertSchedule did not write it.',
    repair: 'Find out who wrote it; begin it again with upsertSchedule, or remove the field of the hash.',
  },
  'repeat-stuck': {
    means: 'No consumer polls the queue, or none can read these repeats, so that their messages are not prepared.',
    repair: 'Start a consumer or a worker of this queue.',
  },
  'repeat-stopped': {
    means:
      'The time of the next message is missing, or later than the next tick: another program has changed it, or the clock of Redis was ahead and is set back. No poll looks at it before that time.',
    repair: 'Call upsertSchedule again with the same definition, as at the start of every process.',
  },
  paused: {
    means:
      'Until it is enabled again, `add` is refused where it is disabled, and no consumer gets a message where `poll` is.',
    repair: 'Call enableOperation, or `redelayed resume`, when the reason of the pause is over.',
  },
  'groups-paused': {
    means: 'No consumer gets a message of these groups until they are resumed.',
    repair: 'Call resumeGroup, or `redelayed resume --group`, when the reason of the pause is over.',
  },
  'tasks-paused': {
    means: 'No consumer gets a message of these tasks until they are resumed.',
    repair: 'Call resumeTask, or `redelayed resume --task`, when the reason of the pause is over.',
  },
  'group-claims-lost': {
    means: 'The claim counts of groups exceed their messages in flight, so slots of groupConcurrency stay taken.',
    repair:
      'Find what removes or writes single keys or fields of the queue. A poll that finds no message looks at some groups, at random, and corrects the counts of those that are full, while at most 1,000 messages of 1 MiB in all are in flight; without claims, setConfig with groupConcurrency corrects all.',
  },
  'place-lost': {
    means:
      'No poll finds them: another program, or an eviction, has deleted their places in the schedules. Their batches and waitUntilFinished wait for them.',
    repair:
      'Find what deletes or evicts single keys or members of a queue. Add them again under their ids, or remove them by their ids.',
  },
  'records-left': {
    means:
      'Another program, or an eviction, has deleted entries of the queue. Batches wait for messages that are gone, and do not finish; or the records of completed messages or finished batches have lost their places, and stay.',
    repair:
      'Find what deletes or evicts single keys or members of a queue. Start a consumer: some of its polls, most often those that find no message, look at some of these records, at random, count such messages as removed, and give the other records their places back.',
  },
  'batch-miscounted': {
    means:
      'Another program has changed the counts of batches, or deleted entries of their messages: such a batch does not finish when all of its messages have ended.',
    repair:
      'Find out who wrote into the key, and start a consumer: when the queue has no message left, some of its polls, and a second close, count the others as removed, and the batch finishes. In a queue that is never empty, stop what adds and consumes, lower the pending number in the field by the difference, and call close again.',
  },
  'visibility-far': {
    means:
      'Another program has set the time, or the clock of Redis was far ahead: no consumer gets these messages, and they hold slots of concurrency.',
    repair: 'Start a consumer: its polls let them end after the visibility timeout. Find out who wrote into the key.',
  },
  'times-ahead': {
    means:
      'Another program has set the times, or the clock of Redis was ahead. The queue removes these entries by their age only when the times have passed, and dead letters are delivered only then. Such a mark of a deduplication has no effect.',
    repair:
      'Find out who wrote into the keys. Where a queue has more entries than it keeps, its scripts remove such ones first; adds with deduplicate remove such marks; redrive moves dead letters back whatever their times.',
  },
  'wrong-shard': {
    means:
      'Another program put them into this shard: schedules there can run a second time, and the sharded queue does not find the messages by their ids.',
    repair: 'Find out who wrote them; removeSchedule and remove of the queue of this shard remove them.',
  },
  'changes-not-recorded': {
    means:
      'A script could not write into the change stream, whose epoch has ended: readers must compare the whole queue.',
    repair: 'Rename or delete the key if it is not a stream; else set changes to false with setConfig, and on again.',
  },
  'changes-behind': {
    means: 'The groups acknowledge too few changes. At the bound, adding is refused with a ChangesBehindError.',
    repair: 'Look for the readers of the groups; remove a group that is not needed with removeChangeGroup.',
  },
  'changes-unread': {
    means:
      'Changes are kept until groups have acknowledged them, and there is no group: adding is refused at the bound.',
    repair: "Start what reads them, or keep 'recent' ones with setConfig.",
  },
  'change-group-idle': {
    means: 'No process reads for this group, and the changes that it has not acknowledged stay.',
    repair: 'Start its readers, or remove it with removeChangeGroup.',
  },
  'changes-groups': {
    means: 'Another program made the groups. What groups have acknowledged stays, and adding is refused at the bound.',
    repair: 'Find out who made them, and remove them with removeChangeGroup or XGROUP DESTROY.',
  },
  'changes-foreign': {
    means: 'Another program writes into the key. Readers pass its entries over with a quarantined event.',
    repair: 'Find out who wrote them.',
  },
  'cross-slot': {
    means: 'The name has a { without a {tag}, so that its keys are in different slots, which no cluster allows.',
    repair: 'Choose another name: without braces, or with one part in braces.',
  },
  eviction: {
    means: 'When memory runs short, Redis deletes keys by itself, and with one key all messages of a queue.',
    repair: 'Set maxmemory-policy noeviction, or give the queues a Redis of their own.',
  },
  'persistence-off': {
    means: 'A restart of Redis loses all messages.',
    repair: 'Set appendonly yes, unless messages may be lost.',
  },
  'snapshots-only': {
    means: 'A crash of Redis loses what was offered since the last snapshot.',
    repair: 'Set appendonly yes, unless that may be lost.',
  },
  'persistence-failing': {
    means: 'Redis could not write to its disk when it last tried; a restart loses what is not there.',
    repair: 'Read the log of Redis: a full disk, or missing rights.',
  },
  'aof-no-fsync': {
    means: 'A crash of the machine loses what the kernel had not written to disk, often the last 30 seconds.',
    repair: 'Set appendfsync everysec or always, unless that may be lost.',
  },
  'aof-everysec': {
    means: 'A crash of the machine loses up to the last second of changes, also of acknowledged offers.',
    repair: 'Nothing, if that is acceptable; else appendfsync always, which costs time for each write.',
  },
  'replica-lag': {
    means: 'A failover to this replica would lose what it has not received yet.',
    repair: 'Check the network and the load of the replica.',
  },
  'is-replica': {
    means: 'This server refuses writes: nothing can be offered or delivered through it.',
    repair: 'Connect to the master, or use sentinels, cluster or replicated in createClient.',
  },
  'clock-skew': {
    means:
      'redelayed uses the clock of Redis. Redisson uses its own, and offerAt gets dates of this machine: they are off by that.',
    repair: 'Let NTP keep all clocks, here and on the Redis server.',
  },
  'server-too-old': {
    means: 'redelayed does not work with it.',
    repair: 'Redis 5.0 or later, or Valkey 7.2 or later.',
  },
  'acl-missing': {
    means: 'What needs them fails with an AuthError.',
    repair: 'Grant them with ACL SETUSER; docs/wire-format.md has the whole list.',
  },
  'partly-examined': {
    means: 'The doctor did not read all entries or buckets of this queue; its findings are about those that it read.',
    repair:
      'Name the queue, without --within: `redelayed doctor` then reads all of its entries. If another program has written more buckets than the doctor remembers, rename or delete those of that program first.',
  },
  'not-examined': {
    means: 'The server refused the command or does not know it, as managed services do; it says nothing good or bad.',
    repair: 'Read it in the console of the service, or run the doctor as a user who may.',
  },
} as const satisfies Readonly<Record<string, Meaning>>

export type Code = keyof typeof MEANINGS

export interface Finding {
  readonly code: Code
  readonly level: Level
  /** The queue or the server concerned; both are `null` if the finding is about the connection as a whole. */
  readonly queue: string | null
  readonly server: string | null
  /** The finding in a sentence. */
  readonly found: string
  readonly figures: Readonly<Record<string, unknown>>
  /** Whether `--fix` repairs this finding. */
  readonly fixable: boolean
}

/** A finding about a queue. */
export function aboutQueue(
  queue: string,
  code: Code,
  level: Level,
  found: string,
  figures: Finding['figures'] = {},
  fixable = meaningOf(code).fix !== undefined,
): Finding {
  return { code, level, queue, server: null, found, figures, fixable }
}

/** A finding about a server. */
export function aboutServer(
  server: string,
  code: Code,
  level: Level,
  found: string,
  figures: Finding['figures'] = {},
): Finding {
  return { code, level, queue: null, server, found, figures, fixable: false }
}

/** Whether `--fix` delivers entries: only if their destination list is known. */
export function deliverable(rival: string | null): { readonly isFixable: boolean; readonly unless: string } {
  if (rival === null) return { isFixable: true, unless: '' }
  return {
    isFixable: false,
    unless: ` They may be messages of a queue named ${rival}, which has the same keys: --fix delivers only queues that are named.`,
  }
}

export function meaningOf(code: Code): Meaning {
  return MEANINGS[code]
}

/** A count with its noun: `1 entry`, `1,234 entries`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}
