import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../api/api.js'
import type { Endpoint } from '../../api/types.js'
import { count, duration } from '../../lib/format.js'
import { go, href } from '../../lib/router.js'
import { announce } from '../../parts/announcements.js'
import { Button } from '../../parts/button.js'
import { Confirm } from '../../parts/dialog.js'
import { Outside } from '../../parts/outside.js'

interface EndpointActionsProps {
  readonly of: Endpoint
  readonly onDone: () => void
}

/** The actions on an endpoint: test, disable or enable, recover, delete. */
export function EndpointActions({ of: { id, enabled, topics = [] }, onDone }: EndpointActionsProps): JSX.Element {
  const [asked, setAsked] = useState<'recover' | 'delete' | undefined>(undefined)
  const close = (): void => setAsked(undefined)
  return (
    <>
      <Button
        needs="admin"
        onClick={async () => {
          const { status, error, tookMs } = await api.test(id)
          const isGood = status !== null && status >= 200 && status < 300
          announce(
            `Test: ${status === null ? (error ?? 'no answer') : `status ${status}`} after ${duration(tookMs)}`,
            !isGood,
          )
        }}
      >
        Send a test
      </Button>
      <Button
        needs="admin"
        onClick={async () => {
          await api.enable(id, !enabled)
          announce(enabled ? 'The endpoint is disabled; its messages wait' : 'The endpoint is enabled')
          onDone()
        }}
      >
        {enabled ? 'Disable' : 'Enable'}
      </Button>
      <Button needs="admin" kind="main" onClick={() => setAsked('recover')}>
        Recover…
      </Button>
      <Button needs="admin" kind="danger" onClick={() => setAsked('delete')}>
        Delete…
      </Button>
      {asked === 'recover' && (
        <Confirm
          title="Recover this endpoint?"
          deed="Recover"
          onClose={close}
          onConfirm={async () => {
            const { redriven } = await api.recover(id)
            announce(`Recovered; ${count(redriven)} dead letters are due again`)
            onDone()
          }}
        >
          <p>
            This enables the endpoint, closes its breaker, and moves all dead letters of its topics back: each is sent
            again.
          </p>
        </Confirm>
      )}
      {asked === 'delete' && (
        <Confirm
          title="Delete this endpoint?"
          deed="Delete endpoint"
          {...(topics.length > 0 && { typed: id })}
          onClose={close}
          onConfirm={async () => {
            await api.deleteEndpoint(id, topics.length > 0)
            announce('The endpoint was deleted')
            go(href('/endpoints'))
          }}
        >
          <p>
            The endpoint, its secret and its last answers are removed. It cannot be undone.
            {topics.length > 0 &&
              ` ${topics.length === 1 ? 'One topic has' : `${count(topics.length)} topics have`} it: the messages wait until the topic gets another endpoint, or consumers receive them.`}
          </p>
          {topics.length > 0 && (
            <p class="small muted">
              Its id: <Outside text={id} mono />
            </p>
          )}
        </Confirm>
      )}
    </>
  )
}
