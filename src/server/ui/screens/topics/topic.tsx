import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../api/api.js'
import { count, duration } from '../../lib/format.js'
import { href, pathOf } from '../../lib/router.js'
import { useLoad } from '../../lib/use-load.js'
import { announce } from '../../parts/announcements.js'
import { Button } from '../../parts/button.js'
import { Confirm } from '../../parts/dialog.js'
import { Facts } from '../../parts/facts.js'
import { Head } from '../../parts/head.js'
import { Moment } from '../../parts/moment.js'
import { ErrorNote } from '../../parts/notes.js'
import { Outside } from '../../parts/outside.js'
import { State } from '../../parts/state.js'
import { Tile } from '../../parts/tile.js'
import { PauseButton } from './pause-button.js'
import { pausedText } from './paused.js'

const REFRESH_MS = 3_000

type Purged = 'messages' | 'dead-letters'

export function TopicScreen({ name }: { readonly name: string }): JSX.Element {
  const { data: topic, error, reload } = useLoad((signal) => api.topic(name, signal), [name], { everyMs: REFRESH_MS })
  const [purging, setPurging] = useState<Purged | undefined>(undefined)
  const counts = topic?.counts
  return (
    <>
      <Head
        title={name}
        above={{ name: 'Topics', href: href('/topics') }}
        aside={
          topic && (
            <>
              <PauseButton topic={name} paused={topic.paused} onDone={reload} />
              <PauseButton topic={name} paused={topic.paused} onDone={reload} side="push" />
              <Button needs="admin" kind="danger" onClick={() => setPurging('messages')}>
                Purge…
              </Button>
            </>
          )
        }
      >
        {topic && pausedText(topic.paused) !== undefined && <State of="paused" as={pausedText(topic.paused) ?? ''} />}
      </Head>
      <ErrorNote error={error} onRetry={reload} />
      {counts && (
        <section class="tiles" aria-label="Counts">
          <Tile name="Delayed" href={href('/agenda', { topic: name })}>
            {count(counts.delayed)}
          </Tile>
          <Tile
            name="Due, waiting"
            href={href('/agenda', { topic: name, show: 'overdue' })}
            note={
              counts.visible > 0 && counts.oldestMs !== undefined
                ? `the oldest for ${duration(counts.oldestMs)}`
                : undefined
            }
          >
            {count(counts.visible)}
          </Tile>
          <Tile name="In flight" href={href('/messages', { topic: name, state: 'inFlight' })}>
            {count(counts.inFlight)}
          </Tile>
          <Tile
            name="Dead letters"
            href={href('/dead-letters', { topic: name })}
            kind={counts.dead > 0 ? 'bad' : undefined}
          >
            {count(counts.dead)}
          </Tile>
        </section>
      )}
      {topic && (
        <section class="panel" aria-labelledby="settings">
          <div class="panel-head">
            <h2 id="settings">Settings</h2>
            <a class="small" href={href('/messages', { topic: name })}>
              Messages of this topic
            </a>
          </div>
          <SettingFacts of={topic} />
          <div class="buttons">
            <Button
              needs="admin"
              kind="danger"
              onClick={() => setPurging('dead-letters')}
              blocked={counts?.dead === 0 ? 'There are no dead letters.' : undefined}
            >
              Purge dead letters…
            </Button>
          </div>
        </section>
      )}
      {purging && (
        <Purge
          topic={name}
          what={purging}
          howMany={purging === 'messages' ? counts?.total : counts?.dead}
          onClose={() => setPurging(undefined)}
          onDone={reload}
        />
      )}
    </>
  )
}

type Settings = Awaited<ReturnType<typeof api.topic>>['settings']

function SettingFacts({ of }: { readonly of: Awaited<ReturnType<typeof api.topic>> }): JSX.Element {
  const { settings, createdAt } = of
  return (
    <Facts
      of={[
        ['Made', <Moment at={createdAt} />],
        [
          'Endpoint',
          settings.endpoint === null ? (
            'none: consumers receive'
          ) : (
            <a href={href(pathOf('endpoints', settings.endpoint))}>
              <Outside text={settings.endpoint} mono />
            </a>
          ),
        ],
        ['Shards', count(settings.shards)],
        ['Delay', duration(settings.delay)],
        ['Visibility timeout', duration(settings.visibilityTimeout)],
        ['Delivery limit', count(settings.deliveryLimit)],
        ['Time to live', settings.timeToLive === null ? 'for ever' : duration(settings.timeToLive)],
        ['Most messages, each shard', limit(settings.maxSize)],
        ['Most at once, each shard', limit(settings.concurrency)],
        ['Most deliveries, each shard', rate(settings.rateLimit)],
        ['Most at once, each group', limit(settings.groupConcurrency)],
        ['Most deliveries, each group', rate(settings.groupRateLimit)],
        [
          'Dead letters',
          settings.deadLetters ? kept(settings.keepDeadLetters, settings.keepDeadLettersFor) : 'removed',
        ],
        [
          'Completed messages',
          settings.keepCompleted === null ? 'not kept' : kept(settings.keepCompleted, settings.keepCompletedFor),
        ],
        ['Retry delays', settings.retryDelays.slice(0, 20).map(duration).join(', ')],
        ['Events', settings.events ? 'kept' : 'not kept'],
      ]}
    />
  )
}

function limit(most: number | null): string {
  return most === null ? 'no limit' : count(most)
}

function rate(most: Settings['rateLimit']): string {
  return most === null ? 'no limit' : `${count(most.max)} in ${duration(most.perMs)}`
}

function kept(most: number | null, ms: number | null): string {
  const parts = [most !== null && `the last ${count(most)}`, ms !== null && `for ${duration(ms)}`]
  return ['kept', ...parts.filter((part) => part !== false)].join(', ')
}

interface PurgeProps {
  readonly topic: string
  readonly what: Purged
  readonly howMany: number | undefined
  readonly onClose: () => void
  readonly onDone: () => void
}

function Purge({ topic, what, howMany, onClose, onDone }: PurgeProps): JSX.Element {
  const things = what === 'messages' ? 'messages' : 'dead letters'
  return (
    <Confirm
      title={`Purge the ${things}?`}
      deed={`Purge ${things}`}
      typed={topic}
      onClose={onClose}
      onConfirm={async () => {
        const { purged } = await api.purge(topic, what)
        announce(`${count(purged)} ${things} of ${topic} were removed`)
        onDone()
      }}
    >
      <p>
        This removes {howMany === undefined ? 'all' : `all ${count(howMany)}`} {things} of{' '}
        <Outside text={topic} limit={128} mono />
        {what === 'messages' ? ', also those that consumers have now' : ''}. It cannot be undone.
      </p>
    </Confirm>
  )
}
