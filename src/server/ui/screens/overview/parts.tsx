import type { JSX } from 'preact'
import type { Overview } from '../../api/types.js'
import { bytes, count, duration } from '../../lib/format.js'
import { href } from '../../lib/router.js'
import { Facts } from '../../parts/facts.js'
import { Outside } from '../../parts/outside.js'

/** The state of Redis, the journal and the instances. */
export function Parts({ of }: { readonly of: Overview }): JSX.Element {
  const { redis, journal, instances, topics } = of
  const limit = redis.maxMemory === null || redis.maxMemory === 0 ? '' : ` of ${bytes(redis.maxMemory)}`
  return (
    <section class="columns" aria-label="Redis, journal and instances">
      <div class="panel">
        <h2>Redis</h2>
        <Facts
          of={[
            ['State', <Outside text={redis.state} limit={60} />],
            ['Version', <Outside text={redis.version} limit={60} />],
            ['Memory', redis.usedMemory === null ? '–' : `${bytes(redis.usedMemory)}${limit}`],
          ]}
        />
      </div>
      <div class="panel">
        <h2>
          <a href={href('/journal')}>Journal</a>
        </h2>
        {journal === null ? (
          <p class="muted">None: what Redis loses is lost.</p>
        ) : (
          <Facts
            of={[
              ['Database', <Outside text={journal.kind} limit={60} />],
              ['Mode', <Outside text={journal.mode} limit={60} />],
              [
                'Behind',
                journal.pending === null
                  ? '–'
                  : `${count(journal.pending)} changes${journal.lagMs === null ? '' : `, ${duration(journal.lagMs)}`}`,
              ],
            ]}
          />
        )}
      </div>
      <div class="panel">
        <h2>
          <a href={href('/instances')}>Instances</a>
        </h2>
        <Facts
          of={[
            ['Running', count(instances)],
            ['Topics', <a href={href('/topics')}>{count(topics)}</a>],
          ]}
        />
      </div>
    </section>
  )
}
